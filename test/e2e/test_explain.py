"""chute explain: every obstacle in one run, with place, reason and way out; exit codes; nothing written."""
import json

import pytest
import torch
from conftest import ROOT, chute
from torch import nn


class SpectralNorm(nn.Module):
    def forward(self, x):
        return torch.linalg.matrix_norm(x, 2)


class Obstacles(nn.Module):
    """Two operators unknown to the core, one of them in two places, and one that only one of the targets refuses: a mask."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.conv = SpectralNorm(), SpectralNorm(), nn.Conv2d(1, 2, 3)

    def forward(self, x):
        return self.first(x) + self.second(x), torch.linalg.svdvals(x), x[x > 0.5], self.conv(x[None, None])


@pytest.fixture(scope="module")
def obstacles(tmp_path_factory):
    path = tmp_path_factory.mktemp("explain") / "model.pt2"
    torch.export.save(torch.export.export(Obstacles(), (torch.rand(4, 4),)), str(path))
    return path


def operators(told):
    return [problem["object"].split(" ", 1)[1] for problem in told["problems"]]


@pytest.mark.parametrize("target", ("circle", "tosa"))
def test_all_obstacles_at_once(obstacles, target):
    told = json.loads(chute("explain", obstacles, "--target", target, "--json", expect=3).stdout)
    assert not told["converts"] and told["output"] is None and told["target"] == target
    assert operators(told) == ["aten.linalg_matrix_norm.default", "core.unregistered 'aten.linalg_svdvals.default'",
                               *(["aten.index.Tensor"] if target == "tosa" else [])]
    norm = told["problems"][0]
    assert norm["module_path"] == "first" and "test_explain.py" in norm["source_line"]
    assert "2 occurrences" in norm["message"] and "second" in norm["message"] and norm["hint"]
    assert all(problem["hint"] and problem["source_line"] for problem in told["problems"])


def test_what_is_in_the_program(obstacles):
    told = json.loads(chute("explain", obstacles, "--json", expect=3).stdout)
    assert told["operators"]["aten.linalg_matrix_norm.default"] == 2
    assert told["element_types"]["bool"] == 1
    assert told["weights"]["count"] == 2 and told["weights"]["bytes"] == 80
    assert [w["type"] for w in told["weights"]["largest"]] == ["f32[2,1,3,3]", "f32[2]"]
    assert told["dynamic_sizes"][0]["max"] == 16


def test_table_for_a_person(obstacles):
    text = chute("explain", obstacles, expect=3).stdout
    assert "2 problems" in text and "operator" in text and "aten.linalg_svdvals.default" in text
    assert text.count("why: ") == 2 and text.count("do:  ") == 2


def test_exit_codes(models, obstacles, tmp_path):
    told = chute("explain", models / "linear" / "model.pt2").stdout
    assert "converts" in told and "output: 1 operators" in told
    chute("explain", tmp_path / "missing.pt2", expect=4)
    chute("explain", obstacles, "--target", "onnx", expect=2)


def test_conversion_agrees(obstacles, tmp_path):
    """convert stops at the first stage with errors; explain has said all of that and more."""
    out = tmp_path / "model.circle"
    stopped = chute("convert", obstacles, "-o", out, "--json", expect=3).stderr
    told = json.loads(chute("explain", obstacles, "--json", expect=3).stdout)
    refused = [json.loads(line)["object"] for line in stopped.splitlines()]
    assert refused == [problem["object"] for problem in told["problems"]][:len(refused)]
    assert not out.exists()


def test_nodes_against_a_tosa_target():
    model = ROOT / "examples" / "mobilenet_small" / "model.pt2"
    fits = json.loads(chute("explain", model, "--target", "tosa-1.0+fp", "--json").stdout)
    assert fits["converts"] and fits["placements"] and all(p["accepted"] for p in fits["placements"])
    conv = next(p for p in fits["placements"] if any(e.startswith("CONV2D") for e in p["emitted"]))
    assert conv["module"] and conv["emitted"][0].split()[-1] == "f32"
    for target in ("tosa-1.0+int", "ethos-u55-128"):
        fails = json.loads(chute("explain", model, "--target", target, "--json", expect=3).stdout)
        assert not fails["converts"] and "needs FP" in fails["placements"][0]["failed"]
        assert fails["problems"][0]["code"].startswith("tosa.")
    assert "is no target" in chute("explain", model, "--target", "tflite", expect=2).stderr
    assert chute("explain", model, "--target", "tosa-1.0+nonsense", expect=2).stderr
