"""Two random programs of every operator that chute lowers (`make generated`: fifty), and the page that lists them."""
import json
import pathlib
import subprocess
import sys

import operator_programs
import pytest
from conftest import CHUTE, ROOT

PARTS = 8
# Known to go wrong in some form; `make generated` prints the programs. An entry goes when its operator is mended.
KNOWN = {
    "aten._weight_norm.default", "aten.index_put.default", "aten.put.default", "aten.rsub.Tensor",
    "aten.__or__.Scalar",
    "aten._pdist_forward.default", "aten.arctan.default", "aten.bitwise_and.Scalar",
    "aten.bitwise_right_shift_.Tensor", "aten.erfinv.default",
    "aten.pairwise_distance.default", "aten.tensor_split.indices",
    "aten.triplet_margin_loss.default", "aten.upsample_bicubic2d.default", "aten.upsample_nearest2d.default",
}


@pytest.mark.parametrize("part", range(PARTS))
def test_two_programs_of_every_operator(part):
    chosen = operator_programs.operators()[part::PARTS]
    result = operator_programs.run(chosen, count=2, seed=1, size=100)
    wrong = [(member, why) for member, why in result.wrong if member.name not in KNOWN]
    assert not wrong, "\n".join(f"seed 1 {member.text()}: {why}" for member, why in wrong)
    assert len(result.agreed) > len(chosen)


def test_page_of_operators_is_up_to_date(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "docs", CHUTE, "--operators", tmp_path / "operators.md"], check=True)
    assert (tmp_path / "operators.md").read_text() == (ROOT / "docs" / "operators.md").read_text(), "run `make docs`"


def test_no_operator_is_without_a_word():
    """Whatever is not lowered is random, data-dependent, complex, or named in the page's last table."""
    facts = json.loads(subprocess.run([CHUTE, "operators", "--json"], capture_output=True, text=True, check=True).stdout)
    assert len(facts) > 800 and all(f["fate"] for f in facts)
    page = pathlib.Path(ROOT / "docs" / "operators.md").read_text()
    assert all(f"`{f['name']}`" in page for f in facts)
