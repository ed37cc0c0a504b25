"""The passes over TOSA that move and merge operators, each on the graphs that make it work hardest, at N, 2N and 4N: work
counters, no clock. What a pass should leave is checked as well, so that doing nothing is no way to pass.
"""
import json
import re
import subprocess

import pytest
from test_scale import CHUTE, COUNTERS, GROWTH, SLACK

SIZES = (64, 128, 256)
LAYOUTS = "tosa-sink-layouts"
RESCALE = ('{scale32 = true, rounding_mode = "SINGLE_ROUND", per_channel = false, input_unsigned = false, '
           'output_unsigned = false}')


def graph(rows, result, kind="f32[2,3]", inputs="%x: f32[2,3]"):
    return "\n".join([f'graph @g({inputs}) -> ("y": {kind}) {{', *(f"  {row}" for row in rows), f"  return {result}", "}"])


def turn(name, operand, kind):
    return f"%{name} = tosa.transpose(%{operand}) {{perms = [1, 0]}} : {kind}"


def down_a_chain(n):
    """One transpose in front of n operators, its inverse behind them."""
    rows = [turn("v0", "x", "f32[3,2]"), *(f"%v{i + 1} = tosa.tanh(%v{i}) : f32[3,2]" for i in range(n))]
    return graph([*rows, turn("y", f"v{n}", "f32[2,3]")], "%y"), {"tosa.transpose": 0}


def region_that_forks(n):
    """Diamonds between two transposes."""
    rows = [turn("v0", "x", "f32[3,2]")]
    for i in range(n):
        rows += [f"%a{i} = tosa.tanh(%v{i}) : f32[3,2]", f"%b{i} = tosa.abs(%v{i}) : f32[3,2]",
                 f"%v{i + 1} = tosa.add(%a{i}, %b{i}) : f32[3,2]"]
    return graph([*rows, turn("y", f"v{n}", "f32[2,3]")], "%y"), {"tosa.transpose": 0}


def many_regions(n):
    """Regions in a row that each have a transpose on either side."""
    rows, last = [], "x"
    for i in range(n):
        rows += [turn(f"t{i}", last, "f32[3,2]"), f"%a{i} = tosa.tanh(%t{i}) : f32[3,2]", turn(f"u{i}", f"a{i}", "f32[2,3]"),
                 f"%v{i} = tosa.sigmoid(%u{i}) : f32[2,3]"]
        last = f"v{i}"
    return graph(rows, f"%{last}"), {"tosa.transpose": 0}


def tree_of_equal_transforms(n):
    """Additions of n transposed values, pairwise: one transpose is left."""
    inputs = [f"%x{i}: f32[2,3]" for i in range(n)]
    rows, level = [turn(f"t{i}", f"x{i}", "f32[3,2]") for i in range(n)], [f"t{i}" for i in range(n)]
    while len(level) > 1:
        pairs = [(level[i], level[i + 1]) for i in range(0, len(level), 2)]
        rows += [f"%s{len(level)}_{i} = tosa.add(%{a}, %{b}) : f32[3,2]" for i, (a, b) in enumerate(pairs)]
        level = [f"s{len(level)}_{i}" for i in range(len(pairs))]
    return graph(rows, f"%{level[0]}", "f32[3,2]", ", ".join(inputs)), {"tosa.transpose": 1}


def forks_that_stay(n):
    """A transposed value with n users that need it as it is: each is asked once, none moves it."""
    rows = ["%s = core.constant dense<[6]> : i64[1]", turn("t", "x", "f32[3,2]")]
    rows += [f"%a{i} = tosa.add(%t, %t) : f32[3,2]\n  %r{i} = tosa.reshape(%a{i}, %s) : f32[6]" for i in range(n)]
    rows += [f"%z{i} = tosa.add(%{'r0' if i == 1 else f'z{i - 1}'}, %r{i}) : f32[6]" for i in range(1, n)]
    return graph(rows, f"%z{n - 1}", "f32[6]"), None


def long_row(n):
    """n transposes and reshapes that nothing cancels, in front of n operators."""
    rows, last = ["%s = core.constant dense<[2, 3]> : i64[2]"], "x"
    for i in range(n):
        rows += [turn(f"t{i}", last, "f32[3,2]"), f"%r{i} = tosa.reshape(%t{i}, %s) : f32[2,3]"]
        last = f"r{i}"
    for i in range(n):
        rows.append(f"%v{i} = tosa.tanh(%{last}) : f32[2,3]")
        last = f"v{i}"
    return graph(rows, f"%{last}"), None


def rows_between_operators(n):
    """Transposes and reshapes that nothing cancels, one behind every operator."""
    rows, last = ["%s = core.constant dense<[2, 3]> : i64[2]"], "x"
    for i in range(n):
        rows += [turn(f"t{i}", last, "f32[3,2]"), f"%a{i} = tosa.tanh(%t{i}) : f32[3,2]",
                 f"%r{i} = tosa.reshape(%a{i}, %s) : f32[2,3]", f"%b{i} = tosa.tanh(%r{i}) : f32[2,3]"]
        last = f"b{i}"
    return graph(rows, f"%{last}"), None


def views_of_views(n):
    rows = ["%a = core.constant dense<[6]> : i64[1]", "%b = core.constant dense<[3, 2]> : i64[2]"]
    for i in range(n):
        rows.append(f"%v{i} = tosa.reshape(%{f'v{i - 1}' if i else 'x'}, %{'a' if i % 2 else 'b'}) : f32[{'6' if i % 2 else '3,2'}]")
    return graph(rows, f"%v{n - 1}", "f32[6]"), {"tosa.reshape": 1}


def permutes_of_permutes(n):
    rows = []
    for i in range(n):
        rows.append(turn(f"v{i}", f"v{i - 1}" if i else "x", "f32[2,3]" if i % 2 else "f32[3,2]"))
    return graph(rows, f"%v{n - 1}"), {"tosa.transpose": 0}


def duplicate_users(n):
    """n equal users of one value, each with a user that becomes equal then."""
    rows = [row for i in range(n) for row in (f"%a{i} = tosa.tanh(%x) : f32[2,3]", f"%b{i} = tosa.abs(%a{i}) : f32[2,3]")]
    rows += [f"%s{i} = tosa.add(%{f's{i - 1}' if i else 'x'}, %b{i}) : f32[2,3]" for i in range(n)]
    return graph(rows, f"%s{n - 1}"), {"tosa.tanh": 1, "tosa.abs": 1}


def different_users(n):
    """n users of one value that differ: none is compared with all others."""
    rows = [f"%a{i} = tosa.clamp(%x) {{min_val = 0.0, max_val = {i + 1}.0}} : f32[2,3]" for i in range(n)]
    rows += [f"%s{i} = tosa.add(%{f's{i - 1}' if i else 'x'}, %a{i}) : f32[2,3]" for i in range(n)]
    return graph(rows, f"%s{n - 1}"), {"tosa.clamp": n}


def shared_shapes(n):
    """n reshapes whose shapes are constants of their own with equal content."""
    rows = []
    for i in range(n):
        rows += [f"%c{i} = core.constant dense<[3, 2]> : i64[2]", f"%r{i} = tosa.reshape(%x, %c{i}) : f32[3,2]",
                 f"%s{i} = tosa.add(%{f's{i - 1}' if i else 'r0'}, %r{i}) : f32[3,2]"]
    return graph(rows, f"%s{n - 1}", "f32[3,2]"), {"core.constant": 1, "tosa.reshape": 1}


def rescales(n):
    """Pairs of rescales, the first of each by one to 32 bits."""
    rows = ["%m = core.constant dense<[1073741824]> : i32[1]", "%s = core.constant dense<[30]> : i8[1]",
            "%h = core.constant dense<[31]> : i8[1]", "%a = core.constant dense<[3]> : i8[1]",
            "%z = core.constant dense<[0]> : i32[1]"]
    last = "x"
    for i in range(n):
        rows += [f"%w{i} = tosa.rescale(%{last}, %m, %s, %a, %z) {RESCALE} : i32[4]",
                 f"%v{i} = tosa.rescale(%w{i}, %m, %h, %z, %a) {RESCALE} : i8[4]"]
        last = f"v{i}"
    return graph(rows, f"%{last}", "i8[4]", "%x: i8[4]"), {"tosa.rescale": n}


def constants(n):
    """A chain of constant arithmetic beside the one operator that has an input."""
    rows = ["%c0 = core.constant dense<[1.0]> : f32[1]"]
    rows += [f"%c{i + 1} = aten.add.Tensor(%c{i}, %c0) {{alpha = 1}} : f32[1]" for i in range(n)]
    return graph([*rows, f"%y = aten.add.Tensor(%x, %c{n}) {{alpha = 1}} : f32[1]"], "%y", "f32[1]", "%x: f32[1]"), {"aten.add.Tensor": 1}


CASES = [(LAYOUTS, f) for f in (down_a_chain, region_that_forks, many_regions, tree_of_equal_transforms, forks_that_stay,
                                long_row, rows_between_operators)]
CASES += [("tosa-simplify", f) for f in (views_of_views, permutes_of_permutes, rescales)]
CASES += [("cse", f) for f in (duplicate_users, different_users, shared_shapes)]
CASES += [("fold-constants", constants)]


def work(passes, text):
    """Sums of the work counters over the passes, and how often each operator is left."""
    done = subprocess.run([CHUTE, "opt", "-", "-p", f"{passes},dce", "--stats", "--json"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    counts = {}
    for name in re.findall(r" = ([\w.]+)", done.stdout):
        counts[name] = counts.get(name, 0) + 1
    rows, _ = json.JSONDecoder().raw_decode(done.stderr[done.stderr.index("["):])
    return {c: sum(row[c] for row in rows) for c in COUNTERS}, counts


@pytest.mark.parametrize("passes,make", CASES, ids=[f"{p}-{f.__name__}" for p, f in CASES])
def test_work_grows_linearly(passes, make):
    seen = []
    for n in SIZES:
        text, left = make(n)
        counters, counts = work(passes, text)
        assert all(counts.get(name, 0) == number for name, number in (left or {}).items()), counts
        seen.append(counters)
    steep = {c: [s[c] for s in seen] for c in COUNTERS
             if any(b[c] > GROWTH * a[c] + SLACK for a, b in zip(seen, seen[1:]))}
    assert not steep and sum(seen[0].values()) > 0, steep
