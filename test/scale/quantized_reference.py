"""The operators of make_circle_chain.py's quantized files in NumPy, from their definitions: the real numbers that operands stand
for (scale * (stored - zero point), float64), the operator on reals, the result rounded to its own steps and kept in its range."""
import pathlib

import numpy as np
from circle_schema import circle

TYPES = {0: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 7: np.int16, 9: np.int8}
NAMES = {v: k for k, v in vars(circle.BuiltinOperator.BuiltinOperator).items() if not k.startswith("_")}
ACTIVATIONS = {0: lambda x: x, 1: lambda x: np.maximum(x, 0), 3: lambda x: np.clip(x, 0, 6)}


def softmax(x, beta):
    e = np.exp(beta * (x - x.max(-1, keepdims=True)))
    return e / e.sum(-1, keepdims=True)


def matmul(x, y, options):
    x = np.swapaxes(x, -1, -2) if options.adjointLhs else x
    return x @ (np.swapaxes(y, -1, -2) if options.adjointRhs else y)


def layer(x, weight, bias, options):
    assert options.keepNumDims and not options.weightsFormat
    return x @ weight.T + (0 if bias is None else bias)


# By operator: the function of its real operands and its options.
REAL = {
    "ADD": lambda x, y, _: x + y, "MUL": lambda x, y, _: x * y, "SUB": lambda x, y, _: x - y,
    "LOGISTIC": lambda x, _: 1 / (1 + np.exp(-x)), "SOFTMAX": lambda x, o: softmax(x, o.beta),
    "BATCH_MATMUL": matmul, "FULLY_CONNECTED": layer,
}
# Those that only move numbers: of the stored values and the result's shape.
MOVES = {
    "RESHAPE": lambda x, shape, *_: x.reshape(shape), "SQUEEZE": lambda x, shape: x.reshape(shape),
    "EXPAND_DIMS": lambda x, shape, *_: x.reshape(shape), "TRANSPOSE": lambda x, _, perm: np.transpose(x, perm),
}


class Reference:
    def __init__(self, path):
        self.model = circle.Model.ModelT.InitFromPackedBuf(pathlib.Path(path).read_bytes(), 0)
        assert len(self.model.subgraphs) == 1
        self.graph = self.model.subgraphs[0]

    def parameters(self, index):
        """Scale and zero point, along their dimension; None for integers that stand for themselves."""
        tensor = self.graph.tensors[index]
        q = tensor.quantization
        if q is None or q.scale is None or not len(q.scale):
            return None
        along = [1] * len(tensor.shape)
        if len(q.scale) > 1:
            along[q.quantizedDimension] = -1
        zero = q.zeroPoint if q.zeroPoint is not None and len(q.zeroPoint) else [0] * len(q.scale)
        scales, zeros = np.array(q.scale, np.float32).astype(np.float64), np.array(zero, np.int64)
        return (scales.reshape(along), zeros.reshape(along)) if len(q.scale) > 1 else (scales[0], zeros[0])

    def real(self, index, stored):
        q = self.parameters(index)
        return stored.astype(np.float64) if q is None else q[0] * (stored.astype(np.int64) - q[1])

    def stored(self, index, real):
        kind, q = TYPES[self.graph.tensors[index].type], self.parameters(index)
        if q is None:
            return real.astype(kind)
        limits = np.iinfo(kind)
        return np.clip(np.rint(real / q[0]) + q[1], limits.min, limits.max).astype(kind)

    def run(self, inputs):
        """Stored values of the outputs."""
        values = dict(zip(self.graph.inputs, inputs))
        for i, tensor in enumerate(self.graph.tensors):
            data = self.model.buffers[tensor.buffer].data
            if data is not None and len(data):
                values[i] = np.frombuffer(bytes(data), TYPES[tensor.type]).reshape(tensor.shape)
        for op in self.graph.operators:
            name = NAMES[self.model.operatorCodes[op.opcodeIndex].builtinCode]
            out = op.outputs[0]
            if name in MOVES:
                assert self.parameters(op.inputs[0]) == self.parameters(out), name
                values[out] = MOVES[name](values[op.inputs[0]], self.graph.tensors[out].shape, *(values[i] for i in op.inputs[1:]))
                continue
            operands = [None if i < 0 else self.real(i, values[i]) for i in op.inputs]
            result = REAL[name](*operands, op.builtinOptions)
            activation = getattr(op.builtinOptions, "fusedActivationFunction", 0)
            values[out] = self.stored(out, ACTIVATIONS[activation](result)).reshape(self.graph.tensors[out].shape)
        return [values[i] for i in self.graph.outputs]
