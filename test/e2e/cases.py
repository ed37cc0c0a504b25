"""The programs of the end-to-end test: one line per operator, data type and form, grouped by family.

`case(name, program, *inputs)` registers one; `program` is a function of the inputs or a no-argument factory of an
nn.Module. Inputs come from `f` (floats), `i` (integers), `b` (booleans), drawn from a generator seeded by the name.
"""
import inspect

import torch
from torch import nn
from torch.nn import functional as F

CASES = {}


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Case:
    def __init__(self, name, program, inputs, rtol, atol, dynamic):
        self.name, self.program, self.inputs = name, program, inputs
        self.rtol, self.atol, self.dynamic = rtol, atol, dynamic

    def build(self):
        """The module in eval mode and its inputs, the same on every call."""
        torch.manual_seed(sum(map(ord, self.name)))
        is_factory = isinstance(self.program, type) or not inspect.signature(self.program).parameters
        module = (self.program() if is_factory else Function(self.program)).eval()
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point() and tensor.ndim == 1:  # fresh scales and statistics hide mistakes
                tensor.data.uniform_(0.5, 1.5)
        return module, tuple(make() for make in self.inputs)


def case(name, program, *inputs, rtol=1e-5, atol=1e-5, dynamic=None):
    assert name not in CASES, name
    CASES[name] = Case(name, program, inputs, rtol, atol, dynamic)


def f(*shape, low=-2.0, high=2.0, dtype=torch.float32):
    return lambda: (torch.rand(shape) * (high - low) + low).to(dtype)


def i(*shape, low=-9, high=10, dtype=torch.int64):
    return lambda: torch.randint(low, high, shape).to(dtype)


def b(*shape):
    return lambda: torch.rand(shape) > 0.5


def pos(*shape):
    return f(*shape, low=0.1, high=3.0)


# Contractions
case("linear", lambda: nn.Linear(8, 5), f(3, 8))
case("linear_no_bias", lambda: nn.Linear(8, 5, bias=False), f(3, 8))
case("linear_rank1", lambda: nn.Linear(8, 5), f(8))
case("linear_rank3", lambda: nn.Linear(8, 5), f(2, 3, 8))
case("linear_rank4", lambda: nn.Linear(8, 5), f(2, 2, 3, 8))
case("linear_dynamic_weight", lambda x, w: F.linear(x, w), f(3, 8), f(5, 8))
case("linear_relu", lambda: nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4)), f(3, 8))
case("mm", lambda x, y: torch.mm(x, y), f(3, 4), f(4, 5))
case("bmm", lambda x, y: torch.bmm(x, y), f(2, 3, 4), f(2, 4, 5))
case("matmul_2d", lambda x, y: x @ y, f(3, 4), f(4, 5))
case("matmul_batched", lambda x, y: x @ y, f(2, 5, 3, 4), f(2, 5, 4, 6))
case("matmul_broadcast", lambda x, y: x @ y, f(2, 1, 3, 4), f(5, 4, 6))
case("matmul_vector_right", lambda x, y: x @ y, f(3, 4), f(4))
case("matmul_vector_left", lambda x, y: x @ y, f(4), f(4, 3))
case("matmul_dot", lambda x, y: x @ y, f(4), f(4))
case("matmul_transposed", lambda x, y: x @ y.transpose(-1, -2), f(2, 3, 4), f(2, 5, 4))
case("addmm", lambda z, x, y: torch.addmm(z, x, y), f(5), f(3, 4), f(4, 5))
case("addmm_scaled", lambda z, x, y: torch.addmm(z, x, y, beta=0.5, alpha=2.0), f(3, 5), f(3, 4), f(4, 5))
case("baddbmm", lambda z, x, y: torch.baddbmm(z, x, y), f(2, 3, 5), f(2, 3, 4), f(2, 4, 5))
case("mv", lambda x, y: torch.mv(x, y), f(3, 4), f(4))
case("einsum_attention", lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y), f(1, 2, 3, 4), f(1, 2, 5, 4))
case("einsum_outer", lambda x, y: torch.einsum("i,j->ij", x, y), f(3), f(4))

# Convolutions
case("conv2d", lambda: nn.Conv2d(3, 4, 3), f(1, 3, 8, 8))
case("conv2d_no_bias", lambda: nn.Conv2d(3, 4, 3, bias=False), f(1, 3, 8, 8))
case("conv2d_batch", lambda: nn.Conv2d(3, 4, 3, padding=1), f(2, 3, 7, 6))
case("conv2d_stride", lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), f(1, 3, 9, 8))
case("conv2d_rectangular", lambda: nn.Conv2d(3, 4, (3, 5), stride=(2, 1), padding=(0, 2)), f(1, 3, 9, 8))
case("conv2d_same", lambda: nn.Conv2d(3, 4, 3, padding="same"), f(1, 3, 7, 7))
case("conv2d_same_even_kernel", lambda: nn.Conv2d(3, 4, 4, padding="same"), f(1, 3, 7, 7))
case("conv2d_same_dilated", lambda: nn.Conv2d(3, 4, 3, padding="same", dilation=2), f(1, 3, 9, 9))
case("conv2d_valid", lambda: nn.Conv2d(3, 4, 3, padding="valid"), f(1, 3, 7, 7))
case("conv2d_dilated", lambda: nn.Conv2d(3, 4, 3, dilation=2), f(1, 3, 9, 9))
case("conv2d_grouped", lambda: nn.Conv2d(4, 6, 3, groups=2, padding=1), f(1, 4, 6, 6))
case("conv2d_depthwise", lambda: nn.Conv2d(4, 4, 3, groups=4, padding=1), f(1, 4, 6, 6))
case("conv2d_depthwise_multiplier", lambda: nn.Conv2d(4, 8, 3, groups=4), f(1, 4, 6, 6))
case("conv2d_depthwise_stride", lambda: nn.Conv2d(4, 4, 3, groups=4, stride=2, padding=1), f(1, 4, 7, 7))
case("conv2d_1x1", lambda: nn.Conv2d(4, 6, 1), f(1, 4, 5, 5))
case("conv2d_unbatched", lambda: nn.Conv2d(3, 4, 3), f(3, 6, 6))
case("conv2d_dynamic_weight", lambda x, w: F.conv2d(x, w, padding=1), f(1, 3, 6, 6), f(4, 3, 3, 3))
case("conv2d_relu", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()), f(1, 3, 6, 6))
case("conv2d_bn_relu6", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU6()),
     f(1, 3, 6, 6))
case("conv1d", lambda: nn.Conv1d(3, 4, 3), f(1, 3, 8))
case("conv1d_stride_padding", lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1), f(2, 3, 9))
case("conv1d_depthwise", lambda: nn.Conv1d(4, 4, 3, groups=4, padding=1), f(1, 4, 9))
case("conv1d_dilated", lambda: nn.Conv1d(3, 4, 3, dilation=2), f(1, 3, 9))
case("conv1d_same", lambda: nn.Conv1d(3, 4, 4, padding="same"), f(1, 3, 8))
case("conv_transpose2d", lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), f(1, 3, 4, 4))
case("conv_chain", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 5, 3),
                                         nn.Sigmoid(), nn.AvgPool2d(2)), f(1, 3, 10, 10))
case("conv_flatten_linear", lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(64, 5)), f(1, 3, 6, 6))


class ResidualBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(x + self.norm(self.two(F.relu(self.one(x)))))


case("conv_residual", ResidualBlock, f(1, 4, 6, 6))

# Pooling
case("max_pool2d", lambda x: F.max_pool2d(x, 2), f(1, 3, 8, 8))
case("max_pool2d_padding", lambda x: F.max_pool2d(x, 3, stride=2, padding=1), f(1, 3, 9, 9))
case("max_pool2d_stride1", lambda x: F.max_pool2d(x, 3, stride=1), f(1, 3, 6, 6))
case("max_pool2d_ceil", lambda x: F.max_pool2d(x, 2, ceil_mode=True), f(1, 3, 7, 7))
case("max_pool1d", lambda x: F.max_pool1d(x, 2), f(1, 3, 8))
case("avg_pool2d", lambda x: F.avg_pool2d(x, 2), f(1, 3, 8, 8))
case("avg_pool2d_padding", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), f(1, 3, 9, 9))
case("avg_pool2d_exclude_padding", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
     f(1, 3, 9, 9))
case("avg_pool1d", lambda x: F.avg_pool1d(x, 2), f(1, 3, 8))
case("adaptive_avg_pool2d_1", lambda x: F.adaptive_avg_pool2d(x, 1), f(1, 3, 6, 7))
case("adaptive_avg_pool2d_divisible", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), f(1, 3, 6, 6))

# Normalization
case("batch_norm2d", lambda: nn.BatchNorm2d(3), f(2, 3, 4, 4))
case("batch_norm2d_no_affine", lambda: nn.BatchNorm2d(3, affine=False), f(2, 3, 4, 4))
case("batch_norm1d", lambda: nn.BatchNorm1d(6), f(3, 6))
case("layer_norm", lambda: nn.LayerNorm(6), f(2, 3, 6))
case("layer_norm_two_dims", lambda: nn.LayerNorm((3, 6)), f(2, 3, 6))
case("layer_norm_no_affine", lambda x: F.layer_norm(x, (6,)), f(2, 3, 6))
case("group_norm", lambda: nn.GroupNorm(2, 6), f(2, 6, 4, 4))
case("group_norm_no_affine", lambda: nn.GroupNorm(3, 6, affine=False), f(1, 6, 5))
case("instance_norm", lambda: nn.InstanceNorm2d(3, affine=True), f(2, 3, 5, 5))
case("rms_norm", lambda: nn.RMSNorm(6, eps=1e-6), f(2, 3, 6))
case("rms_norm_no_weight", lambda x: F.rms_norm(x, (6,), eps=1e-5), f(2, 3, 6))
case("rms_norm_default_eps", lambda x: F.rms_norm(x, (6,)), f(2, 3, 6))
case("normalize_l2", lambda x: F.normalize(x, dim=-1), f(2, 3, 6))

# Activations
for _name, _function in {
        "relu": F.relu, "relu6": F.relu6, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "silu": F.silu,
        "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "softplus": F.softplus, "mish": F.mish, "elu": F.elu,
        "logsigmoid": F.logsigmoid, "softsign": F.softsign, "selu": F.selu}.items():
    case(_name, lambda x, op=_function: op(x), f(3, 17, low=-5.0, high=8.0))
case("gelu", lambda x: F.gelu(x), f(3, 17))
case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), f(3, 17))
case("leaky_relu", lambda x: F.leaky_relu(x, 0.2), f(3, 17))
case("hardtanh", lambda x: F.hardtanh(x, -0.5, 1.5), f(3, 17))
case("relu_n1_to_1", lambda x: F.hardtanh(x, -1.0, 1.0), f(3, 17))
case("prelu", lambda: nn.PReLU(4), f(2, 4, 5))
case("glu", lambda x: F.glu(x, dim=-1), f(3, 8))
case("softmax", lambda x: F.softmax(x, dim=-1), f(2, 3, 7))
case("softmax_dim1", lambda x: F.softmax(x, dim=1), f(2, 3, 7))
case("softmax_large_values", lambda x: F.softmax(x * 100, dim=-1), f(2, 9))
case("log_softmax", lambda x: F.log_softmax(x, dim=-1), f(2, 7))
case("dropout_eval", lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 4), nn.Dropout(0.1)), f(2, 6))

# Attention
_qkv = (f(1, 4, 6, 8), f(1, 4, 6, 8), f(1, 4, 6, 8))
_sdpa = F.scaled_dot_product_attention
case("sdpa", lambda q, k, v: _sdpa(q, k, v), *_qkv)
case("sdpa_causal", lambda q, k, v: _sdpa(q, k, v, is_causal=True), *_qkv)
case("sdpa_scale", lambda q, k, v: _sdpa(q, k, v, scale=0.3), *_qkv)
case("sdpa_float_mask", lambda q, k, v, m: _sdpa(q, k, v, attn_mask=m), *_qkv, f(6, 6))
case("sdpa_bool_mask", lambda q, k, v, m: _sdpa(q, k, v, attn_mask=m | torch.eye(6, dtype=torch.bool)), *_qkv,
     b(1, 1, 6, 6))
case("sdpa_cross", lambda q, k, v: _sdpa(q, k, v), f(2, 4, 3, 8), f(2, 4, 7, 8), f(2, 4, 7, 8))
case("sdpa_gqa", lambda q, k, v: _sdpa(q, k, v, enable_gqa=True), f(1, 4, 6, 8), f(1, 2, 6, 8), f(1, 2, 6, 8))
case("sdpa_gqa_causal", lambda q, k, v: _sdpa(q, k, v, is_causal=True, enable_gqa=True), f(1, 4, 6, 8), f(1, 2, 6, 8),
     f(1, 2, 6, 8))
case("sdpa_rank3", lambda q, k, v: _sdpa(q, k, v), f(4, 6, 8), f(4, 6, 8), f(4, 6, 8))


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        angle = torch.outer(torch.arange(6.0), 1.0 / 100 ** (torch.arange(0, 8, 2) / 8)).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x):
        low, high = x[..., :4], x[..., 4:]
        return x * self.cos + torch.cat((-high, low), dim=-1) * self.sin


case("multihead_attention", SelfAttention, f(1, 5, 16))
case("rotary_embedding", Rotary, f(1, 2, 6, 8))
case("transformer_encoder_layer", lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True),
     f(1, 5, 16), rtol=1e-4, atol=1e-4)

# Embedding and lookup
case("embedding", lambda: nn.Embedding(10, 4), i(2, 3, low=0, high=10))
case("embedding_int32", lambda: nn.Embedding(10, 4), i(5, low=0, high=10, dtype=torch.int32))
case("embedding_padding_idx", lambda: nn.Embedding(10, 4, padding_idx=0), i(2, 3, low=0, high=10))
case("index_select", lambda x, at: torch.index_select(x, 1, at), f(3, 6), i(4, low=0, high=6))
case("index_tensor", lambda x, at: x[at], f(6, 4), i(3, low=0, high=6))
case("index_tensor_2d", lambda x, at: x[at], f(6, 4), i(2, 3, low=0, high=6))
case("index_tensor_second_axis", lambda x, at: x[:, at], f(4, 6), i(3, low=0, high=6))
case("index_two_tensors", lambda x, p, q: x[p, q], f(5, 6), i(4, low=0, high=5), i(4, low=0, high=6))
case("index_constant_list", lambda x: x[:, [2, 0, 1]], f(4, 3))
case("gather", lambda x, at: torch.gather(x, 1, at), f(3, 5), i(3, 2, low=0, high=5))
case("gather_dim0", lambda x, at: torch.gather(x, 0, at), f(3, 5), i(2, 5, low=0, high=3))
case("one_hot", lambda x: F.one_hot(x, 5), i(4, low=0, high=5))

# Binary arithmetic, with promotion
_binary = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum,
           "minimum": torch.minimum}
for _name, _function in _binary.items():
    case(f"{_name}_float", lambda x, y, op=_function: op(x, y), f(2, 3, 4), f(2, 3, 4))
    case(f"{_name}_broadcast", lambda x, y, op=_function: op(x, y), f(2, 1, 4), f(3, 1))
    case(f"{_name}_int64", lambda x, y, op=_function: op(x, y), i(2, 3), i(2, 3, low=1))
    case(f"{_name}_int32_float", lambda x, y, op=_function: op(x, y), i(2, 3, dtype=torch.int32), f(2, 3, low=1))
    case(f"{_name}_int32_int64", lambda x, y, op=_function: op(x, y), i(2, 3, dtype=torch.int32), i(2, 3, low=1))
case("add_scalar", lambda x: x + 2, f(2, 3))
case("add_int_float_scalar", lambda x: x + 1.5, i(2, 3))
case("add_int_scalar", lambda x: x + 3, i(2, 3, dtype=torch.int32))
case("add_alpha", lambda x, y: torch.add(x, y, alpha=2.5), f(2, 3), f(2, 3))
case("add_int_alpha", lambda x, y: torch.add(x, y, alpha=3), i(2, 3), i(2, 3))
case("add_scalar_alpha", lambda x: torch.add(x, 2, alpha=3), f(2, 3))
case("sub_alpha", lambda x, y: torch.sub(x, y, alpha=0.5), f(2, 3), f(2, 3))
case("rsub", lambda x: 1.0 - x, f(2, 3))
case("rsub_int", lambda x: 7 - x, i(2, 3))
case("add_bool_int", lambda x, y: x + y, b(2, 3), i(2, 3))
case("add_bool_float", lambda x, y: x + y, b(2, 3), f(2, 3))
case("mul_bool_float", lambda x, y: x * y, b(2, 3), f(2, 3))
case("mul_scalar_tensor_rank0", lambda x, y: x * y, f(2, 3), f())
case("mul_int_tensor_float_rank0", lambda x, y: x * y, i(2, 3), f())
case("add_uint8", lambda x, y: x + y, i(2, 3, low=0, high=100, dtype=torch.uint8), i(2, 3, low=0, high=100, dtype=torch.uint8))
case("add_int8_int32", lambda x, y: x + y, i(2, 3, dtype=torch.int8), i(2, 3, dtype=torch.int32))
case("add_relu", lambda x, y: F.relu(x + y), f(2, 3), f(2, 3))
case("div_scalar", lambda x: x / 3, f(2, 3))
case("div_int_scalar", lambda x: x / 4, i(2, 3))
case("div_floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), f(2, 9, low=-9, high=9), f(2, 9, low=1, high=3))
case("div_trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), f(2, 9, low=-9, high=9), f(2, 9, low=1, high=3))
case("floor_divide_int", lambda x, y: x // y, i(2, 9), i(2, 9, low=1, high=4))
case("floor_divide_negative", lambda x: x // -3, i(2, 9))
case("remainder_int", lambda x, y: x % y, i(2, 9), i(2, 9, low=1, high=4))
case("remainder_float_scalar", lambda x: x % 1.5, f(2, 9, low=-9, high=9))
case("fmod", lambda x, y: torch.fmod(x, y), f(2, 9, low=-9, high=9), f(2, 9, low=1, high=3))
case("pow_2", lambda x: x.pow(2), f(2, 3))
case("pow_3", lambda x: x.pow(3), f(2, 3))
case("pow_half", lambda x: x.pow(0.5), pos(2, 3))
case("pow_tensor", lambda x, y: torch.pow(x, y), pos(2, 3), f(2, 3))
case("pow_scalar_base", lambda x: torch.pow(2.0, x), f(2, 3))
case("atan2", lambda x, y: torch.atan2(x, y), f(2, 9), f(2, 9))
case("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), f(2, 3), f(2, 3), f(2, 3))
case("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=2.0), f(2, 3), f(2, 3), pos(2, 3))
case("lerp", lambda x, y: torch.lerp(x, y, 0.3), f(2, 3), f(2, 3))
case("clamp", lambda x: x.clamp(-0.5, 0.5), f(2, 9))
case("clamp_min", lambda x: x.clamp(min=0.1), f(2, 9))
case("clamp_max_int", lambda x: x.clamp(max=3), i(2, 9))
case("clamp_tensor", lambda x, y: torch.clamp(x, max=y), f(2, 9), f(9))

# Unary
for _name in ("abs", "neg", "exp", "sin", "cos", "floor", "ceil", "round", "trunc", "sign", "square", "erf", "expm1",
              "atan", "tan", "sinh", "cosh"):
    case(_name, lambda x, op=getattr(torch, _name): op(x), f(2, 9))
for _name in ("sqrt", "rsqrt", "log", "log1p", "log2", "log10", "reciprocal"):
    case(_name, lambda x, op=getattr(torch, _name): op(x), pos(2, 9))
case("asin", lambda x: torch.asin(x), f(2, 9, low=-0.9, high=0.9))
case("acos", lambda x: torch.acos(x), f(2, 9, low=-0.9, high=0.9))
case("abs_int", lambda x: torch.abs(x), i(2, 9))
case("neg_int", lambda x: -x, i(2, 9, dtype=torch.int32))
case("sqrt_int", lambda x: torch.sqrt(x), i(2, 9, low=0))
case("exp_int", lambda x: torch.exp(x), i(2, 9, low=-3, high=4))
case("sigmoid_int", lambda x: torch.sigmoid(x), i(2, 9))
case("isnan", lambda x: torch.isnan(x / x), i(2, 5, low=0, high=2))
case("nan_to_num", lambda x: torch.nan_to_num(x), f(2, 5))

# Comparison and logic
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    case(f"{_name}_float", lambda x, y, op=getattr(torch, _name): op(x.round(), y.round()), f(3, 9), f(3, 9))
    case(f"{_name}_int_scalar", lambda x, op=getattr(torch, _name): op(x, 2), i(3, 9, low=0, high=4))
case("eq_int_float", lambda x, y: x == y.round(), i(3, 9, low=-2, high=3), f(3, 9))
case("lt_int32_int64", lambda x, y: x < y, i(3, 9, dtype=torch.int32), i(3, 9))
case("gt_float_scalar_on_int", lambda x: x > 1.5, i(3, 9))
case("logical_and", lambda x, y: torch.logical_and(x, y), b(3, 4), b(3, 4))
case("logical_or_float", lambda x, y: torch.logical_or(x.round(), y), f(3, 4), b(3, 4))
case("logical_not", lambda x: torch.logical_not(x), b(3, 4))
case("logical_xor", lambda x, y: torch.logical_xor(x, y), b(3, 4), b(3, 4))
case("bitwise_and_bool", lambda x, y: x & y, b(3, 4), b(3, 4))
case("bitwise_or_bool", lambda x, y: x | y, b(3, 4), b(3, 4))
case("bitwise_not_bool", lambda x: ~x, b(3, 4))
case("where", lambda c, x, y: torch.where(c, x, y), b(3, 4), f(3, 4), f(3, 4))
case("where_broadcast", lambda c, x, y: torch.where(c, x, y), b(4), f(3, 4), f(3, 1))
case("where_scalar", lambda c, x: torch.where(c, x, 0.0), b(3, 4), f(3, 4))
case("where_promoting", lambda c, x, y: torch.where(c, x, y), b(3, 4), i(3, 4), f(3, 4))
case("masked_fill", lambda x, c: x.masked_fill(c, -1.0), f(3, 4), b(3, 4))
case("masked_fill_inf", lambda x, c: F.softmax(x.masked_fill(c, float("-inf")), -1), f(3, 4), lambda: torch.eye(3, 4) > 0)

# Casts
case("to_int32", lambda x: x.to(torch.int32), f(3, 4))
case("to_int64", lambda x: x.long(), f(3, 4))
case("to_float_from_int", lambda x: x.float(), i(3, 4))
case("to_float_from_bool", lambda x: x.float(), b(3, 4))
case("to_bool", lambda x: x.to(torch.bool), i(3, 4, low=-1, high=2))
case("to_same", lambda x: x.to(torch.float32) + 1, f(3, 4))
case("type_as", lambda x, y: x.type_as(y), i(3, 4), f(1))

# Reductions
for _name in ("sum", "mean", "amax", "amin"):
    _op = getattr(torch, _name)
    case(f"{_name}_last", lambda x, op=_op: op(x, dim=-1), f(2, 3, 4))
    case(f"{_name}_keepdim", lambda x, op=_op: op(x, dim=1, keepdim=True), f(2, 3, 4))
    case(f"{_name}_two_dims", lambda x, op=_op: op(x, dim=(0, -1)), f(2, 3, 4))
    case(f"{_name}_spatial", lambda x, op=_op: op(x, dim=(2, 3)), f(1, 3, 4, 5))
case("sum_full", lambda x: x.sum(), f(2, 3, 4))
case("mean_full", lambda x: x.mean(), f(2, 3, 4))
case("max_full", lambda x: x.max(), f(2, 3, 4))
case("sum_int32", lambda x: x.sum(dim=1), i(3, 5, dtype=torch.int32))
case("sum_bool", lambda x: x.sum(dim=1), b(3, 5))
case("sum_dtype", lambda x: x.sum(dim=1, dtype=torch.float32), i(3, 5))
case("prod", lambda x: x.prod(dim=1), f(3, 4))
case("max_values_indices", lambda x: tuple(x.max(dim=1)), f(3, 9))
case("min_values", lambda x: x.min(dim=1).values, f(3, 9))
case("argmax", lambda x: x.argmax(dim=-1), f(3, 9))
case("argmax_keepdim", lambda x: x.argmax(dim=1, keepdim=True), f(3, 9))
case("argmin", lambda x: x.argmin(dim=0), f(3, 9))
case("argmax_full", lambda x: x.argmax(), f(3, 4))
case("any_dim", lambda x: x.any(dim=1), b(4, 3))
case("all_full", lambda x: x.all(), b(2, 2))
case("var", lambda x: x.var(dim=-1), f(3, 9))
case("var_population", lambda x: x.var(dim=-1, unbiased=False, keepdim=True), f(3, 9))
case("std", lambda x: x.std(dim=1), f(3, 9))
case("norm", lambda x: torch.linalg.vector_norm(x, dim=-1), f(3, 9))
case("logsumexp", lambda x: torch.logsumexp(x, dim=-1), f(3, 9))
case("cumsum", lambda x: x.cumsum(dim=1), f(3, 5))
case("topk", lambda x: tuple(torch.topk(x, 3)), f(2, 9))
case("topk_one", lambda x: tuple(torch.topk(x, 1)), f(2, 9))
case("topk_one_smallest", lambda x: tuple(torch.topk(x, 1, dim=1, largest=False)), f(2, 9, 3))

# Joining and cutting
case("cat", lambda x, y: torch.cat((x, y), dim=1), f(2, 3), f(2, 5))
case("cat_negative_dim", lambda x, y: torch.cat((x, y), dim=-2), f(2, 3), f(4, 3))
case("cat_promoting", lambda x, y: torch.cat((x, y)), i(2, 3), f(2, 3))
case("cat_same_value", lambda x: torch.cat((x, x, x)), f(2, 3))
case("stack", lambda x, y: torch.stack((x, y)), f(2, 3), f(2, 3))
case("stack_last", lambda x, y: torch.stack((x, y), dim=-1), f(2, 3), f(2, 3))
case("split", lambda x: torch.split(x, 2, dim=1), f(2, 6))
case("split_uneven", lambda x: torch.split(x, 4, dim=1), f(2, 6))
case("split_sizes", lambda x: torch.split(x, [1, 3, 2], dim=1), f(2, 6))
case("split_partly_used", lambda x: torch.split(x, 2, dim=1)[1] * 2, f(2, 6))
case("chunk", lambda x: torch.chunk(x, 3, dim=-1), f(2, 7))
case("unbind", lambda x: torch.unbind(x, dim=1), f(2, 3, 4))
case("slice", lambda x: x[1:3], f(5, 4))
case("slice_step", lambda x: x[:, ::2], f(3, 7))
case("slice_negative", lambda x: x[:, -3:-1], f(3, 7))
case("slice_past_end", lambda x: x[2:100], f(5, 4))
case("slice_many", lambda x: x[1:, :, 2:5:2], f(3, 4, 6))
case("select", lambda x: x[1], f(3, 4))
case("select_last", lambda x: x[:, -1], f(3, 4))
case("select_ellipsis", lambda x: x[..., 0], f(2, 3, 4))
case("narrow", lambda x: x.narrow(1, 2, 3), f(2, 6))
case("new_axis", lambda x: x[:, None, :], f(3, 4))

# Shape
case("reshape", lambda x: x.reshape(4, 6), f(2, 3, 4))
case("reshape_infer", lambda x: x.reshape(2, -1), f(2, 3, 4))
case("reshape_rank0", lambda x: x.reshape(()), f(1, 1))
case("view", lambda x: x.view(6, 4), f(2, 3, 4))
case("flatten", lambda x: x.flatten(1), f(2, 3, 4))
case("unflatten", lambda x: x.unflatten(1, (2, 3)), f(2, 6))
case("squeeze", lambda x: x.squeeze(), f(1, 3, 1, 4))
case("squeeze_dim", lambda x: x.squeeze(0), f(1, 3, 1))
case("squeeze_no_op", lambda x: x.squeeze(1), f(1, 3, 1))
case("unsqueeze", lambda x: x.unsqueeze(-1), f(2, 3))
case("permute", lambda x: x.permute(2, 0, 1), f(2, 3, 4))
case("permute_negative", lambda x: x.permute(0, -1, -2), f(2, 3, 4))
case("transpose", lambda x: x.transpose(1, 2), f(2, 3, 4))
case("t", lambda x: x.t(), f(2, 3))
case("permute_view", lambda x: x.permute(0, 2, 1).reshape(2, 12), f(2, 3, 4))
case("expand", lambda x: x.expand(3, 4), f(3, 1))
case("expand_new_axis", lambda x: x.expand(2, -1, 4), f(3, 1))
case("broadcast_to", lambda x: torch.broadcast_to(x, (2, 3, 4)), f(4))
case("repeat", lambda x: x.repeat(2, 3), f(2, 3))
case("repeat_new_axis", lambda x: x.repeat(2, 1, 3), f(2, 3))
case("repeat_interleave", lambda x: x.repeat_interleave(2, dim=1), f(1, 2, 3))
case("tile", lambda x: x.tile(2, 2), f(2, 3))
case("flip", lambda x: x.flip(1), f(2, 3))
case("roll", lambda x: x.roll(1, dims=1), f(2, 5))
case("pad", lambda x: F.pad(x, (1, 2, 0, 1)), f(2, 3))
case("pad_value", lambda x: F.pad(x, (1, 1), value=2.5), f(1, 2, 3))
case("pad_negative", lambda x: F.pad(x, (-1, 2)), f(2, 4))
case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), f(1, 8, 3, 3))
case("tril", lambda x: x.tril(), f(4, 4))
case("triu", lambda x: x.triu(1), f(4, 4))
case("contiguous", lambda x: x.transpose(0, 1).contiguous() + 1, f(2, 3))
case("clone", lambda x: x.clone() * 2, f(2, 3))
case("detach", lambda x: x.detach() * 2, f(2, 3))
case("interpolate_nearest", lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), f(1, 2, 3, 3))
case("interpolate_bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
     f(1, 2, 3, 3))

# Creation
case("full_like", lambda x: x + torch.full_like(x, 2.5), f(2, 3))
case("zeros_ones", lambda x: torch.cat((x, torch.zeros(1, 3), torch.ones(1, 3))), f(2, 3))
case("arange", lambda x: x + torch.arange(3), f(2, 3))
case("arange_step", lambda x: x * torch.arange(1, 7, 2), f(2, 3))
case("new_zeros", lambda x: x + x.new_zeros(3), f(2, 3))
case("scalar_tensor", lambda x: x * torch.tensor(1.5), f(2, 3))
case("causal_mask", lambda x: x.masked_fill(torch.ones(4, 4, dtype=torch.bool).triu(1), -1e9), f(4, 4))


# In-place forms and aliasing
def alias_view(x):
    x = x.clone()
    x.view(-1).add_(1)
    return x * 2


def alias_select(x):
    x = x.clone()
    x[0].mul_(3)
    x[1, 1:] = 0.5
    return x


def alias_chain(x):
    x = x + 0
    y = x.transpose(0, 1)[1:]
    y.sub_(1).relu_()
    return x, y


def alias_fill(x):
    y = torch.zeros(4, 3)
    y[1:3] = x
    y[:, 0].fill_(7)
    return y


def alias_read_before(x):
    x = x.clone()
    before = x[0] + 1
    x.add_(10)
    return before, x[0]


def copy_into(x, y):
    z = torch.empty_like(x)
    z.copy_(y)
    return z + x


def mutates_input(x):
    x.mul_(2)
    return x + 1


case("inplace_add", lambda x, y: (x * 1).add_(y), f(2, 3), f(2, 3))
case("inplace_relu", lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True)), f(2, 4))
case("inplace_mul_scalar", lambda x: (x + 1).mul_(2).div_(3), f(2, 3))
case("inplace_clamp", lambda x: (x + 1).clamp_(0, 1), f(2, 3))
case("inplace_masked_fill", lambda x, c: (x + 1).masked_fill_(c, 0), f(2, 3), b(2, 3))
case("inplace_promoting", lambda x, y: (x + 0).add_(y), f(2, 3), i(2, 3))
for _function in (alias_view, alias_select, alias_chain, alias_fill, alias_read_before, copy_into):
    case(_function.__name__, _function, f(2, 3), *([f(2, 3)] if _function is copy_into else []))
case("mutates_input", mutates_input, f(2, 3))


# Parameters, buffers, interface
class ReadsBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.rand(3))
        self.register_buffer("offset", torch.rand(2, 3), persistent=False)

    def forward(self, x):
        return x * self.scale + self.offset


class TiedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.embed(tokens))


class ParameterViews(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))

    def forward(self, x):
        return x @ self.weight[:3].t() + self.weight[3:, 0]


class WritesBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.rand(4, 3))

    def forward(self, x):
        self.cache[1:3] = x
        return self.cache * 2


class NestedInputs(nn.Module):
    def forward(self, pair, extra=None):
        left, right = pair["left"], pair["right"]
        return {"sum": left + right, "difference": (left - right, left)}


case("reads_buffer", ReadsBuffer, f(2, 3))
case("tied_weights", TiedWeights, i(2, 3, low=0, high=10))
case("parameter_views", ParameterViews, f(2, 4))
case("writes_buffer", WritesBuffer, f(2, 3))
case("nested_inputs", NestedInputs, lambda: {"left": torch.rand(2, 3), "right": torch.rand(2, 3)})
case("returns_input", lambda x: (x, x + 1), f(2, 3))
case("returns_twice", lambda x: (lambda y: (y, y))(x * 2), f(2, 3))
case("returns_constant", lambda x: (x + 1, torch.ones(2)), f(2, 3))
case("unused_input", lambda x, y: x * 2, f(2, 3), f(4))
case("rank0_input", lambda x: x * 2 + 1, f())
case("float64", lambda x, y: x * y + 1, f(2, 3, dtype=torch.float64), f(2, 3, dtype=torch.float64))
