"""What the makers share: operands to be made, draws, element types and shapes; and guesses from a schema."""
import random

import torch

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
    "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128, "c32": torch.complex32,
    "u16": torch.uint16, "u32": torch.uint32,
}
NAMES = {v: k for k, v in DTYPES.items()}
FLOATS = ["f32", "f32", "f32", "f16", "bf16", "f64"]
INTS = ["i64", "i32", "u8", "i8", "i16"]
ANY = FLOATS + INTS + ["bool"]
SHAPES = [[], [1], [3], [4], [2, 3], [3, 1], [1, 4], [4, 4], [2, 3, 4], [2, 1, 4], [4, 4, 4], [2, 4, 6, 6],
          [1, 4, 5, 7], [0, 3], [2, 3, 1, 5]]


class T:
    """A tensor operand to be made."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, list(shape)

    def text(self):
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def make(self):
        return torch.empty(self.shape, dtype=DTYPES[self.dtype])


class Draw(random.Random):
    def ints(self, low, high, n):
        return [self.randint(low, high) for _ in range(n)]

    def shape(self, low=0, high=5):
        return list(self.choice([s for s in SHAPES if low <= len(s) <= high]))

    def broadcast(self, shape):
        """A shape that broadcasts with `shape`."""
        out = [d if self.random() < 0.7 else 1 for d in shape]
        return out[self.randint(0, len(out)):] if self.random() < 0.3 else out

    def subset(self, rank, low=0):
        n = self.randint(min(low, rank), rank)
        return [d - rank if self.random() < 0.4 else d for d in self.sample(range(rank), n)]


def named(**kw):
    return lambda r: {k: v(r) if callable(v) else v for k, v in kw.items()}


def image(r, n=2):
    return T("f32", [r.randint(1, 2), 4] + r.ints(4, 6, n))


def default_argument(r, arg, rank, first):
    """A guess from the schema: PyTorch refuses the wrong ones."""
    kind, name = str(arg.type), arg.name
    inner = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    if kind.startswith("Optional[") and r.random() < 0.5:
        return None
    if "ScalarType" in str(arg.real_type):
        return DTYPES[r.choice(ANY)]
    if inner == "Tensor":
        return T(r.choice(ANY), r.broadcast(first) if first is not None else r.shape(0, 4))
    if inner in ("number", "Scalar"):
        return r.choice([1, 2, 2.5, -1, True])
    if inner == "bool":
        return r.random() < 0.5
    if inner == "float":
        return 0.5
    if inner in ("int", "SymInt"):
        if name.startswith("dim"):
            return r.randint(-max(rank, 1), max(rank, 1) - 1)
        return r.randint(0, 3)
    if inner.startswith("List[int]") or inner.startswith("List[SymInt]"):
        if name == "dim" or name == "dims":
            return r.subset(rank)
        return r.ints(1, 3, r.randint(1, 3))
    if inner == "str":
        return r.choice(["none", "tanh", "floor", "trunc"])
    raise LookupError(inner)
