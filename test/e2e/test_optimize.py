"""`chute optimize`: levels, streams, what is reported, and that nothing changes but the number of operators."""
import json

import pytest
from conftest import chute
from oracles import count_operators

BLOCK = """
  %v{i}_e = circle.expand_dims(%v{i}, %zero) : f32[1,4,8]
  %v{i}_s = circle.squeeze(%v{i}_e) {{squeeze_dims = [0]}} : f32[4,8]
  %v{i}_w = core.constant dense<{w}> : f32[8,8]
  %v{i}_a = circle.fully_connected(%v{i}_s, %v{i}_w, none) {{keep_num_dims = true}} : f32[4,8]
  %v{i}_b = circle.fully_connected(%v{i}_s, %v{i}_w, none) {{keep_num_dims = true}} : f32[4,8]
  %v{i}_x = circle.exp(%v{i}_b) : f32[4,8]
  %v{j} = circle.add(%v{i}_a, %v{i}_b) : f32[4,8]
"""


def chain(path, blocks):
    """Blocks with two views that cancel, a product computed twice and an operator that nothing uses."""
    rows = ["graph @chain(%v0: f32[4,8]) -> (\"y\": f32[4,8]) {", "  %zero = core.constant dense<[0]> : i32[1]"]
    for i in range(blocks):
        w = [[((i + r * c) % 7 - 3) / 8 for c in range(8)] for r in range(8)]
        rows.append(BLOCK.format(i=i, j=i + 1, w=w))
    path.write_text("\n".join(rows) + f"\n  return %v{blocks}\n}}\n")
    return path


def optimize(source, out, *more):
    done = chute("optimize", source, "-o", out, "--json", *more)
    return json.loads(done.stdout), done


def test_levels(tmp_path):
    source = chain(tmp_path / "chain.ir", 10)
    # -O0 drops what nothing uses, nothing else.
    report, _ = optimize(source, tmp_path / "o0.circle", "-O0")
    assert (report["operators_before"], report["operators_after"]) == (60, 50)
    for level in ("-O1", "-O2"):
        report, _ = optimize(source, tmp_path / "out.circle", level)
        assert report["operators_after"] == count_operators(tmp_path / "out.circle") <= 20
        chute("verify", tmp_path / "out.circle", "--warnings-as-errors")


def test_the_result_is_a_fixed_point(tmp_path):
    optimize(chain(tmp_path / "chain.ir", 5), tmp_path / "one.circle")
    optimize(tmp_path / "one.circle", tmp_path / "two.circle")
    assert (tmp_path / "one.circle").read_bytes() == (tmp_path / "two.circle").read_bytes()


def test_streams(tmp_path):
    import subprocess
    from conftest import CHUTE
    optimize(chain(tmp_path / "chain.ir", 3), tmp_path / "raw.circle", "-O0")
    optimize(tmp_path / "raw.circle", tmp_path / "file.circle")
    piped = subprocess.run([CHUTE, "optimize", "-", "-o", "-"], input=(tmp_path / "raw.circle").read_bytes(),
                           capture_output=True, check=True)
    assert piped.stdout == (tmp_path / "file.circle").read_bytes()


def test_stats_name_rules_and_rejections(tmp_path):
    source = chain(tmp_path / "chain.ir", 3)
    _, done = optimize(source, tmp_path / "out.circle", "--stats")
    passes = json.loads(done.stderr)
    rules = [r for p in passes for r in p["patterns"]]
    assert any(r["rewrites"] for r in rules) and all({"name", "tried", "rewrites", "rejections"} <= r.keys() for r in rules)
    text = chute("optimize", source, "-o", tmp_path / "out.circle", "--stats").stderr
    assert "rewrites" in text and "cse" in text


@pytest.mark.parametrize("arguments", [("-O3",), ("-O", "fast"), ("-O1", "-p", "cse"), ("-p", "no-such-pass")])
def test_usage_errors(tmp_path, arguments):
    source = chain(tmp_path / "chain.ir", 1)
    assert chute("optimize", source, "-o", tmp_path / "out.circle", *arguments, expect=2).stderr
    assert not (tmp_path / "out.circle").exists()


def test_counters_grow_linearly(tmp_path):
    counters = ("ops_visited", "patterns_tried", "rewrites", "enqueues", "bytes_hashed", "bytes_copied")
    for level in ("-O1", "-O2"):
        seen = []
        for blocks in (50, 100, 200):
            _, done = optimize(chain(tmp_path / "chain.ir", blocks), tmp_path / "out.circle", level, "--stats")
            seen.append({(i, p["pass"], c): p[c] for i, p in enumerate(json.loads(done.stderr)) for c in counters})
        for key in seen[0]:
            for before, after in zip(seen, seen[1:]):
                assert after[key] <= 2.05 * before[key] + 64, (level, key, [s[key] for s in seen])
