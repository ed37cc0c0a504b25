"""Convert each exported program, check the file, and compare four executions with PyTorch's outputs:
chute's evaluator on the `.pt2` and on the `.circle`, tico's interpreter and onert on the `.circle`.
"""
import oracles
import pytest
from cases import CASES
from conftest import chute
from make_models import GENERATED

# Cases that chute refuses, with what it must say about them. Refusing is exit code 3.
UNSUPPORTED = {}

# Cases that no independent runtime executes, or executes as PyTorch does, with the reason; chute's own evaluator
# still has to agree on the file.
NO_ORACLE = {}

# Where onert computes something else, and why that is not the file's fault.
ONERT_DIFFERS = {}


def evaluate(model, inputs, out):
    chute("run", model, "--inputs", inputs, "-o", out)
    return oracles.load(out)


@pytest.mark.parametrize("name", CASES)
def test_convert(models, tmp_path, name):
    case = CASES[name]
    if name in UNSUPPORTED:
        done = chute("convert", models / name / "model.pt2", "-o", tmp_path / "model.circle", expect=3)
        assert UNSUPPORTED[name] in done.stderr
        assert not any(tmp_path.iterdir())
        return
    convert_and_compare(models / name, tmp_path, name, case.rtol, case.atol)


@pytest.mark.parametrize("name", GENERATED)
def test_generated(models, tmp_path, name):
    try:
        convert_and_compare(models / name, tmp_path, name, 1e-4, 1e-4)
    except AssertionError:
        print((models / name / "program.txt").read_text())
        raise


def convert_and_compare(folder, tmp_path, name, rtol, atol):
    circle, want = tmp_path / "model.circle", oracles.load(folder / "expected.npz")

    def check(who, got):
        _, wrong = oracles.difference(got, want, rtol, atol)
        assert not wrong, f"{who}: {wrong}"

    check("chute run model.pt2", evaluate(folder / "model.pt2", folder / "inputs.npz", tmp_path / "aten.npz"))
    chute("convert", folder / "model.pt2", "-o", circle)
    chute("verify", circle)
    check("chute run model.circle", evaluate(circle, folder / "inputs.npz", tmp_path / "circle.npz"))

    inputs, agreed, notes = oracles.load(folder / "inputs.npz"), 0, []
    for who, runtime in (("tico", oracles.run_reference), ("onert", oracles.run_onert)):
        if who == "onert" and (name in ONERT_DIFFERS or name in GENERATED):
            continue
        got, why = oracles.apart(runtime, circle, inputs)
        if got is None:
            notes.append(f"{who} did not run it: {why}")
            continue
        check(who, oracles.restore_shape(got, want) if who == "onert" else got)
        agreed += 1
    assert agreed or name in NO_ORACLE or name in GENERATED, "; ".join(notes)


def test_tables_name_cases():
    assert not (set(UNSUPPORTED) | set(NO_ORACLE) | set(ONERT_DIFFERS)) - set(CASES)
