"""Five networks at their real sizes as TOSA floats: Arm's reference model gives PyTorch's numbers. test_tosa_models.py
has them quantized.
"""
import numpy as np
import oracles
import pytest
import torch
from conftest import chute
from full_size_models import MODELS

pytest.importorskip("tosa_reference_model")


@pytest.mark.parametrize("name", MODELS)
def test_floats(name, tmp_path):
    torch.manual_seed(0)
    build, example = MODELS[name]
    module, inputs = build().eval(), example()
    torch.export.save(torch.export.export(module, inputs), str(tmp_path / "m.pt2"))
    chute("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.tosa", "--profile", "fp")
    (tmp_path / "m.pt2").unlink()
    with torch.no_grad():
        want = module(*inputs)
    want = [w.numpy() for w in (want if isinstance(want, tuple) else (want,))]
    given = [x.numpy().astype(np.int32) if x.dtype == torch.int64 else x.numpy() for x in inputs]
    got, why = oracles.apart(oracles.run_tosa, tmp_path / "m.tosa", given, seconds=580)
    assert got is not None, why
    _, wrong = oracles.difference(got, want, 1e-3, 1e-3)
    assert not wrong, wrong
