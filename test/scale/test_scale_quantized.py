"""The passes that move quantization: work and operators grow in proportion to the model; no clock involved.

A block is quantized attention of one head and a gated MLP, with 16-bit values and 8-bit weights of its own.
"""
import json
import subprocess

import pytest
import torch
from test_scale import CHUTE, COUNTERS, GROWTH, SLACK
from torch import nn
from torch.nn import functional as F

BLOCKS = (4, 8, 16)


def fq(x, scale=0.02):
    return torch.fake_quantize_per_tensor_affine(x, scale, 0, -32768, 32767)


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(outputs, inputs)), nn.Parameter(torch.randn(outputs))
        self.register_buffer("scale", torch.rand(outputs) * 0.01 + 0.01)
        self.register_buffer("zero", torch.full((outputs,), 128, dtype=torch.int32))

    def forward(self, x):
        w = torch.fake_quantize_per_channel_affine(self.weight, self.scale, self.zero, 0, 0, 255)
        return fq(F.linear(fq(x), w, self.bias))


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.q, self.k, self.v, self.o = (Linear(width, width) for _ in range(4))
        self.up, self.gate, self.down = Linear(width, 16), Linear(width, 16), Linear(16, width)
        self.register_buffer("cos", torch.rand(6, width))

    def turn(self, x):
        low, high = x.chunk(2, -1)
        return fq(fq(x * self.cos) + fq(torch.cat([fq(-high), low], -1)))

    def forward(self, x):
        p = F.softmax(fq(fq(torch.matmul(self.turn(self.q(x)), self.turn(self.k(x)).transpose(1, 2))) * 0.35), -1)
        x = fq(x + self.o(fq(torch.matmul(fq(p, 0.001), self.v(x)))))
        return fq(x + self.down(fq(self.up(x) * fq(torch.sigmoid(self.gate(x)), 0.001))))


def convert(folder, blocks):
    torch.manual_seed(blocks)
    model = nn.Sequential(*(Block() for _ in range(blocks))).eval()
    torch.export.save(torch.export.export(model, (torch.randn(1, 6, 8),)), str(folder / f"{blocks}.pt2"))
    command = [CHUTE, "convert", folder / f"{blocks}.pt2", "-o", folder / "out.circle", "--stats", "--json"]
    done = subprocess.run([*command, "--threads", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stderr.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("["))
    passes, _ = json.JSONDecoder().raw_decode("\n".join(lines[start:]))  # notes follow
    operators = json.loads(done.stdout.splitlines()[-1])["operators"]
    return {(f"{i} {row['pass']}", c): row[c] for i, row in enumerate(passes) for c in COUNTERS}, operators


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quantized")
    return [convert(folder, blocks) for blocks in BLOCKS]


def test_counters_grow_linearly(runs):
    seen = [counters for counters, _ in runs]
    steep = [f"{name} {counter}: {[s[name, counter] for s in seen]}" for name, counter in seen[0]
             if any(after[name, counter] > GROWTH * before[name, counter] + SLACK
                    for before, after in zip(seen, seen[1:]))]
    assert not steep, "\n".join(steep)


def test_every_block_costs_the_same_operators(runs):
    """No QUANTIZE or DEQUANTIZE is left in a block whose values all have parameters."""
    small, middle, large = (operators for _, operators in runs)
    assert large - middle == 2 * (middle - small)
    per_block = (middle - small) // 4
    assert per_block <= 26, per_block
