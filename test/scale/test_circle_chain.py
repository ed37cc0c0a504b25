"""`chute optimize` on long Circle files: work follows size, clean files stay, redundant ones lose what TICO takes away.

The files are those of `make bench`: chains of attention-like blocks, clean and with redundancies in every block, and the
quantized attention stack.
"""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "bench"
CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))
BLOCKS = (12, 24, 48)
PER_BLOCK = {"clean": 20, "redundant": 29, "attention": 100}  # operators, so that files hold whole blocks
COUNTERS = ("ops_visited", "patterns_tried", "rewrites", "enqueues", "bytes_hashed", "bytes_copied")
sys.path.insert(0, str(ROOT / "test" / "e2e"))

import oracles  # noqa: E402
from quantized_reference import Reference  # noqa: E402
from test_optimize_rules import run_dequantized  # noqa: E402

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="there is no ../shared beside this checkout")


def run(*arguments):
    done = subprocess.run([CHUTE, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def optimize(source, out, level):
    """(operators before, after, {(position, pass, counter): value})"""
    done = run("optimize", source, "-o", out, level, "--json", "--stats")
    told = json.loads(done.stdout)
    seen = {(i, p["pass"], c): p[c] for i, p in enumerate(json.loads(done.stderr)) for c in COUNTERS}
    return told["operators_before"], told["operators_after"], seen


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chains")

    def chain(kind, size, quant="int16"):
        path = folder / f"{kind}_{quant}_{size}.circle"
        if not path.exists():
            more = ["--dirt", "1", "--no-share"] if kind == "redundant" else []
            subprocess.run([sys.executable, SHARED / "make_circle_chain.py", "--ops", str(size), "--quant", quant, *more, "-o", path],
                           check=True, capture_output=True)
        return path

    def attention(blocks):
        path = folder / f"attention_{blocks}.circle"
        if not path.exists():
            subprocess.run([sys.executable, SHARED / "tile_pt2.py", SHARED / "block_fq16.pt2", str(blocks), folder / "a.pt2"],
                           check=True, capture_output=True)
            run("convert", folder / "a.pt2", "-o", path, "-q")
        return path
    return lambda kind, size, *more: attention(size // 100) if kind == "attention" else chain(kind, size, *more)


@pytest.mark.parametrize("level", ("-O1", "-O2"))
@pytest.mark.parametrize("kind", ("clean", "redundant", "attention"))
def test_counters_grow_linearly(files, tmp_path, kind, level):
    seen = [optimize(files(kind, n * PER_BLOCK[kind]), tmp_path / "out.circle", level)[2] for n in BLOCKS]
    for key in seen[0]:
        for before, after in zip(seen, seen[1:]):
            assert after[key] <= 2.05 * before[key] + 64, (kind, level, key, [s[key] for s in seen])


@pytest.mark.parametrize("level", ("-O1", "-O2"))
def test_clean_files_stay(files, tmp_path, level):
    before, after, seen = optimize(files("clean", 500), tmp_path / "out.circle", level)
    assert before == after == 500
    # -O2 may put a transpose behind its neighbour and operators in an order that takes less memory.
    assert level == "-O2" or not any(n for (_, _, counter), n in seen.items() if counter == "rewrites")


@pytest.mark.parametrize("quant", ("float32", "int16"))
def test_redundant_files_lose_what_tico_takes_away(files, tmp_path, quant):
    from tico.circle.cli.main import main as tico_circle
    source = files("redundant", 250, quant)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert tico_circle(["optimize", str(source), "-o", str(tmp_path / "tico.circle")]) == 0
    theirs = oracles.count_operators(tmp_path / "tico.circle")
    x = np.random.default_rng(0)
    values = [x.standard_normal(s).astype(t) if t == np.float32 else x.integers(-90, 90, s).astype(t)
              for _, t, s in oracles.circle_inputs(source)]
    for level in ("-O1", "-O2"):
        out = tmp_path / "out.circle"
        before, after, _ = optimize(source, out, level)
        assert after <= theirs < before
        run("verify", out)
        ran = 0
        for runtime in (oracles.run_reference, oracles.run_onert):
            want, refused = oracles.apart(runtime, str(source), values)
            if refused:
                continue  # what the runtime can not do before says nothing
            got, refused = oracles.apart(runtime, str(out), values)
            assert not refused, (runtime.__name__, refused)
            ran += 1
            if quant == "float32":
                assert not oracles.difference(got, want, 2e-5, 2e-6)[1], runtime.__name__
            else:
                # A sum of two equal products is one product of twice the weight: one rounding less.
                assert all(np.abs(g.astype(int) - w.astype(int)).max() <= 1 for g, w in zip(got, want)), runtime.__name__
        assert ran or quant != "float32"  # neither runtime has the integer arithmetic: the next test


@pytest.mark.parametrize("quant", ("int16", "uint8"))
@pytest.mark.parametrize("blocks", (1, 2, 8))
def test_redundant_quantized_files_keep_every_step(files, tmp_path, quant, blocks):
    """Before and after, in NumPy from the operators' definitions (quantized_reference.py) and in tico's interpreter on the
    numbers that stored ones stand for: no output is a step away. (Whole blocks: behind the LOGISTICs that fill others up all
    inputs look alike.)"""
    source = files("redundant", PER_BLOCK["redundant"] * blocks, quant)
    before = Reference(source)
    shape, kind = before.graph.tensors[before.graph.inputs[0]].shape, {"int16": np.int16, "uint8": np.uint8}[quant]
    values = [np.random.default_rng(blocks).integers(*{"int16": (-90, 90), "uint8": (38, 218)}[quant], shape).astype(kind)]
    want = before.run(values)
    assert len(np.unique(want[0])) > 4
    in_tico, refused = oracles.apart(run_dequantized, source, values)
    assert not refused
    if quant == "uint8":  # of int16's steps float32, in which the interpreter computes, misses some
        assert np.abs(before.stored(before.graph.outputs[0], in_tico[0]).astype(int) - want[0]).max() <= 1
    for level in ("-O1", "-O2"):
        out = tmp_path / f"{level}.circle"
        optimize(source, out, level)
        after = Reference(out)
        assert len(after.graph.operators) <= 21 * blocks
        assert all(np.array_equal(g, w) for g, w in zip(after.run(values), want, strict=True))
        got, refused = oracles.apart(run_dequantized, out, values)
        assert not refused and all(np.array_equal(g, w) for g, w in zip(got, in_tico, strict=True))


def test_the_quantized_reference_sees_one_wrong_step(files, tmp_path):
    """A weight that is off by a few steps: the comparison above is not blind."""
    source = files("redundant", PER_BLOCK["redundant"], "int16")
    values = [np.random.default_rng(1).integers(-90, 90, (4, 8)).astype(np.int16)]
    want = Reference(source).run(values)[0]
    for number in range(2):
        changed = Reference(source)
        tensor = [t for t in changed.graph.tensors if t.name in (b"blk0.o.weight", b"blk0.k.weight")][number]
        data = np.array(changed.model.buffers[tensor.buffer].data, np.uint8)
        data[3] ^= 0x10
        changed.model.buffers[tensor.buffer].data = data
        assert not np.array_equal(changed.run(values)[0], want)
