"""Runtimes that are not chute's: tico's interpreter and onert for a `.circle` file, Arm's reference model for `.tosa`.

Each runs in a forked process, since either may abort on a file that it doesn't support; both are imported here, once.
"""
import multiprocessing
import os
import pathlib

import numpy as np
import onert.infer
import torch
from circle_schema import circle
from tico.circle.runtime import CircleReferenceRuntime
from tico.circle.runtime.errors import CircleRuntimeError
from tico.circle.runtime.kernels import ExecutionMode

torch.set_num_threads(1)  # a forked child must not wait for threads that only its parent has

# Values of circle_schema's TensorType.
NUMPY_TYPES = {0: np.float32, 1: np.float16, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16,
               9: np.int8, 10: np.float64}


def circle_inputs(path):
    """[(name, numpy type, shape)] of the file's inputs, read with the schema's own Python reader."""
    graph = circle.Model.ModelT.InitFromPackedBuf(pathlib.Path(path).read_bytes(), 0).subgraphs[0]
    return [(graph.tensors[i].name.decode(), NUMPY_TYPES[graph.tensors[i].type], list(graph.tensors[i].shape))
            for i in graph.inputs]


def count_operators(path):
    model = circle.Model.ModelT.InitFromPackedBuf(pathlib.Path(path).read_bytes(), 0)
    return sum(len(graph.operators) for graph in model.subgraphs)


def bind(path, values):
    """`values` in the types that the file declares; the count must agree."""
    declared = circle_inputs(path)
    if len(declared) != len(values):
        raise ValueError(f"the file has {len(declared)} inputs, PyTorch {len(values)}")
    return [np.array(value, dtype=kind, order="C") for (_, kind, _), value in zip(declared, values)]


def run_reference(path, values):
    runtime = CircleReferenceRuntime(pathlib.Path(path).read_bytes())
    return [np.asarray(o) for o in runtime.run([torch.from_numpy(v) for v in bind(path, values)]).outputs]


class _WhatItCan(CircleReferenceRuntime):
    """Runs the operators that it has kernels for, whatever the others are."""

    def prepare(self):
        pass

    def run(self, inputs):
        values = dict(zip(self.program.inputs, inputs))
        values |= {t.index: self._constant_value(t, ExecutionMode.NATIVE) for t in self.program.tensors if t.constant is not None}
        why = {}  # for each tensor without a value
        for operator in self.program.operators:
            lost = next((why[i] for i in operator.inputs if i in why), None)
            try:
                if lost is None:
                    self._execute_operator(operator, values, ExecutionMode.NATIVE)
            except CircleRuntimeError as error:
                lost = str(error).split("\n")[0]
            if lost is not None:
                why.update(dict.fromkeys(operator.outputs, lost))
        return [(values.get(i), why.get(i)) for i in self.program.outputs]


def run_reference_in_part(path, values):
    """[(output, None) or (None, why tico's interpreter has no value)] of the file's outputs."""
    got = _WhatItCan(pathlib.Path(path).read_bytes()).run(bind(path, values))
    return [(None if value is None else np.array(value), why) for value, why in got]


def run_onert(path, values):
    return [np.array(o) for o in onert.infer.session(str(path)).infer(bind(path, values))]


class Refused(Exception):
    """A runtime did not take a file that it should run."""


def run_tosa(path, values):
    """In a process of its own only, which `apart` makes."""
    import tosa_reference_model
    os.environ["PATH"] = ""  # an abort would look for a debugger
    outputs, status = tosa_reference_model.run(pathlib.Path(path).read_bytes(), values, verbosity="NONE", tosa_level="NONE")
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise RuntimeError(str(status))
    return [np.array(o) for o in outputs]


def _child(function, arguments, pipe):
    try:
        pipe.send((function(*arguments), None))
    except BaseException as error:
        pipe.send((None, f"{type(error).__name__}: {str(error).strip()[:300]}"))


def apart(function, *arguments, seconds=60):
    """(outputs, None), or (None, why it did not run)."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(function, arguments, theirs))
    process.start()
    theirs.close()
    try:
        answer = ours.recv() if ours.poll(seconds) else (None, f"no answer in {seconds} s")
    except EOFError:
        answer = (None, "crashed")
    process.kill()
    process.join()
    return answer


def difference(got, want, rtol, atol):
    """(largest absolute difference, None) or (it, what is wrong) between two lists of arrays."""
    if len(got) != len(want):
        return float("inf"), f"{len(got)} outputs, expected {len(want)}"
    worst = 0.0
    for index, (g, w) in enumerate(zip(got, want)):
        g = np.asarray(g)
        if g.shape != w.shape:
            return float("inf"), f"output {index}: shape {list(g.shape)}, expected {list(w.shape)}"
        if not g.size:
            continue
        a, b = g.astype(np.float64), w.astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart_by = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        here = float(np.where(np.isnan(apart_by), np.inf, apart_by).max())
        worst = max(worst, here)
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            return worst, f"output {index}: differs by up to {here:.3g}"
    return worst, None


def restore_shape(got, want):
    """onert drops the leading dimensions of a FULLY_CONNECTED output, and has no rank 0."""
    return [g.reshape(w.shape) if g.size == w.size else g for g, w in zip(got, want)] if len(got) == len(want) else got


def load(path, *prefixes):
    """Arrays of an .npz whose keys are a prefix and a number: by prefix, then by number."""
    data = np.load(path)
    return [data[key] for prefix in prefixes
            for key in sorted((k for k in data.files if k.rstrip("0123456789") == prefix), key=lambda k: int(k[len(prefix):]))]
