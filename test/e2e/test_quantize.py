"""`chute quantize`: what it writes, checked in tico's interpreter and in onert against PyTorch."""
import json
import pathlib

import numpy as np
import pytest
import torch
from conftest import ROOT, chute
from oracles import CircleReferenceRuntime, apart, load, run_onert
from tico.circle.runtime.kernels import ExecutionMode
from torch import nn

EXAMPLES = ROOT / "examples"


def sqnr(want, got):
    """Signal to quantization noise, in dB."""
    want, got = want.astype(np.float64), got.astype(np.float64).reshape(want.shape)
    return 10 * np.log10((want**2).sum() / max(((want - got) ** 2).sum(), 1e-30))


def run_dequantized(path, values):
    runtime = CircleReferenceRuntime(pathlib.Path(path).read_bytes())
    return [np.asarray(o) for o in runtime.run(values, mode=ExecutionMode.FAKE_QUANTIZE).outputs]


def quantize(model, data, out, *more, expect=0):
    return chute("quantize", model, "--calibrate", data, "-o", out, *more, expect=expect)


def run(path, inputs, tmp_path):
    chute("run", path, "-i", inputs, "-o", tmp_path / "got.npz")
    return load(tmp_path / "got.npz", "out")


@pytest.mark.parametrize("name, scheme, weights, least, largest", [
    ("mobilenet_small", "int8", "nearest", 20, 0.33),
    ("mobilenet_small", "uint8", "nearest", 20, 0.36),
    ("mobilenet_small", "int16x8", "nearest", 30, 0.36),
    ("mobilenet_small", "w8a16", "nearest", 30, 0.36),
    ("decoder_small", "int8", "auto", 20, 0.29),
    ("decoder_small", "w8a16", "auto", 35, 0.33),
    ("mobilenet_small", "w4a16", "gptq", 15, 0.25),
    ("decoder_small", "int16x8", "nearest", 29, 0.33),
    ("decoder_small", "w8a16", "nearest", 30, 0.33),
])
def test_examples(name, scheme, weights, least, largest, tmp_path):
    folder, out = EXAMPLES / name, tmp_path / "q.circle"
    inputs = load(folder / "inputs.npz", "in")
    want = load(folder / "expected.npz", "out")[0]
    quantize(folder / "model.pt2", folder / "inputs.npz", out, "--scheme", scheme, "--weights", weights,
             "--report", tmp_path / "report.json")
    chute("verify", out)
    chute("convert", folder / "model.pt2", "-o", tmp_path / "float.circle")
    got = run(out, folder / "inputs.npz", tmp_path)[0]
    assert got.dtype == want.dtype  # the interface is the float model's
    assert sqnr(want, got) >= least
    assert out.stat().st_size <= largest * (tmp_path / "float.circle").stat().st_size

    theirs, why = apart(run_dequantized, out, inputs)
    assert why is None, why
    assert sqnr(want, theirs[0]) >= least - 1
    # One tie that rounds the other way changes what follows: by steps of 8 bits, or of 16.
    assert sqnr(theirs[0], got) > (25 if scheme.endswith("int8") else 65)

    report = json.loads((tmp_path / "report.json").read_text())
    assert report["scheme"] == scheme and report["samples"] == 1 and report["float"] == []
    assert report["bytes"] == out.stat().st_size
    assert report["float_bytes"] == (tmp_path / "float.circle").stat().st_size
    assert abs(report["outputs"][0]["sqnr_db"] - sqnr(want, got)) < 0.5
    assert all(l["scale"] > 0 for l in report["layers"])
    assert (report["adjusted"] > 0) == (weights != "nearest")
    assert {l["type"] for l in report["layers"]} == {{"int8": "i8", "uint8": "u8"}.get(scheme, "i16")}


def test_a_circle_file_gives_the_same(tmp_path):
    folder = EXAMPLES / "mobilenet_small"
    chute("convert", folder / "model.pt2", "-o", tmp_path / "float.circle")
    quantize(folder / "model.pt2", folder / "inputs.npz", tmp_path / "a.circle")
    quantize(tmp_path / "float.circle", folder / "inputs.npz", tmp_path / "b.circle", "--threads", "1")
    a, b = (run(tmp_path / f"{x}.circle", folder / "inputs.npz", tmp_path)[0] for x in "ab")
    assert np.array_equal(a, b)


def test_same_bytes_for_any_number_of_threads(tmp_path):
    folder, written = EXAMPLES / "decoder_small", []
    for threads in ("1", "2", "2"):
        quantize(folder / "model.pt2", folder / "inputs.npz", tmp_path / "q.circle", "--scheme", "w8a16", "--threads", threads)
        written.append((tmp_path / "q.circle").read_bytes())
    assert written[0] == written[1] == written[2]


def export(module, inputs, folder):
    module = module.eval()
    torch.export.save(torch.export.export(module, tuple(inputs)), str(folder / "model.pt2"))
    np.savez(folder / "inputs.npz", **{f"in{i}": x.numpy() for i, x in enumerate(inputs)})
    with torch.no_grad():
        want = module(*inputs)
    return folder / "model.pt2", folder / "inputs.npz", want.numpy()


class Convolutions(nn.Module):
    """Only what onert computes in 8 bits."""

    def __init__(self):
        super().__init__()
        self.first, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.second, self.head = nn.Conv2d(8, 8, 1), nn.Linear(8 * 16, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = self.second(nn.functional.relu6(self.deep(x))) + x
        return self.head(nn.functional.max_pool2d(x, 2).flatten(1))


@pytest.mark.parametrize("granularity", ["channel", "layer"])
def test_onert_computes_the_8_bit_file(granularity, tmp_path):
    torch.manual_seed(5)
    x = torch.randn(1, 3, 16, 16)
    model, data, want = export(Convolutions(), [x], tmp_path)
    quantize(model, data, tmp_path / "q.circle", "--scheme", "uint8", "--granularity", granularity)
    ours = run(tmp_path / "q.circle", data, tmp_path)[0]
    assert sqnr(want, ours) > 36
    theirs, why = apart(run_onert, tmp_path / "q.circle", [x.numpy()])
    assert why is None, why
    assert sqnr(want, theirs[0]) > 36
    step = (want.max() - want.min()) / 255
    assert np.abs(theirs[0].reshape(ours.shape) - ours).max() <= 1.01 * step


class Masked(nn.Module):
    """Attention whose mask is minus infinity, and steps that must not be quantized."""

    def __init__(self):
        super().__init__()
        self.qk = nn.Linear(16, 32)

    def forward(self, x):
        q, k = self.qk(x).chunk(2, -1)
        mask = torch.full((8, 8), float("-inf")).triu(1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 4 + mask, -1)
        return torch.where(weights > 0.2, torch.round(weights * 8), weights @ x[..., :8])


@pytest.mark.parametrize("scheme", ["int8", "w8a16"])
def test_masks_do_not_stretch_ranges_and_steps_stay_float(scheme, tmp_path):
    torch.manual_seed(7)
    model, data, _ = export(Masked(), [torch.randn(1, 8, 16)], tmp_path)
    quantize(model, data, tmp_path / "q.circle", "--scheme", scheme, "--report", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    softmax = next(l for l in report["layers"] if l["op"] == "circle.softmax")
    assert softmax["sqnr_db"] > 25
    reasons = {k["op"]: k["reason"] for k in report["float"]}
    assert "exact" in reasons["circle.greater"] and "step" in reasons["circle.round"]
    theirs, why = apart(run_dequantized, tmp_path / "q.circle", load(data, "in"))
    assert why is None, why
    ours = run(tmp_path / "q.circle", data, tmp_path)[0]
    assert np.abs(theirs[0] - ours).max() < 0.05


def test_options(tmp_path):
    torch.manual_seed(3)
    x = torch.randn(4, 1, 3, 16, 16)
    model, data, want = export(Convolutions(), [x[0]], tmp_path)
    np.savez(tmp_path / "four.npz", in0=x.numpy())  # four samples along a dim of their own
    text = quantize(model, tmp_path / "four.npz", tmp_path / "q.circle", "--keep-float", "FULLY_CONNECTED,second",
                    "--observer", "percentile", "--percentile", "99.9", "--report", tmp_path / "r.json").stdout
    assert "4 samples" in text and "--keep-float FULLY_CONNECTED" in text
    report = json.loads((tmp_path / "r.json").read_text())
    assert {k["op"] for k in report["float"]} == {"circle.fully_connected", "circle.conv_2d"}
    assert report["observer"] == "percentile"
    assert sqnr(want, run(tmp_path / "q.circle", data, tmp_path)[0]) > 20

    quantize(model, data, tmp_path / "io.circle", "--io-dtype", "quantized")
    stored = run(tmp_path / "io.circle", data, tmp_path)[0]
    assert stored.dtype == np.int8
    runtime = CircleReferenceRuntime((tmp_path / "io.circle").read_bytes())
    (scale,), (zero,) = (getattr(runtime.output_tensors[0].quantization, k) for k in ("scale", "zero_point"))
    assert sqnr(want, (stored.astype(np.float32) - zero) * scale) > 30


def test_refusals_say_what_to_do(tmp_path):
    torch.manual_seed(3)
    model, data, _ = export(Convolutions(), [torch.randn(1, 3, 16, 16)], tmp_path)
    out = tmp_path / "q.circle"
    assert "--calibrate" in chute("quantize", model, "-o", out, expect=2).stderr
    np.savez(tmp_path / "bad.npz", in0=np.full((1, 3, 16, 16), np.nan, np.float32))
    found = quantize(model, tmp_path / "bad.npz", out, expect=4).stderr
    assert "quantize.not_finite" in found and "x (input)" in found
    np.savez(tmp_path / "other.npz", wrong=np.zeros((1, 3, 16, 16), np.float32))
    assert "quantize.sample.missing" in quantize(model, tmp_path / "other.npz", out, expect=2).stderr
    np.savez(tmp_path / "flat.npz", in0=np.zeros((3, 16), np.float32))
    assert "quantize.sample.shape" in quantize(model, tmp_path / "flat.npz", out, expect=2).stderr
    assert "quantize.nothing" in quantize(model, data, out, "--keep-float", "*", expect=3).stderr
    batch = torch.export.Dim("batch", min=1, max=4)
    program = torch.export.export(nn.Linear(4, 3), (torch.randn(2, 4),), dynamic_shapes=({0: batch},))
    torch.export.save(program, str(tmp_path / "dynamic.pt2"))
    np.savez(tmp_path / "two.npz", in0=np.ones((2, 4), np.float32))
    assert "dynamic" in quantize(tmp_path / "dynamic.pt2", tmp_path / "two.npz", tmp_path / "dynamic.circle").stdout
    refused = quantize(tmp_path / "dynamic.pt2", tmp_path / "two.npz", out, "--weights", "gptq", expect=3).stderr
    assert refused.count("error[") == 1 and "quantize.gptq" in refused
    quantize(model, data, tmp_path / "once.circle")
    assert "quantize.already" in quantize(tmp_path / "once.circle", data, out, expect=2).stderr
    assert "quantize.percentile" in quantize(model, data, out, "--percentile", "7", expect=2).stderr
    assert not out.exists()
