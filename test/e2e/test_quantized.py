"""Quantized programs: converted, verified, and compared with PyTorch in chute's evaluator and in tico's interpreter.

A quantized output may differ by two of its steps (runtimes round ties and sums in their own ways), a float output by
two steps of what was rounded last.
"""
import pathlib

import numpy as np
import oracles
import pytest
import torch
from circle_schema import circle
from conftest import chute
from quantized_models import MODELS
from tico.circle.runtime import CircleReferenceRuntime, ExecutionMode

NUMPY = {0: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16, 9: np.int8, 16: np.uint16,
         -1: np.uint8, 17: np.int8}


def interface(path):
    """Inputs and outputs as (numpy type, scale or None, zero point), and how often each operator occurs."""
    file = circle.Model.ModelT.InitFromPackedBuf(pathlib.Path(path).read_bytes(), 0)
    graph = file.subgraphs[0]

    def port(i):
        q = graph.tensors[i].quantization
        one = q is not None and q.scale is not None and len(q.scale) == 1
        return NUMPY[graph.tensors[i].type], float(q.scale[0]) if one else None, int(q.zeroPoint[0]) if one else 0
    names = {v: k for k, v in vars(circle.BuiltinOperator.BuiltinOperator).items() if isinstance(v, int)}
    count = {}
    for op in graph.operators:
        name = names[file.operatorCodes[op.opcodeIndex].builtinCode]
        count[name] = count.get(name, 0) + 1
    return [port(i) for i in graph.inputs], [port(i) for i in graph.outputs], count


def store(value, port):
    kind, scale, zero = port
    if scale is None:
        return np.asarray(value, dtype=kind)
    limits = np.iinfo(kind)
    return np.clip(np.rint(value / np.float32(scale)) + zero, limits.min, limits.max).astype(kind)


def real(value, port):
    kind, scale, zero = port
    value = np.asarray(value)
    return value if scale is None or value.dtype.kind == "f" else (value.astype(np.float32) - zero) * np.float32(scale)


def run_tico(path, inputs):
    """On stored integers where the interpreter does that, else on the reals that they stand for."""
    ports = interface(path)[0]
    runtime = CircleReferenceRuntime(pathlib.Path(path).read_bytes())
    given = [store(v, p) for v, p in zip(inputs, ports)]
    try:
        done = runtime.run([torch.from_numpy(v) for v in given])
    except Exception as error:
        if "FAKE_QUANTIZE" not in str(error):
            raise
        given = [real(v, p) for v, p in zip(given, ports)]
        done = runtime.run([torch.from_numpy(v) for v in given], mode=ExecutionMode.FAKE_QUANTIZE)
    return [np.asarray(o) for o in done.outputs]


def run_onert(path, inputs):
    ports = interface(path)[0]
    return oracles.run_onert(path, [store(v, p) for v, p in zip(inputs, ports)])


def export(folder, name):
    make, shapes = MODELS[name]
    torch.manual_seed(7)
    module = make().eval()
    inputs = tuple(torch.randn(s) if isinstance(s, tuple) else s for s in shapes)
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(torch.export.export(module, inputs), str(folder / "model.pt2"))
    with torch.no_grad():
        want = module(*inputs)
    want = [t.numpy() for t in (want if isinstance(want, tuple) else (want,))]
    return [t.numpy() for t in inputs], want


def close(who, got, want, ports, loose, steps=2):
    assert len(got) == len(want), who
    for i, (g, w, p) in enumerate(zip(got, want, ports)):
        g = real(g, p)
        assert g.shape == w.shape, f"{who}: output {i} has shape {g.shape}, expected {w.shape}"
        step = (steps + 0.01) * p[1] if p[1] is not None else loose
        difference = np.abs(g.astype(np.float64) - w.astype(np.float64)).max()
        assert difference <= step + 1e-5, f"{who}: output {i} differs by {difference}, allowed {step}"


# Roundings of coarser values before the output move it by more than two of its own steps.
STEPS = {"Attention": 6}
# Float outputs that follow a rounding of that size.
LOOSE = {"RawAndRounded": 0.02, "Views": 0.04}


def convert(folder, *options):
    out = folder / "model.circle"
    done = chute("convert", folder / "model.pt2", "-o", out, "--verify-each", "--json", *options)
    chute("verify", out)
    return out, done.stderr


# Neither independent runtime has the operator.
NO_ORACLE = {"Selection": "TOPK_V2"}
# The evaluator executes these once they are arithmetic.
NO_ATEN_KERNEL = ("PerToken", "ChosenForTensor", "GroupedWeight")


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_pytorch(tmp_path, name):
    inputs, want = export(tmp_path, name)
    np.savez(tmp_path / "inputs.npz", **{f"in{i}": v for i, v in enumerate(inputs)})
    loose = LOOSE.get(name, 1e-4)
    path, _ = convert(tmp_path)
    ins, outs, _ = interface(path)
    rounded = [(w.dtype, o[1], 0) for w, o in zip(want, outs)]  # reals that were rounded to steps
    if not name.startswith(NO_ATEN_KERNEL):
        chute("run", tmp_path / "model.pt2", "--inputs", tmp_path / "inputs.npz", "-o", tmp_path / "aten.npz")
        close("chute run model.pt2", oracles.load(tmp_path / "aten.npz", "out"), want, rounded, loose, STEPS.get(name, 2))
    np.savez(tmp_path / "stored.npz", **{f"in{i}": store(v, p) for i, (v, p) in enumerate(zip(inputs, ins))})
    chute("run", path, "--inputs", tmp_path / "stored.npz", "-o", tmp_path / "circle.npz")
    close("chute run model.circle", oracles.load(tmp_path / "circle.npz", "out"), want, outs, loose, STEPS.get(name, 2))
    agrees_outside(name, path, inputs, want, outs, loose)

    path, _ = convert(tmp_path, "--set", "quant_io=float")
    assert all(p[0] == v.dtype for p, v in zip(interface(path)[0], inputs)), "an input changed its type"
    assert all(p[0] == v.dtype for p, v in zip(interface(path)[1], want)), "an output changed its type"
    agrees_outside(name, path, inputs, want, rounded, loose)


def agrees_outside(name, path, inputs, want, outs, loose):
    """In a runtime that is not chute's."""
    notes = []
    for who, runtime in (("tico", run_tico), ("onert", run_onert)):
        got, why = oracles.apart(runtime, path, inputs)
        if got is not None:
            return close(who, oracles.restore_shape(got, want), want, outs, loose, STEPS.get(name, 2))
        notes.append(f"{who}: {why}")
    assert name in NO_ORACLE, "; ".join(notes)
