"""Programs whose sizes are known only when they run: one file has to be right for every size.

`dynamic(name, program, inputs, sizes, dims)`: `inputs(*size)` makes the arguments (tensors, or Python numbers) of one
call; `sizes` lists the calls, the first is what export sees; `dims` is torch.export's `dynamic_shapes`, one entry per
argument, with `S` for a dimension that may change.
"""
import inspect

import torch
from torch import nn
from torch._higher_order_ops.map import map as hop_map
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F

from cases import Function
from cases_tricky import Layers, WithConstant

S = torch.export.Dim.AUTO
CASES = {}


class Case:
    def __init__(self, name, program, inputs, sizes, dims, rtol, atol):
        self.name, self.program, self.inputs, self.sizes, self.dims = name, program, inputs, sizes, dims
        self.rtol, self.atol = rtol, atol

    def build(self):
        """The module in eval mode, the arguments of each call and dynamic_shapes, the same every time."""
        torch.manual_seed(sum(map(ord, self.name)))
        factory = isinstance(self.program, type) or not inspect.signature(self.program).parameters
        module = (self.program() if factory else Function(self.program)).eval()
        star = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(module.forward).parameters.values())
        return module, [tuple(self.inputs(*size)) for size in self.sizes], (self.dims,) if star else self.dims


def dynamic(name, program, inputs, sizes, dims, rtol=1e-5, atol=1e-5):
    assert name not in CASES, name
    sizes = [size if isinstance(size, tuple) else (size,) for size in sizes]
    assert len(sizes) >= 3, name
    CASES[name] = Case(name, program, inputs, sizes, dims, rtol, atol)


def r(*shape):
    return torch.rand(shape) * 4 - 2


def n(*shape, high=10):
    return torch.randint(0, high, shape)


def layers(function, **make):
    return lambda: Layers(function, **{name: factory() for name, factory in make.items()})


BATCH_SEQ = [(2, 5), (3, 7), (5, 3), (4, 2)]
SEQ = [5, 9, 3, 2]

# Two dynamic dims in one view
dynamic("view_merge_split", layers(lambda m, x: m.fc(x.reshape(-1, 8)).view(x.shape[0], x.shape[1], 4), fc=lambda: nn.Linear(8, 4)),
        lambda b, s: (r(b, s, 8),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("view_heads", lambda x: (x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2) + 1).transpose(1, 2).reshape(x.shape),
        lambda b, s: (r(b, s, 8),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("view_flatten_last", lambda x: x.flatten(1) * 2, lambda b, s: (r(b, s, 3),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("view_halves", lambda x: x.view(x.shape[0], x.shape[1] // 2, 2, 3).sum(2), lambda b, s: (r(b, 2 * s, 3),), BATCH_SEQ,
        ({0: S, 1: S},))
dynamic("view_windows", lambda x: x.view(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 3, 3, 4).permute(0, 1, 3, 2, 4, 5)
        .reshape(-1, 6, 4), lambda h, w: (r(1, 2 * h, 3 * w, 4),), BATCH_SEQ, ({1: S, 2: S},))
dynamic("view_unflatten_of_other", lambda x, y: x.view(y.shape[0], y.shape[1], 3), lambda b, s: (r(b * s, 3), r(b, s)), BATCH_SEQ,
        ({0: S}, {0: S, 1: S}))
dynamic("view_pairs_squared", lambda x: (x.unsqueeze(0) * x.unsqueeze(1)).view(-1), lambda s: (r(s),), SEQ, ({0: S},))
dynamic("linear_batched", lambda: nn.Linear(8, 5), lambda b, s: (r(b, s, 8),), BATCH_SEQ, ({0: S, 1: S},))

# Creation by size
dynamic("zeros_of_size", lambda x: torch.cat((x, torch.zeros(x.shape[0], x.shape[1] + 1)), 1), lambda b, s: (r(b, s),), BATCH_SEQ,
        ({0: S, 1: S},))
dynamic("full_of_size", lambda x: torch.full((x.shape[1], 2), 1.5) @ x, lambda b, s: (r(2, s),), BATCH_SEQ, ({1: S},))
dynamic("full_of_size_value", lambda x: torch.full((3,), x.shape[0]) * 2, lambda s: (r(s),), SEQ, ({0: S},))
dynamic("new_ones_bool", lambda x: torch.ones(x.shape[0], x.shape[0], dtype=torch.bool).tril(), lambda s: (r(s),), SEQ, ({0: S},))
dynamic("ones_like", lambda x: torch.ones_like(x) - x, lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("arange_size", lambda x: x + torch.arange(x.shape[1]), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("arange_offset", lambda x, y: torch.arange(y.shape[0], y.shape[0] + x.shape[0]) + 1, lambda b, s: (r(b), r(s)), BATCH_SEQ,
        ({0: S}, {0: S}))
dynamic("arange_step", lambda x: torch.arange(0, x.shape[0], 2) * 3, lambda s: (r(s),), [5, 9, 4], ({0: S},))
dynamic("arange_float", lambda x: torch.arange(x.shape[0], dtype=torch.float32) * 0.5 + x, lambda s: (r(s),), SEQ, ({0: S},))
dynamic("linspace_size", lambda x: x * torch.linspace(0, 1, 5), lambda s: (r(s, 5),), SEQ, ({0: S},))
dynamic("eye_size", lambda x: torch.eye(x.shape[0]) @ x, lambda s: (r(s, 3),), SEQ, ({0: S},))
dynamic("positions_embedding", layers(lambda m, at: m.e(at) + m.p(torch.arange(at.shape[1])), e=lambda: nn.Embedding(10, 4),
                                      p=lambda: nn.Embedding(16, 4)), lambda b, s: (n(b, s),), BATCH_SEQ, ({0: S, 1: S},))

# Broadcasts and copies by size
dynamic("expand_to_other", lambda x, y: x.expand(x.shape[0], y.shape[0], 3).sum(1), lambda b, s: (r(b, 1, 3), r(s)), BATCH_SEQ,
        ({0: S}, {0: S}))
dynamic("expand_heads", lambda x: x[:, :, None].expand(x.shape[0], 2, 3, x.shape[2], 4).reshape(x.shape[0], 6, x.shape[2], 4) * 1.0,
        lambda b, s: (r(b, 2, s, 4),), BATCH_SEQ, ({0: S, 2: S},))
dynamic("repeat_static", lambda x: x.repeat(2, 1, 3), lambda b, s: (r(b, s, 2),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("repeat_by_size", lambda x, y: x.repeat(1, y.shape[0]), lambda b, s: (r(b, 3), r(s)), BATCH_SEQ, ({0: S}, {0: S}))
dynamic("repeat_interleave", lambda x: x.repeat_interleave(2, dim=1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("class_token", lambda: WithConstant(lambda x, c: torch.cat((c.expand(x.shape[0], -1, -1), x), 1), 1, 1, 4),
        lambda b, s: (r(b, s, 4),), BATCH_SEQ, ({0: S, 1: S},))

# Slices with symbolic bounds
dynamic("slice_to_other_length", lambda x, y: x[:, :y.shape[1]] + y, lambda b, s: (r(b, s + 3), r(b, s)), BATCH_SEQ,
        ({0: S, 1: S}, {0: S, 1: S}))
dynamic("slice_from_other_length", lambda x, y: x[y.shape[0]:], lambda b, s: (r(b + s), r(s)), BATCH_SEQ, ({0: S}, {0: S}))
dynamic("slice_negative_end", lambda x: x[:, 1:-1], lambda b, s: (r(b, s + 2),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("slice_last", lambda x: x[:, -1] + x[:, 0], lambda b, s: (r(b, s, 3),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("slice_last_kept", lambda x: x[:, -1:], lambda b, s: (r(b, s, 3),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("slice_step", lambda x: x[:, ::2] * 2, lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("slice_half", lambda x: torch.cat((-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]), -1), lambda b, s: (r(b, 2 * s),),
        BATCH_SEQ, ({0: S, 1: S},))
dynamic("slice_beyond_end", lambda x: x[:, :100] + 1, lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("slice_min_of_sizes", lambda x, y: x[:torch.sym_min(x.shape[0], y.shape[0])] * 2,
        lambda b, s: (r(b), r(s)), BATCH_SEQ, ({0: S}, {0: S}))
dynamic("mask_of_buffer", lambda: WithConstant(lambda x, c: x + c[:x.shape[0], :x.shape[0]], 16, 16), lambda s: (r(s, s),), SEQ,
        ({0: S, 1: S},))
dynamic("chunk_dynamic_dim", lambda x: (lambda p, q: p * q)(*x.chunk(2, 1)), lambda b, s: (r(b, 2 * s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("split_features", lambda x: (lambda p, q, t: p + q * t)(*x.split(2, -1)), lambda b, s: (r(b, s, 6),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("unbind_features", lambda x: (lambda p, q: p - q)(*x.unbind(-1)), lambda b, s: (r(b, s, 2),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("select_middle", lambda x: x[:, x.shape[1] // 2], lambda b, s: (r(b, s, 3),), BATCH_SEQ, ({0: S, 1: S},))

# Arithmetic with sizes
dynamic("divide_by_size", lambda x: x.sum(1) / x.shape[1], lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("multiply_by_size", lambda x: x * (x.shape[0] * 2 + x.shape[1]), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("mean_dynamic", lambda x: (x.mean(1), x.mean()), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("var_dynamic", lambda x: x.var(1, correction=0), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("var_unbiased_dynamic", lambda x: x.var(1), lambda b, s: (r(b, s + 1),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("sizes_returned", lambda x: (x + 1, x.shape[1], x.shape[0] * 2 + 1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("size_as_tensor", lambda x: torch.tensor(x.shape[1]) + x.sum(1).round().long(), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("number_input", lambda x, k: x * k + k, lambda s, k: (r(s), k), [(5, 3), (2, 4), (7, 9)], ({0: S}, S))
dynamic("number_input_as_size", lambda x, k: x.expand(k, 3) + torch.arange(k).view(k, 1), lambda k: (r(1, 3), k), [3, 5, 9], (None, S))
dynamic("number_input_slices", lambda x, k: x[:, k:] * 2, lambda s, k: (r(2, s), k), [(5, 3), (6, 2), (7, 6)], ({1: S}, S))

# Layers over dynamic sizes
dynamic("layer_norm_dynamic", lambda: nn.LayerNorm(4), lambda b, s: (r(b, s, 4),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("softmax_dynamic", lambda x: F.softmax(x, 1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("log_softmax_dynamic", lambda x: F.log_softmax(x, 1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("matmul_dynamic", lambda x, y: x @ y, lambda b, s: (r(b, s, 3), r(b, 3, s)), BATCH_SEQ, ({0: S, 1: S}, {0: S, 2: S}))
dynamic("matmul_broadcast_dynamic", lambda x, y: x @ y, lambda b, s: (r(b, 2, s, 3), r(3, 4)), BATCH_SEQ, ({0: S, 2: S}, None))
dynamic("einsum_dynamic", lambda x, y: torch.einsum("bsh,bth->bst", x, y), lambda b, s: (r(b, s, 3), r(b, s + 1, 3)), BATCH_SEQ,
        ({0: S, 1: S}, {0: S, 1: S}))
dynamic("conv1d_dynamic", lambda: nn.Conv1d(3, 4, 3, padding=1), lambda b, s: (r(b, 3, s),), BATCH_SEQ, ({0: S, 2: S},))
dynamic("conv2d_dynamic", lambda: nn.Conv2d(3, 4, 3, padding=1), lambda h, w: (r(1, 3, h, w),), [(5, 6), (8, 3), (2, 9)], ({2: S, 3: S},))
dynamic("conv2d_batch", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2)),
        lambda b: (r(b, 3, 6, 5),), [2, 3, 5], ({0: S},))
dynamic("conv2d_stride_dynamic", lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), lambda h, w: (r(1, 3, h, w),),
        [(5, 6), (8, 3), (2, 9)], ({2: S, 3: S},))
dynamic("max_pool_dynamic", lambda x: F.max_pool2d(x, 2), lambda h, w: (r(1, 3, h, w),), [(5, 6), (8, 4), (2, 9)], ({2: S, 3: S},))
dynamic("avg_pool_dynamic", lambda x: F.avg_pool2d(x, 2), lambda h, w: (r(1, 3, h, w),), [(5, 6), (8, 4), (2, 9)], ({2: S, 3: S},))
dynamic("global_pool_dynamic", lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), lambda h, w: (r(2, 3, h, w),),
        [(5, 6), (8, 4), (2, 9)], ({2: S, 3: S},))
dynamic("pad_constant_dynamic", lambda x: F.pad(x, (1, 2)), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("pad_to_multiple", lambda x: F.pad(x, (0, (4 - x.shape[1] % 4) % 4)), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("pad_negative_dynamic", lambda x: F.pad(x, (-1, 1)), lambda b, s: (r(b, s + 1),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("pad_reflect_dynamic", lambda x: F.pad(x, (1, 1), mode="reflect"), lambda b, s: (r(b, 2, s + 1),), BATCH_SEQ, ({0: S, 2: S},))
dynamic("flip_dynamic", lambda x: x.flip(1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("roll_dynamic", lambda x: x.roll(1, 1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("tril_dynamic", lambda x: x.tril(), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("cumsum_dynamic", lambda x: x.cumsum(1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("cat_dynamic", lambda x, y: torch.cat((x, y), 1), lambda b, s: (r(b, s), r(b, s + 2)), BATCH_SEQ, ({0: S, 1: S}, {0: S, 1: S}))
dynamic("stack_dynamic", lambda x, y: torch.stack((x, y), 1), lambda b, s: (r(b, s), r(b, s)), BATCH_SEQ, ({0: S, 1: S}, {0: S, 1: S}))
dynamic("gather_dynamic", lambda x, at: x.gather(1, at), lambda b, s: (r(b, s), n(b, s, high=s)), BATCH_SEQ, ({0: S, 1: S}, {0: S, 1: S}))
dynamic("index_rows", lambda x, at: x[at], lambda b, s: (r(b, 3), n(s, high=b)), BATCH_SEQ, ({0: S}, {0: S}))
dynamic("index_last_token", lambda x, at: x[torch.arange(x.shape[0]), at], lambda b, s: (r(b, s, 3), n(b, high=s)), BATCH_SEQ,
        ({0: S, 1: S}, {0: S}))
dynamic("argmax_dynamic", lambda x: x.argmax(1), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("where_padding", lambda x, at: torch.where(at.unsqueeze(-1) > 0, x, 0.0).sum(1) / (at > 0).sum(1, keepdim=True),
        lambda b, s: (r(b, s, 3), n(b, s) + 1), BATCH_SEQ, ({0: S, 1: S}, {0: S, 1: S}))
dynamic("upsample_dynamic", lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), lambda h, w: (r(1, 2, h, w),),
        [(3, 4), (5, 2), (2, 6)], ({2: S, 3: S},))
dynamic("bilinear_dynamic", lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), lambda h, w: (r(1, 2, h, w),),
        [(3, 4), (5, 2), (2, 6)], ({2: S, 3: S},), rtol=1e-4, atol=1e-4)
dynamic("bilinear_to_other", lambda x, y: F.interpolate(x, size=y.shape[2:], mode="bilinear") + y,
        lambda h, w: (r(1, 2, h, w), r(1, 2, 2 * h, w + 1)), [(3, 4), (5, 2), (2, 6)], ({2: S, 3: S}, {2: S, 3: S}), rtol=1e-4, atol=1e-4)
dynamic("lstm_batch", layers(lambda m, x: m.r(x)[0], r=lambda: nn.LSTM(4, 3, batch_first=True)), lambda b: (r(b, 5, 4),), [2, 3, 5],
        ({0: S},), rtol=1e-4, atol=1e-4)
dynamic("group_norm_dynamic", lambda: nn.GroupNorm(2, 4), lambda b, s: (r(b, 4, s),), [(2, 5), (3, 7), (4, 3)], ({0: S, 2: S},),
        rtol=1e-4, atol=1e-4)
dynamic("topk_dynamic", lambda x: x.topk(2, 1)[0], lambda b, s: (r(b, s + 1),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("one_hot_dynamic", lambda at: F.one_hot(at, 10).float() * 2, lambda b, s: (n(b, s),), BATCH_SEQ, ({0: S, 1: S},))

# Attention
QKV = lambda b, s: (r(b, 2, s, 4), r(b, 2, s, 4), r(b, 2, s, 4))  # noqa: E731
DYN_QKV = ({0: S, 2: S},) * 3
dynamic("sdpa_dynamic", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), QKV, BATCH_SEQ, DYN_QKV, rtol=1e-4, atol=1e-4)
dynamic("sdpa_causal_dynamic", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), QKV, BATCH_SEQ, DYN_QKV,
        rtol=1e-4, atol=1e-4)
dynamic("sdpa_mask_dynamic", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        lambda b, s: (*QKV(b, s), torch.ones(s, s).tril().bool()), BATCH_SEQ, (*DYN_QKV, {0: S, 1: S}), rtol=1e-4, atol=1e-4)
dynamic("sdpa_gqa_dynamic", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        lambda b, s: (r(b, 4, s, 4), r(b, 2, s, 4), r(b, 2, s, 4)), BATCH_SEQ, DYN_QKV, rtol=1e-4, atol=1e-4)


class Block(nn.Module):
    """A decoder block as language models have it: rotary positions, grouped heads, a causal mask, a gated MLP."""

    def __init__(self, heads=4, groups=2, width=8, hidden=16):
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, width
        size = heads * width
        self.embed, self.norm = nn.Embedding(20, size), nn.RMSNorm(size)
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, groups * width), nn.Linear(size, groups * width)
        self.o, self.gate, self.up, self.down = (nn.Linear(size, size, bias=False), nn.Linear(size, hidden, bias=False),
                                                 nn.Linear(size, hidden, bias=False), nn.Linear(hidden, size, bias=False))
        self.register_buffer("inv", 1.0 / 100 ** (torch.arange(0, width, 2) / width))

    def rotate(self, x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def forward(self, tokens):
        b, s = tokens.shape
        x = self.embed(tokens)
        y = self.norm(x)
        angle = torch.arange(s).float()[:, None] * self.inv
        cos, sin = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()
        q = self.rotate(self.q(y).view(b, s, self.heads, self.width).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(y).view(b, s, self.groups, self.width).transpose(1, 2), cos, sin)
        v = self.v(y).view(b, s, self.groups, self.width).transpose(1, 2)
        repeat = self.heads // self.groups
        k = k[:, :, None].expand(b, self.groups, repeat, s, self.width).reshape(b, self.heads, s, self.width)
        v = v[:, :, None].expand(b, self.groups, repeat, s, self.width).reshape(b, self.heads, s, self.width)
        mask = torch.full((s, s), float("-inf")).triu(1)
        scores = F.softmax(q @ k.transpose(-1, -2) / self.width ** 0.5 + mask, -1)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(b, s, -1))
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


dynamic("decoder_block", Block, lambda b, s: (n(b, s),), BATCH_SEQ, ({0: S, 1: S},), rtol=1e-4, atol=1e-4)
dynamic("encoder_layer", lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda b, s: (r(b, s, 8),), BATCH_SEQ,
        ({0: S, 1: S},), rtol=1e-4, atol=1e-4)
dynamic("multihead_attention", layers(lambda m, x: m.a(x, x, x)[0], a=lambda: nn.MultiheadAttention(8, 2, batch_first=True)),
        lambda b, s: (r(b, s, 8),), BATCH_SEQ, ({0: S, 1: S},), rtol=1e-4, atol=1e-4)


# Control flow: one file, both branches, any number of rounds. Each call is one value of `k`.
def branch(x):
    return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: x.neg().exp(), (x,))


def branch_in_branch(x, y):
    def positive(x, y):
        return torch.cond(y.sum() > 0, lambda x, y: x + y, lambda x, y: x - y, (x, y))

    return torch.cond(x.sum() > 0, positive, lambda x, y: x * y, (x, y))


def halve_until_small(x):
    return torch.while_loop(lambda x, n: x.abs().max() > 1, lambda x, n: (x / 2, n + 1), (x, torch.tensor(0)))


def loop_over_weights(x, w):
    def body(i, y):
        return i + 1, torch.tanh(y @ w)

    return torch.while_loop(lambda i, y: i < 3, body, (torch.tensor(0), x))[1]


def branch_in_loop(x):
    def body(i, y):
        return i + 1, torch.cond(i % 2 == 0, lambda y: y * 2, lambda y: y - 1, (y,))

    return torch.while_loop(lambda i, y: i < 4, body, (torch.tensor(0), x))[1]


K = [1, -1, 3]
dynamic("cond", branch, lambda k: (torch.tensor([0.5, 0.25, 1.0]) * k,), K, (None,))
dynamic("cond_with_layers", layers(lambda m, x: torch.cond(x.mean() > 0, m.a, m.b, (x,)), a=lambda: nn.Linear(3, 2),
                                   b=lambda: nn.Linear(3, 2)), lambda k: (torch.rand(2, 3) * k,), K, (None,))
dynamic("cond_nested", branch_in_branch, lambda k, j: (torch.rand(3) * k, torch.rand(3) * j), [(1, 1), (1, -1), (-1, 1)], (None, None))
dynamic("cond_dynamic_size", branch, lambda s, k: (torch.rand(s, 3) * k,), [(2, 1), (3, -1), (5, 1)], ({0: S},))
dynamic("while_loop", halve_until_small, lambda k: (torch.tensor([0.5, 2.0, -7.0]) * k,), [1, 5, 0.1], (None,))
dynamic("while_loop_closure", loop_over_weights, lambda k: (torch.rand(2, 3) * k, torch.rand(3, 3)), K, (None, None))
dynamic("cond_in_while_loop", branch_in_loop, lambda k: (torch.tensor([0.5, 2.0]) * k,), K, (None,))


def branch_with_size(x, y):
    rows = x.shape[0]
    return torch.cond(x.sum() > 0, lambda y: y + rows, lambda y: y * rows, (y,))


def loop_to_size(x):
    rows = x.shape[0]
    return torch.while_loop(lambda i, y: i < rows, lambda i, y: (i + 1, y + rows), (torch.tensor(0), x))


def accumulate(start, xs, dim=0, reverse=False):
    def step(carried, x):
        carried = torch.tanh(carried * 0.5 + x)
        return carried, carried * 2

    return scan(step, start, xs, dim=dim, reverse=reverse)


def two_stacks(start, xs, w):
    def step(carried, x):
        y = carried @ w + x
        return y, (y.sum(), y > 0)

    return scan(step, start, xs)


dynamic("cond_size_operand", branch_with_size, lambda s, k: (torch.rand(s, 3) * k, torch.rand(4)), [(2, 1), (3, -1), (5, 1)], ({0: S}, None))
dynamic("while_loop_size_operand", loop_to_size, lambda s: (r(s, 3),), SEQ[:3], ({0: S},))
dynamic("map", lambda xs, y: hop_map(lambda x, y: x * 2 + y, xs, y), lambda k: (r(3, 4) * k, r(4)), K, (None, None))
dynamic("map_dynamic_rounds", lambda xs, y: hop_map(lambda x, y: x * 2 + y, xs, y), lambda s: (r(s, 4), r(4)), SEQ[:3], ({0: S}, None))
dynamic("scan", accumulate, lambda k: (r(4) * k, r(3, 4)), K, (None, None))
dynamic("scan_dynamic_rounds", accumulate, lambda s: (r(4), r(s, 4)), SEQ[:3], (None, {0: S}))
dynamic("scan_reverse_inner", lambda c, xs: accumulate(c, xs, 1, True), lambda k: (r(3) * k, r(3, 4)), K, (None, None))
dynamic("scan_two_stacks", two_stacks, lambda k: (r(4) * k, r(3, 4), r(4, 4)), K, (None, None, None))

# Floats made of sizes, or read out of tensors
dynamic("float_of_size", lambda x: x * (x.shape[-1] ** -0.5), lambda s: (r(2, s),), SEQ, ({1: S},))
dynamic("float_division_of_sizes", lambda x: x / (x.shape[0] / x.shape[1] + 0.5), lambda b, s: (r(b, s),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("float_times_integers", lambda x: x * (x.shape[0] * 0.25), lambda s: (n(s, 3),), SEQ, ({0: S},))
dynamic("float_read_from_tensor", lambda x: x * (x.sum().item() * 2 + 1), lambda k: (r(3, 4),), K, (None,))

# Sizes that depend on data: each call has other numbers of true elements
DRAWS = [1, 2, 3, 4]
dynamic("mask_of_everything", lambda x: x[x > 0] * 2, lambda k: (r(3, 4),), DRAWS, (None,))
dynamic("mask_of_rows", lambda x: x[(x > 1).any(1)].sum(1), lambda k: (r(5, 4),), DRAWS, (None,))
dynamic("mask_of_columns", lambda x: x[:, (x > 0.8).any(0)] * 2, lambda k: (r(3, 5),), DRAWS, (None,))
dynamic("mask_in_the_middle", lambda x: x[:, x[0].sum(-1) > 0, :].mean(1), lambda k: (torch.cat((r(2, 4, 3), torch.ones(2, 1, 3)), 1),), DRAWS, (None,))
dynamic("mask_and_number", lambda x: x[x[:, 0] > 0, 1], lambda k: (r(5, 4),), DRAWS, (None,))
dynamic("mask_and_indices", lambda x, i: x[x[:, 0, 0] > 3, i], lambda k: (torch.cat((r(5, 4, 2), torch.full((1, 4, 2), 5.0))), torch.tensor([k % 4])), DRAWS,
        (None, None))
dynamic("mask_of_two_then_indices", lambda x: x[x[..., 0] > 0][:, torch.tensor([1, 0])], lambda k: (r(3, 4, 2),), DRAWS, (None,))
dynamic("masked_select", lambda x, m: torch.masked_select(x, m) + 1, lambda k: (r(3, 4), torch.rand(4) > 0.5), DRAWS, (None, None))
dynamic("nonzero", lambda x: torch.nonzero(x > 0.5), lambda k: (r(3, 4),), DRAWS, (None,))
dynamic("nonzero_vector", lambda x: torch.nonzero(x) + 1, lambda k: (n(7, high=3),), DRAWS, (None,))
dynamic("where_one_operand", lambda x: torch.where(x > 0.5), lambda k: (r(3, 4),), DRAWS, (None,))
dynamic("where_one_number", lambda x: torch.where(x.sum() > 0)[0] + 1, lambda k: (r(3) * (-1) ** k,), DRAWS, (None,))
dynamic("nonzero_as_tuple", lambda x: x[(x > 0).nonzero(as_tuple=True)] * 2, lambda k: (r(3, 4),), DRAWS, (None,))
dynamic("argwhere", lambda x: torch.argwhere(x), lambda k: (n(2, 7, high=3),), DRAWS, (None,))
dynamic("bincount", lambda x: torch.bincount(x) * 2, lambda k: (n(9, high=3 + k),), DRAWS, (None,))
dynamic("bincount_weights", lambda x, w: torch.bincount(x, w, minlength=4), lambda k: (n(9, high=2 + k), r(9)), DRAWS, (None, None))
dynamic("bincount_of_unknown_size", lambda x: torch.bincount(x, minlength=3), lambda s: (n(s, high=s),), SEQ, ({0: S},))
dynamic("nonzero_then_size", lambda x: (lambda z: z[:, 0] + z.shape[0])(torch.nonzero(x > 0)), lambda k: (r(6),), DRAWS, (None,))
dynamic("mask_none_or_all", lambda x: x[x > 0], lambda k: (torch.ones(2, 3) * k,), [1, -1, 2], (None,))
dynamic("mask_of_unknown_size", lambda x: x[x[:, 0] > 0] * 2, lambda s: (r(s, 3),), SEQ, ({0: S},))
dynamic("mask_large", lambda x: x[x > 1.5], lambda k: (r(90, 50),), DRAWS[:3], (None,))
dynamic("nonzero_of_unknown_size", lambda x: torch.nonzero(x > 0), lambda s: (r(s, 3),), SEQ, ({0: S},))


# Faults that others have met (see cases_faults.py), where sizes are not known
def clip_rows(x):
    return x[: min(x.shape[0], 4)] * x.shape[0]


def at_least_two(x):
    return torch.cat((x, x.new_zeros(max(x.shape[0], 2), 3)))


dynamic("fault_A46_reshape_minus_one", lambda x: (x.reshape(-1, 4) + 1).reshape(x.shape[0], -1), lambda b, s: (r(b, s, 2, 2),), BATCH_SEQ, ({0: S, 1: S},))
dynamic("fault_B31_cat_of_nonzero_size", lambda x: torch.cat((x[0], x[x > 0])), lambda k: (r(3, 4),), DRAWS, (None,))
dynamic("fault_B31_cat_of_nonzero", lambda x: torch.cat((torch.nonzero(x > 0), torch.nonzero(x < -1))), lambda k: (r(3, 4),), DRAWS, (None,))
dynamic("fault_B35_sizes_compared_min", clip_rows, lambda s: (r(s, 3),), SEQ, ({0: S},))
dynamic("fault_B35_sizes_compared_max", at_least_two, lambda s: (r(s, 3),), SEQ, ({0: S},))
dynamic("fault_B7_empty_at_one_size", lambda x: torch.cat((x[2:], x[:1])), lambda s: (r(s, 3),), SEQ, ({0: S},))
dynamic("fault_B20_negative_start_unknown_size", lambda x: x[-3:].sum(0), lambda s: (r(s, 3),), [5, 9, 3, 4], ({0: S},))
dynamic("fault_A62_expand_to_unknown_size", lambda x, y: x.expand(y.shape[0], -1) + 1, lambda s: (r(1, 3), r(s, 2)), SEQ, (None, {0: S}))
