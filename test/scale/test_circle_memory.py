"""A Circle file of 3 GiB is verified, listed, optimized and written back in less than 1 GiB of memory."""
import os
import pathlib

import flatbuffers
import pytest
from circle_schema import circle as schema
from peak import peak_memory

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))
GIB = 1 << 30
LAYERS, WIDTH = 12, 8192  # of float32: 256 MiB each


def make(path):
    """A chain of linear layers whose weights lie behind the flatbuffer, as beyond 2 GiB they must. Holes read as zeros."""
    def new(kind, **fields):
        out = getattr(getattr(schema, kind), kind + "T")()
        for name, value in fields.items():
            setattr(out, name, value)
        return out
    operator, types = schema.BuiltinOperator.BuiltinOperator, schema.TensorType.TensorType
    size, first = WIDTH * WIDTH * 4, 1 << 20
    model = new("Model", version=0, description="big",
                operatorCodes=[new("OperatorCode", builtinCode=c, deprecatedBuiltinCode=c, version=1)
                               for c in (operator.FULLY_CONNECTED, operator.TANH)],
                buffers=[new("Buffer")] + [new("Buffer", offset=first + i * size, size=size) for i in range(LAYERS)])
    tensor = lambda name, shape, buffer=0: new("Tensor", name=name, shape=shape, type=types.FLOAT32, buffer=buffer)
    tensors, operators = [tensor("x", [1, WIDTH])], []
    for i in range(LAYERS):
        at = len(tensors)
        tensors += [tensor(f"w{i}", [WIDTH, WIDTH], i + 1), tensor(f"y{i}", [1, WIDTH]), tensor(f"z{i}", [1, WIDTH])]
        options = new("FullyConnectedOptions")
        operators += [new("Operator", opcodeIndex=0, inputs=[at - 1, at, -1], outputs=[at + 1], builtinOptions=options,
                          builtinOptionsType=schema.BuiltinOptions.BuiltinOptions.FullyConnectedOptions),
                      new("Operator", opcodeIndex=1, inputs=[at + 1], outputs=[at + 2])]
    model.subgraphs = [new("SubGraph", name="main", tensors=tensors, inputs=[0], outputs=[len(tensors) - 1], operators=operators)]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    with open(path, "wb") as out:
        out.write(bytes(builder.Output()))
        for i in range(LAYERS):  # every layer is another one
            out.seek(first + i * size)
            out.write(bytes([i + 1]) * 64)
        out.truncate(first + LAYERS * size)
    return path


def most_memory(*arguments):
    """Peak resident memory in bytes, mapped files included."""
    return peak_memory([CHUTE, *arguments])


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    folder = tmp_path_factory.mktemp("big")
    if os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < 8 * GIB:
        pytest.skip("less than 8 GiB of disk are free")
    path = make(folder / "big.circle")
    assert path.stat().st_size > 3 * GIB
    yield path
    for file in folder.iterdir():
        file.unlink()


@pytest.mark.parametrize("verb", (["verify"], ["inspect", "--all"]))
def test_looking_takes_little(big, verb):
    assert most_memory(verb[0], big, *verb[1:]) < GIB // 4


@pytest.mark.parametrize("level", ("-O0", "-O1"))
def test_written_back_below_a_gibibyte(big, level):
    out = big.with_name(f"out{level}.circle")
    used = most_memory("optimize", big, level, "-o", out)
    assert used < GIB, f"{used >> 20} MiB"
    assert out.stat().st_size > 3 * GIB
    assert most_memory("verify", out) < GIB // 4
    out.unlink()
