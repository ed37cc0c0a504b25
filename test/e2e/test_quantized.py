"""Quantized programs: converted, verified, and compared with PyTorch in chute's evaluator and in tico's interpreter.

A quantized output may differ by two of its steps (runtimes round ties and sums in their own ways), a float output by
two steps of what was rounded last.
"""
import json
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


def export(folder, module, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    module.eval()
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


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_pytorch(tmp_path, name):
    make, shapes = MODELS[name]
    torch.manual_seed(7)
    module = make()
    agree(tmp_path, module, tuple(torch.randn(s) if isinstance(s, tuple) else s for s in shapes), name)


def agree(folder, module, inputs, name="", steps=2, loose=1e-4):
    """The file with stored integers at its interface, after every executor has agreed with PyTorch on it."""
    inputs, want = export(folder, module, inputs)
    np.savez(folder / "inputs.npz", **{f"in{i}": v for i, v in enumerate(inputs)})
    loose, steps = LOOSE.get(name, loose), STEPS.get(name, steps)
    real_path = convert(folder, "--set", "quant_io=float")[0].rename(folder / "real.circle")
    path, _ = convert(folder)
    ins, outs, _ = interface(path)
    rounded = [(w.dtype, o[1], 0) for w, o in zip(want, outs)]  # reals that were rounded to steps
    chute("run", folder / "model.pt2", "--inputs", folder / "inputs.npz", "-o", folder / "aten.npz")
    close("chute run model.pt2", oracles.load(folder / "aten.npz", "out"), want, rounded, loose, steps)
    np.savez(folder / "stored.npz", **{f"in{i}": store(v, p) for i, (v, p) in enumerate(zip(inputs, ins))})
    chute("run", path, "--inputs", folder / "stored.npz", "-o", folder / "circle.npz")
    close("chute run model.circle", oracles.load(folder / "circle.npz", "out"), want, outs, loose, steps)
    outside(name, path, inputs, want, outs, loose, steps)

    assert all(p[0] == v.dtype for p, v in zip(interface(real_path)[0], inputs)), "an input changed its type"
    assert all(p[0] == v.dtype for p, v in zip(interface(real_path)[1], want)), "an output changed its type"
    outside(name, real_path, inputs, want, rounded, loose, steps)
    return path


def outside(name, path, inputs, want, outs, loose, steps):
    """In a runtime that is not chute's."""
    notes = []
    for who, runtime in (("tico", run_tico), ("onert", run_onert)):
        got, why = oracles.apart(runtime, path, inputs)
        if got is not None:
            return close(who, oracles.restore_shape(got, want), want, outs, loose, steps)
        notes.append(f"{who}: {why}")
    assert name in NO_ORACLE, "; ".join(notes)


def test_report_follows_every_scale(tmp_path):
    torch.manual_seed(7)
    export(tmp_path, MODELS["Requantized"][0](), tuple(torch.randn(s) for s in MODELS["Requantized"][1]))
    chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle", "--quant-report", tmp_path / "q.json")
    report = json.loads((tmp_path / "q.json").read_text())
    sites = {s["name"]: s for s in report["parameters"]}
    assert len(sites) == 8
    assert {s["fate"] for s in sites.values()} <= {"input", "result", "constant", "explicit"}
    assert sites["fake_quantize_per_tensor_affine_2"]["parameters"].startswith("i16, scale 0.00061")
    assert {c["change"] for c in report["changes"]} == {"widened", "requantized"}
    assert report["reals"] == []
    text = chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle", "--quant-report", "-").stdout
    assert text.startswith("8 places of the program quantize\n") and "0 tensors are reals" in text


def test_report_says_why_a_tensor_stays_real(tmp_path):
    torch.manual_seed(7)
    export(tmp_path, MODELS["HugeBias"][0](), (torch.randn(3, 16),))
    chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle", "--quant-report", tmp_path / "q.json")
    report = json.loads((tmp_path / "q.json").read_text())
    assert any("bias is too large" in r["reason"] for r in report["reals"])


def test_an_operator_without_integer_form_is_noted(tmp_path):
    torch.manual_seed(7)
    export(tmp_path, MODELS["HugeBias"][0](), (torch.randn(3, 16),))
    done = chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle")
    assert "note[quant.left]" in done.stderr and "bias is too large" in done.stderr
    assert interface(tmp_path / "model.circle")[2]["DEQUANTIZE"] >= 1


@pytest.mark.parametrize("act, weight, size", [("int16", "int4", 64), ("int16", "uint4", 64), ("uint8", "uint8", 128)])
def test_weights_are_stored_in_their_own_bits(tmp_path, act, weight, size):
    make, shapes = MODELS[f"Linear_{act}_{weight}"]
    export(tmp_path, make(), tuple(torch.randn(s) for s in shapes))
    path, _ = convert(tmp_path)
    file = circle.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    graph = file.subgraphs[0]
    tensor = graph.tensors[graph.operators[0].inputs[1]]
    assert len(file.buffers[tensor.buffer].data) == size


def test_microscaling_types(tmp_path):
    export(tmp_path, MODELS["Microscaling_fp4_m1"][0](), (torch.randn(3, 40),))
    path, _ = convert(tmp_path, "--set", "mx=types")
    graph = circle.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0).subgraphs[0]
    assert [t.type for t in graph.tensors if t.quantization is not None] == [-6]


def test_a_table_with_a_scale_for_each_row_is_not_brought_to_reals(tmp_path):
    make, (rows,) = MODELS["TableWithAScaleForEachRow_3"]
    path = agree(tmp_path, make(), (rows,), "TableWithAScaleForEachRow_3")
    file = circle.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    tensors = file.subgraphs[0].tensors
    assert not [t for t in tensors if t.type == 0 and list(t.shape) == [12, 8]], "the table in f32"
    assert len([t for t in tensors if t.type == 3 and list(t.shape) == [12, 8]]) == 1
