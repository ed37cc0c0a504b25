"""Networks that people deploy, as exported and after PyTorch's decompositions, converted and compared with PyTorch in
tico's interpreter and in chute's evaluator; the work that a conversion counts is bounded per node.
"""
import json

import numpy as np
import oracles
import pytest
from conftest import ROOT, chute
from real_models import MODELS, export_all

# What tico's interpreter has no kernel for.
NO_ORACLE = {"qwen3_moe": "TOPK_V2"}
STEPS_PER_OPERATOR = 150  # measured: at most 83


@pytest.fixture(scope="session")
def real_models():
    folder = ROOT / "build" / "e2e" / "real"
    export_all(folder)
    return folder


@pytest.mark.parametrize("form", ("model", "core"))
@pytest.mark.parametrize("name", MODELS)
def test_real_model(real_models, tmp_path, name, form):
    folder, circle = real_models / name, tmp_path / "model.circle"
    want, inputs = oracles.load(folder / "expected.npz", "out"), oracles.load(folder / "inputs.npz", "in")
    done = chute("convert", folder / f"{form}.pt2", "-o", circle, "--stats", "--json")
    chute("verify", circle)
    linear_steps(json.loads(done.stdout.splitlines()[-1])["nodes"], json.loads(done.stderr[:done.stderr.rindex("]") + 1]))

    np.savez(tmp_path / "bound.npz", **{f"in{i}": x for i, x in enumerate(oracles.bind(circle, inputs))})
    chute("run", circle, "--inputs", tmp_path / "bound.npz", "-o", tmp_path / "out.npz")
    compare("chute", oracles.load(tmp_path / "out.npz", "out"), want)
    got, why = oracles.apart(oracles.run_reference, circle, inputs)
    if name in NO_ORACLE:
        assert got is None and NO_ORACLE[name] in why
    else:
        assert got is not None, why
        compare("tico", got, want)


@pytest.mark.parametrize("name", MODELS)
def test_explain_foretells(real_models, tmp_path, name):
    model, circle = real_models / name / "model.pt2", tmp_path / "model.circle"
    told = json.loads(chute("explain", model, "--json").stdout)
    chute("convert", model, "-o", circle)
    assert told["converts"] and told["problems"] == []
    assert told["output"]["bytes"] == circle.stat().st_size
    assert sum(told["output"]["operators"].values()) == oracles.count_operators(circle)


def compare(who, got, want):
    _, wrong = oracles.difference(got, want, 1e-4, 1e-4)
    assert not wrong, f"{who}: {wrong}"


def linear_steps(nodes, passes):
    steps = sum(p["ops_visited"] + p["patterns_tried"] for p in passes)
    largest = max(nodes, *(p["ops_after"] for p in passes))
    assert steps <= STEPS_PER_OPERATOR * largest, f"{steps} steps for {largest} operators"
