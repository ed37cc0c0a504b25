"""Sequence networks of the real-model test, built from torch.nn alone: every layer kind of the original, small sizes."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class LSTM(nn.Module):
    def __init__(self, dim=8, hidden=6):
        super().__init__()
        self.embedding = nn.Embedding(20, dim)
        self.lstm = nn.LSTM(dim, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, 3)

    def forward(self, tokens):
        x, (h, c) = self.lstm(self.embedding(tokens))
        return self.fc(x[:, -1]), h, c


class GRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.fc = nn.GRU(8, 6, num_layers=2), nn.Linear(6, 3)

    def forward(self, x, h0):
        y, h = self.gru(x, h0)
        return F.log_softmax(self.fc(y), -1), h


def split_heads(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


class BertLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.ln1, self.ln2, self.dropout = nn.LayerNorm(dim, eps=1e-12), nn.LayerNorm(dim, eps=1e-12), nn.Dropout(0.1)

    def forward(self, x, mask):
        q, k, v = (split_heads(part(x), self.heads) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.ln1(x + self.dropout(self.o(join_heads(y))))
        return self.ln2(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.words, self.positions, self.kinds = nn.Embedding(30, dim, padding_idx=0), nn.Embedding(12, dim), nn.Embedding(2, dim)
        self.norm, self.layers = nn.LayerNorm(dim, eps=1e-12), nn.ModuleList(BertLayer(dim, 4) for _ in range(2))
        self.pooler = nn.Linear(dim, dim)
        self.register_buffer("ids", torch.arange(12).expand((1, -1)), persistent=False)

    def forward(self, tokens, mask, kinds):
        ids = self.ids[:, :tokens.shape[1]]
        x = self.norm(self.words(tokens) + self.kinds(kinds) + self.positions(ids))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


class GPT2(nn.Module):
    """Pre-norm blocks with a fused projection, tanh GELU, a masked softmax written out, tied output weights."""

    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads = heads
        self.wte, self.wpe = nn.Embedding(30, dim), nn.Embedding(12, dim)
        part = lambda *shape: nn.Parameter(torch.randn(*shape) * 0.1)
        self.blocks = nn.ModuleList()
        for _ in range(2):
            block = nn.Module()
            block.ln1, block.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            block.qkv_w, block.qkv_b, block.o_w, block.o_b = part(dim, 3 * dim), part(3 * dim), part(dim, dim), part(dim)
            block.up_w, block.up_b, block.down_w, block.down_b = part(dim, 4 * dim), part(4 * dim), part(4 * dim, dim), part(dim)
            self.blocks.append(block)
        self.norm = nn.LayerNorm(dim)
        self.register_buffer("causal", torch.tril(torch.ones(12, 12, dtype=torch.bool)).view(1, 1, 12, 12))

    @staticmethod
    def conv1d(x, w, b):
        return torch.addmm(b, x.view(-1, x.size(-1)), w).view(*x.shape[:-1], w.shape[1])

    @staticmethod
    def gelu(x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

    def forward(self, tokens):
        t = tokens.shape[-1]
        x = self.wte(tokens) + self.wpe(torch.arange(t, device=tokens.device).unsqueeze(0))
        for block in self.blocks:
            q, k, v = (split_heads(part, self.heads) for part in self.conv1d(block.ln1(x), block.qkv_w, block.qkv_b).split(x.shape[-1], 2))
            scores = q @ k.transpose(-1, -2) / torch.full([], v.size(-1) ** 0.5, dtype=x.dtype)
            lowest = torch.full([], torch.finfo(x.dtype).min, dtype=x.dtype)
            scores = torch.where(self.causal[:, :, :t, :t], scores, lowest)
            x = x + self.conv1d(join_heads(F.softmax(scores, -1).type(v.dtype) @ v), block.o_w, block.o_b)
            x = x + self.conv1d(self.gelu(self.conv1d(block.ln2(x), block.up_w, block.up_b)), block.down_w, block.down_b)
        return F.linear(self.norm(x), self.wte.weight)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(kind)


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]), dim=-1)


def rotary(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def repeat_kv(x, n):
    b, h, t, d = x.shape
    return x[:, :, None, :, :].expand(b, h, n, t, d).reshape(b, h * n, t, d)


class DecoderLayer(nn.Module):
    """Llama's; with `bias` Qwen2's, with `qk_norm` Qwen3's, with `experts` a mixture of them."""

    def __init__(self, dim, heads, groups, bias=False, qk_norm=False, mlp=None, size=8):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, size
        self.q, self.k = nn.Linear(dim, heads * size, bias=bias), nn.Linear(dim, groups * size, bias=bias)
        self.v, self.o = nn.Linear(dim, groups * size, bias=bias), nn.Linear(heads * size, dim, bias=False)
        self.q_norm, self.k_norm = (RMSNorm(size), RMSNorm(size)) if qk_norm else (nn.Identity(), nn.Identity())
        self.ln1, self.ln2, self.mlp = RMSNorm(dim), RMSNorm(dim), mlp or SwiGLU(dim, 2 * dim)

    def forward(self, x, cos, sin, mask, cache=None):
        y = self.ln1(x)
        shape = (*y.shape[:2], -1, self.size)
        q = rotary(self.q_norm(self.q(y).view(shape)).transpose(1, 2), cos, sin)
        k = rotary(self.k_norm(self.k(y).view(shape)).transpose(1, 2), cos, sin)
        v = self.v(y).view(shape).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        new = (k, v)
        k, v = repeat_kv(k, self.heads // self.groups), repeat_kv(v, self.heads // self.groups)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.o(y.transpose(1, 2).reshape(*x.shape[:2], -1).contiguous())
        return x + self.mlp(self.ln2(x)), new


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class MixtureOfExperts(nn.Module):
    """Top-2 routing; every expert sees every token and the routing weight of those not chosen is 0."""

    def __init__(self, dim, experts=4, chosen=2):
        super().__init__()
        self.chosen, self.router = chosen, nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(dim, 2 * dim) for _ in range(experts))

    def forward(self, x):
        flat = x.view(-1, x.shape[-1])
        weights = F.softmax(self.router(flat), dim=1, dtype=torch.float)
        weights, picked = torch.topk(weights, self.chosen, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        masks = F.one_hot(picked, num_classes=len(self.experts)).permute(2, 1, 0)
        out = torch.zeros_like(flat)
        for expert, mask in zip(self.experts, masks):
            out = out + expert(flat) * (weights * mask.transpose(0, 1)).sum(-1, keepdim=True)
        return out.view(x.shape)


class Llama(nn.Module):
    def __init__(self, cached=False, layers=2, dim=16, **kind):
        super().__init__()
        self.cached, self.embedding = cached, nn.Embedding(30, dim)
        experts = kind.pop("experts", False)
        self.layers = nn.ModuleList(DecoderLayer(dim, 4, 2, mlp=MixtureOfExperts(dim) if experts else None, **kind) for _ in range(layers))
        self.norm, self.head = RMSNorm(dim), nn.Linear(dim, 30, bias=False)
        self.register_buffer("frequencies", 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8)), persistent=False)

    def angles(self, positions):
        with torch.autocast("cpu", enabled=False):
            freqs = (self.frequencies[None, :, None].float().expand(positions.shape[0], -1, 1) @ positions[:, None, :].float()).transpose(1, 2)
            both = torch.cat((freqs, freqs), -1)
            return both.cos().unsqueeze(1), both.sin().unsqueeze(1)

    def forward(self, tokens, mask=None, positions=None, *caches):
        x = self.embedding(tokens)
        if positions is None:
            positions = torch.arange(tokens.shape[1]).unsqueeze(0)
        cos, sin = self.angles(positions)
        new = []
        for i, layer in enumerate(self.layers):
            x, grown = layer(x, cos, sin, mask, caches[2 * i:2 * i + 2] if self.cached else None)
            new += grown
        logits = self.head(self.norm(x))
        return (logits, *new) if self.cached else logits


class T5Attention(nn.Module):
    def __init__(self, dim, heads, bidirectional, biased):
        super().__init__()
        self.heads, self.bidirectional = heads, bidirectional
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.table = nn.Embedding(8, heads) if biased else None

    def bucket(self, relative, buckets=8, furthest=16):
        out = torch.zeros_like(relative)
        if self.bidirectional:
            buckets //= 2
            out += (relative > 0).to(torch.long) * buckets
            relative = torch.abs(relative)
        else:
            relative = -torch.min(relative, torch.zeros_like(relative))
        exact = buckets // 2
        far = exact + (torch.log(relative.float() / exact) / math.log(furthest / exact) * (buckets - exact)).to(torch.long)
        far = torch.min(far, torch.full_like(far, buckets - 1))
        return out + torch.where(relative < exact, relative, far)

    def forward(self, x, memory, bias, mask):
        q, k, v = (split_heads(p, self.heads) for p in (self.q(x), self.k(memory), self.v(memory)))
        scores = torch.matmul(q, k.transpose(3, 2))
        if bias is None:
            relative = torch.arange(k.shape[2])[None, :] - torch.arange(q.shape[2])[:, None]
            if self.table is None:
                bias = torch.zeros((1, self.heads, q.shape[2], k.shape[2]))
            else:
                bias = self.table(self.bucket(relative)).permute([2, 0, 1]).unsqueeze(0)
            bias = bias + mask
        scores += bias
        return self.o(join_heads(F.softmax(scores.float(), -1).type_as(scores) @ v)), bias


class T5(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.shared = nn.Embedding(30, dim)
        self.encoder = nn.ModuleList(self.block(dim, True, i == 0, False) for i in range(2))
        self.decoder = nn.ModuleList(self.block(dim, False, i == 0, True) for i in range(2))
        self.norms, self.head = nn.ModuleList(RMSNorm(dim) for _ in range(2)), nn.Linear(dim, 30, bias=False)

    @staticmethod
    def block(dim, both, biased, cross):
        block = nn.Module()
        block.attention = T5Attention(dim, 4, both, biased)
        block.cross = T5Attention(dim, 4, True, False) if cross else None
        block.wi0, block.wi1, block.wo = nn.Linear(dim, 32, bias=False), nn.Linear(dim, 32, bias=False), nn.Linear(32, dim, bias=False)
        block.norms = nn.ModuleList(RMSNorm(dim) for _ in range(3))
        return block

    @staticmethod
    def stack(blocks, x, mask, memory, memory_mask):
        bias = cross_bias = None
        for block in blocks:
            y = block.norms[0](x)
            y, bias = block.attention(y, y, bias, mask)
            x = x + y
            if block.cross is not None:
                y, cross_bias = block.cross(block.norms[1](x), memory, cross_bias, memory_mask)
                x = x + y
            y = block.norms[2](x)
            x = x + block.wo(F.gelu(block.wi0(y), approximate="tanh") * block.wi1(y))
        return x

    def forward(self, tokens, mask, target):
        lowest = torch.finfo(torch.float32).min
        padding = (1.0 - mask[:, None, None, :].float()) * lowest
        memory = self.norms[0](self.stack(self.encoder, self.shared(tokens), padding, None, None))
        n = target.shape[1]
        causal = torch.triu(torch.full((n, n), lowest), 1)[None, None]
        x = self.norms[1](self.stack(self.decoder, self.shared(target), causal, memory, padding))
        return self.head(x * x.shape[-1] ** -0.5)


class WhisperLayer(nn.Module):
    def __init__(self, dim, cross):
        super().__init__()
        self.attention = nn.ModuleDict({n: nn.Linear(dim, dim, bias=n != "k") for n in "qkvo"})
        self.cross = nn.ModuleDict({n: nn.Linear(dim, dim, bias=n != "k") for n in "qkvo"}) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.fc1, self.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    @staticmethod
    def attend(parts, x, memory, mask):
        q, k, v = (split_heads(p, 4) for p in (parts["q"](x) * 0.5, parts["k"](memory), parts["v"](memory)))
        return parts["o"](join_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)))

    def forward(self, x, memory=None, mask=None):
        y = self.norms[0](x)
        x = x + self.attend(self.attention, y, y, mask)
        if self.cross is not None:
            x = x + self.attend(self.cross, self.norms[1](x), memory, None)
        return x + self.fc2(F.gelu(self.fc1(self.norms[2](x))))


class WhisperEncoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(8, dim, 3, padding=1), nn.Conv1d(dim, dim, 3, stride=2, padding=1)
        self.positions = nn.Embedding(10, dim)
        self.layers, self.norm = nn.ModuleList(WhisperLayer(dim, False) for _ in range(2)), nn.LayerNorm(dim)

    def forward(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1) + self.positions.weight
        for layer in self.layers:
            x = layer(x)
            x = torch.clamp(x, min=-65000.0, max=65000.0)
        return self.norm(x)


class WhisperDecoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(30, dim), nn.Embedding(12, dim)
        self.layers, self.norm = nn.ModuleList(WhisperLayer(dim, True) for _ in range(2)), nn.LayerNorm(dim)

    def forward(self, tokens, memory):
        n = tokens.shape[1]
        x = self.tokens(tokens) + self.positions(torch.arange(n).unsqueeze(0).repeat(tokens.shape[0], 1))
        mask = torch.full((n, n), float("-inf")).masked_fill(torch.arange(n)[None, :] <= torch.arange(n)[:, None], 0.0)
        for layer in self.layers:
            x = layer(x, memory, mask)
        return self.norm(x) @ self.tokens.weight.transpose(0, 1)


class Qwen3VLVision(nn.Module):
    """Patches through a 3-D convolution, interpolated position table, 2-D rotary angles, attention per image, merger."""

    def __init__(self, dim=32, grids=((1, 4, 4), (1, 4, 8))):
        super().__init__()
        self.grids, self.dim = grids, dim
        self.patch, self.table = nn.Conv3d(3, dim, (2, 4, 4), (2, 4, 4)), nn.Embedding(36, dim)
        self.blocks = nn.ModuleList()
        for _ in range(2):
            block = nn.Module()
            block.norm1, block.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
            block.qkv, block.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            block.fc1, block.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
            self.blocks.append(block)
        self.merge_norm, self.merge1, self.merge2 = nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 4 * dim), nn.Linear(4 * dim, 24)
        self.register_buffer("frequencies", 1.0 / (10000.0 ** (torch.arange(0, dim // 8, 2).float() / (dim // 8))), persistent=False)

    def positions(self):
        """The learned 6x6 table read bilinearly at every patch, in the order of 2x2 merge blocks."""
        out = []
        for t, h, w in self.grids:
            rows, columns = torch.linspace(0, 5, h), torch.linspace(0, 5, w)
            r0, c0 = rows.int(), columns.int()
            r1, c1 = (r0 + 1).clip(max=5), (c0 + 1).clip(max=5)
            dr, dc = rows - r0, columns - c0
            embedded = sum(self.table((r[None].T * 6 + c[None]).flatten().long()) * (a[None].T * b[None]).flatten()[:, None]
                           for r, c, a, b in ((r0, c0, 1 - dr, 1 - dc), (r0, c1, 1 - dr, dc), (r1, c0, dr, 1 - dc), (r1, c1, dr, dc)))
            out.append(embedded.repeat(t, 1).view(t, h // 2, 2, w // 2, 2, -1).permute(0, 1, 3, 2, 4, 5).flatten(0, 4))
        return torch.cat(out)

    def angles(self):
        out = []
        for t, h, w in self.grids:
            rows = torch.arange(h).unsqueeze(1).expand(-1, w).reshape(h // 2, 2, w // 2, 2).permute(0, 2, 1, 3).flatten()
            columns = torch.arange(w).unsqueeze(0).expand(h, -1).reshape(h // 2, 2, w // 2, 2).permute(0, 2, 1, 3).flatten()
            out.append(torch.stack([rows, columns], -1).repeat(t, 1))
        table = torch.outer(torch.arange(8, dtype=torch.float), self.frequencies)
        flat = table[torch.cat(out)].flatten(1)
        both = torch.cat((flat, flat), -1)
        return both.cos().unsqueeze(-2), both.sin().unsqueeze(-2)

    def forward(self, pixels):
        x = self.patch(pixels.view(-1, 3, 2, 4, 4)).view(-1, self.dim) + self.positions()
        cos, sin = self.angles()
        lengths = [t * h * w for t, h, w in self.grids]
        for block in self.blocks:
            q, k, v = block.qkv(block.norm1(x)).reshape(x.shape[0], 3, 4, -1).permute(1, 0, 2, 3).unbind(0)
            q, k = rotary(q.float(), cos, sin).to(x.dtype), rotary(k.float(), cos, sin).to(x.dtype)
            parts = [torch.split(p.transpose(0, 1).unsqueeze(0), lengths, dim=2) for p in (q, k, v)]
            y = torch.cat([F.scaled_dot_product_attention(*p).transpose(1, 2) for p in zip(*parts)], dim=1)
            x = x + block.proj(y.reshape(x.shape[0], -1).contiguous())
            x = x + block.fc2(F.gelu(block.fc1(block.norm2(x)), approximate="tanh"))
        return self.merge2(F.gelu(self.merge1(self.merge_norm(x.view(-1, 4 * self.dim)))))


class Qwen3VLText(nn.Module):
    """Qwen3 blocks over text with image features put in its place, interleaved three-axis rotary angles, deep stacking."""

    def __init__(self, dim=16):
        super().__init__()
        self.embedding, self.layers = nn.Embedding(30, dim), nn.ModuleList(DecoderLayer(dim, 4, 2, qk_norm=True) for _ in range(2))
        self.norm, self.head = RMSNorm(dim), nn.Linear(dim, 30, bias=False)
        self.register_buffer("frequencies", 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8)), persistent=False)

    def forward(self, tokens, positions, images, visual):
        x = self.embedding(tokens)
        where = visual.unsqueeze(-1).expand_as(x)
        x = x.masked_scatter(where, images)
        freqs = (self.frequencies[None, None, :, None].expand(3, x.shape[0], -1, 1) @ positions[:, :, None, :].float()).transpose(2, 3)
        mixed = freqs[0].clone()
        for axis in (1, 2):
            mixed[..., slice(axis, 4, 3)] = freqs[axis, ..., slice(axis, 4, 3)]
        both = torch.cat((mixed, mixed), -1)
        cos, sin = both.cos().unsqueeze(1), both.sin().unsqueeze(1)
        for layer in self.layers:
            x, _ = layer(x, cos, sin, None)
            x = x + torch.zeros_like(x).masked_scatter(where, images)
        return self.head(self.norm(x))


class Mamba(nn.Module):
    """The mixer with the scan unrolled over time."""

    def __init__(self, dim=8, inner=16, state=4, rank=2):
        super().__init__()
        self.inner, self.state, self.rank = inner, state, rank
        self.norm, self.inp = RMSNorm(dim), nn.Linear(dim, 2 * inner, bias=False)
        self.conv, self.x = nn.Conv1d(inner, inner, 4, padding=3, groups=inner), nn.Linear(inner, rank + 2 * state, bias=False)
        self.dt, self.out = nn.Linear(rank, inner), nn.Linear(inner, dim, bias=False)
        self.a = nn.Parameter(torch.log(torch.arange(1, state + 1).float()).repeat(inner, 1))
        self.d = nn.Parameter(torch.ones(inner))

    def forward(self, x):
        h, gate = self.inp(self.norm(x)).transpose(1, 2).chunk(2, dim=1)
        h = F.silu(self.conv(h)[..., :h.shape[-1]])
        time, b, c = torch.split(self.x(h.transpose(1, 2)), [self.rank, self.state, self.state], dim=-1)
        step = F.softplus(self.dt(time)).transpose(1, 2)
        a = -torch.exp(self.a.float())
        da = torch.exp(a[None, :, None, :] * step[:, :, :, None])
        bu = step[:, :, :, None] * b[:, None, :, :].float() * h[:, :, :, None].float()
        state, outs = x.new_zeros((x.shape[0], self.inner, self.state)), []
        for i in range(h.shape[-1]):
            state = da[:, :, i] * state + bu[:, :, i]
            outs.append(torch.matmul(state, c[:, i].unsqueeze(-1))[:, :, 0])
        y = (torch.stack(outs, dim=-1) + h * self.d[None, :, None]) * F.silu(gate)
        return x + self.out(y.transpose(1, 2))
