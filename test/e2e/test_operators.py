"""A random program of every operator that chute lowers (`make generated`: fifty), and the page that lists them."""
import json
import pathlib
import subprocess
import sys

import operator_check
import operator_programs
import pytest
from conftest import CHUTE, ROOT
from operator_refusals import reason

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_a_program_of_every_operator(part):
    chosen = operator_programs.operators()[part::PARTS]
    verdicts = operator_check.check(chosen, count=1, seed=1, size=100)
    bad = [v for v in verdicts if v.fate == "wrong" or (v.fate == "refused" and reason(v) is None)]
    assert not bad, "\n".join(f"{v.fate}, seed 1: {v.text}: {v.why}" for v in bad)
    assert sum(v.fate == "agreed" for v in verdicts) > 2 / 3 * len(chosen)


def test_draws_vary():
    """Ranks 0 to 5, every element type, empty shapes, strides, negative dims, arguments by name, left out and as inputs."""
    drawn = [p for name in ("aten.sum.dim_IntList", "aten.add.Tensor", "aten.transpose.int", "aten.cat.default", "aten.clamp.default")
             for p in operator_programs.programs(name, 60, 7)]
    tensors = [t for p in drawn for t in p.tensors]
    assert {t.dim() for t in tensors} >= {0, 1, 2, 3, 4, 5}
    assert {t.dtype for t in tensors} == set(operator_programs.SHORT)
    assert any(t.numel() == 0 for t in tensors) and any(not t.is_contiguous() for t in tensors)
    assert any(isinstance(r, int) and r < 0 for p in drawn for r in p.rest)
    assert any("by name" in p.text() for p in drawn) and any("number" in p.text() for p in drawn)
    assert len({len(p.rest) for p in drawn if p.name == "aten.clamp.default"}) > 1


def test_a_seed_draws_the_same_programs_again():
    first, second = (operator_programs.programs("aten.conv2d.default", 5, 3) for _ in range(2))
    assert [p.text() for p in first] == [p.text() for p in second]
    assert all(a.equal(b) for p, q in zip(first, second) for a, b in zip(p.tensors, q.tensors))
    assert [p.text() for p in first] != [p.text() for p in operator_programs.programs("aten.conv2d.default", 5, 4)]


def test_page_of_operators_is_up_to_date(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "docs", CHUTE, "--operators", tmp_path / "operators.md"], check=True)
    assert (tmp_path / "operators.md").read_text() == (ROOT / "docs" / "operators.md").read_text(), "run `make docs`"


def test_no_operator_is_without_a_word():
    """Whatever is not lowered is random, data-dependent, complex, or named in the page's last table."""
    facts = json.loads(subprocess.run([CHUTE, "operators", "--json"], capture_output=True, text=True, check=True).stdout)
    assert len(facts) > 800 and all(f["fate"] for f in facts)
    page = pathlib.Path(ROOT / "docs" / "operators.md").read_text()
    assert all(f"`{f['name']}`" in page for f in facts)
