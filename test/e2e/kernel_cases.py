"""Writes the cases that the evaluator's kernels are tested with: one text graph per case and the inputs and
outputs that PyTorch gives, as src/eval/testdata/kernel_cases.txt and .npz. Run it after adding a case:

    python test/e2e/kernel_cases.py src/eval/testdata

Both files are committed, so that the test needs neither Python nor PyTorch.
"""

import io
import pathlib
import sys
import zipfile

import numpy as np
import torch

A = torch.ops.aten
DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32",
    torch.float64: "f64", torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2",
    torch.complex64: "c64", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
}
RAW = {torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8}
IGNORED = {"device", "layout", "memory_format", "pin_memory", "non_blocking", "generator"}
ALL = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
       torch.bfloat16, torch.float32, torch.float64]
FLOATS = ALL[6:]
INTS = ALL[1:6]

rng = np.random.default_rng(7)
cases = []  # (text, [arrays in], [arrays out], tolerance)


def t(*shape, dtype=torch.float32, low=-2.0, high=2.0):
    """Random values on a coarse grid: few bytes after deflation, exact in every float type."""
    steps = 32
    values = rng.integers(0, int((high - low) * steps) + 1, size=shape) / steps + low
    return torch.from_numpy(np.asarray(values, dtype=np.float64)).to(dtype)


def ti(*shape, low=-9, high=9, dtype=torch.int64):
    return torch.from_numpy(np.asarray(rng.integers(low, high, size=shape), dtype=np.int64)).to(dtype)


def any_of(dtype, *shape, low=-9, high=9):
    if dtype == torch.bool:
        return ti(*shape, low=0, high=2, dtype=dtype)
    if dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        return ti(*shape, low=max(low, 0), high=high + 120, dtype=dtype)
    if dtype.is_floating_point:
        return t(*shape, dtype=dtype)
    return ti(*shape, low=low, high=high, dtype=dtype)


def type_text(x):
    return DTYPES[x.dtype] + "[" + ",".join(str(d) for d in x.shape) + "]"


def attr_text(value, schema_type):
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, torch.dtype):
        return DTYPES[value]
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attr_text(v, schema_type) for v in value) + "]"
    if isinstance(value, int) and "float" not in schema_type:
        return str(value)
    text = repr(float(value))
    return text if any(c in text for c in ".einf") else text + ".0"


def array(x):
    x = x.detach().contiguous()
    return (x.view(RAW[x.dtype]) if x.dtype in RAW else x).numpy()


def case(op, *args, tol=None, skip_outputs=(), **kwargs):
    """One call of `op`: its text graph, its inputs, PyTorch's outputs."""
    ins, operands, attrs = [], [], []

    def operand(x):
        if x is None:
            return "none"
        ins.append(x)
        return f"%i{len(ins) - 1}"

    schema = op._schema
    given = dict(zip((a.name for a in schema.arguments), args))
    given.update(kwargs)
    for a in schema.arguments:
        kind = str(a.type)
        if "Tensor" in kind:
            value = given.get(a.name)
            if "List" in kind or isinstance(value, (list, tuple)):
                operands += [operand(x) for x in value]
            else:
                operands.append(operand(value))
        elif a.name in given and a.name not in IGNORED:
            attrs.append(f"{a.name} = {attr_text(given[a.name], kind)}")
    out = op(*args, **kwargs)
    outs = [out] if isinstance(out, torch.Tensor) else [o for o in out]
    name = str(op._schema.name).replace("::", ".") + "." + (op._overloadname or "default")
    parameters = ", ".join(f"%i{k}: {type_text(x)}" for k, x in enumerate(ins))
    results = ", ".join(f"%o{k}" for k in range(len(outs)))
    kept = [k for k in range(len(outs)) if k not in skip_outputs]
    attr = " {" + ", ".join(attrs) + "}" if attrs else ""
    types = ", ".join(type_text(o) for o in outs)
    returned = ", ".join(f"%o{k}" for k in kept)
    text = (f"graph @c{len(cases)}({parameters}) {{\n  {results} = {name}({', '.join(operands)})"
            f"{attr} : {types}\n  return {returned}\n}}\n")
    cases.append((text, [array(x) for x in ins], [array(outs[k]) for k in kept], tol))


def special(dtype=torch.float32):
    inf, nan = float("inf"), float("nan")
    return torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, 7.0, -7.0, 100.0, inf,
                         -inf, nan, 1e-3], dtype=dtype)


def unary():
    names = ("abs acos asin asinh atan bitwise_not ceil cos cosh erf erfc erfinv exp exp2 expm1 floor frac "
             "hardsigmoid hardswish isfinite isinf isnan isneginf isposinf log_sigmoid mish neg "
             "reciprocal relu relu6 round selu sgn sigmoid sign signbit silu sin sinc sinh square tan tanh "
             "trunc logical_not deg2rad rad2deg nan_to_num").split()
    for n in names:
        f = getattr(A, n).default
        if n != "bitwise_not":
            case(f, special())
    for n in "acosh log log10 log1p log2 rsqrt sqrt lgamma digamma".split():
        case(getattr(A, n).default, t(15, low=1.0, high=6.0))
    case(A.atanh.default, t(9, low=-0.9, high=0.9))
    for d in INTS + [torch.bool]:
        case(A.bitwise_not.default, any_of(d, 3, 4))
        case(A.logical_not.default, any_of(d, 3, 4))
    for d in INTS:
        case(A.neg.default, any_of(d, 7))
        case(A.sign.default, any_of(d, 7))
        case(A.abs.default, any_of(d, 7))
    for d in (torch.float16, torch.bfloat16, torch.float64):
        for n in "exp sigmoid tanh silu reciprocal sqrt".split():
            case(getattr(A, n).default, t(11, dtype=d, low=0.25, high=3.0))
        case(A.gelu.default, t(11, dtype=d))
    case(A.sin.default, ti(6))  # integers become floats
    case(A.gelu.default, special()[:14])
    case(A.gelu.default, t(20), approximate="tanh")
    case(A.i0.default, torch.tensor([0.0, 0.5, -3.0, 29.0, 31.0, 80.0]))
    case(A.elu.default, special(), 1.3, 1.1, 0.7)
    case(A.celu.default, t(12), 1.5)
    case(A.leaky_relu.default, special(), 0.2)
    case(A.hardtanh.default, special(), -0.75, 0.5)
    case(A.clamp.default, special(), -1.0, 2.0)
    case(A.clamp.default, ti(9), None, 3)
    case(A.clamp_min.default, t(9), 0.25)
    case(A.clamp.Tensor, t(3, 4), t(4), t(3, 1))
    case(A.softplus.default, special(), 2.0, 5.0)
    case(A.softshrink.default, t(12), 0.75)
    case(A.hardshrink.default, t(12), 0.75)
    case(A.threshold.default, t(12), 0.5, -3.0)
    case(A.logit.default, t(9, low=0.0, high=1.0), 0.125)
    case(A.polygamma.default, 1, t(6, low=0.5, high=4.0))
    case(A.nan_to_num.default, special(), 1.5, 9.0, -9.0)


def casts():
    for a in ALL:
        for b in ALL:
            if a != b:
                x = any_of(a, 6, low=0 if b == torch.uint8 else -9)
                if a.is_floating_point and not b.is_floating_point:
                    x = t(6, dtype=a, low=0.0, high=9.0)
                case(A._to_copy.default, x, dtype=b)
    for b in (torch.float8_e4m3fn, torch.float8_e5m2):
        case(A._to_copy.default, t(40, low=-8.0, high=8.0), dtype=b)
        case(A._to_copy.default, t(9, low=-8.0, high=8.0).to(b), dtype=torch.float32)
    case(A._to_copy.default, ti(5, low=-300, high=300), dtype=torch.int8)
    case(A._to_copy.default, torch.tensor([2**31, -2**33 + 5, 2**40 + 1]), dtype=torch.float32)


def binary():
    for d in FLOATS + INTS:
        a, b = any_of(d, 2, 3, 4), any_of(d, 3, 1)
        for n in ("add", "sub", "mul"):
            case(getattr(A, n).Tensor, a, b)
        case(A.maximum.default, a, b)
        case(A.minimum.default, a, b)
        case(A.lt.Tensor, a, b)
        nonzero = torch.where(b == 0, torch.ones_like(b), b)
        for mode in ("floor", "trunc"):
            case(A.div.Tensor_mode, a, nonzero, rounding_mode=mode)
        case(A.remainder.Tensor, a, nonzero)
        case(A.fmod.Tensor, a, nonzero)
    for d in ALL:
        a, b = any_of(d, 3, 4), any_of(d, 4)
        for n in ("eq", "ne", "le", "gt", "ge"):
            case(getattr(A, n).Tensor, a, b)
        case(A.logical_xor.default, a, b)
    s = special()
    for n in ("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "copysign"):
        op = getattr(A, n)
        op = op.Tensor if n == "copysign" else op.default
        case(op, s.reshape(-1, 1), s.reshape(1, -1))
    for n in ("div", "remainder", "fmod", "xlogy"):
        case(getattr(A, n).Tensor, s.reshape(-1, 1), s.reshape(1, -1))
    case(A.div.Tensor_mode, s.reshape(-1, 1), s.reshape(1, -1), rounding_mode="floor")
    case(A.pow.Tensor_Tensor, s.reshape(-1, 1), s.reshape(1, -1))
    case(A.pow.Tensor_Tensor, ti(4, 1), torch.tensor([0, 1, 2, 3, 5]))
    case(A.pow.Tensor_Scalar, t(6), 3)
    case(A.pow.Scalar, 2.5, t(6))
    case(A.add.Tensor, t(3), t(3), alpha=2.5)
    case(A.sub.Tensor, ti(3), ti(3), alpha=3)
    case(A.rsub.Scalar, t(3), 2.0, 0.5)
    case(A.add.Scalar, ti(4), 2.5)
    case(A.mul.Scalar, t(4, dtype=torch.float16), 0.3)
    case(A.add.Tensor, t(4), ti(4))  # promotion by the kernel
    case(A.gt.Tensor, ti(4), t(4))
    case(A.add.Tensor, any_of(torch.bool, 4), any_of(torch.bool, 4))
    for d in INTS + [torch.bool]:
        a, b = any_of(d, 5), any_of(d, 5)
        for n in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            case(getattr(A, n).Tensor, a, b)
    case(A.__lshift__.Scalar, ti(5, dtype=torch.int32), 3)
    case(A.gcd.default, ti(6, low=-40, high=40), ti(6, low=1, high=40))
    case(A.lcm.default, ti(6, low=1, high=20), ti(6, low=1, high=20))
    case(A.heaviside.default, s[:16], t(16))
    case(A.ldexp.Tensor, t(5), ti(5, low=-3, high=4))
    case(A.nextafter.default, t(5), t(5))
    case(A.prelu.default, t(2, 3, 4), t(3))
    case(A.where.self, any_of(torch.bool, 3, 1), t(4), t(3, 4))
    case(A.where.ScalarOther, any_of(torch.bool, 4), t(4), 2.0)
    case(A.masked_fill.Scalar, t(3, 4), any_of(torch.bool, 4), -float("inf"))
    case(A.addcmul.default, t(3, 4), t(4), t(3, 1), value=0.5)
    case(A.addcdiv.default, t(3, 4), t(4), t(3, 1, low=1.0, high=2.0), value=0.5)
    case(A.lerp.Tensor, t(5), t(5), t(5, low=0.0, high=1.0))
    case(A.lerp.Scalar, t(5), t(5), 0.75)


def movement():
    for d in (torch.float32, torch.int8, torch.int64, torch.float16, torch.bool, torch.complex64):
        x = any_of(d, 2, 3, 4) if d != torch.complex64 else torch.complex(t(2, 3, 4), t(2, 3, 4))
        case(A.permute.default, x, [2, 0, 1])
        case(A.transpose.int, x, -1, 0)
    case(A.permute.default, t(3, 40, 37), [0, 2, 1])
    x = t(2, 3, 4)
    case(A.view.default, x, [4, -1])
    case(A.expand.default, t(3, 1), [2, -1, 4])
    case(A.slice.Tensor, x, 2, 1, 9223372036854775807, 2)
    case(A.slice.Tensor, x, 0, -1, 2, 1)
    case(A.select.int, x, 1, -1)
    case(A.unsqueeze.default, x, -1)
    case(A.squeeze.dim, t(3, 1, 2), 1)
    case(A.cat.default, [t(2, 3), t(1, 3), t(4, 3)], 0)
    case(A.cat.default, [t(2, 3), t(2, 1)], -1)
    case(A.stack.default, [t(2, 3), t(2, 3)], 1)
    case(A.split.Tensor, t(7, 2), 3, 0)
    case(A.split_with_sizes.default, t(2, 6), [1, 3, 2], 1)
    case(A.chunk.default, t(5), 2)
    case(A.unbind.int, t(2, 3), 1)
    case(A.constant_pad_nd.default, t(2, 3), [1, 2, -1, 1], 0.5)
    case(A.constant_pad_nd.default, ti(2, 3, dtype=torch.int8), [2, 0], 3)
    case(A.reflection_pad1d.default, t(2, 5), [3, 2])
    case(A.reflection_pad2d.default, t(1, 4, 5), [1, 2, 3, 0])
    case(A.replication_pad2d.default, t(1, 2, 3), [1, 2, 0, 3])
    case(A.replication_pad3d.default, t(1, 1, 2, 2, 2), [1, 1, 0, 1, 2, 0])
    case(A.flip.default, x, [0, 2])
    case(A.repeat.default, t(2, 3), [2, 1, 3])
    case(A.tile.default, t(2, 3), [2])
    case(A.repeat_interleave.self_int, t(2, 3), 3, 1)
    case(A.roll.default, t(3, 4), [1, -2], [0, 1])
    case(A.roll.default, t(3, 4), [5])
    case(A.diagonal.default, t(3, 4), 1, 0, 1)
    case(A.diagonal.default, t(2, 4, 3), -1, 2, 0)
    case(A.unfold.default, t(2, 7), 1, 3, 2)
    case(A.as_strided.default, t(12), [2, 3], [4, 2], 1)
    case(A.pixel_shuffle.default, t(1, 8, 2, 3), 2)
    case(A.pixel_unshuffle.default, t(1, 2, 4, 6), 2)
    case(A.channel_shuffle.default, t(1, 6, 2, 2), 3)
    case(A.movedim.intlist, x, [0, 2], [2, 1])
    case(A.tril.default, t(4, 5), 1)
    case(A.triu.default, t(2, 4, 3), -1)
    case(A.diag.default, t(3), 1)
    case(A.diag.default, t(3, 4), -1)
    case(A.diag_embed.default, t(2, 3), 1)
    case(A.meshgrid.indexing, [t(2), t(3)], indexing="xy")
    case(A.select_scatter.default, t(3, 4), t(4), 0, 1)
    case(A.slice_scatter.default, t(3, 6), t(3, 2), 1, 1, 5, 2)
    case(A.diagonal_scatter.default, t(3, 4), t(3), 1)
    case(A.hstack.default, [t(2), t(3)])
    case(A.column_stack.default, [t(2), t(2, 2)])


def indexing():
    x = t(4, 5, 6)
    case(A.index_select.default, x, 1, torch.tensor([4, 0, 0]))
    case(A.gather.default, x, 1, ti(4, 2, 6, low=0, high=5))
    case(A.embedding.default, t(7, 3), ti(2, 4, low=0, high=7))
    case(A.index.Tensor, x, [torch.tensor([1, -1]), None, torch.tensor([[0], [3]])])
    case(A.index.Tensor, x, [None, torch.tensor([1, -1]), torch.tensor([[0], [3]])])
    case(A.index.Tensor, x, [any_of(torch.bool, 4, 5)])
    case(A.index.Tensor, x, [None, any_of(torch.bool, 5)])
    case(A.index_put.default, x, [torch.tensor([1, 3]), None, torch.tensor([0, 2])], t(2, 5))
    case(A.index_put.default, x, [torch.tensor([1, 1])], t(5, 6), True)
    case(A.index_put.default, t(3, 4), [any_of(torch.bool, 3, 4)], torch.tensor(2.0))
    case(A.scatter.src, t(3, 5), 1, torch.tensor([[0, 2], [1, 4], [3, 0]]), t(3, 3))
    case(A.scatter.value, t(3, 5), 0, torch.tensor([[0, 2]]), 1.5)
    case(A.scatter_add.default, t(3, 5), 1, ti(3, 5, low=0, high=5), t(3, 5))
    for r in ("sum", "prod", "mean", "amax", "amin"):
        for keep in (True, False):
            case(A.scatter_reduce.two, t(3, 5), 1, ti(3, 6, low=0, high=5), t(3, 6), r, include_self=keep)
    case(A.scatter.reduce, t(3, 5), 1, ti(3, 2, low=0, high=5), t(3, 2), reduce="multiply")
    case(A.index_add.default, t(3, 5), 1, torch.tensor([0, 4, 0]), t(3, 3), alpha=2.0)
    case(A.index_copy.default, t(3, 5), 0, torch.tensor([2, 0]), t(2, 5))
    case(A.index_fill.int_Scalar, t(3, 5), 1, torch.tensor([1, 3]), -1.0)
    case(A.take.default, x, ti(3, 2, low=0, high=120))
    case(A.take_along_dim.default, t(3, 4), ti(1, 2, low=0, high=4), 1)
    case(A.masked_select.default, t(3, 4), any_of(torch.bool, 4))
    case(A.masked_scatter.default, t(3, 4), any_of(torch.bool, 3, 4), t(12))
    case(A.nonzero.default, ti(3, 4, low=0, high=2))
    case(A.one_hot.default, ti(5, low=0, high=4), 6)
    case(A.bucketize.Tensor, t(6), torch.tensor([-1.0, 0.0, 0.5, 1.0]), right=True)
    case(A.searchsorted.Tensor, t(2, 5).sort()[0], t(2, 3))


def reductions():
    for d in FLOATS + INTS + [torch.bool]:
        x = any_of(d, 3, 4, 5)
        case(A.sum.dim_IntList, x, [1], True)
        case(A.any.dim, x, 2)
        case(A.all.dim, x, 0, True)
        if d != torch.bool:
            case(A.amax.default, x, [0, 2])
            case(A.argmin.default, x, 1)
            case(A.cumsum.default, x, 1)
            case(A.prod.dim_int, any_of(d, 2, 3, low=-3, high=3), 1)
            case(A.sort.stable, x, stable=True, dim=1, descending=False)
            case(A.max.dim, x, 1, True)
    for d in FLOATS:
        x = t(3, 4, 5, dtype=d)
        case(A.mean.dim, x, [0, 2], True)
        case(A.var.correction, x, [1], correction=1)
    x = t(2, 3, 50)
    case(A.sum.default, x)
    case(A.mean.default, x)
    case(A.sum.dim_IntList, x, [0, 1], dtype=torch.float64)
    case(A.sum.dim_IntList, t(70, 90, low=0.0, high=3.0), [0, 1])
    case(A.amin.default, special(), [0])
    case(A.argmax.default, special())
    case(A.argmax.default, t(3, 4), None)
    case(A.std.correction, x, [0, 2], correction=0, keepdim=True)
    case(A.var_mean.correction, x, [1], correction=1)
    case(A.cumprod.default, t(3, 5), 0)
    case(A.cummax.default, ti(3, 6), 1)
    case(A.logcumsumexp.default, t(3, 6), 1)
    case(A.logsumexp.default, x, [1, 2])
    case(A.count_nonzero.default, ti(4, 5, low=-1, high=2))
    case(A.linalg_vector_norm.default, x, 3, [1])
    case(A.linalg_vector_norm.default, x, float("inf"), [2])
    case(A.norm.ScalarOpt_dim, x, 2, [1], True)
    case(A.sort.default, torch.randperm(20, generator=torch.Generator().manual_seed(1)).float().reshape(4, 5), 1, True)
    case(A.topk.default, torch.randperm(24, generator=torch.Generator().manual_seed(2)).float().reshape(4, 6), 3, 1)
    case(A.topk.default, torch.randperm(24, generator=torch.Generator().manual_seed(3)).float().reshape(4, 6), 2, 0, False)
    case(A.sort.stable, special(), stable=True)
    case(A.kthvalue.default, torch.randperm(12, generator=torch.Generator().manual_seed(4)).reshape(3, 4), 2)
    case(A.median.dim, torch.randperm(12, generator=torch.Generator().manual_seed(5)).float().reshape(3, 4), 1)
    case(A.trace.default, t(3, 4))
    case(A.aminmax.default, t(3, 4), dim=1)


def contractions():
    for d in FLOATS + [torch.int64, torch.int32]:
        case(A.mm.default, any_of(d, 5, 7), any_of(d, 7, 3))
    case(A.matmul.default, t(2, 1, 3, 4), t(5, 4, 2))
    case(A.matmul.default, t(4), t(4))
    case(A.matmul.default, t(3, 2, 4), t(4))
    case(A.matmul.default, t(4), t(3, 4, 2))
    case(A.bmm.default, t(3, 2, 4), t(3, 4, 5))
    case(A.linear.default, t(2, 3, 4), t(5, 4), t(5))
    case(A.linear.default, t(4, dtype=torch.bfloat16), t(5, 4, dtype=torch.bfloat16))
    case(A.addmm.default, t(5), t(3, 4), t(4, 5), beta=0.5, alpha=2.0)
    case(A.baddbmm.default, t(2, 3, 5), t(2, 3, 4), t(2, 4, 5))
    case(A.addbmm.default, t(3, 5), t(2, 3, 4), t(2, 4, 5))
    case(A.mv.default, t(3, 4), t(4))
    case(A.dot.default, t(6), t(6))
    case(A.outer.default, t(3), t(4))
    conv = A.convolution.default
    case(conv, t(2, 3, 9), t(4, 3, 3), t(4), [2], [1], [1], False, [0], 1)
    case(conv, t(1, 4, 7, 8), t(6, 2, 3, 2), t(6), [2, 1], [1, 0], [1, 2], False, [0, 0], 2)
    case(conv, t(1, 6, 5, 5), t(6, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 6)
    case(conv, t(1, 2, 4, 5, 6), t(3, 2, 2, 3, 2), t(3), [1, 2, 1], [0, 1, 1], [1, 1, 2], False, [0, 0, 0], 1)
    case(conv, t(2, 4, 5), t(4, 3, 3), t(6), [2], [1], [1], True, [1], 2)
    case(conv, t(1, 3, 4, 5), t(3, 2, 3, 3), t(2), [2, 3], [1, 0], [1, 2], True, [1, 2], 1)
    case(conv, t(1, 2, 3, 3, 3), t(2, 2, 2, 2, 2), None, [2, 1, 2], [0, 0, 1], [1, 1, 1], True, [0, 0, 1], 1)
    for d in (torch.float64, torch.float16, torch.bfloat16):
        case(conv, t(1, 3, 6, 6, dtype=d), t(4, 3, 3, 3, dtype=d), t(4, dtype=d), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    case(A.conv1d.padding, t(1, 2, 8), t(3, 2, 4), None, [1], "same", [1], 1)
    case(A.conv2d.padding, t(1, 2, 8, 7), t(3, 2, 4, 3), t(3), [1, 1], "same", [1, 2], 1)
    case(A.conv2d.default, t(2, 6, 6), t(3, 2, 3, 3))
    case(A.conv_transpose2d.input, t(1, 2, 4, 4), t(2, 3, 3, 3), None, [2, 2], [1, 1], [1, 1])
    sdpa = A.scaled_dot_product_attention.default
    case(sdpa, t(2, 3, 4, 8), t(2, 3, 5, 8), t(2, 3, 5, 6))
    case(sdpa, t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 8), None, 0.0, True)
    case(sdpa, t(1, 4, 3, 8), t(1, 2, 5, 8), t(1, 2, 5, 8), t(3, 5), 0.0, False, scale=0.3, enable_gqa=True)
    mask = torch.tensor([[True, False, True], [True, True, True]])
    case(sdpa, t(1, 1, 2, 4), t(1, 1, 3, 4), t(1, 1, 3, 4), mask)


def pooling():
    x = t(2, 3, 9, 8)
    case(A.max_pool2d_with_indices.default, x, [3, 2], [2, 2], [1, 1], [1, 1], False)
    case(A.max_pool2d_with_indices.default, x, [3, 3], [2, 2], [0, 1], [2, 1], True)
    case(A.max_pool2d_with_indices.default, ti(1, 2, 5, 5), [2, 2])
    case(A.max_pool2d.default, special()[:16].reshape(1, 4, 4), [2, 2], [1, 1])
    case(A.max_pool1d.default, t(2, 7), [3], [2], [1])
    case(A.max_pool3d_with_indices.default, t(1, 2, 4, 5, 6), [2, 2, 3], [2, 1, 2], [0, 1, 1], [1, 2, 1], True)
    case(A.avg_pool2d.default, x, [3, 2], [2, 2], [1, 1])
    case(A.avg_pool2d.default, x, [3, 3], [2, 3], [1, 1], True, False)
    case(A.avg_pool2d.default, x, [3, 3], [2, 3], [1, 1], True, True)
    case(A.avg_pool2d.default, x, [2, 2], [2, 2], [0, 0], False, True, 3)
    case(A.avg_pool1d.default, t(2, 3, 8), [3], [2], [1])
    case(A.avg_pool3d.default, t(1, 2, 4, 5, 6), [2, 3, 2], [2, 2, 2], [1, 1, 0], True, False)
    case(A._adaptive_avg_pool2d.default, x, [4, 3])
    case(A.adaptive_avg_pool2d.default, t(2, 3, 6, 6, dtype=torch.bfloat16), [1, 1])
    case(A.adaptive_avg_pool1d.default, t(2, 3, 7), [3])
    case(A._adaptive_avg_pool3d.default, t(1, 2, 4, 5, 6), [2, 2, 4])
    case(A.adaptive_max_pool2d.default, x, [4, 3])


def norms():
    x = t(2, 6, 5)
    for d in FLOATS:
        case(A._softmax.default, t(3, 7, dtype=d), 1, False)
        case(A.layer_norm.default, t(3, 8, dtype=d), [8], t(8, dtype=d), t(8, dtype=d))
        case(A.rms_norm.default, t(3, 8, dtype=d), [8], t(8, dtype=d), 1e-6)
    case(A._softmax.default, x, 1, False)
    case(A._log_softmax.default, x, 0, False)
    case(A.softmax.int, ti(3, 4), 1, torch.float32)
    minus = torch.full((2, 3), -float("inf"))
    minus[0, 1] = 1.0
    case(A._safe_softmax.default, minus, 1)
    case(A._softmax.default, minus, 1, False)
    case(A.native_layer_norm.default, x, [6, 5], t(6, 5), t(6, 5), 1e-5)
    case(A.rms_norm.default, x, [5], None, None)
    case(A.group_norm.default, x, 3, t(6), t(6), 1e-5)
    case(A.native_group_norm.default, x, t(6), None, 2, 6, 5, 2, 1e-4)
    case(A.batch_norm.default, t(2, 3, 4, 4), t(3), t(3), t(3), t(3, low=0.5, high=2.0), False, 0.1, 1e-3, False)
    case(A._native_batch_norm_legit_no_training.default, t(2, 3, 4), t(3), t(3), t(3), t(3, low=0.5, high=2.0), 0.1, 1e-5,
         skip_outputs=(1, 2))
    case(A.instance_norm.default, t(2, 3, 4, 4), t(3), t(3), None, None, True, 0.1, 1e-5, False)


def resampling():
    x = t(1, 2, 4, 5)
    case(A.upsample_nearest2d.vec, x, [7, 9], None)
    case(A.upsample_nearest2d.vec, x, None, [2.0, 1.7])
    case(A.upsample_nearest2d.default, x, [3, 3])
    case(A._upsample_nearest_exact2d.vec, x, [7, 9], None)
    case(A.upsample_bilinear2d.vec, x, [7, 9], False, None)
    case(A.upsample_bilinear2d.vec, x, [7, 9], True, None)
    case(A.upsample_bilinear2d.vec, x, None, False, [1.5, 2.3])
    case(A.upsample_bilinear2d.default, x, [1, 3], True)
    case(A.upsample_bilinear2d.vec, t(1, 1, 4, 4, dtype=torch.float64), [9, 3], False, None)
    case(A.upsample_linear1d.vec, t(1, 2, 5), [8], False, None)
    case(A.upsample_nearest1d.vec, t(1, 2, 5), [8], None)
    case(A.upsample_trilinear3d.vec, t(1, 1, 2, 3, 2), [4, 5, 3], False, None)
    case(A.upsample_nearest3d.vec, t(1, 1, 2, 3, 2), [4, 5, 3], None)


def creation():
    case(A.full.default, [2, 3], 1.5)
    case(A.full.default, [2], 7, dtype=torch.int64)
    case(A.full_like.default, t(2, 3, dtype=torch.float16), 0.1)
    case(A.zeros.default, [0, 3])
    case(A.ones_like.default, ti(4))
    case(A.arange.start_step, 1, 10, 3)
    case(A.arange.start_step, 5, -4, -2, dtype=torch.int32)
    case(A.arange.start_step, 0.0, 1.0, 0.1)
    case(A.arange.default, 5)
    case(A.linspace.default, -1.0, 2.0, 7)
    case(A.logspace.default, 0.0, 2.0, 5)
    case(A.eye.m, 3, 4)
    case(A.scalar_tensor.default, 2.5)
    case(A.tril_indices.default, 3, 4, 1)
    case(A.triu_indices.default, 3, 4)
    case(A.fill.Scalar, t(3), 2.0)


def quantization():
    import torch.ao.quantization.fx._decomposed  # noqa: F401  (registers the operators)
    q = torch.ops.quantized_decomposed
    x = t(4, 6, low=-4.0, high=4.0)
    i8 = torch.int8
    case(q.quantize_per_tensor.default, x, 0.03125, 3, -128, 127, i8)
    case(q.quantize_per_tensor.default, x, 0.1, 100, 0, 255, torch.uint8)
    case(q.dequantize_per_tensor.default, ti(3, 4, low=-128, high=127, dtype=i8), 0.1, -3, -128, 127, i8)
    s, z = torch.tensor([0.1, 0.03, 0.2, 0.05]), torch.tensor([0, 3, -5, 7])
    case(q.quantize_per_channel.default, x, s, z, 0, -128, 127, i8)
    case(q.dequantize_per_channel.default, ti(4, 6, low=-128, high=127, dtype=i8), s, z, 0, -128, 127, i8)
    case(A.fake_quantize_per_tensor_affine.default, x, 0.07, 5, 0, 255)
    case(A.fake_quantize_per_tensor_affine_cachemask.default, x, 0.02, 5, -128, 127)
    case(A.fake_quantize_per_channel_affine.default, x, s, z.to(torch.int32), 0, -128, 127)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for family in (unary, casts, binary, movement, indexing, reductions, contractions, pooling, norms,
                   resampling, creation, quantization):
        family()
    texts = []
    # One array per dtype, values in order of use: hundreds of small members would be mostly headers.
    pools = {}
    for text, ins, outs, tol in cases:
        texts.append((f"# tolerance {tol}\n" if tol else "") + text)
        for a in ins + outs:
            pools.setdefault(a.dtype.str, []).append(a.reshape(-1))
    (folder / "kernel_cases.txt").write_text("".join(texts))
    with zipfile.ZipFile(folder / "kernel_cases.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, parts in sorted(pools.items()):
            data = io.BytesIO()
            np.save(data, np.concatenate(parts))
            info = zipfile.ZipInfo(name[1:] + ".npy", (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, data.getvalue())
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
