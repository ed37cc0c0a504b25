"""One program per fault that users of such tools have reported and that an ATen program can express, named after its row in
the project's list of faults (A: silently wrong, B: refused or crashed, C: scale). Registered beside cases.py.
"""
import torch
from torch import nn
from torch.nn import functional as F

from cases import case, f, i
from cases_tricky import constant, conv, layers


def fault(row, what, *more, **options):
    case(f"fault_{row}_{what}", *more, **options)


# Silently wrong elsewhere
constant("fault_A1_add_constant_with_last_dim_one", lambda x, c: x + c, (3, 4, 1), f(3, 4, 4))
fault("A2", "transpose_of_transpose", lambda x: x.transpose(0, 1).transpose(0, 1) * 2, f(3, 4))
fault("A3", "conv_transpose_crop", lambda: nn.ConvTranspose2d(4, 4, (1, 3), (1, 2), (0, 1), output_padding=(0, 1)), f(1, 4, 1, 8))
fault("A3", "conv_transpose_output_padding", lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1, output_padding=1), f(1, 3, 4, 5))
layers("fault_A9_linear_between_reshapes", lambda m, x: m.fc(x.reshape(6, 4)).reshape(2, 3, 5), lambda: {"fc": nn.Linear(4, 5)}, f(2, 3, 4))
fault("A12", "var_unbiased_false_keepdim", lambda x: x.var(dim=1, unbiased=False, keepdim=True), f(3, 9))
fault("A12", "var_correction_keepdim", lambda x: torch.var(x, 1, correction=2, keepdim=True), f(3, 9))
fault("A13", "mean_of_rank5", lambda x: x.mean(dim=(1, 2, 3)), f(2, 3, 2, 3, 2))


def put_rows(x):
    y = torch.ones(5, 2)
    y[torch.tensor([0, 2])] = x
    return y


fault("A14", "index_put_broadcasts_values", put_rows, f(2))
fault("A14", "index_put_full_indices", lambda x, v: x.index_put((torch.arange(3),), v), f(3, 2), f(3, 2))
fault("A15", "index_put_shapes_broadcast", lambda x, v: x.index_put((torch.tensor([[0], [2]]), torch.tensor([1, 3])), v), f(4, 5), f(2, 2))
fault("A16", "conv_transpose_untrimmed", lambda: nn.ConvTranspose2d(3, 2, 2, 3), f(1, 3, 4, 5))
layers("fault_A18_conv_relu_permute_view5", lambda m, x: F.relu(m.c(x)).permute(0, 2, 3, 1).reshape(1, 2, 3, 6, 4), lambda: {"c": conv(3, 4)}, f(1, 3, 6, 6))
fault("A19", "views_between_permutes", lambda x: (x.permute(0, 2, 1).unsqueeze(1) * 2).squeeze(1).permute(0, 2, 1) + 1, f(2, 3, 4))


class Colliding(nn.Module):
    """A buffer whose name another one's flattened name equals."""

    def __init__(self):
        super().__init__()
        self.register_buffer("a_b", torch.ones(3))
        self.a = nn.Module()
        self.a.register_buffer("b", torch.full((3,), 2.0))

    def forward(self, x):
        return x * self.a_b + self.a.b


fault("A20", "buffer_names_collide", Colliding, f(2, 3))
fault("A21", "top_level_sequential_bn", lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), f(1, 3, 5, 5))


class EqualBytes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.arange(3.0))
        self.register_buffer("two", torch.arange(3.0))

    def forward(self, x):
        return x + self.one, x * self.two


fault("A22", "equal_constants", EqualBytes, f(2, 3))
fault("A24", "channels_last_constant", lambda: conv(3, 4).to(memory_format=torch.channels_last), f(1, 3, 5, 6))
fault("A24", "clone_of_channels_last", lambda x: x.to(memory_format=torch.channels_last).clone() + 1, f(1, 3, 4, 5))
for _mode in (None, "trunc", "floor"):
    fault("A25", f"div_int_by_float_{_mode}", lambda x, m=_mode: torch.div(x, 2.5, rounding_mode=m), i(2, 9))
class Interleaved(nn.Module):
    """Writes of a submodule's buffers between the values that it returns."""

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("first", torch.zeros(3))
            self.register_buffer("second", torch.ones(3))

        def forward(self, x):
            self.first.add_(x[0])
            y = self.first * 2
            self.second.mul_(x[1])
            return y, self.second + 1

    def __init__(self):
        super().__init__()
        self.inner = self.Inner()

    def forward(self, x):
        y, z = self.inner(x)
        return z, x + 1, y


fault("A27", "mutations_between_outputs", Interleaved, f(2, 3))
fault("A33", "argmax_as_int64", lambda x: x.argmax(1) + 1, f(3, 4))
layers("fault_A36_inplace_relu", lambda m, x: F.leaky_relu_(F.relu_(m.c(x)) - 0.5, 0.1), lambda: {"c": conv(3, 4)}, f(1, 3, 5, 5))
fault("A39", "reshape_add_softmax", lambda x, m: F.softmax(x.reshape(1, 2, 3) + m, -1).reshape(1, 1, 6), f(1, 1, 6), f(1, 1, 3))
fault("A41", "gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), f(3, 9))
layers("fault_A45_linear_mul_widens", lambda m, x: m.fc(x) * torch.arange(15.0).view(5, 1, 3), lambda: {"fc": nn.Linear(4, 3)}, f(2, 4))
layers("fault_A49_preactivation_bn", lambda m, x: x + m.c(F.relu(m.n(x))), lambda: {"c": conv(4, 4), "n": nn.BatchNorm2d(4)}, f(1, 4, 5, 6))
layers("fault_A50_mean_drops_to_rank3", lambda m, x: m.c(x).mean(dim=2) * 2, lambda: {"c": conv(3, 4)}, f(1, 3, 5, 6))
layers("fault_A50_mul_of_two_values", lambda m, x: m.a(x) * m.b(x), lambda: {"a": conv(3, 4), "b": conv(3, 4)}, f(1, 3, 5, 6))
fault("A51", "matmul_add_is_no_bias", lambda x, w, m: (x + 1) @ w + m, f(3, 2), f(2, 1), f(3, 1))
fault("A52", "matmul_bias_of_one", lambda x, w, m: x @ w + m, f(3, 4), f(4, 2), f(1))
layers("fault_A53_affine_after_linear", lambda m, x: m.fc(x) * m.s.bias + m.s.bias, lambda: {"fc": nn.Linear(4, 6), "s": nn.Linear(1, 6)}, f(2, 4))
fault("A54", "mul_widens_before_linear", lambda x, s, w: F.linear(x * s, w), f(2, 1), f(4), f(3, 4))
fault("A56", "cast_to_same_and_mul_one", lambda x: (x.to(torch.float32) * 1).to(torch.float32), f(2, 3))
fault("A57", "intermediate_is_output", lambda x, w: (lambda y: (y, F.relu(y)))(F.linear(x, w)), f(2, 4), f(3, 4))
fault("A58", "matmul_add_widens", lambda x, w, m: x @ w + m * 0.5, f(3, 3), f(3, 1), f(1, 4))
constant("fault_A60_reshape_of_empty_constant", lambda x, c: torch.cat((c.reshape(0, 2), x)), (0, 4), f(3, 2))
fault("A62", "expand_is_no_no_op", lambda x: x.expand(3, 4) + 1, f(1, 4))
fault("A63", "moves_are_exact", lambda x, y: F.max_pool2d(F.pad(torch.cat((x, y), 1).squeeze(0), (1, 1), value=-9.0), 2), f(1, 2, 4, 4), f(1, 1, 4, 4), rtol=0, atol=0)
layers("fault_A64_bn_into_conv", lambda m, x: m.n(m.c(x)), lambda: {"c": conv(3, 4), "n": nn.BatchNorm2d(4, eps=1e-3)}, f(1, 3, 5, 6))
layers("fault_A65_all_extents_equal", lambda m, x: m.c(x), lambda: {"c": conv(4, 4)}, f(1, 4, 4, 4))
fault("A66", "matmul_broadcasts_batches", lambda x, y: x @ y, f(3, 2, 4), f(5, 3, 4, 2))
layers("fault_A70_bias_per_channel", lambda m, x: m.c(x), lambda: {"c": nn.Conv2d(3, 5, 1)}, f(2, 3, 4, 4))
layers("fault_A72_same_names_in_two_modules", lambda m, x: m.b(m.a(x)), lambda: {"a": nn.Sequential(nn.Linear(4, 4)), "b": nn.Sequential(nn.Linear(4, 4))}, f(2, 4))


# Refused or crashed on elsewhere
def write_strided(x):
    y = x.clone()
    y[:, 0:9:3] = 0
    return y


fault("B1", "write_with_step", write_strided, f(2, 10))
fault("B1", "slice_scatter_with_step", lambda x, s: torch.slice_scatter(x, s, 1, 0, 9, 3), f(2, 9), f(2, 3))
fault("B5", "negative_pad", lambda x: F.pad(x, (-1, 2)), f(2, 4))
fault("B7", "empty_slice_in_cat", lambda x: torch.cat((x[:, 1:1], x), 1), f(2, 3))
fault("B7", "empty_slice_is_output", lambda x: (x[:, 1:1], x + 1), f(2, 3))
fault("B8", "sum_of_comparison", lambda x: (x > 0).sum(1), f(3, 9))
fault("B16", "reversed", lambda x: x.flip(1), f(3, 4))
fault("B19", "slice_scatter_to_the_end", lambda x, s: torch.slice_scatter(x, s, 1, 2, 99), f(3, 5), f(3, 3))
fault("B19", "slice_scatter_everything", lambda x, s: torch.slice_scatter(x, s, 1, 0, 5), f(3, 5), f(3, 5))
fault("B20", "negative_start", lambda x: x[:, -3:], f(3, 7))
fault("B20", "expand_minus_one", lambda x: torch.ones(1, 1, 4).expand(1, -1, -1) * x, f(1, 3, 4))
fault("B22", "reduce_all_dims", lambda x: (torch.mean(x, dim=None), torch.linalg.vector_norm(x)), f(3, 4))
fault("B23", "bilinear_one_sixteenth", lambda x: F.interpolate(x, scale_factor=1 / 16, mode="bilinear"), f(1, 2, 32, 32))
fault("B29", "permute_used_twice", lambda x: (lambda y: (y.reshape(4, 6), y.sum(1)))(x.permute(2, 0, 1)), f(2, 3, 4))
fault("B30", "scalar_minus_scalar", lambda x, y: x - y, f(), f())
fault("B32", "split_kept_whole", lambda x: torch.split(x, 2, 1), f(2, 6))
fault("B33", "causal_attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), f(1, 2, 5, 4), f(1, 2, 5, 4), f(1, 2, 5, 4))
fault("B34", "same_operand_twice", lambda x: (lambda y: (y + y) * (y - x))(x * 2), f(2, 3))
layers("fault_B36_gru_and_linear_without_bias", lambda m, x: m.fc(m.g(x)[0]), lambda: {"g": nn.GRU(4, 3), "fc": nn.Linear(3, 2, bias=False)}, f(4, 2, 4))
layers("fault_B38_mean_select_view_transposed", lambda m, x: m.c(x).mean(3)[:, 1].view(-1), lambda: {"c": nn.ConvTranspose2d(3, 4, 2, 2)}, f(1, 3, 4, 5))
