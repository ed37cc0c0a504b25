"""Rows of the faults table about cost (C4, C7, C9), each with a look-alike: counters and sizes, no clock."""
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from test_circle_verify import work
from test_scale import CHUTE, ROOT, check_growth
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(ROOT / "test" / "e2e"))
import oracles  # noqa: E402


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 3 * width), nn.Linear(width, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v))


class Stack(nn.Module):
    def __init__(self, blocks, times):
        super().__init__()
        self.blocks, self.times = nn.ModuleList(blocks), times

    def forward(self, x):
        for _ in range(self.times):
            for block in self.blocks:
                x = block(x)
        return x


def grows(tmp_path, stacks, out):
    paths = []
    for n, stack in enumerate(stacks):
        paths.append(tmp_path / f"{n}.pt2")
        torch.export.save(torch.export.export(stack.eval(), (torch.rand(1, 4, 8),)), str(paths[-1]))
    check_growth(paths, tmp_path / out)


def test_c4_equal_attention_blocks(tmp_path):
    """One block n times, with the same weights each time: what is equal is not compared with everything that is."""
    torch.manual_seed(1)
    grows(tmp_path, [Stack([Attention(8)], n) for n in (8, 16, 32)], "out.circle")
    x = torch.rand(1, 4, 8)
    stack = Stack([Attention(8)], 8).eval()
    torch.export.save(torch.export.export(stack, (x,)), str(tmp_path / "m.pt2"))
    subprocess.run([CHUTE, "convert", tmp_path / "m.pt2", "-o", tmp_path / "m.circle", "-q"], check=True)
    got, why = oracles.apart(oracles.run_reference, tmp_path / "m.circle", [x.numpy()])
    assert not why and not oracles.difference(got, [stack(x).detach().numpy()], 1e-5, 1e-5)[1]


def test_c4_lookalike_blocks_of_which_no_two_are_equal(tmp_path):
    torch.manual_seed(2)
    grows(tmp_path, [Stack([Attention(8) for _ in range(n)], 1) for n in (8, 16, 32)], "out.circle")


IF = """graph @m(%p: bool[], %v0: f32[4]) -> ("y": f32[4]) {{
{body}
  return %v{n}
}}
"""
BRANCHES = """  %v{next} = circle.if(%p, [%v{i}]) do (%a: f32[4]) {{
    %c = core.constant dense<{k}.0> : f32[]
    %n = circle.mul(%a, %c)
    return %n
  }} do (%a: f32[4]) {{
    %n = circle.exp(%a)
    return %n
  }} : f32[4]"""


def branches(path, n, shared):
    """n operators with two subgraphs each, with numbers of their own or with the same ones (which are stored once)."""
    body = "\n".join(BRANCHES.format(i=i, next=i + 1, k=0 if shared else i) for i in range(n))
    path.write_text(IF.format(body=body, n=n))
    subprocess.run([CHUTE, "optimize", path, "-O0", "-o", path.with_suffix(".circle"), "-q"], check=True)
    return path.with_suffix(".circle")


@pytest.mark.parametrize("shared", (False, True), ids=("c7_branches", "c7_lookalike_equal_branches"))
def test_c7_many_subgraphs_are_verified_once(tmp_path, shared):
    seen = [work(branches(tmp_path / f"{n}.ir", n, shared)) for n in (20, 40, 80)]
    for counter in ("tensors", "operators", "operands"):
        first, second, third = (s[counter] for s in seen)
        assert third - second <= 2.05 * (second - first) + 16, (counter, [s[counter] for s in seen])
        assert third > second


def weights(tmp_path, name, matrix, form):
    """The file of one layer with this matrix."""
    layer = nn.Linear(matrix.shape[1], matrix.shape[0], bias=False).eval()
    layer.weight.data = torch.from_numpy(matrix)
    torch.export.save(torch.export.export(layer, (torch.rand(1, matrix.shape[1]),)), str(tmp_path / f"{name}.pt2"))
    out = tmp_path / f"{name}.{form}"
    done = subprocess.run([CHUTE, "convert", tmp_path / f"{name}.pt2", "-o", out, "--stats", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    passes, _ = json.JSONDecoder().raw_decode(done.stderr[done.stderr.index("["):])
    return out.read_bytes(), sum(p["bytes_copied"] for p in passes)


@pytest.mark.parametrize("form", ("circle", "pte"))
def test_c9_weights_are_written_as_they_are(tmp_path, form):
    """A file of 16 MiB of weights is that of 64 KiB and the difference: bytes, no text, nothing twice."""
    random = np.random.default_rng(3)
    small, large = (random.standard_normal((n, n)).astype(np.float32) for n in (128, 2048))
    few, _ = weights(tmp_path, "small", small, form)
    many, copied = weights(tmp_path, "large", large, form)
    assert 0 <= len(many) - len(few) - (large.nbytes - small.nbytes) < 1024
    assert any(m.tobytes() in many for m in (large, large.T))
    assert copied <= large.nbytes * (form == "pte")  # TOSA's MATMUL takes the transpose


@pytest.mark.parametrize("form", ("circle", "pte"))
def test_c9_lookalike_weights_that_look_like_text(tmp_path, form):
    """Quotes, braces, newlines and the marks of file formats are numbers here."""
    text = (b'{"delegates": ["\\n\\u0000", 1e9]}\r\n\0\xff\xfe TFL3 CIR0 ET12 eh00 PK\3\4 ' * 80)[:4096]
    matrix = np.frombuffer(text, np.uint8).astype(np.float32).reshape(64, 64)
    data, _ = weights(tmp_path, "text", matrix, form)
    assert any(m.tobytes() in data for m in (matrix, matrix.T))
    if form == "circle":
        x = np.ones((1, 64), np.float32)
        got, why = oracles.apart(oracles.run_reference, tmp_path / "text.circle", [x])
        assert not why and not oracles.difference(got, [x @ matrix.T], 1e-5, 1e-5)[1]
