"""Operators whose TOSA form once gave other numbers than PyTorch or a file that TOSA's limits refuse, as random programs
(operator_programs_tosa.py; its own main tries every operator). Powers have bases and exponents of both signs, indices repeat.
"""
import os

import pytest
import torch
from conftest import chute

pytest.importorskip("tosa_reference_model")
import operator_programs_tosa  # noqa: E402

GROUPS = {
    "powers": ("pow.Scalar", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow_.Tensor", "float_power.Tensor_Tensor",
               "linalg_vector_norm.default"),
    "repeated indices": ("index_fill.int_Scalar", "index_fill.int_Tensor", "index_fill_.int_Tensor", "take.default"),
    "bool and narrow orders": ("argsort.stable", "kthvalue.default", "nanmedian.default", "max_pool3d_with_indices.default"),
    "many dimensions": ("kron.default", "pixel_shuffle.default", "pixel_unshuffle.default"),
    "weight norm": ("_weight_norm.default", "_upsample_bilinear2d_aa.default"),
}


@pytest.mark.parametrize("group", GROUPS)
def test_programs(group, monkeypatch):
    monkeypatch.setitem(os.environ, "PATH", "")
    check = operator_programs_tosa.run([f"aten.{name}" for name in GROUPS[group]], 8, 0)
    assert not check.wrong, [(member.text(), why) for member, why in check.wrong]
    assert len(check.agreed) >= 2 * len(check.refused)


class Seven(torch.nn.Module):
    def forward(self, x):
        return x.view(2, 2, 2, 2, 2, 2, 2).sum(3).flatten()


def test_seven_dimensions_are_refused(tmp_path):
    torch.export.save(torch.export.export(Seven(), (torch.rand(128),)), str(tmp_path / "m.pt2"))
    said = chute("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.tosa", "--profile", "fp", expect=3).stderr
    assert "error[tosa.level]" in said and "MAX_RANK: rank 7 is above 6" in said
