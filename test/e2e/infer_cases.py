"""Writes test/data/infer_cases.txt: result types of ATen operators as PyTorch's export sees them.

    python test/e2e/infer_cases.py [--out FILE] [--per-op N] [--missing]

Every row of src/aten/table/*.def that this PyTorch (or TICO) has is called with arguments drawn from a
fixed seed, on fake tensors as torch.export does; calls that PyTorch refuses are dropped. One line per call:

    aten.add.Tensor | f32[2,3] i64[] | alpha=2 | f32[2,3]
    aten.cat.default | (f32[2] f32[3]) | dim=0 | f32[5]

operands (`-` absent, parentheses a list), attributes that differ from the schema's defaults, results.
src/aten/infer_test.cpp infers the same and compares. `--missing` names the rows without a case.
"""

import argparse
import logging
import pathlib
import random
import re
import warnings

import tico.utils.register_custom_op  # noqa: F401 - registers circle_custom
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 - registers quantized_decomposed
from torch._subclasses.fake_tensor import FakeTensorMode

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)  # a refused call is logged with its stack
ROOT = pathlib.Path(__file__).resolve().parents[2]

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


def conv(r, n, transposed=False, padding=None):
    g = r.choice([1, 1, 2])
    i, o = g * r.randint(1, 3), g * r.randint(1, 3)
    k = r.ints(1, 3, n)
    e = r.choice(FLOATS)
    x = ([r.randint(1, 3)] if r.random() < 0.8 else []) + [i] + r.ints(7, 11, n)
    w = ([i, o // g] if transposed else [o, i // g]) + k
    a = {"input": T(e, x), "weight": T(e, w), "bias": T(e, [o]) if r.random() < 0.5 else None,
         "stride": r.ints(1, 3, n), "padding": r.ints(0, 2, n), "dilation": r.ints(1, 2, n), "groups": g}
    if padding:
        a["padding"] = r.choice(["valid", "same"])
        if a["padding"] == "same":
            a["stride"] = [1] * n
    if transposed:
        a["output_padding"] = [r.randint(0, s - 1) for s in a["stride"]]
    return a


def convolution(r):
    n, t = r.randint(1, 3), r.random() < 0.4
    a = conv(r, n, t)
    if len(a["input"].shape) == n + 1:
        a["input"].shape.insert(0, 2)
    a.update(transposed=t, output_padding=a.get("output_padding", [0] * n), benchmark=False,
             deterministic=False, cudnn_enabled=True, allow_tf32=True)
    return a


def pool(r, n):
    k = r.ints(1, 4, n)
    x = ([2] if r.random() < 0.8 else []) + [3] + r.ints(6, 12, n)
    return {"self": T(r.choice(FLOATS), x), "kernel_size": k, "stride": r.choice([[], r.ints(1, 4, n)]),
            "padding": [r.randint(0, q // 2) for q in k], "ceil_mode": r.random() < 0.5,
            "dilation": [1] * n if r.random() < 0.6 else r.ints(1, 2, n), "divisor_override": None}


def adaptive(r, n):
    x = ([2] if r.random() < 0.8 else []) + [3] + r.ints(4, 9, n)
    return {"self": T("f32", x), "output_size": r.ints(1, 5, n)}


def upsample(r, n, vec):
    x = T("f32", [2, 3] + r.ints(3, 7, n))
    a = {"self": x, "input": x, "output_size": r.ints(2, 12, n), "align_corners": r.random() < 0.5}
    if vec and r.random() < 0.6:
        a["output_size"] = None
        a["scale_factors"] = [r.choice([1.5, 2.0, 0.5, 1.3, 3.0, 0.7]) for _ in range(n)]
    elif vec:
        a["scale_factors"] = None
    return a


def view_of(r, shape):
    """Another shape with as many elements, perhaps with a -1."""
    n = 1
    for d in shape:
        n *= d
    out = []
    while n > 1:
        f = r.choice([f for f in range(2, n + 1) if n % f == 0])
        out.append(f)
        n //= f
    out = [0] if 0 in shape else out
    if r.random() < 0.4:
        out.insert(r.randint(0, len(out)), 1)
    if out and 0 not in shape and r.random() < 0.5:
        out[r.randrange(len(out))] = -1
    return out


def view(r, name="size"):
    s = r.shape()
    return {"self": T(r.choice(ANY), s), name: view_of(r, s)}


def expand(r):
    s = r.shape(0, 3)
    size = r.ints(1, 3, r.randint(0, 2)) + [r.choice([d, -1]) if d != 1 else r.choice([1, 5, -1]) for d in s]
    return {"self": T(r.choice(ANY), s), "size": size}


def tensors(r, dims=(1, 4), same=False):
    s = r.shape(*dims)
    d = r.randrange(-len(s), len(s)) if s else 0
    e = r.choice(ANY)
    out = []
    for _ in range(r.randint(1, 4)):
        t = list(s)
        if not same and s:
            t[d] = r.randint(0, 4)
        out.append(T(e if r.random() < 0.7 else r.choice(ANY), t))
    return {"tensors": out, "dim": d if not same else r.randint(-len(s) - 1, len(s))}


def vectors(r, low=1, high=3):
    e = r.choice(["f32", "i64"])
    return {"tensors": [T(e, [r.randint(1, 4)]) for _ in range(r.randint(low, high))], "indexing": r.choice(["ij", "xy"])}


def index(r, values=False):
    s = r.shape(1, 4)
    while 0 in s:
        s = r.shape(1, 4)
    b = r.shape(0, 2)
    ix = [T(r.choice(["i64", "i32"]), r.broadcast(b)) if r.random() < 0.6 else None for _ in range(r.randint(1, len(s)))]
    if not any(ix):
        ix[0] = T("i64", b)
    a = {"self": T(r.choice(ANY), s), "indices": ix}
    if values:
        a["values"] = T(a["self"].dtype, [])
    return a


def along(r, names=("index", "indices"), reduce="amax"):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    i = list(s)
    i[d] = r.randint(1, 3)
    e = r.choice(ANY)
    a = {"self": T(e, s), "dim": d - len(s) if r.random() < 0.4 else d, "src": T(e, i), "value": 1,
         "reduce": reduce, "source": T(e, s)}
    for n in names:
        a[n] = T("i64", i)
    return a


def along1(r):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    n = r.randint(1, 4)
    e = r.choice(ANY)
    src = list(s)
    src[d] = n
    return {"self": T(e, s), "dim": d, "index": T(r.choice(["i64", "i32"]), [n]), "source": T(e, src), "value": 1,
            "reduce": "amax"}


def layer(r):
    s = r.shape(1, 4)
    n = r.randint(1, len(s))
    e = r.choice(FLOATS)
    w = T(e, s[-n:]) if r.random() < 0.5 else None
    return {"input": T(e, s), "normalized_shape": s[-n:], "weight": w, "bias": w, "eps": 1e-5}


def batch_norm(r):
    s = r.shape(2, 4)
    e = r.choice(FLOATS)
    c = T(e, [s[1]])
    return {"input": T(e, s), "weight": c, "bias": c, "running_mean": c, "running_var": c, "eps": 1e-5, "epsilon": 1e-5,
            "momentum": 0.1, "exponential_average_factor": 0.1, "cudnn_enabled": True, "training": r.random() < 0.4,
            "use_input_stats": True}


def group_norm(r):
    n, g, c, h, w = r.randint(1, 3), r.randint(1, 2), r.randint(1, 3), 3, 4
    e = r.choice(FLOATS)
    t = T(e, [g * c]) if r.random() < 0.5 else None
    return {"input": T(e, [n, g * c, h, w]), "weight": t, "bias": t, "N": n, "C": g * c, "HxW": h * w, "group": g,
            "num_groups": g, "eps": 1e-5, "cudnn_enabled": True}


def attention(r):
    b, h, l, s, e, v = r.ints(1, 4, 6)
    d = r.choice(FLOATS)
    lead = [b, h]
    kv = [b, h]
    m = T(r.choice(["bool", d]), r.broadcast([b, h, l, s])) if r.random() < 0.4 else None
    return {"query": T(d, lead + [l, e]), "key": T(d, kv + [s, e]), "value": T(d, kv + [s, v]), "attn_mask": m,
            "is_causal": m is None and r.random() < 0.3, "enable_gqa": False, "dropout_p": 0.0, "scale": None,
            "dropout_mask": None}


def rnn(r, gates, lstm=False):
    b, t, i, h, l = r.ints(1, 4, 5)
    bi, first, bias = r.random() < 0.5, r.random() < 0.5, r.random() < 0.5
    d = 2 if bi else 1
    p = []
    for k in range(l):
        for _ in range(d):
            p += [T("f32", [gates * h, i if k == 0 else h * d]), T("f32", [gates * h, h])]
            p += [T("f32", [gates * h])] * 2 if bias else []
    s = T("f32", [l * d, b, h])
    return {"input": T("f32", [b, t, i] if first else [t, b, i]), "hx": [s, s] if lstm else s, "params": p,
            "has_biases": bias, "num_layers": l, "dropout": 0.0, "train": False, "bidirectional": bi,
            "batch_first": first}


def cell(r, gates, lstm=False):
    b, i, h = r.ints(1, 4, 3)
    s = T("f32", [b, h])
    return {"input": T("f32", [b, i]), "hx": [s, s] if lstm else s, "w_ih": T("f32", [gates * h, i]),
            "w_hh": T("f32", [gates * h, h]), "b_ih": None, "b_hh": None}


def einsum(r):
    n = dict(zip("abcdijkn", [2, 3, 4, 5, 2, 3, 4, 1]))
    eq = r.choice(["ij,jk->ik", "ij,jk", "bij,bjk->bik".replace("b", "a"), "...ij,...jk->...ik", "i,i", "ii->i", "ii",
                   "abc->cab", "abcd,abed->abce".replace("e", "i"), "ij,ij->", "...a->...", "a...,ab->b...", "ab , b -> a"])
    ops = []
    for term in eq.split("->")[0].split(","):
        s = []
        for c in term.replace("...", ".").replace(" ", ""):
            s += [2, 3][r.randint(0, 1):] if c == "." else [n[c]]
        ops.append(T("f32", s))
    return {"equation": eq, "tensors": ops}


def pads(r, n, extra=1):
    s = r.ints(1, 3, r.randint(extra, 2)) + r.ints(4, 7, n)
    p = r.ints(0, 3, 2 * n)
    return {"self": T(r.choice(FLOATS), s), "pad": p, "padding": p}


def constant_pad(r):
    s = r.ints(3, 6, r.randint(1, 4))
    return {"self": T(r.choice(ANY), s), "pad": r.ints(-1, 3, 2 * r.randint(1, len(s))), "mode": "constant", "value": 1}


def unflatten(r):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    return {"self": T("f32", s), "dim": d, "sizes": view_of(r, [s[d]]) or [1]}


def split_sizes(r):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    cut = r.randint(0, s[d])
    return {"self": T("f32", s), "dim": d, "split_sizes": [cut, s[d] - cut], "split_size": [cut, s[d] - cut]}


def losses(r):
    s = r.shape(1, 3)
    return {"self": T("f32", s), "target": T("f32", s), "weight": None, "pos_weight": None, "reduction": r.randint(0, 2)}


def classes(r):
    n, c = r.randint(1, 4), r.randint(2, 5)
    s = r.choice([[c], [n, c], [n, c, 3]])
    t = s[:-1] if len(s) < 3 else [n, 3]
    return {"self": T("f32", s), "target": T("i64", t) if r.random() < 0.7 else T("f32", s), "weight": None,
            "reduction": r.randint(0, 2), "ignore_index": -100}


def embedding_bag(r):
    n, bags = r.randint(1, 6), r.randint(1, 3)
    return {"weight": T("f32", [7, 4]), "indices": T("i64", [n]), "offsets": T("i64", [bags + 1]), "mode": r.randint(0, 2),
            "include_last_offset": r.random() < 0.5, "per_sample_weights": None}


def fake_quant(r):
    s = r.shape(1, 4)
    d = r.randrange(len(s))
    many = T("f32", [s[d]])
    return {"self": T("f32", s), "scale": many, "zero_point": T("i32", [s[d]]), "axis": d, "quant_min": 0, "quant_max": 255}


def fake_quant1(r):
    return {"self": T("f32", r.shape()), "scale": 0.1, "zero_point": 3, "quant_min": 0, "quant_max": 255}


def bounds(r):
    a = r.choice([1, 2, 0, 0.5, -3]), r.choice([7, 10, 5.5, 2]), r.choice([1, 2, 3, 0.5, 1.5])
    e = r.choice([None, None, torch.float32, torch.int64, torch.int32, torch.float16])
    return {"start": a[0], "end": a[1], "step": a[2], "dtype": e}


def slices(r):
    s = r.shape(1, 4)
    d = r.randrange(-len(s), len(s))
    return {"self": T(r.choice(ANY), s), "dim": d, "start": r.choice([None, 0, 1, -1, -2, 9]),
            "end": r.choice([None, 1, 2, -1, 9, 2**63 - 1]), "step": r.choice([1, 1, 2, 3]), "src": T("f32", s)}


def mix(r, *names):
    """Broadcasting operands of independent element types."""
    s = r.shape(0, 4)
    return {n: T(r.choice(ANY), r.broadcast(s)) for n in names}


def bmm(r):
    b, n, k, m = r.ints(1, 4, 4)
    e = r.choice(FLOATS)
    return {"self": T(e, [b, n, k]), "mat2": T(e, [b, k, m])}


def add_mm(r, batch=False, over=False):
    b, n, k, m = r.ints(1, 4, 4)
    e = r.choice(FLOATS)
    lead = [b] if batch else []
    out = [n, m] if over else lead + [n, m]
    x, y = T(e, lead + [n, k]), T(e, lead + [k, m])
    return {"self": T(e, r.choice([out, [m], [1] * len(out)])), "mat1": x, "mat2": y, "batch1": x, "batch2": y}


def any_matmul(r):
    k, e = r.randint(1, 4), r.choice(FLOATS)
    x = r.choice([[k], [3, k], [2, 3, k], [5, 2, 3, k]])
    y = r.choice([[k], [k, 2], [2, k, 2], [1, k, 4]])
    return {"self": T(e, x), "other": T(e, y)}


def linear(r):
    i, o, e = r.randint(1, 4), r.randint(1, 4), r.choice(FLOATS)
    b = T(e, [o]) if r.random() < 0.5 else None
    return {"input": T(e, r.shape(0, 3) + [i]), "weight": T(e, [o, i]), "bias": b}


def quantization(r):
    """Operands of quantized_decomposed operators; each takes those that its schema names."""
    x, e = T(r.choice(FLOATS), [2, 4, 6]), r.choice([torch.int8, torch.uint8, torch.int16])
    per_token = T("f64", [2, 4, 1])
    return {"input": x, "scale": 0.1, "zero_point": 0, "quant_min": 0, "quant_max": 127, "dtype": e, "eps": 1e-5,
            "scales": per_token, "zero_points": T("i64", [2, 4, 1]), "axis": 1, "group_size": 3,
            "out_dtype": r.choice([None, torch.float16]), "output_dtype": r.choice([torch.float32, torch.float16])}


def quantization_of(r, name):
    a = quantization(r)
    one = T("f32", [1]), T("i64", [1])
    if ".tensor" in name:
        a.update(scale=one[0], zero_point=one[1])
    if name.endswith("tensor2"):
        a.update(quant_min=one[1], quant_max=one[1])
    if "choose" in name:
        a.update(quant_min=-127, quant_max=127, dtype=torch.int8)
    if "channel" in name:
        a.update(scales=T("f32", [4]), zero_points=T("i64", [4]))
    if "group" in name:
        a.update(input=T("f32", [4, 6]), scales=T("f32", [4, 2]), zero_points=T("i32", [4, 2]), dtype=torch.int8)
    if name.startswith("dequantize"):
        a["input"] = T(NAMES[a["dtype"]], a["input"].shape)
    return a


def channels_last(r, name):
    """Operands of circle_custom operators: [batch, height, width, channels]."""
    b, c, o = r.ints(1, 4, 3)
    x = T("f32", [b, *r.ints(6, 11, 2), c])
    k = r.ints(1, 3, 2)
    w = [1, *k, c] if "depthwise" in name else [o, *k, c]
    return {"input_": x, "hidden_states": x, "weight": T("f32", w) if "conv" in name else T("f32", [c]), "bias": None,
            "kernel_size": [2, 3], "size": r.ints(3, 9, 2), "elem_format": "int8", "axis": 3, "shared_exp_method": "max",
            "stride": r.choice([None, r.ints(1, 2, 2)]), "round": "nearest", "ceil_mode": r.choice([None, False]),
            "padding": r.choice(["valid", "same"]) if name.endswith("padding") else r.choice([None, r.ints(0, 1, 2)]),
            "groups": c if "depthwise" in name else 1, "output_padding": None, "running_mean": None, "running_var": None,
            "params": x, "indices": T("i32", [5, r.randint(1, 3)]), "divisor_override": None, "dilation": None}


def named(**kw):
    return lambda r: {k: v(r) if callable(v) else v for k, v in kw.items()}


def image(r, n=2):
    return T("f32", [r.randint(1, 2), 4] + r.ints(4, 6, n))


MAKERS = {
    r"(conv)(\d)d$": lambda r, m: conv(r, int(m[2])),
    r"(conv)(\d)d\.padding$": lambda r, m: conv(r, int(m[2]), padding=True),
    r"(conv_transpose)(\d)d": lambda r, m: conv(r, int(m[2]), True),
    r"_?convolution$": lambda r, m: convolution(r),
    r"conv_tbc": lambda r, m: {"self": T("f32", [7, 2, 3]), "weight": T("f32", [3, 3, 4]), "bias": T("f32", [4]), "pad": r.randint(0, 2)},
    r"(avg|max)_pool(\d)d": lambda r, m: pool(r, int(m[2])),
    r"_?(adaptive)_..._pool(\d)d": lambda r, m: adaptive(r, int(m[2])),
    r"max_unpool2d": named(self=lambda r: T("f32", [2, 3, 4, 4]), indices=T("i64", [2, 3, 4, 4]), output_size=[8, 8]),
    r"fractional": named(self=lambda r: T("f32", [2, 3, 9, 9]), kernel_size=[2, 2], output_size=[4, 5], random_samples=T("f32", [2, 3, 2])),
    r"_?upsample_\D+(\d)d(?:_aa)?(\.vec)?$": lambda r, m: upsample(r, int(m[1]), m[2]),
    r"(_unsafe_)?view(_copy)?$": lambda r, m: view(r),
    r"reshape$": lambda r, m: view(r, "shape"),
    r"(reshape|expand)_as$": lambda r, m: {"self": T("f32", [2, 1]), "other": T("i32", [2, 1] if m[1] == "reshape" else [3, 2, 4])},
    r"expand(_copy)?$|broadcast_to": lambda r, m: expand(r),
    r"view\.dtype": named(self=lambda r: T(r.choice(["f32", "f16", "i8", "i64"]), [3, 8]), dtype=lambda r: r.choice([torch.float32, torch.int16, torch.uint8])),
    r"view_as_complex": named(self=lambda r: T(r.choice(["f32", "f64"]), r.shape() + [2])),
    r"(view_as_real|real|imag|_conj|conj|_conj_physical|resolve_conj)$": named(self=lambda r: T(r.choice(["c64", "c128"]), r.shape())),
    r"unflatten": lambda r, m: unflatten(r),
    r"flatten": lambda r, m: (lambda s, d: {"self": T("f32", s), "start_dim": d, "end_dim": r.choice([-1, len(s) - 1])})(r.shape(1, 4), 0),
    r"(cat|concat|concatenate)$": lambda r, m: tensors(r),
    r"stack$": lambda r, m: tensors(r, (0, 3), True),
    r"(h|v|d|column_)stack$": lambda r, m: tensors(r, (0, 4), True),
    r"block_diag": lambda r, m: {"tensors": [T("f32", r.shape(0, 2)) for _ in range(3)]},
    r"meshgrid|cartesian_prod": lambda r, m: vectors(r),
    r"broadcast_tensors": lambda r, m: (lambda s: {"tensors": [T(r.choice(ANY), r.broadcast(s)) for _ in range(3)]})(r.shape(1, 3)),
    r"combinations": named(self=lambda r: T("f32", [r.randint(1, 6)]), r=lambda r: r.randint(0, 4), with_replacement=lambda r: r.random() < 0.5),
    r"index\.Tensor": lambda r, m: index(r),
    r"index_put_?$": lambda r, m: index(r, True),
    r"scatter\.(value_)?reduce": lambda r, m: along(r, reduce="add"),
    r"gather$|scatter|take_along": lambda r, m: along(r),
    r"index_fill_?.int_Tensor": lambda r, m: {**along1(r), "value": T("f32", [])},
    r"index_(add|copy|fill|reduce|select)": lambda r, m: along1(r),
    r"(select)_scatter": named(self=T("f32", [3, 4]), src=T("f32", [3]), dim=1, index=2),
    r"slice_scatter": named(self=T("f32", [3, 4]), src=T("f32", [3, 2]), dim=1, start=1, end=3),
    r"diagonal_scatter": named(self=T("f32", [3, 4]), src=T("f32", [3])),
    r"as_strided(_copy)?$": named(self=T("f32", [4, 6]), size=[2, 3], stride=[1, 2]),
    r"as_strided_scatter": named(self=T("f32", [4, 6]), src=T("f32", [2, 3]), size=[2, 3], stride=[1, 2]),
    r"masked_scatter": named(self=T("f32", [3, 4]), mask=T("bool", [3, 4]), source=T("f32", [12])),
    r"masked_fill": lambda r, m: (lambda s: {"self": T(r.choice(ANY), s), "mask": T("bool", r.broadcast(s)), "value": T("f32", []) if "Tensor" in m.string else 1})(r.shape()),
    r"put_?$": named(self=T("f32", [3, 4]), index=T("i64", [2]), source=T("f32", [2])),
    r"take$": named(self=T("f32", [3, 4]), index=lambda r: T("i64", r.shape())),
    r"(_fused_rms|rms|layer|native_layer)_norm": lambda r, m: layer(r),
    r"(native_)?group_norm": lambda r, m: group_norm(r),
    r".*(batch_norm|instance_norm)": lambda r, m: batch_norm(r),
    r"_weight_norm": named(v=lambda r: T("f32", [3, 4, 2]), g=T("f32", [3, 1, 1]), dim=0),
    r"_?prelu(_kernel)?": lambda r, m: {"self": T("f32", [2, 3, 4]), "weight": T("f32", [1, 3, 1] if "kernel" in m.string else [3])},
    # the kernel takes one width for query, key and value
    r"_scaled_dot_product_flash": lambda r, m: (lambda a: {**a, "value": a["key"]})(attention(r)),
    r"_scaled_dot|scaled_dot": lambda r, m: attention(r),
    r"_native_multi": named(query=T("f32", [2, 5, 8]), key=T("f32", [2, 5, 8]), value=T("f32", [2, 5, 8]), embed_dim=8, num_head=2, qkv_weight=T("f32", [24, 8]), qkv_bias=T("f32", [24]), proj_weight=T("f32", [8, 8]), proj_bias=T("f32", [8]), mask=None, need_weights=lambda r: r.random() < 0.5, average_attn_weights=lambda r: r.random() < 0.5),
    r"gru\.input": lambda r, m: rnn(r, 3), r"rnn_\w+\.input": lambda r, m: rnn(r, 1), r"lstm\.input": lambda r, m: rnn(r, 4, True),
    r"gru_cell": lambda r, m: cell(r, 3), r"rnn_tanh_cell": lambda r, m: cell(r, 1), r"lstm_cell": lambda r, m: cell(r, 4, True),
    r"einsum": lambda r, m: einsum(r),
    r"(reflection|replication)_pad(\d)d": lambda r, m: pads(r, int(m[2])),
    r"_pad_circular": lambda r, m: pads(r, 1, 2), r"_pad_enum": lambda r, m: {**pads(r, 1, 2), "mode": 1, "value": None},
    r"(constant_pad_nd|pad)$": lambda r, m: constant_pad(r),
    r"(split_with_sizes|unsafe_split_with_sizes|split\.sizes)": lambda r, m: split_sizes(r),
    r"(h|v|d)split": lambda r, m: {"self": T("f32", [4, 4, 6]), "sections": r.choice([1, 2])},
    r"tensor_split.indices": lambda r, m: {"self": T("f32", [6, 3]), "indices": r.choice([[1, 4], [0], [2, 9], [-2]])},
    r"(huber|l1|mse|smooth_l1|soft_margin)_loss|binary_cross|kl_div": lambda r, m: losses(r),
    r"cross_entropy|nll_loss": lambda r, m: classes(r),
    r"_?embedding_bag": lambda r, m: embedding_bag(r),
    r"embedding$": named(weight=lambda r: T(r.choice(FLOATS), [9, 4]), indices=lambda r: T(r.choice(["i64", "i32"]), r.shape(0, 3))),
    r"one_hot": named(self=lambda r: T("i64", r.shape()), num_classes=5),
    r"fake_quantize_per_channel": lambda r, m: fake_quant(r),
    r"fake_quantize_per_tensor.*tensor_qparams|_fake_quantize_per|_fake_quantize_learnable": lambda r, m: {**fake_quant1(r), "scale": T("f32", [1]), "zero_point": T("f32" if "learn" in m.string else "i32", [1]), "fake_quant_enabled": T("i64", [1])},
    r"fake_quantize_per_tensor": lambda r, m: fake_quant1(r),
    r"arange": lambda r, m: bounds(r),
    r"(slice|slice_copy)\.": lambda r, m: slices(r),
    r"mm$": lambda r, m: (lambda a: {"self": T(a["self"].dtype, a["self"].shape[1:]), "mat2": T(a["self"].dtype, a["mat2"].shape[1:])})(bmm(r)),
    r"_int_mm": named(self=T("i8", [32, 16]), mat2=T("i8", [16, 8])),
    r"bmm$": lambda r, m: bmm(r), r"addmm": lambda r, m: add_mm(r), r"baddbmm": lambda r, m: add_mm(r, True), r"addbmm": lambda r, m: add_mm(r, True, True),
    r"matmul$": lambda r, m: any_matmul(r), r"linear$": lambda r, m: linear(r),
    r"mv$": named(self=T("f32", [3, 4]), vec=T("f32", [4])), r"addmv": named(self=T("f32", [3]), mat=T("f32", [3, 4]), vec=T("f32", [4])),
    r"v?dot$": named(self=T("f32", [4]), tensor=T("f32", [4]), other=T("f32", [4])),
    r"outer": named(self=lambda r: T(r.choice(ANY), [3]), vec2=lambda r: T(r.choice(ANY), [4])),
    r"addr": named(self=T("f32", [3, 4]), vec1=T("f32", [3]), vec2=T("f32", [4])),
    r"inner": named(self=T("f32", [2, 3, 4]), other=T("f32", [5, 4])),
    r"chain_matmul": named(matrices=[T("f32", [2, 3]), T("f32", [3, 4]), T("f32", [4, 5])]),
    r"tensordot": named(self=T("f32", [3, 4, 5]), other=T("f32", [4, 3, 2]), dims_self=[1, 0], dims_other=[0, 1]),
    r"bilinear": named(input1=T("f32", [2, 3]), input2=T("f32", [2, 4]), weight=T("f32", [5, 3, 4]), bias=T("f32", [5])),
    r"_trilinear": named(i1=T("f32", [2, 3]), i2=T("f32", [5, 3, 4]), i3=T("f32", [2, 4]), expand1=[1, 3], expand2=[0], expand3=[1, 2], sumdim=[2, 3]),
    r"grid_sampler(_2d)?$": named(input=T("f32", [2, 3, 5, 5]), grid=T("f32", [2, 4, 6, 2]), interpolation_mode=0, padding_mode=0, align_corners=False),
    r"grid_sampler_3d": named(input=T("f32", [2, 3, 5, 5, 5]), grid=T("f32", [2, 4, 6, 7, 3]), interpolation_mode=0, padding_mode=0, align_corners=False),
    r"affine_grid": lambda r, m: r.choice([{"theta": T("f32", [2, 2, 3]), "size": [2, 3, 4, 5]}, {"theta": T("f32", [2, 3, 4]), "size": [2, 3, 4, 5, 6]}]) | {"align_corners": False},
    r"im2col": lambda r, m: {"self": image(r), "kernel_size": r.ints(1, 3, 2), "dilation": [1, 1], "padding": r.ints(0, 1, 2), "stride": r.ints(1, 2, 2)},
    r"col2im": named(self=T("f32", [2, 12, 9]), output_size=[4, 4], kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[1, 1]),
    r"pixel_shuffle": lambda r, m: {"self": T("f32", [2, 8, 3, 5]), "upscale_factor": 2}, r"pixel_unshuffle": lambda r, m: {"self": T("f32", [2, 3, 4, 6]), "downscale_factor": 2},
    r"channel_shuffle": lambda r, m: {"self": image(r), "groups": 2},
    r"where\.": lambda r, m: {**mix(r, "condition", "self", "other"), "condition": T("bool", [])} if r.random() < 0.3 else (lambda s: {"condition": T("bool", r.broadcast(s)), "self": T(r.choice(ANY), r.broadcast(s)), "other": T(r.choice(ANY), r.broadcast(s))})(r.shape(1, 3)),
    r"complex|polar": lambda r, m: (lambda e, s: {n: T(e, s) for n in ["real", "imag", "abs", "angle"]})(r.choice(["f32", "f64"]), r.shape()),
    r"(permute|permute_copy)$": lambda r, m: (lambda s: {"self": T(r.choice(ANY), s), "dims": r.sample(range(len(s)), len(s))})(r.shape()),
    r"(flip|roll)$": lambda r, m: (lambda s: {"self": T("f32", s), "dims": r.subset(len(s), 1), "shifts": []})(r.shape(1, 4)) if m[1] == "flip" else {"self": T("f32", [2, 3]), "shifts": [1], "dims": r.choice([[0], []])},
    r"(move|swap)(axis|dims?|axes)_?\.?(intlist|int)?": lambda r, m: {"self": T("f32", [2, 3, 4]), "source": [0, 2] if m[3] == "intlist" else 0, "destination": [-1, 0] if m[3] == "intlist" else -1, "axis0": 0, "axis1": -1, "dim0": 0, "dim1": 2},
    r"repeat$": lambda r, m: (lambda s: {"self": T("f32", s), "repeats": r.ints(0, 3, len(s) + r.randint(0, 2))})(r.shape()),
    r"tile$": lambda r, m: {"self": T("f32", r.shape()), "dims": r.ints(1, 3, r.randint(0, 3))},
    r"repeat_interleave.self": lambda r, m: (lambda s: {"self": T("f32", s), "repeats": r.randint(1, 3), "dim": r.choice([None, 0, -1])})(r.shape(1, 3)),
    r"repeat_interleave.Tensor": named(repeats=T("i64", [3]), output_size=7),
    r"unfold": lambda r, m: {"self": T("f32", [3, 8]), "dimension": r.choice([1, -1]), "size": r.randint(1, 4), "step": r.randint(1, 3)},
    r"(stft)": lambda r, m: {"self": T("f32", r.choice([[100], [2, 100]])), "n_fft": 16, "hop_length": r.choice([None, 5]), "win_length": None, "window": None, "return_complex": True, "onesided": r.choice([None, True, False])},
    r"_fft_r2c": lambda r, m: {"self": T("f32", [3, 8]), "dim": r.choice([[1], [0, 1]]), "normalization": 0, "onesided": r.random() < 0.7},
    r"_fft_c2r": lambda r, m: {"self": T("c64", [3, 5]), "dim": [1], "normalization": 0, "last_dim_size": r.choice([8, 9])},
    r"_fft_c2c": lambda r, m: {"self": T("c64", [3, 5]), "dim": [1], "normalization": 0, "forward": True},
    r"fft_rfft$": lambda r, m: {"self": T(r.choice(["f32", "i64", "f64"]), [3, 8]), "n": r.choice([None, 6, 9]), "dim": r.choice([0, -1])},
    r"fft_rfft(2|n)": lambda r, m: {"self": T("f32", [3, 8, 7]), "s": r.choice([None, [4, 6]]), "dim": r.choice([[-2, -1], [0, 1]])},
    r"linalg_solve": lambda r, m: {"A": T("f32", [2, 3, 3]), "B": T("f32", r.choice([[2, 3], [2, 3, 4], [3, 4]]))},
    r"linalg_(det|inv)|cholesky": named(A=T("f32", [2, 3, 3]), self=T("f32", [2, 3, 3])),
    r"(linalg_)?cross": named(self=T("f32", [2, 3]), other=T("f32", [1, 3]), dim=1),
    r"_?c?dist": named(x1=T("f32", [2, 3, 4]), x2=T("f32", [2, 5, 4]), p=2.0, compute_mode=None),
    r"_cdist": named(x1=T("f32", [2, 3, 4]), x2=T("f32", [2, 5, 4]), p=2.0, compute_mode=None),
    r"_?pdist": named(self=T("f32", [5, 4])),
    r"pairwise_dist": named(x1=T("f32", [5, 4]), x2=T("f32", [5, 4]), keepdim=lambda r: r.random() < 0.5),
    r"cosine_sim": named(x1=T("f32", [5, 4, 2]), x2=T("f32", [1, 4, 2]), dim=lambda r: r.choice([0, 1, -1])),
    r"bucketize": named(self=lambda r: T("f32", r.shape()), boundaries=T("f32", [5])), r"searchsorted": named(sorted_sequence=T("f32", [5]), self=lambda r: T("f32", r.shape())),
    r"renorm": named(self=T("f32", [3, 4]), p=2, dim=0, maxnorm=1.0), r"vander": named(x=T("i64", [3]), N=lambda r: r.choice([None, 5])),
    r"glu": lambda r, m: {"self": T("f32", [4, 6]), "dim": r.choice([0, -1])},
    r"normal_|uniform_|exponential": lambda r, m: {"self": T("f32", r.shape())},
    r"randint": named(high=9, low=1, size=[2, 3], dtype=lambda r: r.choice([torch.int64, torch.float32])), r"randperm": named(n=6), r"eye": named(n=3, m=4),
    r"(linspace|logspace)": named(start=1, end=4, steps=5), r"(tril|triu)_indices": lambda r, m: {"row": r.randint(1, 4), "col": r.randint(1, 4), "offset": r.randint(-2, 2)},
    r"empty_strided|new_empty_strided": named(self=T("i32", [2]), size=[2, 3], stride=[3, 1]),
    r"hann": named(window_length=8), r"(full|zeros|ones|rand|randn|empty.memory_format|new_\w+)$": lambda r, m: {"self": T(r.choice(ANY), [2]), "size": r.shape(), "stride": None, "fill_value": r.choice([1, 2.5, True]), "dtype": r.choice([None, None, torch.int32, torch.float16])},
    r"to\.(other)|type_as": lambda r, m: {"self": T(r.choice(ANY), r.shape()), "other": T(r.choice(ANY), [2])},
    r"(_to_copy|to\.dtype.*|full_like|zeros_like|ones_like|empty_like)": lambda r, m: {"self": T(r.choice(ANY), r.shape()), "dtype": DTYPES[r.choice(ANY)], "fill_value": 1},
    r"(var|std)(_mean)?\.correction": lambda r, m: (lambda s: {"self": T(r.choice(FLOATS + ["c64"]), s), "dim": r.choice([None, r.subset(len(s), 1)]), "keepdim": r.random() < 0.5, "correction": r.choice([0, 1])})(r.shape()),
    r"multinomial": named(self=T("f32", [3, 5]), num_samples=4), r"nextafter|heaviside|logaddexp2?$|hypot|gcd|lcm|isclose": lambda r, m: (lambda e, s: {"self": T(e, r.broadcast(s)), "other": T(e, r.broadcast(s)), "values": T(e, s)})(r.choice(INTS if m[0] in ("gcd", "lcm") else FLOATS), r.shape()),
    r"histc": named(self=T("f32", [9]), bins=lambda r: r.randint(1, 9)), r"trace": named(self=lambda r: T(r.choice(ANY), [3, 4])), r"kthvalue": named(self=T("f32", [3, 4]), k=1, dim=lambda r: r.choice([0, 1, -1]), keepdim=lambda r: r.random() < 0.5),
    r"topk": lambda r, m: {"self": T(r.choice(FLOATS), [4, 6]), "k": r.randint(0, 4), "dim": r.choice([0, 1, -1])}, r"rot90": lambda r, m: {"self": T("f32", [2, 3, 4]), "k": r.randint(0, 3), "dims": r.choice([[0, 1], [2, 0]])},
    r"addc(mul|div)_?": lambda r, m: (lambda s, es: {"self": T(r.choice(es), s), "tensor1": T(r.choice(es), r.broadcast(s)), "tensor2": T(r.choice(es), r.broadcast(s))})(r.shape(), r.choice([FLOATS, ANY])),
    r"lerp": lambda r, m: (lambda s, e: {"self": T(e, s), "end": T(e, r.broadcast(s)), "weight": T(e, r.broadcast(s)) if "Tensor" in m.string else 0.5})(r.shape(), r.choice(FLOATS)),
    r"resize_": named(self=T("f32", [2, 3]), size=[4, 5]), r"diff": lambda r, m: {"self": T("f32", [3, 5]), "n": r.randint(1, 2), "dim": r.choice([0, 1, -1]), "prepend": r.choice([None, T("f32", [3, 5])]), "append": None},
    r"norm\.ScalarOpt_dim": lambda r, m: {"self": T("f32", [3, 4]), "p": 2, "dim": r.choice([[0], [0, 1]]), "keepdim": r.random() < 0.5, "dtype": torch.float64},
}
# Where the fake result is PyTorch's mistake: eager mode gives another one, or refuses. And qint8, a type
# that no exported program holds.
EXCLUDED = [
    ("aten.quantize_per_tensor.default", ""), ("aten.logsumexp.default", "dim=[]"), ("aten.hardshrink.default", "bool["),
    ("aten.index.Tensor", "[0,"), ("aten.pow.Scalar", "self=true"), ("aten.to.prim_dtype", "copy=true"),
]

# Placeholders of a converter: they have no fake implementation.
LOGICAL = {"circle_custom.quantize_mx.default", "circle_custom.dequantize_mx.default"}

COMPILED = [(re.compile(k), v) for k, v in MAKERS.items()]


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


SKIP_TYPES = ("Device", "Layout", "MemoryFormat", "Generator")


def draw(r, name, schema):
    given = {}
    if schema.name.startswith("quantized_decomposed"):
        given = quantization_of(r, name)
    elif schema.name.startswith("circle_custom"):
        given = channels_last(r, name)
    for pattern, maker in [] if given else COMPILED:
        if m := pattern.match(name):
            given = maker(r, m) if maker.__code__.co_argcount == 2 else maker(r)
            break
    values, first, rank = {}, None, 0
    for arg in schema.arguments:
        if any(s in str(arg.type) for s in SKIP_TYPES) or arg.name in ("pin_memory", "non_blocking", "layout", "device", "memory_format"):
            continue
        if arg.name in given and str(arg.type) in ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]"):
            v = given[arg.name]
        elif arg.name in given and not isinstance(given[arg.name], T):
            v = given[arg.name]
        elif arg.has_default_value() and r.random() < 0.4:
            v = arg.default_value
        else:
            v = default_argument(r, arg, rank, first)
        values[arg.name] = v
        if first is None and isinstance(v, T):
            first, rank = v.shape, len(v.shape)
    return values


def value_text(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return repr(v) if "." in repr(v) or "e" in repr(v) else repr(v) + ".0"
    if isinstance(v, str):
        return '"' + v + '"'
    if isinstance(v, torch.dtype):
        return "@" + NAMES[v]
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(value_text(x) for x in v) + "]"
    raise LookupError(repr(v))


def operand_text(v):
    if v is None:
        return "-"
    if isinstance(v, list):
        return "(" + " ".join(operand_text(x) for x in v) + ")"
    return v.text()


def result_text(out):
    if out is None:
        return ""
    if isinstance(out, torch.Tensor):
        return T(NAMES[out.dtype], out.shape).text()
    if isinstance(out, (list, tuple)):
        return " ".join(result_text(o) for o in out)
    return {bool: "bool", float: "float"}.get(type(out), "int")


def made(v):
    if isinstance(v, T):
        return v.make()
    if isinstance(v, list) and any(isinstance(x, T) for x in v):
        return [made(x) for x in v]
    return v


def case(name, schema, op, values):
    operands, attrs = [], []
    for arg in schema.arguments:
        if arg.name not in values:
            continue
        v = values[arg.name]
        if "Tensor" in str(arg.type):
            operands.append(operand_text(v))
        else:
            default = arg.default_value if arg.has_default_value() else ...
            if v is None and default not in (None, ...):
                raise LookupError("an explicit None has no form in the file")
            # bool and int compare equal; the element type that they stand for does not
            if v is not None and not (default is not ... and type(v) is type(default) and v == default):
                if "ScalarType" in str(arg.real_type) and v == 4:  # torch.int64's number, a default
                    v = torch.int64
                attrs.append(f"{arg.name}={value_text(v)}")
    with FakeTensorMode(allow_non_fake_inputs=True):
        out = op(**{k: made(v) for k, v in values.items()})
    return f"{name} | {' '.join(operands)} | {' '.join(attrs)} | {result_text(out)}"


def overload(name):
    namespace, packet, which = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), which)


def table_rows():
    for path in sorted((ROOT / "src/aten/table").glob("*.def")):
        yield from re.findall(r'"((?:aten|quantized_decomposed|circle_custom)\.[^"]+)"', path.read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "test/data/infer_cases.txt")
    parser.add_argument("--per-op", type=int, default=9)
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    lines, missing = [], []
    for name in table_rows():
        op = overload(name)
        schema = op._schema
        if name in LOGICAL:
            continue
        short = name.partition(".")[2].removesuffix(".default")
        r = Draw(name)
        found, error = [], None
        for _ in range(options.per_op * 12):
            if len(found) >= options.per_op:
                break
            try:
                line = case(name, schema, op, draw(r, short, schema))
                if any(name == n and part in line for n, part in EXCLUDED):
                    continue
            except Exception as e:  # noqa: BLE001 - a refusal by PyTorch is not a case
                error = e
                continue
            if line not in found:
                found.append(line)
        lines += found
        if not found:
            missing.append((name, repr(error)[:150]))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} cases for {len({x.split(' ')[0] for x in lines})} operators, {options.out.stat().st_size} bytes")
    if options.missing:
        for row in missing:
            print(*row)


if __name__ == "__main__":
    main()
