"""Small quantized modules: every form in which PyTorch and TICO write quantization, over the operators that carry it.

MODELS maps a name to (make, input shapes or tensors). What a faithful result is, is what the module computes.
"""
import tico  # noqa: F401  registers circle_custom::*
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers quantized_decomposed::*
from torch import nn
import torch.nn.functional as F

MODELS = {}
decomposed = torch.ops.quantized_decomposed
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767), "uint4": (0, 15), "int4": (-8, 7)}
DTYPES = {"uint8": torch.uint8, "int8": torch.int8, "int16": torch.int16}


def model(*inputs, name=None, parameters=None):
    def add(cls):
        for p in parameters or [()]:
            label = "_".join([name or cls.__name__, *map(str, p)]).replace("-", "m").replace(".", "_")
            MODELS[label] = (lambda cls=cls, p=p: cls(*p), inputs)
        return cls
    return add


def scale_zero(low, high, kind):
    """Parameters that cover [low, high]; symmetric for 16 bits."""
    qmin, qmax = RANGES[kind]
    if kind == "int16":
        return max(-low, high) / qmax, 0
    scale = (high - low) / (qmax - qmin)
    return scale, max(qmin, min(qmax, round(qmin - low / scale)))


def fq(x, kind, low=-4.0, high=4.0):
    scale, zero = scale_zero(low, high, kind)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, *RANGES[kind])


class Weight(nn.Module):
    """A parameter behind fake-quantize with one scale for each index of `axis` (None: one scale)."""

    def __init__(self, shape, kind, axis=0, symmetric=False):
        super().__init__()
        self.kind, self.axis = kind, axis
        self.value = nn.Parameter(torch.randn(shape) * 0.5)
        low, high = RANGES[kind]
        dims = [d for d in range(len(shape)) if d != axis]
        least = self.value.detach().amin(dims if axis is not None else list(range(len(shape)))).clamp(max=0)
        most = self.value.detach().amax(dims if axis is not None else list(range(len(shape)))).clamp(min=0)
        if symmetric or kind == "int16":
            scale, zero = torch.maximum(-least, most) / high, torch.zeros_like(least)
        else:
            scale = (most - least) / (high - low)
            zero = (low - least / scale).round().clamp(low, high)
        self.register_buffer("scale", scale)
        self.register_buffer("zero", zero.to(torch.int32))

    def forward(self):
        low, high = RANGES[self.kind]
        if self.axis is None:
            return torch.fake_quantize_per_tensor_affine(self.value, self.scale, self.zero, low, high)
        return torch.fake_quantize_per_channel_affine(self.value, self.scale, self.zero, self.axis, low, high)


# --- forms ---------------------------------------------------------------------------------------

@model((3, 40), parameters=[(-128, 127, 3), (0, 255, 100), (-8, 7, 0), (0, 15, 7), (-32768, 32767, 0), (-127, 127, 0),
                            (-32767, 32767, 0), (0, 65535, 30000), (0, 127, 64), (-64, 63, 0), (10, 20, 15)])
class PerTensor(nn.Module):
    def __init__(self, low, high, zero):
        super().__init__()
        self.low, self.high, self.zero = low, high, zero

    def forward(self, x):
        return torch.fake_quantize_per_tensor_affine(x, 6.0 / (self.high - self.low), self.zero, self.low, self.high) * 2


@model((3, 40), parameters=[("buffer",), ("computed",), ("run_time",), ("disabled",)])
class TensorParameters(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.register_buffer("scale", torch.tensor([0.04]))
        self.register_buffer("zero", torch.tensor([5], dtype=torch.int32))
        self.register_buffer("enabled", torch.tensor([0 if kind == "disabled" else 1]))

    def forward(self, x):
        scale = self.scale
        if self.kind == "computed":
            scale = (scale * 2.0).reshape(1)
        if self.kind == "run_time":
            scale = x.abs().amax().reshape(1) / 127
        if self.kind == "disabled":
            return torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
                x, scale, self.zero, self.enabled, -128, 127)[0]
        return torch.fake_quantize_per_tensor_affine(x, scale, self.zero, -128, 127)


@model((2, 5, 6), parameters=[(0,), (1,), (-1,)])
class PerChannelActivation(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, x):
        n = x.shape[self.axis]
        return torch.fake_quantize_per_channel_affine(x, torch.linspace(0.01, 0.03, n), torch.arange(n, dtype=torch.int32),
                                                      self.axis % 3, -128, 127)


@model((4, 6), parameters=[("int8",), ("uint8",), ("int16",)])
class Decomposed(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        low, high = RANGES[self.kind]
        scale, zero = scale_zero(-3, 3, self.kind)
        q = decomposed.quantize_per_tensor(x, scale, zero, low, high, DTYPES[self.kind])
        x = decomposed.dequantize_per_tensor(q, scale, zero, low, high, DTYPES[self.kind])
        q = decomposed.quantize_per_tensor(F.relu(x), scale, zero, low, high, DTYPES[self.kind])
        return decomposed.dequantize_per_tensor(q, scale, zero, low, high, DTYPES[self.kind])


@model((4, 6), parameters=[("tensor",), ("tensor2",)])
class DecomposedTensors(nn.Module):
    def __init__(self, overload):
        super().__init__()
        self.overload = overload
        self.register_buffer("scale", torch.tensor(0.03))
        self.register_buffer("zero", torch.tensor(-7))
        self.register_buffer("low", torch.tensor(-128))
        self.register_buffer("high", torch.tensor(127))

    def forward(self, x):
        bounds = (self.low, self.high) if self.overload == "tensor2" else (-128, 127)
        q = getattr(decomposed.quantize_per_tensor, self.overload)(x, self.scale, self.zero, *bounds, torch.int8)
        return getattr(decomposed.dequantize_per_tensor, self.overload)(q, self.scale, self.zero, *bounds, torch.int8)


@model((4, 6))
class DecomposedMoved(nn.Module):
    """Stored integers are transposed and joined before they are reals again."""

    def forward(self, x):
        q = decomposed.quantize_per_tensor(x, 0.03, 2, -128, 127, torch.int8)
        q = torch.cat([q.t(), q.t()], 1).reshape(12, 4)
        return decomposed.dequantize_per_tensor(q, 0.03, 2, -128, 127, torch.int8) * 3


@model((5, 8), parameters=[("static",), ("run_time",), ("symmetric",)])
class PerToken(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.register_buffer("scale", torch.linspace(0.01, 0.04, 5).reshape(5, 1))
        self.register_buffer("zero", torch.arange(5).reshape(5, 1))

    def forward(self, x):
        scale, zero = self.scale, self.zero
        if self.kind == "run_time":
            scale, zero = decomposed.choose_qparams_per_token_asymmetric(x, torch.int8)
        if self.kind == "symmetric":
            scale, zero = decomposed.choose_qparams_per_token(x, torch.int8)
        scale = scale.float()
        q = decomposed.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
        return decomposed.dequantize_per_token(q, scale, zero, -128, 127, torch.int8, torch.float32)


@model((3, 64))
class ChosenForTensor(nn.Module):
    def forward(self, x):
        scale, zero = decomposed.choose_qparams(x, -128, 127, 1e-6, torch.int8)
        q = decomposed.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
        return decomposed.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)


@model((3, 64))
class GroupedWeight(nn.Module):
    """8 scales along each row of the weight."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-8, 8, (5, 64), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(5, 8) * 0.1 + 0.01)
        self.register_buffer("zero", torch.zeros(5, 8, dtype=torch.int64))

    def forward(self, x):
        w = decomposed.dequantize_per_channel_group(self.weight, self.scale, self.zero, -8, 7, torch.int8, 8, torch.float32)
        return F.linear(x, w)


@model((3, 40), parameters=[("int8", -1), ("fp4", -1), ("fp6_e3m2", 1), ("fp6_e2m3", 0), ("fp8_e4m3", -1), ("fp8_e5m2", 1)])
class Microscaling(nn.Module):
    def __init__(self, form, axis):
        super().__init__()
        self.form, self.axis = form, axis

    def forward(self, x):
        return torch.ops.circle_custom.mx_fake_quantize(x * torch.tensor([[1.0], [64.0], [0.0]]), self.form, self.axis)


@model((3, 48), parameters=[("int8",), ("fp4",)])
class MicroscalingWeight(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.form, self.weight = form, nn.Parameter(torch.randn(7, 48))

    def forward(self, x):
        return F.linear(x, torch.ops.circle_custom.mx_fake_quantize(self.weight, self.form, -1))


# --- operators -----------------------------------------------------------------------------------

@model((3, 16), parameters=[("uint8", "uint8"), ("int8", "int8"), ("int16", "uint8"), ("int16", "int8"), ("int16", "int4"),
                            ("int16", "uint4"), ("int16", "int16"), ("uint8", "uint4"), ("int8", "int4")])
class Linear(nn.Module):
    def __init__(self, act, weight):
        super().__init__()
        self.act, self.weight, self.bias = act, Weight((8, 16), weight), nn.Parameter(torch.randn(8))

    def forward(self, x):
        return fq(F.linear(fq(x, self.act), self.weight(), self.bias), self.act, -12, 12)


@model((3, 16))
class LinearPerTensorWeight(nn.Module):
    """One weight scale, a bias of many numbers."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = Weight((8, 16), "int8", None), nn.Parameter(torch.randn(8))

    def forward(self, x):
        return fq(F.linear(fq(x, "int8"), self.weight(), self.bias), "int8", -12, 12)


@model((3, 16))
class WeightOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = Weight((8, 16), "int4"), nn.Parameter(torch.randn(8))

    def forward(self, x):
        return F.linear(x, self.weight(), self.bias)


@model((3, 16))
class HugeBias(nn.Module):
    """A bias that 32 bits of input scale times weight scale do not hold."""

    def __init__(self):
        super().__init__()
        self.weight = Weight((8, 16), "int8", None)
        self.weight.scale.fill_(1e-12)
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return fq(F.linear(fq(x, "int8"), self.weight(), self.bias), "int8")


@model((1, 4, 9, 8), parameters=[(g, act, w) for g in (1, 2, 4) for act, w in (("uint8", "uint8"), ("int16", "int8"))])
class Conv(nn.Module):
    def __init__(self, groups, act, weight):
        super().__init__()
        self.groups, self.act = groups, act
        self.weight, self.bias = Weight((8, 4 // groups, 3, 3), weight), nn.Parameter(torch.randn(8))

    def forward(self, x):
        y = F.conv2d(fq(x, self.act), self.weight(), self.bias, padding=1, groups=self.groups)
        return fq(F.relu(y), self.act, -1, 12)


@model((1, 4, 5, 6))
class TransposedConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = Weight((4, 3, 3, 3), "uint8", 1), nn.Parameter(torch.randn(3))

    def forward(self, x):
        return fq(F.conv_transpose2d(fq(x, "uint8"), self.weight(), self.bias, stride=2), "uint8", -10, 10)


@model((2, 3, 8), (2, 3, 8), parameters=[(k,) for k in RANGES if "4" not in k])
class Arithmetic(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x, y):
        x, y = fq(x, self.kind), fq(y, self.kind, -3, 5)
        a = fq(x + y, self.kind, -7, 9)
        b = fq(a * x, self.kind, -20, 20)
        c = fq(b - y, self.kind, -22, 22)
        d = fq(torch.sigmoid(c), self.kind, 0, 1)
        return fq(torch.softmax(d, -1), self.kind, 0, 1)


@model((2, 8, 8), (2, 8, 8))
class Attention(nn.Module):
    def forward(self, x, y):
        x, y = fq(x, "int16"), fq(y, "int16")
        scores = fq(fq(torch.matmul(x, y.transpose(1, 2)), "int16", -40, 40) * 0.35355339, "int16", -15, 15)
        p = fq(torch.softmax(fq(scores + torch.tensor([[0.0] * 4 + [-8.0] * 4]), "int16", -24, 16), -1), "int16", 0, 1)
        return fq(torch.matmul(p, y), "int16")


@model((2, 6, 8), (2, 6, 8))
class Views(nn.Module):
    """Everything that moves elements, between two quantized ends."""

    def forward(self, x, y):
        x, y = fq(x, "uint8"), fq(y, "uint8")
        a, b = torch.split(x.transpose(1, 2).reshape(2, 4, 12), [3, 1], 1)
        c = torch.cat([a, b.expand(2, 3, 12), a[:, ::2]], 1)
        c = F.pad(c, (1, 2)).unsqueeze(0).squeeze(0)[:, 1]
        d = torch.where(y[:, 0] > 0, y[:, 1], y[:, 2]).repeat(1, 2)
        return fq(c[:, :8] + d[:, 2:10], "uint8", -8, 8)


@model((1, 3, 8, 8))
class Pools(nn.Module):
    def forward(self, x):
        x = fq(x, "uint8")
        return fq(F.avg_pool2d(F.max_pool2d(x, 2), 2), "uint8", -1, 3), fq(x.amax((2, 3)), "uint8", 0, 4)


@model((3, 8))
class Selection(nn.Module):
    def forward(self, x):
        x = fq(x, "int8")
        return fq(torch.minimum(x, -x.flip(1)), "int8"), x.argmax(1), x.topk(3).values


@model((3, 8), (3, 8))
class Requantized(nn.Module):
    """Types and scales that meet: 16 with 8 bits, one producer with several parameters, a chain."""

    def forward(self, x, y):
        wide, narrow = fq(x, "int16"), fq(y, "uint8", -3, 5)
        a = wide * narrow
        b = fq(a, "int16", -20, 20) + fq(narrow, "int16")
        return fq(a, "uint8", -20, 20), fq(b, "uint8", -30, 30), fq(fq(x, "uint8"), "int8", -2, 2)


@model((3, 8))
class RawAndRounded(nn.Module):
    """One value is used as it is and quantized."""

    def forward(self, x):
        y = fq(x, "int8") * 2.0
        return fq(y, "int8", -8, 8), y


@model((3, 8), (3, 8))
class Joined(nn.Module):
    """Concatenation of parts with scales of their own."""

    def forward(self, x, y):
        x, y = fq(x, "int16", -1, 1), fq(y, "int16", -4, 4)
        return fq(torch.cat([x, y, torch.zeros(3, 2), x * 0.5], 1), "int16", -6, 6)


@model((3, 8))
class Constants(nn.Module):
    """Constant operands that have no parameters: exact ones, others, and two added to each other."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.linspace(-1, 1, 8))
        self.one, self.two = Weight((8,), "int8", None), Weight((8,), "int8", None)

    def forward(self, x):
        x = fq(x, "int8")
        a = fq(x * 0.1, "int8", -0.4, 0.4)
        b = fq(x * self.table, "int8", -4, 4)
        c = fq(fq(x, "int16") * self.table, "int16", -4, 4)
        return a, b, c, fq(x + fq(self.one() + self.two(), "int8"), "int8", -8, 8)


@model(torch.tensor([[1, 3], [0, 2]]), parameters=[(None,), (0,), (1,)])
class Embedding(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.table = Weight((6, 8), "uint8", axis)

    def forward(self, x):
        return fq(F.embedding(x, self.table()) * 3.0, "int16", -6, 6)


@model((2, 4, 8))
class Norms(nn.Module):
    """Composites whose inner values have no parameters."""

    def __init__(self):
        super().__init__()
        self.layer, self.rms = nn.LayerNorm(8), nn.RMSNorm(8)

    def forward(self, x):
        x = fq(x, "int16")
        return fq(self.layer(x), "int16"), fq(self.rms(x), "int16"), fq(F.silu(x), "int16"), fq(F.gelu(x), "int16")


@model(torch.tensor([[4, 0, 11]]), parameters=[(0,), (3,)])
class TableWithAScaleForEachRow(nn.Module):
    """Rows of a stored table are looked up; its zero point is the same for all rows, or grows."""

    def __init__(self, zero):
        super().__init__()
        w = torch.randn(12, 8)
        self.register_buffer("scales", w.abs().amax(1) / 120)
        self.register_buffer("zeros", torch.arange(12) % 5 * zero)
        self.register_buffer("table", torch.round(w / self.scales[:, None] + self.zeros[:, None]).clamp(-128, 127).to(torch.int8))

    def forward(self, rows):
        table = decomposed.dequantize_per_channel(self.table, self.scales, self.zeros, 0, -128, 127, torch.int8)
        return F.embedding(rows, table) + 1
