"""What a written `.circle` holds, read with the schema's own Python package."""
from collections import Counter

import flatbuffers
import numpy as np
import pytest
from circle_schema import circle
from conftest import ROOT, chute

EXAMPLES = ("mobilenet_small", "decoder_small")
NAMES = {v: k for k, v in vars(circle.BuiltinOperator.BuiltinOperator).items() if not k.startswith("_")}


def read(path):
    return circle.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)


def convert(model, out, *more):
    chute("convert", model, "-o", out, *more)
    return read(out)


def histogram(model):
    return Counter(NAMES[model.operatorCodes[op.opcodeIndex].builtinCode] for op in model.subgraphs[0].operators)


def plain(value):
    """Tables of the object API as nested tuples, for comparison."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(v) for v in value]
    if hasattr(value, "__dict__"):
        return type(value).__name__, {k: plain(v) for k, v in vars(value).items()}
    return value


@pytest.mark.parametrize("name", EXAMPLES)
def test_survives_the_schema_s_reader_and_writer(name, tmp_path):
    """Read by independent code, written by it, read again by it and by chute: nothing is lost."""
    model = convert(ROOT / "examples" / name / "model.pt2", tmp_path / "one.circle")
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    (tmp_path / "two.circle").write_bytes(builder.Output())
    assert plain(read(tmp_path / "two.circle")) == plain(model)
    chute("verify", tmp_path / "two.circle")
    for path in ("one", "two"):
        chute("run", tmp_path / f"{path}.circle", "--inputs", ROOT / "examples" / name / "inputs.npz", "-o", tmp_path / f"{path}.npz")
    one, two = np.load(tmp_path / "one.npz"), np.load(tmp_path / "two.npz")
    assert all(np.array_equal(one[k], two[k]) for k in one.files)


@pytest.mark.parametrize("name", EXAMPLES)
def test_same_bytes_every_time(name, tmp_path):
    written = []
    for threads in ("1", "2", "2"):
        out = tmp_path / f"{len(written)}.circle"
        convert(ROOT / "examples" / name / "model.pt2", out, "--threads", threads)
        written.append(out.read_bytes())
    assert written[0] == written[1] == written[2]


@pytest.mark.parametrize("name", EXAMPLES)
def test_buffers_are_aligned_and_unique(name, tmp_path):
    convert(ROOT / "examples" / name / "model.pt2", tmp_path / "out.circle")
    data = (tmp_path / "out.circle").read_bytes()
    assert data[4:8] == b"CIR0"
    model, seen = circle.Model.Model.GetRootAs(data, 0), set()
    assert model.BuffersLength() and model.Buffers(0).DataLength() == 0
    for i in range(1, model.BuffersLength()):
        buffer = model.Buffers(i)
        if buffer.DataLength():
            start = buffer._tab.Vector(buffer._tab.Offset(4))
            assert start % 16 == 0, f"buffer {i} starts at {start}"
            content = data[start:start + buffer.DataLength()]
            assert content not in seen, f"buffer {i} repeats another"
            seen.add(content)
    assert seen


def test_tied_weights_are_stored_once(models, tmp_path):
    model = convert(models / "tied_weights" / "model.pt2", tmp_path / "out.circle")
    sizes = [len(b.data) for b in model.buffers if b.data is not None]
    assert sizes.count(10 * 4 * 4) == 1


def test_interface_keeps_names_order_and_types(models, tmp_path):
    graph = convert(models / "where" / "model.pt2", tmp_path / "out.circle").subgraphs[0]
    inputs = [graph.tensors[i] for i in graph.inputs]
    kinds = circle.TensorType.TensorType
    assert [t.type for t in inputs] == [kinds.BOOL, kinds.FLOAT32, kinds.FLOAT32]
    assert [list(t.shape) for t in inputs] == [[3, 4]] * 3
    assert len({t.name for t in graph.tensors}) == len(graph.tensors)


def test_unused_input_stays(models, tmp_path):
    assert len(convert(models / "unused_input" / "model.pt2", tmp_path / "out.circle").subgraphs[0].inputs) == 2


@pytest.mark.parametrize("name, most", [("conv_chain", 2), ("conv_residual", 2), ("conv_cat_channels", 2), ("conv_unet", 2),
                                        ("conv_squeeze_excite", 2), ("conv2d_bn_relu6", 2), ("pool_of_permuted", 0)])
def test_neighbours_that_agree_have_no_transposes(models, tmp_path, name, most):
    """At most one at the entry and one at the exit, whose order PyTorch fixes."""
    seen = histogram(convert(models / name / "model.pt2", tmp_path / "out.circle"))
    assert seen["TRANSPOSE"] <= most, seen


def test_mobilenet_is_lean(tmp_path):
    seen = histogram(convert(ROOT / "examples" / "mobilenet_small" / "model.pt2", tmp_path / "out.circle"))
    assert seen["TRANSPOSE"] <= 1 and seen["CONV_2D"] + seen["DEPTHWISE_CONV_2D"] == 31
    assert not any(seen[left] for left in ("SUB", "RSQRT", "SQRT")), f"batch norm is not folded: {seen}"


def test_conv_relu_is_one_operator(models, tmp_path):
    assert histogram(convert(models / "conv2d_relu" / "model.pt2", tmp_path / "out.circle"))["RELU"] == 0
