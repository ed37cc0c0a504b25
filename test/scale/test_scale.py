"""Work grows in proportion to the model: counters at N, 2N and 4N blocks, no clock involved.

A block holds what real networks stack: attention with rotary positions, norms, a gated MLP, a depthwise convolution,
in-place updates. Every block has weights of its own.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from peak import peak_memory
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))
BLOCKS = (16, 32, 64)
GROWTH = 2.05  # per doubling
SLACK = 16     # what a pass may count for a graph as a whole
COUNTERS = ("ops_visited", "patterns_tried", "rewrites", "enqueues", "bytes_hashed", "bytes_copied")


class Block(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-6), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate, self.up, self.down = nn.Linear(width, 24), nn.Linear(width, 24), nn.Linear(24, width)
        self.conv, self.bn = nn.Conv1d(width, width, 3, padding=1, groups=width), nn.BatchNorm1d(width)
        self.register_buffer("cos", torch.rand(6, 8))
        self.register_buffer("sin", torch.rand(6, 8))

    def rotate(self, x):
        low, high = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat((-high, low), -1) * self.sin

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        x = x + self.down(F.silu(self.gate(y)).mul_(self.up(y)))
        return x + F.hardswish(self.bn(self.conv(x.transpose(1, 2)))).transpose(1, 2)


@pytest.fixture(scope="session")
def models():
    """Exported once per version of this file and of torch."""
    text = pathlib.Path(__file__).read_bytes() + torch.__version__.encode()
    folder = ROOT / "build" / "scale" / hashlib.sha256(text).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for blocks in BLOCKS:
        path = folder / f"{blocks}.pt2"
        if not path.exists():
            torch.manual_seed(blocks)
            stack = nn.Sequential(*(Block() for _ in range(blocks))).eval()
            torch.export.save(torch.export.export(stack, (torch.randn(1, 6, 16),)), str(path))
    return folder


def counters(model, out):
    """{(position and name of the pass, counter): value} of one conversion."""
    done = subprocess.run([CHUTE, "convert", model, "-o", out, "--stats", "--json", "--threads", "1",
                           *(["--profile", "int+fp"] if str(out).endswith(".tosa") else [])],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    passes, _ = json.JSONDecoder().raw_decode(done.stderr[done.stderr.index("["):])  # notes may follow
    return {(f"{i} {row['pass']}", counter): row[counter] for i, row in enumerate(passes) for counter in COUNTERS}


def check_growth(paths, out):
    """N, 2N, 4N blocks: the second step adds twice what the first one adds. (Counts may start late: parameters of the
    stack repeat after 32 blocks, and merging them only then begins.)"""
    seen = [counters(path, out) for path in paths]
    assert seen[0].keys() == seen[1].keys() == seen[2].keys(), "the pipeline depends on the size of the model"
    steep = [f"{name} {counter}: {[s[name, counter] for s in seen]}" for name, counter in seen[0]
             if seen[2][name, counter] - seen[1][name, counter]
             > GROWTH * (seen[1][name, counter] - seen[0][name, counter]) + SLACK]
    assert not steep, "\n".join(steep)
    assert sum(seen[0].values()) > 0


@pytest.mark.parametrize("form", ["circle", "tosa"])
def test_counters_grow_linearly(models, tmp_path, form):
    check_growth([models / f"{blocks}.pt2" for blocks in BLOCKS], tmp_path / f"out.{form}")


@pytest.mark.skipif(not (SHARED / "bench" / "tile_pt2.py").exists(), reason="no ../shared beside this checkout")
@pytest.mark.parametrize("form", ["circle", "tosa"])
def test_counters_of_quantized_programs_grow_linearly(tmp_path, form):
    sizes = (64, 128, 256)  # parameters of a block equal those of the block 32 before it
    paths = [tmp_path / f"{blocks}.pt2" for blocks in sizes]
    for blocks, path in zip(sizes, paths):
        subprocess.run([sys.executable, SHARED / "bench" / "tile_pt2.py", SHARED / "bench" / "block_fq16.pt2", str(blocks), path],
                       check=True, stdout=subprocess.DEVNULL)
    check_growth(paths, tmp_path / f"out.{form}")


@pytest.mark.skipif(not (SHARED / "bench" / "tile_pt2.py").exists(), reason="no ../shared beside this checkout")
def test_reads_100k_nodes_in_400_mb(tmp_path):
    model = tmp_path / "big.pt2"
    subprocess.run([sys.executable, SHARED / "bench" / "tile_pt2.py", SHARED / "bench" / "block_fq16.pt2", "470", model],
                   check=True, stdout=subprocess.DEVNULL)
    with open(tmp_path / "out.json", "w") as out:
        peak = peak_memory([CHUTE, "inspect", model, "--json"], out)
    assert json.loads((tmp_path / "out.json").read_text())["operators"] > 90_000
    assert peak < 400 << 20, f"{peak >> 20} MB"
