"""Convert each exported program, check the file, and compare four executions with PyTorch's outputs:
chute's evaluator on the `.pt2` and on the `.circle`, tico's interpreter and onert on the `.circle`.

A program that writes to a buffer or an input gives the new content too, before what it returns; a `.circle` file has
the returned values alone, and no f64.
"""
import numpy as np
import oracles
import pytest
from cases import CASES
from conftest import chute
from make_models import GENERATED

# Cases that no independent runtime executes, or executes as PyTorch does, with the reason; chute's own evaluator
# still has to agree on the file.
NO_ORACLE = dict.fromkeys(("topk", "median_dim_nan", "argsort", "kthvalue", "median_all", "median_dim", "quantile", "sort",
                           "sort_descending", "topk_smallest"), "neither has a kernel for TOPK_V2")
NO_ORACLE |= dict.fromkeys(("fold", "index_add", "index_fill", "index_put_none_first", "index_put_two", "index_put_two_accumulate",
                            "index_put_apart", "max_unpool2d", "scatter_add", "scatter_add_value", "scatter_reduce_sum",
                            "scatter_reduce_inner_sum", "scatter_value"), "neither has a kernel for SCATTER_ND")
NO_ORACLE |= dict.fromkeys(("cummax", "cummin"), "tico has no LOGICAL_OR, onert no reduction of this type")
# Neither runtime has variable tensors; test_state.py runs those.
OPTIONS = dict.fromkeys(("writes_buffer", "fault_A27_mutations_between_outputs"), ("--state", "drop"))
NO_ORACLE |= {"remainder_negative": "tico has no FLOOR_MOD, onert none of i64"}
# onert compares NaN and infinity as if there were none, and has no sizes of 0.
ONERT_FAULTS = {"isfinite", "nan_to_num_values", "zero_size_output"}


def evaluate(model, inputs, out):
    chute("run", model, "--inputs", inputs, "-o", out)
    return oracles.load(out, "out")


@pytest.mark.parametrize("name", CASES)
def test_convert(models, tmp_path, name):
    case = CASES[name]
    convert_and_compare(models / name, tmp_path, name, case.rtol, case.atol)


@pytest.mark.parametrize("name", GENERATED)
def test_generated(models, tmp_path, name):
    try:
        convert_and_compare(models / name, tmp_path, name, 1e-4, 1e-4)
    except AssertionError:
        print((models / name / "program.txt").read_text())
        raise


def convert_and_compare(folder, tmp_path, name, rtol, atol):
    circle, expected = tmp_path / "model.circle", folder / "expected.npz"
    want, inputs = oracles.load(expected, "out"), oracles.load(folder / "inputs.npz", "in")

    def check(who, got, want=want):
        _, wrong = oracles.difference(got, want, rtol, atol)
        assert not wrong, f"{who}: {wrong}"

    check("chute run model.pt2", evaluate(folder / "model.pt2", folder / "inputs.npz", tmp_path / "aten.npz"),
          oracles.load(expected, "state", "out"))
    chute("convert", folder / "model.pt2", "-o", circle, *OPTIONS.get(name, ()))
    chute("verify", circle)
    np.savez(tmp_path / "bound.npz", **{f"in{i}": x for i, x in enumerate(oracles.bind(circle, inputs))})
    check("chute run model.circle", evaluate(circle, tmp_path / "bound.npz", tmp_path / "circle.npz"))

    agreed, notes = 0, []
    for who, runtime in (("tico", oracles.run_reference), ("onert", oracles.run_onert)):
        if who == "onert" and (name in GENERATED or name in ONERT_FAULTS):
            continue
        got, why = oracles.apart(runtime, circle, inputs)
        if got is None:
            notes.append(f"{who} did not run it: {why}")
            continue
        check(who, oracles.restore_shape(got, want) if who == "onert" else got)
        agreed += 1
    assert agreed or name in NO_ORACLE or name in GENERATED, "; ".join(notes)


def test_tables_name_cases():
    assert not (set(NO_ORACLE) | ONERT_FAULTS) - set(CASES)
