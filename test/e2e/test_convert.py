"""Convert each exported program, check the file, and compare four executions with PyTorch's outputs:
chute's evaluator on the `.pt2` and on the `.circle`, tico's interpreter and onert on the `.circle`.

The executable is $CHUTE. Models are exported once into build/e2e/models (make_models.py).
"""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import make_models  # noqa: E402
import oracles  # noqa: E402
import cases_tricky  # noqa: E402,F401
from cases import CASES  # noqa: E402

FOLDER = HERE.parents[1] / "build" / "e2e"
CHUTE = os.environ.get("CHUTE", str(HERE.parents[1] / "build" / "dev" / "chute"))

# Cases that chute refuses, with what it must say about them. Refusing is exit code 3.
UNSUPPORTED = {}

# Cases that no independent runtime executes, or executes as PyTorch does, with the reason; chute's own evaluator
# still has to agree on the file.
NO_ORACLE = {}

# Where onert computes something else, and why that is not the file's fault.
ONERT_DIFFERS = {}


@pytest.fixture(scope="session")
def models():
    problems = make_models.make_all(FOLDER / "models")
    assert not problems, problems
    return FOLDER / "models"


def chute(*arguments, expect=0):
    done = subprocess.run([CHUTE, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == expect, f"chute {arguments[0]}: exit code {done.returncode}\n{done.stderr[-2000:]}"
    return done


def evaluate(model, inputs, out):
    chute("run", model, "--inputs", inputs, "-o", out)
    return oracles.load(out)


@pytest.mark.parametrize("name", CASES)
def test_convert(models, tmp_path, name):
    case, folder = CASES[name], models / name
    circle = tmp_path / "model.circle"
    want = oracles.load(folder / "expected.npz")
    if name in UNSUPPORTED:
        assert UNSUPPORTED[name] in chute("convert", folder / "model.pt2", "-o", circle, expect=3).stderr
        assert not circle.exists()
        return

    def check(who, got):
        _, wrong = oracles.difference(got, want, case.rtol, case.atol)
        assert not wrong, f"{who}: {wrong}"

    check("chute run model.pt2", evaluate(folder / "model.pt2", folder / "inputs.npz", tmp_path / "aten.npz"))
    chute("convert", folder / "model.pt2", "-o", circle)
    chute("verify", circle)
    check("chute run model.circle", evaluate(circle, folder / "inputs.npz", tmp_path / "circle.npz"))

    inputs, agreed, notes = oracles.load(folder / "inputs.npz"), 0, []
    for runtime in (oracles.reference, oracles.onert):
        who = runtime.__name__
        got, why = oracles.apart(runtime, circle, inputs)
        if got is None:
            notes.append(f"{who} did not run it: {why}")
            continue
        if runtime is oracles.onert:
            if name in ONERT_DIFFERS:
                continue
            got = oracles.restore_shape(got, want)
        check(who, got)
        agreed += 1
    assert agreed or name in NO_ORACLE, "; ".join(notes)


def test_tables_name_cases():
    assert not (set(UNSUPPORTED) | set(NO_ORACLE) | set(ONERT_DIFFERS)) - set(CASES)


def test_same_bytes_every_time(models, tmp_path):
    """Any thread count, any run: the same file."""
    for name in ("conv_chain", "transformer_encoder_layer", "sdpa_gqa_causal"):
        written = []
        for threads in ("1", "2", "2"):
            out = tmp_path / f"{len(written)}.circle"
            chute("convert", models / name / "model.pt2", "-o", out, "--threads", threads)
            written.append(out.read_bytes())
        assert written[0] == written[1] == written[2], name
