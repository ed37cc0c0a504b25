"""The command line's promises: exit codes, what a message contains, and no partial files."""
import json
import random
import subprocess

import numpy as np
import pytest
import torch
from conftest import CHUTE, ROOT, chute

EXAMPLE = ROOT / "examples" / "mobilenet_small" / "model.pt2"


@pytest.fixture(scope="session")
def linear(models):
    return models / "linear" / "model.pt2"


@pytest.fixture(scope="session")
def exotic(tmp_path_factory):
    """A program with operators that have no lowering, one of them twice, inside named modules."""
    class Spectrum(torch.nn.Module):
        def forward(self, x):
            return torch.fft.fft(x).abs()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Spectrum(), Spectrum()

        def forward(self, x):
            return self.first(x) + self.second(x), torch.linalg.svdvals(x)

    path = tmp_path_factory.mktemp("exotic") / "model.pt2"
    torch.export.save(torch.export.export(Model(), (torch.rand(4, 4),)), str(path))
    return path


def test_help_and_version():
    assert "convert" in chute("--help").stdout
    assert chute("--version").stdout.startswith("chute ")
    for verb in ("convert", "run", "verify", "inspect", "passes", "opt"):
        assert "xample" in chute(verb, "--help").stdout


def test_passes_lists_each_with_a_summary():
    listed = json.loads(chute("passes", "--json").stdout)
    assert {"normalize", "decompose", "legalize-circle", "cse", "dce"} <= {p["name"] for p in listed}
    assert all(p["summary"] for p in listed)


@pytest.mark.parametrize("arguments", [(), ("convert",), ("frobnicate",), ("verify", "--no-such-option", "x.circle"),
                                       ("run", EXAMPLE, "--threads", "99999999"), ("run", EXAMPLE, "--seed", "-1"),
                                       ("convert", EXAMPLE, "-o", "x.circle", "--set", "no_such_setting=1")])
def test_usage_errors(arguments):
    assert chute(*arguments, expect=2).stderr if arguments else chute("nothing", expect=2)


def test_missing_and_unreadable_inputs(tmp_path):
    for verb in ("convert", "verify", "inspect"):
        more = ("-o", tmp_path / "out.circle") if verb == "convert" else ()
        assert "missing.pt2" in chute(verb, tmp_path / "missing.pt2", *more, expect=4).stderr
        (tmp_path / "empty.pt2").write_bytes(b"")
        chute(verb, tmp_path / "empty.pt2", *more, expect=4)
        (tmp_path / "text.pt2").write_text("not a model\n" * 100)
        chute(verb, tmp_path / "text.pt2", *more, expect=4)


def test_output_that_cannot_be_written(linear, tmp_path):
    chute("convert", linear, "-o", tmp_path / "no" / "such" / "folder" / "out.circle", expect=5)
    assert not any(tmp_path.iterdir())


def test_standard_output_that_cannot_be_written(linear):
    with open("/dev/full", "w") as full:
        done = subprocess.run([CHUTE, "inspect", linear, "--ir"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 5 and "cli.stdout" in done.stderr


def test_unsupported_operators_are_all_listed(exotic, tmp_path):
    message = chute("convert", exotic, "-o", tmp_path / "out.circle", expect=3).stderr
    assert "fft_c2c" in message or "fft_fft" in message
    assert "linalg_svdvals" in message or "linalg_svd" in message
    assert "first" in message or "second" in message, "no module path"
    assert "test_cli.py:" in message, "no source line"
    assert not any(tmp_path.iterdir())


def test_diagnostics_as_json(exotic, tmp_path):
    lines = chute("convert", exotic, "-o", tmp_path / "out.circle", "--json", expect=3).stderr.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(found) >= 2 and all(d["code"] and d["message"] for d in found)


def test_truncated_archives(linear, tmp_path):
    data = linear.read_bytes()
    for size in (1, 4, 30, 100, len(data) // 3, len(data) // 2, len(data) - 30, len(data) - 1):
        (tmp_path / "cut.pt2").write_bytes(data[:size])
        done = chute("convert", tmp_path / "cut.pt2", "-o", tmp_path / "out.circle", expect=4)
        assert done.stderr and not (tmp_path / "out.circle").exists()


def test_damaged_files_never_crash(linear, models, tmp_path):
    """Whatever a flipped byte does, the exit code is one of the documented ones."""
    chute("convert", linear, "-o", tmp_path / "good.circle")
    choice = random.Random(1)
    for source, verb in ((linear, "convert"), (tmp_path / "good.circle", "verify")):
        for trial in range(40):
            data = bytearray(source.read_bytes())
            for _ in range(choice.choice((1, 1, 4))):
                data[choice.randrange(len(data))] = choice.randrange(256)
            path = tmp_path / f"bad{source.suffix}"
            path.write_bytes(data)
            arguments = [verb, path] + (["-o", tmp_path / "out.circle"] if verb == "convert" else [])
            code = subprocess.run([CHUTE, *map(str, arguments)], capture_output=True, timeout=60).returncode
            assert code in (0, 1, 3, 4), f"trial {trial} of {verb}: exit code {code}"


def test_inspect(linear, tmp_path):
    chute("convert", linear, "-o", tmp_path / "out.circle")
    for model in (linear, tmp_path / "out.circle"):
        seen = json.loads(chute("inspect", model, "--json").stdout)
        assert seen["operators"] == 1
        assert len(seen["inputs"]) == 1 and len(seen["outputs"]) == 1
        assert "inear" in chute("inspect", model).stdout or "FULLY_CONNECTED" in chute("inspect", model).stdout.upper()


def test_run_forms(linear, models, tmp_path):
    """Inputs by position, by name and from a seed; the same seed gives the same outputs."""
    x = np.load(models / "linear" / "inputs.npz")["in0"]
    name = json.loads(chute("inspect", linear, "--json").stdout)["inputs"][0]["name"]
    np.savez(tmp_path / "named.npz", **{name: x})
    np.save(tmp_path / "alone.npy", x)
    results = []
    for given in (models / "linear" / "inputs.npz", tmp_path / "named.npz", tmp_path / "alone.npy"):
        chute("run", linear, "--inputs", given, "-o", tmp_path / "out.npz")
        results.append(np.load(tmp_path / "out.npz")["out0"])
    assert all(np.array_equal(r, results[0]) for r in results)
    seeded = []
    for seed in ("1", "1", "2"):
        chute("run", linear, "--seed", seed, "-o", tmp_path / "out.npz")
        seeded.append(np.load(tmp_path / "out.npz")["out0"])
    assert np.array_equal(seeded[0], seeded[1]) and not np.array_equal(seeded[0], seeded[2])


def test_run_converts_floating_point_inputs(linear, models, tmp_path):
    """A bf16 program's inputs have no NumPy form, and a Circle file takes f32 where its program took f64."""
    x = np.load(models / "linear" / "inputs.npz")["in0"]
    np.save(tmp_path / "wide.npy", x.astype(np.float64))
    done = chute("run", linear, "--inputs", tmp_path / "wide.npy", "-o", tmp_path / "out.npz")
    assert "run.input.converted" in done.stderr and "from f64 to f32" in done.stderr
    chute("run", linear, "--inputs", models / "linear" / "inputs.npz", "-o", tmp_path / "same.npz")
    assert np.array_equal(np.load(tmp_path / "out.npz")["out0"], np.load(tmp_path / "same.npz")["out0"])


def test_run_refuses_wrong_inputs(linear, tmp_path):
    np.savez(tmp_path / "shape.npz", in0=np.zeros((7, 7), np.float32))
    np.savez(tmp_path / "none.npz", other=np.zeros((3, 8), np.float32))
    np.savez(tmp_path / "kind.npz", in0=np.zeros((3, 8), np.int64))
    for name in ("shape", "none", "kind"):
        done = chute("run", linear, "--inputs", tmp_path / f"{name}.npz", "-o", tmp_path / "out.npz", expect=2)
        assert done.stderr and not (tmp_path / "out.npz").exists()


def test_quiet_when_all_is_well(tmp_path):
    done = chute("convert", EXAMPLE, "-o", tmp_path / "out.circle", "--quiet")
    assert done.stdout == "" and done.stderr == ""
