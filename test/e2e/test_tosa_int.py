"""Quantized programs to TOSA integers, executed by Arm's reference model.

Each program rounds with quantize and dequantize operators where PyTorch's quantizer would put them. The file may
differ by two steps of an output's grid: rounding happens in other places.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed  # noqa: F401
from torch import nn
from torch.nn import functional as F

tosa_reference_model = pytest.importorskip("tosa_reference_model")

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))
QD = torch.ops.quantized_decomposed


def grid(x, scale, zero=0, dtype=torch.int8):
    """x rounded to a grid, as two operators."""
    info = torch.iinfo(dtype)
    stored = QD.quantize_per_tensor(x, scale, zero, info.min, info.max, dtype)
    return QD.dequantize_per_tensor(stored, scale, zero, info.min, info.max, dtype)


class Weights(nn.Module):
    """int8 weights with a scale per channel and an int32 bias, as a quantizer freezes them."""

    def __init__(self, shape, in_scale, per_channel=True):
        super().__init__()
        real = torch.randn(shape) * 0.3
        flat = real.reshape(shape[0], -1).abs().amax(1) if per_channel else real.abs().max().reshape(1)
        scale = (flat / 127).float()
        self.register_buffer("scale", scale)
        self.register_buffer("bias_scale", scale * in_scale)
        self.register_buffer("zero", torch.zeros(len(scale), dtype=torch.int32))
        view = [-1] + [1] * (len(shape) - 1)
        self.register_buffer("weight", torch.round(real / scale.view(view)).clamp(-127, 127).to(torch.int8))
        self.register_buffer("bias", torch.randint(-500, 500, (shape[0],), dtype=torch.int32))
        self.per_channel, self.in_scale, self.one = per_channel, in_scale, float(scale[0])

    def forward(self):
        low, high = -2**31 + 1, 2**31 - 1
        if self.per_channel:
            return (QD.dequantize_per_channel(self.weight, self.scale, self.zero, 0, -127, 127, torch.int8),
                    QD.dequantize_per_channel(self.bias, self.bias_scale, self.zero, 0, low, high, torch.int32))
        s = self.one
        return (QD.dequantize_per_tensor(self.weight, s, 0, -127, 127, torch.int8),
                QD.dequantize_per_tensor(self.bias, s * self.in_scale, 0, low, high, torch.int32))


class Layer(nn.Module):
    def __init__(self, shape, apply, per_channel=True, dtype=torch.int8):
        super().__init__()
        self.scale = 0.02 if dtype == torch.int8 else 0.0001
        self.parameters_ = Weights(shape, self.scale, per_channel)
        self.apply_, self.dtype = apply, dtype

    def forward(self, x):
        w, b = self.parameters_()
        out = self.scale * 4
        return grid(self.apply_(grid(x, self.scale, 3 if self.dtype == torch.int8 else 0, self.dtype), w, b), out, 0,
                    self.dtype)


class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def unary(f, in_scale=0.03, out_scale=0.02, zero=5):
    return Apply(lambda x: grid(f(grid(x, in_scale, zero)), out_scale, -7))


X = lambda *shape: torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))

PROGRAMS = {
    "add": (Apply(lambda x, y: grid(grid(x, 0.03, 4) + grid(y, 0.011, -9), 0.04, 1)), (X(2, 3, 4), X(2, 3, 4))),
    "subtract_broadcast": (Apply(lambda x, y: grid(grid(x, 0.03) - grid(y, 0.02), 0.05)), (X(2, 3, 4), X(3, 1))),
    "multiply": (Apply(lambda x, y: grid(grid(x, 0.03, 4) * grid(y, 0.011, -9), 0.04, 1)), (X(5, 6), X(5, 6))),
    "maximum": (Apply(lambda x, y: grid(torch.maximum(grid(x, 0.03), grid(y, 0.02, 3)), 0.03)), (X(5, 6), X(5, 6))),
    "compare": (Apply(lambda x, y: grid(x, 0.03, 2) > grid(y, 0.02)), (X(5, 6), X(5, 6))),
    "choose": (Apply(lambda x, y: grid(torch.where(grid(x, 0.03) > 0, grid(x, 0.03), grid(y, 0.02)), 0.025)),
               (X(5, 6), X(5, 6))),
    "sigmoid": (unary(torch.sigmoid, out_scale=1 / 256), (X(3, 40),)),
    "gelu": (unary(F.gelu), (X(3, 40),)),
    "hardswish": (unary(F.hardswish), (X(3, 40),)),
    "elu": (unary(F.elu), (X(3, 40),)),
    "reciprocal_of_exp": (unary(lambda x: 1 / (1 + torch.exp(x))), (X(3, 40),)),
    "relu_same_grid": (Apply(lambda x: grid(F.relu(grid(x, 0.03, -100)), 0.03, -100)), (X(3, 40),)),
    "tanh_16_bits": (Apply(lambda x: grid(torch.tanh(grid(x, 1e-4, 0, torch.int16)), 1 / 32768, 0, torch.int16)), (X(3, 40),)),
    "add_16_bits": (Apply(lambda x, y: grid(grid(x, 1e-4, 0, torch.int16) + grid(y, 2e-4, 0, torch.int16), 3e-4, 0,
                                            torch.int16)), (X(5, 6), X(5, 6))),
    "concatenate_grids": (Apply(lambda x, y: grid(torch.cat([grid(x, 0.03), grid(y, 0.011, 8)], 1), 0.03)), (X(2, 3), X(2, 5))),
    "move": (Apply(lambda x: grid(F.pad(grid(x, 0.03, 6).permute(0, 2, 1).reshape(2, 12)[:, 2:9], (1, 2)), 0.03, 6)), (X(2, 3, 4),)),
    "change_of_grid": (Apply(lambda x: grid(grid(x, 0.03, 6), 0.011, -3)), (X(2, 3, 4),)),
    "sum": (Apply(lambda x: grid(grid(x, 0.03, 6).sum(1), 0.1, -3)), (X(2, 7, 4),)),
    "mean": (Apply(lambda x: grid(grid(x, 0.03, 6).mean((1, 2)), 0.01, -3)), (X(2, 7, 4),)),
    "largest": (Apply(lambda x: grid(grid(x, 0.03, 6).amax(1), 0.03, 6)), (X(2, 7, 4),)),
    "average_pool": (Apply(lambda x: grid(F.avg_pool2d(grid(x, 0.03, 6), 2), 0.03, 6)), (X(1, 3, 8, 8),)),
    "max_pool": (Apply(lambda x: grid(F.max_pool2d(grid(x, 0.03, 6), 2), 0.03, 6)), (X(1, 3, 8, 8),)),
    "nearest": (Apply(lambda x: grid(F.interpolate(grid(x, 0.03, 6), scale_factor=2), 0.03, 6)), (X(1, 3, 4, 4),)),
    "bilinear": (Apply(lambda x: grid(F.interpolate(grid(x, 0.03, 6), scale_factor=2, mode="bilinear"), 0.03, 6)), (X(1, 3, 4, 4),)),
    "matmul": (Apply(lambda x, y: grid(grid(x, 0.03, 6) @ grid(y, 0.02, -4), 0.1, 1)), (X(2, 5, 6), X(2, 6, 4))),
    "matmul_16_bits": (Apply(lambda x, y: grid(grid(x, 1e-4, 0, torch.int16) @ grid(y, 1e-4, 0, torch.int16), 3e-4, 0,
                                               torch.int16)), (X(2, 5, 6), X(2, 6, 4))),
    "convolution": (Layer((8, 3, 3, 3), lambda x, w, b: F.conv2d(x, w, b, padding=1)), (X(1, 3, 8, 8),)),
    "convolution_relu": (Layer((8, 3, 3, 3), lambda x, w, b: F.relu(F.conv2d(x, w, b, stride=2))), (X(1, 3, 9, 9),)),
    "convolution_per_tensor": (Layer((8, 3, 1, 1), lambda x, w, b: F.conv2d(x, w, b), False), (X(1, 3, 8, 8),)),
    "depthwise": (Layer((6, 1, 3, 3), lambda x, w, b: F.conv2d(x, w, b, groups=3)), (X(1, 3, 8, 8),)),
    "grouped": (Layer((6, 2, 3, 3), lambda x, w, b: F.conv2d(x, w, b, groups=2)), (X(1, 4, 8, 8),)),
    "convolution_1d": (Layer((8, 3, 3), lambda x, w, b: F.conv1d(x, w, b)), (X(1, 3, 20),)),
    "convolution_16_bits": (Layer((8, 3, 3, 3), lambda x, w, b: F.conv2d(x, w, b), dtype=torch.int16), (X(1, 3, 8, 8),)),
    "transposed": (Layer((4, 4, 3, 3), lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1), False), (X(1, 4, 5, 6),)),
    # TOSA has none: zeros between the elements, at the zero point, then CONV3D.
    "transposed_3d": (Layer((4, 4, 2, 3, 2), lambda x, w, b: F.conv_transpose3d(x, w, b, stride=2, padding=(0, 1, 1)), False),
                      (X(1, 4, 3, 3, 4),)),
    "transposed_3d_grouped": (Layer((4, 2, 2, 3, 2), lambda x, w, b: F.conv_transpose3d(
        x, w, b, stride=(1, 2, 3), output_padding=(0, 0, 1), groups=2), False), (X(1, 4, 3, 3, 2),)),
    "linear": (Layer((8, 16), F.linear), (X(2, 5, 16),)),
    "linear_16_bits": (Layer((8, 16), F.linear, dtype=torch.int16), (X(2, 16),)),
}


def int16(f, in_scale, out_scale):
    return Apply(lambda x: grid(f(grid(x, in_scale, 0, torch.int16)), out_scale, 0, torch.int16))


def near_constant(*shape):
    """Rows of very different spread, some of them of equal elements: the epsilon decides there."""
    spread = torch.tensor([0.0, 1e-3, 0.03, 0.3, 3.0]).reshape(-1, 1)
    return torch.cat([X(*shape) * s + 0.4 for s in spread])


class Normalize(nn.Module):
    """Normalizations with weights of both signs, nothing quantized between their steps."""

    def __init__(self, norm, in_scale, out_scale, zero, dtype=torch.int8):
        super().__init__()
        self.norm, self.grids = norm, ((in_scale, zero, dtype), (out_scale, -zero, dtype))
        with torch.no_grad():
            for i, p in enumerate(norm.parameters()):
                p.uniform_(-2, 2, generator=torch.Generator().manual_seed(i))

    def forward(self, x):
        return grid(self.norm(grid(x, *self.grids[0])), *self.grids[1])


PROGRAMS |= {
    "softmax": (Apply(lambda x: grid(torch.softmax(grid(x, 0.03, 4), -1), 1 / 256, -128)), (X(2, 5, 16),)),
    "softmax_steep": (Apply(lambda x: grid(torch.softmax(grid(x, 0.5, 4), -1), 1 / 256, -128)), (X(2, 5, 100) * 20,)),
    "softmax_flat": (Apply(lambda x: grid(torch.softmax(grid(x, 0.0001, 4), 1), 1 / 512, -128)), (X(1, 300, 2) / 100,)),
    "softmax_all_equal": (Apply(lambda x: grid(torch.softmax(grid(x, 0.03), -1), 1 / 256, -128)), (torch.ones(3, 7),)),
    "softmax_middle_axis": (Apply(lambda x: grid(torch.softmax(grid(x, 0.03, 4), 1), 1 / 256, -128)), (X(2, 9, 4),)),
    "softmax_16_bits": (int16(lambda x: torch.softmax(x, -1), 3e-4, 1 / 32768), (X(2, 5, 16) * 3,)),
    "softmax_16_bits_long": (int16(lambda x: torch.softmax(x, -1), 1e-3, 1 / 32768), (X(2, 2000) * 8,)),
    "layer_norm": (Normalize(nn.LayerNorm(16), 0.03, 0.03, 4), (X(2, 5, 16),)),
    "layer_norm_plain": (Normalize(nn.LayerNorm(64, elementwise_affine=False), 0.02, 0.03, -7), (X(3, 64),)),
    "layer_norm_of_any_spread": (Normalize(nn.LayerNorm(32), 0.03, 0.03, 4), (near_constant(2, 32),)),
    "layer_norm_two_axes": (Normalize(nn.LayerNorm((6, 20)), 0.03, 0.04, 0), (X(2, 6, 20),)),
    "layer_norm_long": (Normalize(nn.LayerNorm(4096), 0.03, 0.04, 0), (X(2, 4096),)),
    "layer_norm_16_bits": (Normalize(nn.LayerNorm(48), 2e-4, 3e-4, 0, torch.int16), (X(3, 48),)),
    "layer_norm_16_bits_of_any_spread": (Normalize(nn.LayerNorm(32), 4e-4, 3e-4, 0, torch.int16), (near_constant(2, 32),)),
    "rms_norm": (Normalize(nn.RMSNorm(40), 0.03, 0.04, 3), (X(3, 40),)),
    "bilinear_one_pixel": (Apply(lambda x: grid(F.interpolate(grid(x, 0.03, 6), size=(4, 6), mode="bilinear", align_corners=True),
                                               0.03, 6)), (X(1, 3, 1, 1),)),
    "bilinear_one_row": (Apply(lambda x: grid(F.interpolate(grid(x, 0.03, 6), size=(5, 6), mode="bilinear"), 0.03, 6)),
                         (X(1, 3, 1, 3),)),
    "bilinear_16_bits": (int16(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), 2e-4, 2e-4), (X(1, 3, 4, 4),)),
}


def lower(module, inputs, tmp_path, profile="int"):
    """(file, report, the finished process) of one conversion."""
    model, out, note = tmp_path / "m.pt2", tmp_path / "m.tosa", tmp_path / "m.json"
    torch.export.save(torch.export.export(module, inputs), str(model))
    done = subprocess.run([CHUTE, "convert", model, "-o", out, "--profile", profile, "--report", note],
                          capture_output=True, text=True)
    return out, note, done


def convert(name, tmp_path, profile="int"):
    torch.manual_seed(0)
    module, inputs = PROGRAMS[name]
    module = module.eval()
    return module, inputs, *lower(module, inputs, tmp_path, profile)


def stored_inputs(face, inputs):
    """The inputs as the file takes them."""
    out = []
    for x, side in zip(inputs, face["inputs"]):
        value = x.numpy()
        if side["scale"]:
            limits = np.iinfo(side["dtype"])
            value = np.clip(np.rint(value / side["scale"]) + side["zero_point"], limits.min, limits.max)
        out.append(np.asarray(value, dtype=side["dtype"]).reshape(side["shape"]))
    return out


def run(path, values):
    got, status = tosa_reference_model.run(path.read_bytes(), values, verbosity="NONE", tosa_level="NONE")
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID, status
    return [np.array(v) for v in got]


def agree(module, inputs, out, note, steps=2.01):
    """Stored outputs of the file, which are PyTorch's within `steps` of their grid (exactly, where they have none)."""
    face = json.loads(note.read_text())["interface"]
    got = run(out, stored_inputs(face, inputs))
    want = module(*inputs)
    for g, w, side in zip(got, want if isinstance(want, tuple) else [want], face["outputs"], strict=True):
        w = w.detach().numpy()
        assert list(w.shape) == side["shape"]
        g = g.reshape(side["shape"])
        if not w.dtype.kind == "f":
            assert np.array_equal(g, w)
            continue
        assert side["dtype"] in ("int8", "int16") and side["scale"], side
        assert np.abs((g.astype(np.float64) - side["zero_point"]) * side["scale"] - w).max() <= steps * side["scale"]
    return got


@pytest.mark.parametrize("name", PROGRAMS)
def test_integers_agree_with_pytorch(name, tmp_path):
    module, inputs, out, note, done = convert(name, tmp_path)
    assert done.returncode == 0, done.stderr
    face = json.loads(note.read_text())["interface"]
    assert all(side["dtype"] in ("int8", "int16") and side["scale"] for side in face["inputs"]), face
    agree(module, inputs, out, note)


def test_an_operator_between_reals_is_refused_by_name(tmp_path):
    PROGRAMS["_mixed"] = (Apply(lambda x, y: grid(torch.exp(grid(x, 0.03) * y), 0.1)), (X(3, 4), X(3, 4)))
    try:
        *_, done = convert("_mixed", tmp_path)
        assert done.returncode == 3 and "tosa.unsupported" in done.stderr and "quantize_per_tensor" in done.stderr
        module, inputs, out, note, done = convert("_mixed", tmp_path, "int+fp")
        assert done.returncode == 0, done.stderr
        face = json.loads(note.read_text())["interface"]
        got, status = tosa_reference_model.run(out.read_bytes(), stored_inputs(face, inputs), verbosity="NONE",
                                               tosa_level="NONE")
        assert status == tosa_reference_model.GraphStatus.TOSA_VALID, status
        side = json.loads(note.read_text())["interface"]["outputs"][0]
        real = (np.array(got[0], dtype=np.float64) - side["zero_point"]) * side["scale"]
        assert np.abs(real - module(*inputs).numpy()).max() <= 1.01 * side["scale"]
    finally:
        del PROGRAMS["_mixed"]


def test_a_quantized_program_is_refused_for_the_float_profile(tmp_path):
    *_, done = convert("add", tmp_path, "fp")
    assert done.returncode == 2 and "tosa.profile" in done.stderr


def test_channels_last_interface_needs_no_transpose(tmp_path):
    torch.manual_seed(0)
    module, inputs = PROGRAMS["convolution"]
    model, out, note = tmp_path / "m.pt2", tmp_path / "m.tosa", tmp_path / "m.json"
    torch.export.save(torch.export.export(module.eval(), inputs), str(model))
    subprocess.run([CHUTE, "convert", model, "-o", out, "--profile", "int", "--io-layout", "nhwc", "--report", note], check=True)
    face = json.loads(note.read_text())["interface"]
    assert face["inputs"][0]["shape"] == [1, 8, 8, 3] and face["outputs"][0]["shape"] == [1, 8, 8, 8]
    told = subprocess.run([CHUTE, "inspect", out, "--json"], check=True, capture_output=True, text=True).stdout
    assert "tosa.transpose" not in json.loads(told)["histogram"]
    got, status = tosa_reference_model.run(out.read_bytes(), stored_inputs(face, [x.permute(0, 2, 3, 1) for x in inputs]),
                                           verbosity="NONE", tosa_level="NONE")
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID
    side, want = face["outputs"][0], module(*inputs).permute(0, 2, 3, 1).numpy()
    assert np.abs((np.array(got[0], dtype=np.float64) - side["zero_point"]) * side["scale"] - want).max() <= 2.01 * side["scale"]
    refused = subprocess.run([CHUTE, "convert", model, "-o", tmp_path / "m.circle", "--io-layout", "nhwc"], capture_output=True, text=True)
    assert refused.returncode == 2 and "cli.output.layout" in refused.stderr
