"""A Circle file with everything that the format can say beside operators and tensors, written by the schema's own package.

    python test/e2e/circle_features.py test/fuzz/verify_fuzz/every_feature.circle
"""
import sys

import flatbuffers
import numpy as np
from circle_schema import circle as schema

OP = schema.BuiltinOperator.BuiltinOperator
TYPE = schema.TensorType.TensorType
OPTIONS = schema.BuiltinOptions.BuiltinOptions
DETAILS = schema.QuantizationDetails.QuantizationDetails


def make(kind, **fields):
    out = getattr(getattr(schema, kind), kind + "T")()
    for name, value in fields.items():
        assert hasattr(out, name), (kind, name)
        setattr(out, name, value)
    return out


def tensor(name, shape, kind=TYPE.FLOAT32, buffer=0, **more):
    return make("Tensor", name=name, shape=shape, type=kind, buffer=buffer, **more)


def quantization(**fields):
    return make("QuantizationParameters", **fields)


def code(number, custom=None, version=1):
    return make("OperatorCode", builtinCode=number, deprecatedBuiltinCode=min(127, number), customCode=custom, version=version)


def operator(index, inputs, outputs, **more):
    return make("Operator", opcodeIndex=index, inputs=inputs, outputs=outputs, **more)


def subgraph(name, tensors, inputs, outputs, operators, **more):
    return make("SubGraph", name=name, tensors=tensors, inputs=inputs, outputs=outputs, operators=operators, **more)


def signature(key, index, inputs, outputs):
    maps = [[make("TensorMap", name=n, tensorIndex=t) for n, t in side] for side in (inputs, outputs)]
    return make("SignatureDef", signatureKey=key, subgraphIndex=index, inputs=maps[0], outputs=maps[1])


def floats(*values):
    return np.array(values, "<f4").tobytes()


def buffers():
    permutation = np.array([1, 0], "<i4").tobytes()
    strings = np.array([2, 12, 13, 14], "<i4").tobytes() + b"ab"
    contents = [None, b"unused", floats(1, 2, 3, 4), None, floats(1, 2, 3, 4), b"meta", floats(5, 6), bytes([0x21, 0x43]),
                floats(.5, .25), b"legacy", permutation, strings, floats(0, 0)]
    return [make("Buffer", data=None if c is None else list(c)) for c in contents]


def sparsity():
    dense = make("DimensionMetadata", format=0, denseSize=2)
    vectors = schema.SparseIndexVector.SparseIndexVector
    csr = make("DimensionMetadata", format=1, arraySegmentsType=vectors.Uint8Vector,
               arraySegments=make("Uint8Vector", values=[0, 1, 2]), arrayIndicesType=vectors.Int32Vector,
               arrayIndices=make("Int32Vector", values=[0, 1]))
    return make("SparsityParameters", traversalOrder=[0, 1], dimMetadata=[dense, csr])


def main_subgraph():
    blocks = make("BlockwiseQuantization", scales=9, zeroPoints=-1, blockSize=2)
    custom = make("CustomQuantization", custom=[1, 2, 3])
    tensors = [
        tensor("unused/tensor", [7], hasRank=True),
        tensor("w", [2, 2], buffer=2),
        tensor("x", [4, 2], shapeSignature=[-1, 2]),  # dynamic, though its size is not 1
        tensor("sparse", [2, 2], buffer=6, sparsity=sparsity()),
        tensor("w_again", [2, 2], buffer=4, compressionType=1),
        tensor("y", [4, 2], shapeSignature=[-1, 2], quantization=quantization(min=[0.0], max=[6.0])),
        tensor("z", [4, 2], shapeSignature=[-1, 2], buffer=3, quantization=quantization()),
        tensor("dup", [2, 2], TYPE.INT8, quantization=quantization(scale=[.5], zeroPoint=[3], min=[-1.], max=[1.])),
        tensor("w4", [2, 2], TYPE.INT4, 7, quantization=quantization(detailsType=DETAILS.BlockwiseQuantization, details=blocks)),
        tensor("scales", [2], buffer=8),
        tensor("out_custom", [2], variantTensors=[make("VariantSubType", shape=[1, 2], type=TYPE.INT32, hasRank=True)]),
        tensor("dup", [2], quantization=quantization(detailsType=DETAILS.CustomQuantization, details=custom)),
        tensor("var", [2], isVariable=True, buffer=12),
        tensor("names", [2], TYPE.STRING, 11),
        tensor("dense", [2, 2]),
        tensor("mid", [2, 2]),
        tensor("blockout", [2, 2]),
        tensor("mx", [2, 32], TYPE.MXINT8),
    ]
    linear = {"builtinOptionsType": OPTIONS.FullyConnectedOptions}
    operators = [
        operator(0, [2], [6], customOptions=[9, 8, 7], debugMetadataIndex=4, intermediates=[0, -1], mutatingVariableInputs=[False]),
        operator(3, [6, 1, -1], [5], builtinOptions=make("FullyConnectedOptions", keepNumDims=True), **linear),
        operator(9, [3], [14]),
        operator(1, [14, 4], [15]),  # without its options
        operator(2, [7, -1, 12, 13], [10, 11], customOptions=[1, 2, 3]),
        operator(3, [15, 8, -1], [16], builtinOptions=make("FullyConnectedOptions", keepNumDims=True), **linear),
    ]
    return subgraph("first", tensors, [2, 7, 2], [5, 10, 14, 5, 11, 16, 15], operators, debugMetadataIndex=2)


def model():
    loop = operator(4, [1], [0], builtinOptionsType=OPTIONS.WhileOptions,
                    builtinOptions=make("WhileOptions", condSubgraphIndex=3, bodySubgraphIndex=1))
    return make(
        "Model", version=3, description="peer", buffers=buffers(),
        operatorCodes=[code(OP.RELU), code(OP.ADD, None, 2), code(OP.CUSTOM, "Foo"), code(OP.FULLY_CONNECTED), code(OP.WHILE),
                       code(OP.CUSTOM, "Unused"), code(OP.UNIDIRECTIONAL_SEQUENCE_LSTM), code(OP.LESS), code(OP.TRANSPOSE),
                       code(OP.DENSIFY)],
        subgraphs=[
            main_subgraph(),
            subgraph("", [tensor("i", [1]), tensor("o", [1])], [0], [1], [operator(0, [0], [1])]),
            subgraph("lone", [tensor("o", [2, 2]), tensor("p", [2], TYPE.INT32, 10), tensor("a", [2, 2])], [2], [0],
                     [operator(8, [2, 1], [0])]),
            subgraph("cond", [tensor("i", [1]), tensor("c", [1], TYPE.BOOL)], [0], [1], [operator(7, [0, 0], [1])]),
            subgraph("loop", [tensor("r", [1]), tensor("i", [1])], [1], [0], [loop]),
        ],
        signatureDefs=[
            signature("b", 4, [("in", 1)], [("res", 0)]),
            signature("main", 0, [("second", 7), ("first", 2)], [("o0", 5), ("o1", 10)]),
            signature("other", 0, [("x2", 2)], [("e", 16), ("q", 5)]),
        ],
        metadata=[make("Metadata", name="k", buffer=5), make("Metadata", name="k2", buffer=5)],
        metadataBuffer=[9])


def packed():
    builder = flatbuffers.Builder()
    builder.Finish(model().Pack(builder), b"CIR0")
    return bytes(builder.Output())


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(packed())
