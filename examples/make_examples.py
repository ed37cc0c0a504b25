#!/usr/bin/env python3
"""Export the two example models with random weights, and record what PyTorch computes.

usage: make_examples.py [FOLDER]      (default: the folder of this script)

Writes <FOLDER>/<name>/model.pt2, inputs.npz (in0, in1, ...) and expected.npz (out0, out1, ...).
Seeds are fixed. Needs torch; chute itself does not.
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def conv_bn(cin, cout, kernel, stride=1, groups=1, act=None):
    layers = [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*layers, *([act()] if act else []))


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.reduce = nn.Conv2d(channels, channels // 4, 1)
        self.expand = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        scale = F.adaptive_avg_pool2d(x, 1)
        scale = F.hardsigmoid(self.expand(F.relu(self.reduce(scale))))
        return x * scale


class InvertedResidual(nn.Module):
    def __init__(self, cin, hidden, cout, kernel, stride, act, squeeze):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(cin, hidden, 1, act=act),
            conv_bn(hidden, hidden, kernel, stride, groups=hidden, act=act),
            SqueezeExcite(hidden) if squeeze else nn.Identity(),
            conv_bn(hidden, cout, 1))
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        y = self.body(x)
        return x + y if self.residual else y


class MobileNetSmall(nn.Module):
    """Inverted residuals as MobileNetV2 and V3 have them, narrow enough for an example."""

    def __init__(self, classes=100):
        super().__init__()
        relu6, swish = nn.ReLU6, nn.Hardswish
        self.features = nn.Sequential(
            conv_bn(3, 16, 3, stride=2, act=swish),
            InvertedResidual(16, 16, 16, 3, 1, relu6, squeeze=False),
            InvertedResidual(16, 64, 24, 3, 2, relu6, squeeze=False),
            InvertedResidual(24, 72, 24, 3, 1, relu6, squeeze=False),
            InvertedResidual(24, 96, 40, 5, 2, swish, squeeze=True),
            InvertedResidual(40, 120, 40, 5, 1, swish, squeeze=True),
            InvertedResidual(40, 160, 56, 3, 2, swish, squeeze=True),
            InvertedResidual(56, 168, 56, 3, 1, swish, squeeze=True),
            conv_bn(56, 240, 1, act=swish))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Sequential(nn.Linear(240, 320), nn.Hardswish(inplace=True), nn.Dropout(0.2),
                                  nn.Linear(320, classes))

    def forward(self, image):
        return self.head(torch.flatten(self.pool(self.features(image)), 1))


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q = nn.Linear(width, heads * self.size, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def rotate(self, x, cos, sin):
        low, high = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-high, low), dim=-1) * sin

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class SwiGlu(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class RmsNorm(nn.Module):
    """Written out, as most published decoders do, instead of nn.RMSNorm."""

    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.attention_norm, self.attention = RmsNorm(width), Attention(width, heads, kv_heads)
        self.mlp_norm, self.mlp = RmsNorm(width), SwiGlu(width, hidden)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.mlp(self.mlp_norm(x))


class DecoderSmall(nn.Module):
    """A decoder-only transformer with rotary positions, grouped-query attention and SwiGLU."""

    def __init__(self, vocabulary=512, width=96, layers=3, heads=6, kv_heads=2, hidden=256, length=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, kv_heads, hidden) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        angle = torch.outer(torch.arange(length).float(), 1.0 / 10000 ** (torch.arange(0, size, 2).float() / size))
        angle = torch.cat((angle, angle), dim=-1)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        length = tokens.shape[1]
        for layer in self.layers:
            x = layer(x, self.cos[:length], self.sin[:length])
        return self.head(self.norm(x))


def randomize(model):
    """Weights that keep activations near one, and batch statistics that are not the trivial 0 and 1."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.uniform_(module.bias, -0.1, 0.1)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.7, 1.3)
            nn.init.uniform_(module.bias, -0.2, 0.2)
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.7, 1.3)


def relative_traces(program):
    """Source paths as a reader of the repository knows them, not as this machine does."""
    here, site = str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(torch.__file__).parents[1])
    for node in program.graph.nodes:
        trace = node.meta.get("stack_trace")
        if trace:
            node.meta["stack_trace"] = trace.replace(here + "/", "").replace(site + "/", "")


def save(folder, model, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        expected = model(*inputs)
    program = torch.export.export(model, inputs)
    relative_traces(program)
    torch.export.save(program, str(folder / "model.pt2"))
    np.savez(folder / "inputs.npz", **{f"in{i}": x.numpy() for i, x in enumerate(inputs)})
    np.savez(folder / "expected.npz", out0=expected.numpy())


def main(folder):
    for name, make, inputs in (
            ("mobilenet_small", MobileNetSmall, lambda: (torch.randn(1, 3, 64, 64),)),
            ("decoder_small", DecoderSmall, lambda: (torch.randint(0, 512, (1, 32)),))):
        torch.manual_seed(2026)
        model = make().eval()
        randomize(model)
        save(folder / name, model, inputs())
        print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, "
              f"{(folder / name / 'model.pt2').stat().st_size} bytes")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent)
