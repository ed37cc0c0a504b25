"""Programs that converters have been reported to get wrong: the same shapes where a rewrite is right in one place and
wrong in the next. Registered beside those of cases.py.
"""
import torch
from torch import nn
from torch.nn import functional as F

from cases import b, case, f, i, pos


class WithConstant(nn.Module):
    """`function(x, c)` where c is a buffer of the given shape."""

    def __init__(self, function, *shape):
        super().__init__()
        self.function = function
        self.register_buffer("c", torch.rand(shape) + 0.5)

    def forward(self, x):
        return self.function(x, self.c)


def constant(name, function, shape, *inputs):
    case(name, lambda: WithConstant(function, *shape), *inputs)


class Layers(nn.Module):
    """Layers by name, and a function that uses them."""

    def __init__(self, function, **layers):
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def layers(name, function, make, *inputs, **more):
    case(name, lambda: Layers(function, **make()), *inputs, **more)


def conv(cin, cout, k=3, **more):
    return nn.Conv2d(cin, cout, k, padding=k // 2, **more)


# Broadcasting against constants
constant("constant_trailing_one", lambda x, c: x + c, (3, 4, 1), f(3, 4, 4))
constant("constant_widens_result", lambda x, c: x + c, (4, 1, 5), f(3, 1))
constant("constant_channel_nchw", lambda x, c: x * c, (3, 1, 1), f(1, 3, 4, 4))
constant("constant_rank1_size1", lambda x, c: x * c, (1,), f(2, 3))
constant("constant_leading_ones", lambda x, c: x + c, (1, 1, 1, 3), f(2, 3))
constant("constant_on_the_left", lambda x, c: c - x, (3,), f(2, 3))
constant("constant_divides", lambda x, c: c / (x.abs() + 1), (2, 1), f(2, 3))
layers("linear_mul_scalar", lambda m, x: m.fc(x) * 0.3, lambda: {"fc": nn.Linear(4, 3)}, f(2, 4))
layers("linear_mul_vector", lambda m, x: m.fc(x) * m.fc.bias, lambda: {"fc": nn.Linear(4, 3)}, f(2, 4))
layers("linear_mul_widening", lambda m, x: m.fc(x) * torch.ones(5, 1, 3), lambda: {"fc": nn.Linear(4, 3)}, f(2, 4))
layers("linear_add_vector", lambda m, x: m.fc(x) + m.fc.weight[:, 0], lambda: {"fc": nn.Linear(4, 3, bias=False)}, f(2, 4))
layers("linear_add_column", lambda m, x: m.fc(x) + torch.ones(2, 1), lambda: {"fc": nn.Linear(4, 3, bias=False)}, f(2, 4))
layers("linear_scale_shift", lambda m, x: m.fc(x) * m.fc.bias + m.fc.bias, lambda: {"fc": nn.Linear(4, 3)}, f(2, 4))
case("mul_widens_before_linear", lambda x, s, w: F.linear(x * s, w), f(2, 1), f(4), f(3, 4))
case("matmul_add_not_bias", lambda x, w, m: (x + 1) @ w + m, f(3, 2), f(2, 1), f(3, 1))
case("matmul_add_size_one", lambda x, w, m: x @ w + m, f(3, 4), f(4, 2), f(1))
case("matmul_add_widens", lambda x, w, m: x @ w + m * 0.5, f(3, 3), f(3, 1), f(1, 4))
case("matmul_broadcast_both", lambda x, y: x @ y, f(3, 2, 4), f(5, 3, 4, 2))
case("reshape_add_softmax", lambda x, m: F.softmax(x.reshape(1, 2, 3) + m, -1).reshape(1, 1, 6), f(1, 1, 6), f(1, 1, 3))
case("rank0_minus_rank0", lambda x, y: x - y, f(), f())

# Transposes and views
case("transpose_twice", lambda x: x.t().t() + 1, f(3, 4))
case("permute_composed", lambda x: x.permute(1, 2, 0).permute(2, 1, 0), f(2, 3, 4))
case("permute_two_users", lambda x: (lambda y: (y.reshape(4, 6), y.sum(1)))(x.permute(2, 0, 1)), f(2, 3, 4))
case("permute_across_views", lambda x: F.relu(x.permute(0, 2, 1).unsqueeze(1) + 1).squeeze(1).permute(0, 2, 1), f(2, 3, 4))
case("permute_rank_change", lambda x: (x.permute(0, 2, 3, 1).reshape(1, 16, 3) * 2).permute(0, 2, 1).reshape(1, 3, 4, 4),
     f(1, 3, 4, 4))
case("permute_broadcast_operand", lambda x, y: x.permute(0, 2, 1) + y, f(2, 3, 4), f(3))
case("permute_reduce_drops_axis", lambda x: x.permute(2, 0, 1).mean(0), f(2, 3, 4))
case("permute_softmax", lambda x: F.softmax(x.permute(0, 2, 1), dim=1), f(2, 3, 4))
case("permute_cat", lambda x, y: torch.cat((x.permute(0, 2, 1), y.permute(0, 2, 1)), 1).permute(0, 2, 1), f(1, 2, 3), f(1, 2, 5))
case("view_of_transposed_bmm", lambda x, y: (x.transpose(1, 2) @ y.transpose(1, 2)).flatten(1), f(2, 4, 3), f(2, 5, 4))
case("expand_minus_one", lambda x: torch.ones(1, 1, 4).expand(1, -1, -1) * x, f(1, 3, 4))
case("expand_then_reshape", lambda x: x.expand(2, 3).reshape(6), f(1, 3))
case("head_split_merge", lambda x: x.view(1, 5, 2, 4).transpose(1, 2).transpose(1, 2).reshape(1, 5, 8), f(1, 5, 8))
case("rank5_permute", lambda x: x.permute(0, 3, 1, 4, 2), f(1, 2, 3, 4, 5))
case("rank6_window_partition", lambda x: x.view(1, 2, 2, 2, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(4, 4, 3), f(1, 4, 4, 3))
case("mean_rank5", lambda x: x.mean(dim=(1, 3)), f(2, 3, 4, 2, 3))

# Channels-last decisions
layers("conv_equal_extents", lambda m, x: m.c(x), lambda: {"c": conv(4, 4)}, f(1, 4, 4, 4))
layers("conv_relu_permute_view5", lambda m, x: F.relu(m.c(x)).permute(0, 2, 3, 1).reshape(1, 2, 3, 6, 4),
       lambda: {"c": conv(3, 4)}, f(1, 3, 6, 6))
layers("conv_mean_no_keepdim", lambda m, x: m.c(x).mean(dim=3) * 2, lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("conv_mean_channels", lambda m, x: m.c(x).mean(dim=1, keepdim=True), lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("conv_softmax_channels", lambda m, x: F.softmax(m.c(x), dim=1), lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("conv_argmax_channels", lambda m, x: m.c(x).argmax(1), lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("conv_mul_two_values", lambda m, x: m.a(x) * m.b(x), lambda: {"a": conv(3, 4), "b": conv(3, 4)}, f(1, 3, 5, 6))
layers("conv_times_input", lambda m, x, y: m.c(x) * y, lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6), f(1, 4, 1, 1))
layers("conv_plus_vector", lambda m, x, y: m.c(x) + y, lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6), f(6))
layers("conv_cat_channels", lambda m, x: m.c(torch.cat((m.a(x), m.b(x)), 1)),
       lambda: {"a": conv(3, 2), "b": conv(3, 4, 1), "c": conv(6, 2)}, f(1, 3, 5, 6))
layers("conv_cat_with_input", lambda m, x: torch.cat((x, m.c(x)), 1), lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("conv_split_channels", lambda m, x: (lambda p, q: m.a(p) + q)(*m.c(x).chunk(2, 1)),
       lambda: {"c": conv(3, 4), "a": conv(2, 2)}, f(1, 3, 5, 6))
layers("conv_slice_rows", lambda m, x: m.c(x)[:, :, 1:4], lambda: {"c": conv(3, 4)}, f(1, 3, 6, 5))
layers("conv_flatten_linear_order", lambda m, x: m.fc(m.c(x).flatten(1)),
       lambda: {"c": conv(2, 3), "fc": nn.Linear(36, 4)}, f(1, 2, 3, 4))
layers("conv_channel_shuffle", lambda m, x: m.b(m.a(x).view(1, 2, 2, 5, 6).transpose(1, 2).reshape(1, 4, 5, 6)),
       lambda: {"a": conv(3, 4, 1), "b": conv(4, 4, 1, groups=2)}, f(1, 3, 5, 6))
layers("conv_two_outputs", lambda m, x: (lambda y: (y, F.relu(y)))(m.c(x)), lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("conv_layer_norm_channels", lambda m, x: x + m.fc(m.n(m.c(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2),
       lambda: {"c": conv(4, 4, 7, groups=4), "n": nn.LayerNorm(4), "fc": nn.Linear(4, 4)}, f(1, 4, 6, 7))
layers("conv_layer_norm_chw", lambda m, x: m.n(m.c(x)), lambda: {"c": conv(3, 4), "n": nn.LayerNorm((4, 5, 6))}, f(1, 3, 5, 6))
layers("conv_group_norm", lambda m, x: F.silu(m.n(m.c(x))), lambda: {"c": conv(3, 4), "n": nn.GroupNorm(2, 4)}, f(1, 3, 5, 6),
       rtol=1e-4, atol=1e-4)
layers("conv_prelu", lambda m, x: m.p(m.c(x)), lambda: {"c": conv(3, 4), "p": nn.PReLU(4)}, f(1, 3, 5, 6))
layers("conv_patch_embedding", lambda m, x: m.c(x).flatten(2).transpose(1, 2),
       lambda: {"c": nn.Conv2d(3, 8, 4, stride=4)}, f(1, 3, 8, 12))
layers("conv_unet", lambda m, x: m.up(torch.cat((F.interpolate(m.low(F.max_pool2d(m.top(x), 2)), scale_factor=2), m.top(x)), 1)),
       lambda: {"top": conv(3, 4), "low": conv(4, 4), "up": conv(8, 2)}, f(1, 3, 6, 8))
layers("conv_shared_weight", lambda m, x: m.c(F.relu(m.c(x))), lambda: {"c": conv(3, 3)}, f(1, 3, 5, 6))
layers("conv_squeeze_excite", lambda m, x: (lambda y: y * torch.sigmoid(m.b(F.relu(m.a(y.mean((2, 3), keepdim=True))))))(m.c(x)),
       lambda: {"c": conv(3, 8), "a": conv(8, 2, 1), "b": conv(2, 8, 1)}, f(1, 3, 5, 6))
layers("conv_squeeze_excite_linear", lambda m, x: (lambda y: y * torch.sigmoid(m.a(y.mean((2, 3))))[:, :, None, None])(m.c(x)),
       lambda: {"c": conv(3, 8), "a": nn.Linear(8, 8)}, f(1, 3, 5, 6))
layers("conv_attention_2d", lambda m, x: (lambda y: (F.softmax(y.flatten(2).transpose(1, 2) @ y.flatten(2), -1) @
                                                     y.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(1, 4, 3, 4))(m.c(x)),
       lambda: {"c": conv(3, 4)}, f(1, 3, 3, 4), rtol=1e-4, atol=1e-4)
case("conv_channels_last_input", lambda: conv(3, 4), lambda: torch.rand(1, 3, 5, 6).to(memory_format=torch.channels_last))
case("conv_channels_last_weight", lambda: conv(3, 4).to(memory_format=torch.channels_last), f(1, 3, 5, 6))
case("pool_chain", lambda x: F.avg_pool2d(F.max_pool2d(x, 3, 1, 1), 2), f(1, 3, 6, 8))
case("pool_of_permuted", lambda x: F.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1), f(1, 6, 8, 3))
case("conv_transpose_output_padding", lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1, output_padding=1), f(1, 3, 4, 5))
case("conv_transpose_rectangular", lambda: nn.ConvTranspose2d(4, 4, (1, 3), (1, 2), (0, 1), output_padding=(0, 1)), f(1, 4, 1, 8))
case("conv_transpose_padding", lambda: nn.ConvTranspose2d(3, 2, 4, 2, 1, bias=False), f(1, 3, 4, 4))

# Batch norm where it may and may not be folded
layers("bn_after_conv", lambda m, x: m.n(m.c(x)), lambda: {"c": conv(3, 4), "n": nn.BatchNorm2d(4)}, f(1, 3, 5, 6))
layers("bn_before_conv", lambda m, x: m.c(F.relu(m.n(x))), lambda: {"c": conv(3, 4), "n": nn.BatchNorm2d(3)}, f(1, 3, 5, 6))
layers("bn_directly_before_padded_conv", lambda m, x: m.c(m.n(x)), lambda: {"c": conv(3, 4), "n": nn.BatchNorm2d(3)}, f(1, 3, 5, 6))
layers("bn_conv_two_users", lambda m, x: (lambda y: m.n(y) + y)(m.c(x)), lambda: {"c": conv(3, 4), "n": nn.BatchNorm2d(4)}, f(1, 3, 5, 6))
layers("bn_after_depthwise", lambda m, x: m.n(m.c(x)), lambda: {"c": conv(4, 4, groups=4), "n": nn.BatchNorm2d(4)}, f(1, 4, 5, 6))
layers("bn_after_conv_transpose", lambda m, x: m.n(m.c(x)), lambda: {"c": nn.ConvTranspose2d(3, 4, 2, 2), "n": nn.BatchNorm2d(4)},
       f(1, 3, 3, 4))
layers("bn_after_linear", lambda m, x: m.n(m.c(x)), lambda: {"c": nn.Linear(4, 5), "n": nn.BatchNorm1d(5)}, f(3, 4))
layers("bn_shared_conv", lambda m, x: (m.n(m.c(x)), m.c(x)), lambda: {"c": conv(3, 4), "n": nn.BatchNorm2d(4)}, f(1, 3, 5, 6))

# Activations that may and may not be fused
layers("relu_on_output_with_other_user", lambda m, x: (lambda y: F.relu(y) - y)(m.c(x)), lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("relu_of_linear_twice", lambda m, x: (F.relu(m.c(x)), F.relu6(m.c(x))), lambda: {"c": nn.Linear(4, 3)}, f(2, 4))
case("relu_of_relu6", lambda x: F.relu(F.relu6(x * 9)), f(2, 9))
case("leaky_relu_inplace", lambda x: F.leaky_relu(x + 0, 0.1, inplace=True), f(2, 9))
case("hardswish_written_out", lambda x: x * F.relu6(x + 3) / 6, f(2, 9, low=-5, high=5))
case("mul_by_one_and_cast", lambda x: (x.to(torch.float32) * 1).to(torch.float32) + 0, f(2, 3))

# Argument forms
case("var_correction", lambda x: torch.var(x, dim=1, correction=2, keepdim=True), f(3, 9))
case("var_all", lambda x: x.var(), f(3, 4))
case("mean_all_dims_none", lambda x: torch.mean(x, dim=None, keepdim=True), f(3, 4))
case("norm_all_dims_none", lambda x: torch.linalg.vector_norm(x), f(3, 4))
case("div_int_floor_by_float", lambda x: torch.div(x, 2.5, rounding_mode="floor"), i(2, 9))
case("div_int_trunc_by_int", lambda x: torch.div(x, 2, rounding_mode="trunc"), i(2, 9))
case("sub_reversed_scalar_alpha", lambda x: torch.rsub(x, 3, alpha=2), f(2, 3))
case("mean_of_int_as_float", lambda x: x.mean(dim=1, dtype=torch.float32), i(2, 5))
case("sum_int_empty_dims", lambda x: x.sum(dim=()), i(2, 3))
case("softmax_dtype", lambda x: F.softmax(x, dim=-1, dtype=torch.float32), i(2, 5, dtype=torch.int32))
case("squeeze_many", lambda x: x.squeeze((0, 2)), f(1, 3, 1, 4))
case("select_negative_dim", lambda x: x.select(-1, -2), f(2, 3, 4))
case("slice_empty_in_cat", lambda x: torch.cat((x[:, 0:0], x, x[:, 1:2]), 1), f(2, 3))
case("cat_with_empty_rank1", lambda x: torch.cat((torch.empty(0), x)), f(3))
case("split_single", lambda x: torch.split(x, 6, dim=1)[0] + 1, f(2, 6))
case("pad_reflect", lambda x: F.pad(x, (1, 1), mode="reflect"), f(1, 2, 5))
case("pad_replicate", lambda x: F.pad(x, (1, 2), mode="replicate"), f(1, 2, 5))
case("pad_inf_for_pool", lambda x: F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=float("-inf")), 2), f(1, 2, 5, 5))
case("repeat_zero_leading", lambda x: x.repeat(1, 1), f(2, 3))
case("embedding_then_scale", lambda: nn.Sequential(nn.Embedding(7, 4), nn.LayerNorm(4)), i(1, 5, low=0, high=7))
case("gather_negative_axis", lambda x, at: torch.gather(x, -1, at), f(2, 5), i(2, 3, low=0, high=5))
case("index_negative", lambda x: x[torch.tensor([-1, 0])], f(4, 3))
case("index_none_middle", lambda x, at: x[:, at, :], f(2, 5, 3), i(3, low=0, high=5))
case("index_bool_constant", lambda x: x * torch.tensor([True, False, True]), f(2, 3))
case("masked_fill_scalar_tensor", lambda x, m: x.masked_fill(m, torch.tensor(2.0)), f(2, 3), b(2, 3))
case("pow_negative_integer", lambda x: x.pow(-2), pos(2, 3))
case("pow_int_tensor", lambda x: x.pow(2), i(2, 3))
case("sign_changes_zero", lambda x: torch.sign(x.round()) * x, f(3, 5))
case("round_half_even", lambda x: torch.round(x / 2), lambda: torch.arange(-5.0, 6.0))


# Writes into parts of a value
def write_strided(x):
    y = x.clone()
    y[:, 0:9:3] = 0
    return y


def write_rows(x):
    y = torch.ones(5, 2)
    y[torch.tensor([0, 2])] = x
    return y


def write_slices(x):
    return torch.slice_scatter(x, x[:, :2] * 2, dim=1, start=1, end=3)


def write_select(x):
    return torch.select_scatter(x, x[0] + 1, 0, 2)


def accumulate_in_loop(x):
    total = torch.zeros(4)
    for row in x.unbind(0):
        total += row
        total.clamp_(max=2)
    return total


def output_of_a_view(x):
    y = x * 2
    y[0, 0] = 5
    return y.t(), y


case("write_strided", write_strided, f(2, 10))
case("write_rows", write_rows, f(2))
case("write_slices", write_slices, f(3, 5))
case("write_select", write_select, f(3, 4))
case("accumulate_in_loop", accumulate_in_loop, f(3, 4))
case("outputs_in_use", lambda x: (lambda y: ((y.exp() + 1).sqrt() * 3, y, y.sum(), y))(x * 2), f(2, 3))
case("output_of_a_view", output_of_a_view, f(2, 3))
case("fused_value_is_output", lambda x, w: (lambda y: (y, F.relu(y + 1)))(F.linear(x, w)), f(2, 4), f(3, 4))

case("attention_cache_lengths", lambda q, k, v, p, n: F.scaled_dot_product_attention(q, torch.cat((k, p), 2), torch.cat((v, n), 2)),
     f(1, 2, 1, 4), f(1, 2, 6, 4), f(1, 2, 6, 4), f(1, 2, 1, 4), f(1, 2, 1, 4), rtol=1e-4, atol=1e-4,
     dynamic=(({}, {2: torch.export.Dim.AUTO}, {2: torch.export.Dim.AUTO}, {}, {}),))


# Constants
class EqualConstants(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.arange(6.0).view(2, 3))
        self.register_buffer("two", torch.arange(6.0).view(2, 3))
        self.register_buffer("other_shape", torch.arange(6.0).view(3, 2))

    def forward(self, x):
        return x * self.one + self.two + self.other_shape.t()


class StridedParameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3).t())
        self.register_buffer("row", torch.randn(4, 4)[1])

    def forward(self, x):
        return F.linear(x, self.weight) + self.row[:3]


case("equal_constants", EqualConstants, f(2, 3))
case("strided_parameters", StridedParameters, f(2, 4))
case("constant_expression", lambda x: x + (torch.arange(6.0).view(2, 3) * 2).exp().t().reshape(2, 3), f(2, 3))


# Autocast regions: conversions that the recorded operators do not show
class Autocast(nn.Module):
    def __init__(self, dtype=torch.bfloat16):
        super().__init__()
        self.dtype = dtype
        self.q, self.k, self.out = nn.Linear(8, 8), nn.Linear(8, 8, bias=False), nn.Linear(8, 3)
        self.conv, self.norm = nn.Conv1d(4, 4, 3, padding=1), nn.LayerNorm(8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=self.dtype):
            y = self.norm(self.conv(x))
            a = F.scaled_dot_product_attention(self.q(y), self.k(y), x)
            b = torch.softmax(self.q(y) @ self.k(x).transpose(-1, -2), -1) @ x
            with torch.autocast("cpu", enabled=False):
                c = F.linear(x, self.k.weight)
            z = self.out(a + b * 0.5) + self.k(x).prod(-1, keepdim=True)
            w = torch.cat([z, x], -1) + F.gelu(z).sum(-1, keepdim=True)
        return z.float(), w.float(), c


case("autocast_bf16", Autocast, f(2, 4, 8), rtol=5e-2, atol=5e-2)
case("autocast_f16", lambda: Autocast(torch.float16), f(2, 4, 8), rtol=1e-2, atol=1e-2)

# A NaN is the median of its row, and its position the first NaN's
case("median_dim_nan", lambda x: tuple(torch.where(x > 1.5, float("nan"), x).median(1)), f(6, 5))

# NaN where PyTorch gives it, and nothing undefined on the way
case("sqrt_of_negatives", lambda x: (x.sqrt(), x ** 0.5, torch.acosh(x), torch.acos(x)), f(4, 5), rtol=1e-4, atol=1e-4)
# Results and operands without elements
case("pool_to_nothing", lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (2, 0)), f(1, 3, 4, 5))
case("split_with_empty_part", lambda x: (lambda a, b, c: torch.cat([c, b, a], 1))(*x.split([1, 0, 3], 1)), f(2, 4))
