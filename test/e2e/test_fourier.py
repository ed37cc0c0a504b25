"""Fourier transforms of real tensors whose spectra are read as real numbers, in the runtimes of both targets."""
import numpy as np
import oracles
import pytest
import torch
from conftest import chute
from torch import fft


class Apply(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


SPECTRA = {
    "every_reader": (lambda x: (fft.rfft(x).abs(), torch.view_as_real(fft.rfft(x)), fft.rfft(x).real, fft.rfft(x).imag), (2, 16)),
    "two_dimensions": (lambda x: (fft.rfft2(x).abs(), fft.rfft2(x, norm="ortho").real,
                                  fft.rfft2(x, dim=(1, 2), norm="forward").imag), (2, 8, 6, 5)),
    "many_dimensions": (lambda x: (fft.rfftn(x, dim=(0, 2, 1)).abs(), fft.rfftn(x).imag), (2, 8, 6)),
    "odd": (lambda x: (fft.rfft(x, dim=0).abs(), fft.rfft(x, dim=1, norm="ortho").imag), (7, 9)),
    "one_point": (lambda x: fft.rfft(x).abs(), (1,)),
    "core": (lambda x: (torch.view_as_real(torch.ops.aten._fft_r2c(x, [2, 1], 1, False)),
                        torch.ops.aten._fft_r2c(x, [1], 2, True).abs()), (2, 8, 6)),
    "other_types": (lambda x: (fft.rfft(x.double()).abs(), fft.rfft((x * 10).to(torch.int32)).real), (2, 16)),
}


@pytest.mark.parametrize("target", ("circle", "tosa"))
@pytest.mark.parametrize("name", SPECTRA)
def test_spectrum(name, target, tmp_path):
    if target == "tosa":
        pytest.importorskip("tosa_reference_model")
    function, shape = SPECTRA[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    want = function(x)
    torch.export.save(torch.export.export(Apply(function), (x,)), str(tmp_path / "m.pt2"))
    chute("convert", tmp_path / "m.pt2", "-o", tmp_path / f"m.{target}", *(("--profile", "fp") if target == "tosa" else ()))
    run = oracles.run_tosa if target == "tosa" else oracles.run_reference
    got, why = oracles.apart(run, tmp_path / f"m.{target}", [x.numpy()])
    assert got is not None, why
    want = [w.float().numpy() for w in (want if isinstance(want, tuple) else (want,))]
    _, wrong = oracles.difference([np.asarray(g).reshape(w.shape) for g, w in zip(got, want, strict=True)], want, 1e-4, 1e-4)
    assert not wrong, wrong


def test_what_stays_complex_is_refused(tmp_path):
    for function in (lambda x: fft.irfft(fft.rfft(x)), lambda x: fft.rfft(x, n=8).abs(), lambda x: fft.rfft(x.repeat(1, 200)).abs()):
        torch.export.save(torch.export.export(Apply(function), (torch.rand(2, 16),)), str(tmp_path / "m.pt2"))
        said = chute("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.tosa", "--profile", "fp", expect=3).stderr
        assert "aten.unsupported" in said and "may be read by abs, real, imag and view_as_real" in said, said
