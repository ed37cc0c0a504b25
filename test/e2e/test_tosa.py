"""Convert each exported program to TOSA, check the file, run it in Arm's reference model and in chute, compare with
PyTorch; the same program as MLIR passes LLVM's own checks.

TOSA has static shapes, 32-bit integers and no double precision: cases with dynamic shapes are refused, f64 results are
compared as f32.
"""
import json
import shutil
import subprocess

import numpy as np
import oracles
import pytest
from cases import CASES
from conftest import CHUTE, chute

FLOATS = "tosa-1.0+fp+bf16+fp8e4m3+fp8e5m2+fft+cf+nolevel"
REFUSED = 3  # exit code: the model holds something that chute can not lower

# Cases that have no TOSA form, with what the refusal says.
UNSIGNED, EMPTY, POWER = "unsigned integers, which TOSA does not have", "TOSA has no empty tensors", "to a power that is no constant"
RUN_TIME, PRODUCT = "over a shape known only at run time", "TOSA multiplies only floats up"
UNSUPPORTED = {
    **dict.fromkeys(("add_uint8", "bitwise_and_uint8", "bitwise_or_uint8", "bitwise_xor_uint8", "sum_uint8", "unpack_int4",
                     "l1_loss_uint8", "cosine_embedding_loss_uint8", "hinge_embedding_loss_uint8", "poisson_nll_loss_uint8"), UNSIGNED),
    **dict.fromkeys(("fault_B7_empty_slice_is_output", "pool_to_nothing", "zero_size_output", "zero_size_reduce", "logcumsumexp_of_nothing",
                     "logsumexp_of_nothing", "std_of_nothing", "softmax_of_no_integers", "batch_norm_of_no_integers"), EMPTY),
    **dict.fromkeys(("left_shift", "right_shift", "pow_int_negative_base"), POWER),
    **dict.fromkeys(("index_mask_constant", "index_mask_constant_second"), RUN_TIME),
    **dict.fromkeys(("prod_int_keepdim", "scatter_reduce_inner_prod", "scatter_reduce_inner_prod_without_self"), PRODUCT),
}
# Only the integer profile has their operators (bits, extremes of any i32): the float profile refuses them by name.
INTEGERS = set("""
    amax_int32 bitwise_and_int32 bitwise_and_int64 bitwise_and_mask bitwise_and_scalar bitwise_not_int bitwise_or_int32
    bitwise_or_int64 bitwise_or_mask bitwise_or_scalar bitwise_xor_int32 bitwise_xor_int64 bitwise_xor_mask
    bitwise_xor_scalar scatter_reduce_inner_amax scatter_reduce_inner_amax_without_self scatter_reduce_inner_amin
    scatter_reduce_inner_amin_without_self scatter_sum_of_bools scatter_product_of_bools
""".split())
# Its infinities get their sign from a zero's, which TOSA's rounding (FLOOR of x + 1/2) does not keep.
SIGN_OF_ZERO = {"nan_to_num_values"}


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n].dynamic is None and n not in SIGN_OF_ZERO])
def test_tosa(models, tmp_path, name):
    pytest.importorskip("tosa_reference_model")
    folder, case = models / name, CASES[name]
    tosa, note = tmp_path / "model.tosa", tmp_path / "note.json"
    profile = "int+fp" if name in INTEGERS else "fp"
    if name in INTEGERS:
        refused = chute("convert", folder / "model.pt2", "-o", tosa, "--profile", "fp", expect=REFUSED).stderr
        assert "error[tosa.profile]" in refused and "--profile int+fp" in refused
    done = subprocess.run([CHUTE, "convert", folder / "model.pt2", "-o", tosa, "--profile", profile, "--report", note],
                          capture_output=True, text=True, timeout=60)
    if name in UNSUPPORTED:
        assert done.returncode == REFUSED and UNSUPPORTED[name] in done.stderr, done.stderr
        return
    assert done.returncode == 0, done.stderr
    chute("verify", tosa, *(("--target", FLOATS) if profile == "fp" else ()))
    if shutil.which("mlir-opt-19"):
        chute("convert", folder / "model.pt2", "-o", tmp_path / "model.mlir", "--profile", profile)
        opt = subprocess.run(["mlir-opt-19", "--tosa-validate", tmp_path / "model.mlir", "-o", "/dev/null"],
                             capture_output=True, text=True)
        assert opt.returncode == 0, opt.stderr[-500:]
    face = json.loads(note.read_text())["interface"]
    want, inputs = oracles.load(folder / "expected.npz", "out"), oracles.load(folder / "inputs.npz", "in")
    assert len(inputs) == len(face["inputs"])
    given = [np.array(v, dtype=s["dtype"], order="C").reshape(s["shape"]) for v, s in zip(inputs, face["inputs"])]
    theirs, why = oracles.apart(oracles.run_tosa, tosa, given)
    assert theirs is not None, why
    np.savez(tmp_path / "bound.npz", **{f"in{i}": v for i, v in enumerate(given)})
    chute("run", tosa, "--inputs", tmp_path / "bound.npz", "-o", tmp_path / "ours.npz")
    for who, got in (("reference model", theirs), ("chute run", oracles.load(tmp_path / "ours.npz", "out"))):
        got = [np.asarray(g).reshape(s["shape"]) for g, s in zip(got, face["outputs"])]
        narrow = [w.astype(g.dtype) if w.dtype in (np.int64, np.float64) else w for g, w in zip(got, want)]
        _, wrong = oracles.difference(got, narrow, max(case.rtol, 1e-4), max(case.atol, 1e-4))
        assert not wrong, f"{who}: {wrong}"
