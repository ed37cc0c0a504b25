"""Rows of the faults table about files: signatures, empty buffers, names, order. Each with a look-alike."""
import os
import pathlib
import subprocess

import flatbuffers
import numpy as np
import pytest
from circle_schema import circle
from conftest import CHUTE, chute
from oracles import apart, run_reference


def read(path):
    return circle.Model.ModelT.InitFromPackedBuf(pathlib.Path(path).read_bytes(), 0)


def write(model, path):
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    path.write_bytes(builder.Output())
    return path


def from_text(tmp_path, text, level="-O0"):
    (tmp_path / "m.ir").write_text(text.strip() + "\n")
    chute("optimize", tmp_path / "m.ir", "-o", tmp_path / "m.circle", level)
    return tmp_path / "m.circle"


VIEWS = """
graph @m(%x: f32[2,3]) -> ("y": f32[2,3]) {
  %s = core.constant dense<[6]> : i32[1]
  %t = core.constant dense<[2, 3]> : i32[2]
  %a = circle.reshape(%x, %s) {new_shape = [6]}
  %e = circle.exp(%a)
  %y = circle.reshape(%e, %t) {new_shape = [2, 3]}
  return %y
}"""
RUN_TIME = """
graph @m(%x: f32[s0,3]) -> ("y": f32[s0,3]) {
  sym s0 in[1, 64]
  %y = circle.exp(%x) : f32[s0,3]
  return %y
}"""


def test_b13_static_tensors_have_no_shape_signature(tmp_path):
    """An empty signature beside a static shape stops ONE's runtime; chute writes none, and takes one for none."""
    source = from_text(tmp_path, VIEWS)
    model = read(source)
    assert all(t.shapeSignature is None for t in model.subgraphs[0].tensors)
    for tensor in model.subgraphs[0].tensors:
        tensor.shapeSignature = []
    empty = write(model, tmp_path / "empty.circle")
    chute("optimize", empty, "-o", tmp_path / "out.circle")
    out = read(tmp_path / "out.circle").subgraphs[0]
    assert len(out.operators) == 1  # the reshapes were seen to be static
    values, why = apart(run_reference, tmp_path / "out.circle", [np.ones((2, 3), np.float32)])
    assert not why and np.allclose(values[0], np.e)


def test_b13_lookalike_sizes_known_at_run_time_keep_it(tmp_path):
    source = from_text(tmp_path, RUN_TIME, "-O1")
    assert [list(t.shapeSignature) for t in read(source).subgraphs[0].tensors] == [[-1, 3]] * 2


def test_b14_tensors_without_data_share_buffer_0(tmp_path):
    source = from_text(tmp_path, VIEWS)
    model = read(source)
    for tensor in model.subgraphs[0].tensors:
        if model.buffers[tensor.buffer].data is None or not len(model.buffers[tensor.buffer].data):
            model.buffers.append(circle.Buffer.BufferT())
            tensor.buffer = len(model.buffers) - 1
    many = write(model, tmp_path / "many.circle")
    for verb in (["optimize", many, "-o", tmp_path / "out.circle"], ["cleanup", many, "-o", tmp_path / "out.circle"]):
        chute(*verb)
        out = read(tmp_path / "out.circle")
        empty = [i for i, b in enumerate(out.buffers) if b.data is None or not len(b.data)]
        assert 0 in empty and {t.buffer for t in out.subgraphs[0].tensors} & set(empty) == {0}


def test_b14_lookalike_data_has_a_buffer_of_its_own(tmp_path):
    source = from_text(tmp_path, VIEWS)
    model = read(source)
    used = [t.buffer for t in model.subgraphs[0].tensors]
    constants = [b for b in used if model.buffers[b].data is not None and len(model.buffers[b].data)]
    assert len(constants) == 2 == len(set(constants)) and 0 not in constants


NAMES = """
graph @m(%x: f32[2], %y: f32[2]) -> ("out": f32[2], "x": f32[2]) {
  %z = core.constant dense<[0.0]> : f32[1]
  %a = circle.add(%x, %z)
  %out = circle.exp(%a)
  %b = circle.neg(%y)
  return %out, %b
}"""


def test_a20_ports_keep_their_names_and_places(tmp_path):
    """An output called like an input, an input whose only reader goes: the signature says what it said."""
    out = tmp_path / "out.circle"
    chute("optimize", from_text(tmp_path, NAMES), "-o", out)
    graph = read(out).subgraphs[0]
    assert [graph.tensors[i].name for i in graph.inputs] == [b"x", b"y"]
    x, y = np.array([0, 1], np.float32), np.array([5, 7], np.float32)
    values, why = apart(run_reference, out, [x, y])
    assert not why and np.allclose(values[0], np.exp(x)) and np.array_equal(values[1], -y)


def test_a20_lookalike_equal_outputs_stay_two(tmp_path):
    text = NAMES.replace("circle.neg(%y)", "circle.exp(%x)")
    out = tmp_path / "out.circle"
    chute("optimize", from_text(tmp_path, text), "-o", out)
    graph = read(out).subgraphs[0]
    assert len(graph.outputs) == 2 and len(graph.inputs) == 2
    values, why = apart(run_reference, out, [np.zeros(2, np.float32)] * 2)
    assert not why and np.array_equal(values[0], values[1])


@pytest.mark.parametrize("threads", ["1", "4"])
def test_a73_c11_one_file_gives_the_same_bytes(tmp_path, threads):
    """Whatever the process's address layout and environment: nothing depends on the order of a set."""
    source = from_text(tmp_path, VIEWS.replace("%e = circle.exp(%a)", "\n".join(
        f"  %k{i} = core.constant dense<{[i] * 6}.0> : f32[6]".replace(",", ".0,").replace("].0", ".0]") +
        f"\n  %v{i} = circle.sub(%{'a' if i == 0 else f'v{i - 1}'}, %k{i})" for i in range(20)) + "\n  %e = circle.exp(%v19)"))
    files = []
    for seed in range(3):
        out = tmp_path / f"{seed}.circle"
        subprocess.run([CHUTE, "optimize", source, "-o", out, "--threads", threads], check=True, capture_output=True,
                       env=os.environ | {"PADDING": "x" * (977 * seed)})
        files.append(out.read_bytes())
    assert files[0] == files[1] == files[2]


def test_a73_lookalike_another_order_is_another_file(tmp_path):
    first = from_text(tmp_path, NAMES).read_bytes()
    swapped = from_text(tmp_path, NAMES.replace("return %out, %b", "return %b, %out")).read_bytes()
    assert first != swapped
