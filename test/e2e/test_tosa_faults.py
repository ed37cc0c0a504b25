"""Faults that users of quantizing TOSA lowerings have reported, one test or more for each row of the project's list that
an integer program can express, named after its row. Programs of floats are in cases_faults.py, which test_tosa.py runs.
The oracle is Arm's reference model beside PyTorch.
"""
import json

import numpy as np
import pytest
import torch
from conftest import chute
from test_tosa_int import QD, Apply, Layer, Weights, X, agree, grid, lower, run
from torch import nn
from torch.nn import functional as F

I16 = torch.int16


def operators(path):
    return json.loads(chute("inspect", path, "--json").stdout)["histogram"]


def check(module, inputs, tmp_path, profile="int", steps=2.01):
    torch.manual_seed(0)
    out, note, done = lower(module.eval(), inputs, tmp_path, profile)
    assert done.returncode == 0, done.stderr
    agree(module, inputs, out, note, steps)
    return out, json.loads(note.read_text())["interface"]


def layer(shape, apply, **more):
    torch.manual_seed(1)
    return Layer(shape, apply, **more)


def narrow(x, scale, zero=0):
    """A grid without the lowest stored value."""
    stored = QD.quantize_per_tensor(x, scale, zero, -127, 127, torch.int8)
    return QD.dequantize_per_tensor(stored, scale, zero, -127, 127, torch.int8)


# Tables

@pytest.mark.parametrize("function", (torch.sigmoid, torch.tanh, F.hardswish))
def test_A6_every_stored_value_has_its_own_entry(function, tmp_path):
    """All 256 stored inputs give PyTorch's value: none twice, none off by one."""
    scale, zero, out_scale = 0.05, 3, 0.01037  # no value lies half-way between two
    module = Apply(lambda x: grid(function(grid(x, scale, zero)), out_scale))
    x = (torch.arange(-128, 128) - zero) * scale
    out, face = check(module, (x,), tmp_path, steps=0.01)
    assert operators(out) == {"tosa.table": 1}
    assert (face["inputs"][0]["scale"], face["inputs"][0]["zero_point"]) == (pytest.approx(scale), zero)


def test_A6_grid_without_its_lowest_value(tmp_path):
    check(Apply(lambda x: grid(torch.sigmoid(narrow(x, 0.05)), 1 / 256, -128)), (torch.linspace(-7, 7, 300),), tmp_path, steps=0.01)


def test_A6_table_of_16_bits_over_its_whole_domain(tmp_path):
    module = Apply(lambda x: grid(torch.sigmoid(grid(x, 2e-4, 0, I16)), 1 / 32768, 0, I16))
    check(module, (torch.arange(-32768, 32768, 7) * 2e-4,), tmp_path)


def test_A6_a_function_of_two_tensors_is_no_table(tmp_path):
    module = Apply(lambda x, y: grid(torch.maximum(grid(x, 0.05), grid(y, 0.05)), 0.05))
    out, _ = check(module, (X(5, 6), X(5, 6)), tmp_path)
    assert "tosa.table" not in operators(out)


def test_A41_gelu_keeps_its_approximation(tmp_path):
    """The two differ by up to 5e-4, five steps of this grid."""
    x = (torch.linspace(-4, 4, 999),)
    files = []
    for how in ("none", "tanh"):
        module = Apply(lambda v, how=how: grid(F.gelu(grid(v, 2e-4, 0, I16), approximate=how), 1.4e-4, 0, I16))
        out, _ = check(module, x, tmp_path)
        files.append(out.read_bytes())
    assert files[0] != files[1]


# Rescaling

class Branches(Layer):
    """One accumulator, two grids, and a permuted one."""

    def forward(self, x):
        w, b = self.parameters_()
        y = self.apply_(grid(x, self.scale, 0, self.dtype), w, b)
        order = (0, *range(2, y.ndim), 1)
        return grid(y, 2e-4, 0, I16), grid(y, 0.03, 4), grid(y.permute(order), 1e-4, 0, I16)


ACCUMULATORS = {
    "conv2d": ((4, 3, 3, 3), F.conv2d, (1, 3, 6, 7)),
    "depthwise": ((3, 1, 3, 3), lambda x, w, b: F.conv2d(x, w, b, groups=3), (1, 3, 6, 7)),
    "conv3d": ((4, 3, 2, 2, 2), F.conv3d, (1, 3, 3, 4, 5)),
    "conv1d": ((4, 3, 3), F.conv1d, (1, 3, 9)),
    "linear": ((4, 8), F.linear, (3, 8)),
}


@pytest.mark.parametrize("dtype", (torch.int8, I16), ids=("int8", "int16"))
@pytest.mark.parametrize("kind", ACCUMULATORS)
def test_A32_each_consumer_rescales_the_accumulator(kind, dtype, tmp_path):
    shape, apply, given = ACCUMULATORS[kind]
    torch.manual_seed(1)
    check(Branches(shape, apply, dtype=dtype), (X(*given),), tmp_path)


class Transposed(Branches):
    """Weights of one scale: with one per output channel they would vary along the second dimension."""

    def __init__(self, dtype):
        super().__init__((3, 3, 3, 3), lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2), per_channel=False, dtype=dtype)


@pytest.mark.parametrize("dtype", (torch.int8, I16), ids=("int8", "int16"))
def test_A32_transposed_convolution(dtype, tmp_path):
    torch.manual_seed(1)
    check(Transposed(dtype), (X(1, 3, 4, 5),), tmp_path)


def test_A32_one_consumer_needs_one_rescale(tmp_path):
    out, _ = check(layer((4, 3, 3, 3), F.conv2d), (X(1, 3, 6, 7),), tmp_path)
    assert operators(out)["tosa.rescale"] == 1


class ConstantSum(nn.Module):
    """Two quantized constants added, and the sum quantized again."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.register_buffer("a", torch.randint(-128, 127, (4, 5), dtype=torch.int8))
        self.register_buffer("b", torch.randint(-128, 127, (4, 5), dtype=torch.int8))

    def forward(self, x):
        a = QD.dequantize_per_tensor(self.a, 0.03, 4, -128, 127, torch.int8)
        b = QD.dequantize_per_tensor(self.b, 0.011, -9, -128, 127, torch.int8)
        return grid(grid(x, 0.02) + grid(a + b, 0.04, 1), 0.06, 2)


def test_A37_quantized_constants_add_as_reals(tmp_path):
    check(ConstantSum(), (X(4, 5),), tmp_path)


class ConstantView(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.arange(-10, 10, dtype=torch.int8).reshape(4, 5))

    def forward(self, x):
        return grid(grid(x, 0.02) + QD.dequantize_per_tensor(self.a, 0.03, 4, -128, 127, torch.int8).t().reshape(4, 5), 0.06, 2)


def test_A37_a_view_of_a_quantized_constant_stays_one(tmp_path):
    out, _ = check(ConstantView(), (X(4, 5),), tmp_path)
    assert not {"tosa.transpose", "tosa.reshape"} & set(operators(out))


def test_A38_operands_of_two_widths(tmp_path):
    module = Apply(lambda x, y: grid(grid(x, 1e-4, 0, I16) + grid(y, 0.02, 5), 2e-4, 0, I16))
    check(module, (X(4, 5), X(4, 5)), tmp_path)


def test_A38_operands_of_two_widths_multiplied(tmp_path):
    module = Apply(lambda x, y: grid(grid(x, 1e-4, 0, I16) * grid(y, 0.02, 5), 0.05, 1))
    check(module, (X(4, 5), X(4, 5)), tmp_path)


def test_A38_one_quantized_value_with_many_readers(tmp_path):
    def f(x):
        q = QD.quantize_per_tensor(x, 0.03, 4, -128, 127, torch.int8)
        a, b, c = (QD.dequantize_per_tensor(q, 0.03, 4, -128, 127, torch.int8) for _ in range(3))
        return grid(a + 1.0, 0.04), grid(F.relu(b), 0.03, 4), grid(c.t(), 0.03, 4)
    check(Apply(f), (X(4, 5),), tmp_path)


# Boundaries

def test_A8_views_before_the_boundary_keep_the_stored_type(tmp_path):
    module = Apply(lambda q, k: grid(grid(q, 0.03) @ grid(k, 0.03).transpose(1, 2), 0.1).reshape(2, 4, 2, 2).permute(0, 2, 1, 3))
    _, face = check(module, (X(2, 4, 6), X(2, 4, 6)), tmp_path)
    assert face["outputs"][0]["dtype"] == "int8" and face["outputs"][0]["scale"] == pytest.approx(0.1)


def test_A8_a_real_output_stays_real(tmp_path):
    """The product itself is an output beside its quantized form: it is no integer."""
    def f(q, k):
        y = grid(q, 0.03) @ grid(k, 0.03).transpose(1, 2)
        return y.permute(0, 2, 1), grid(y, 0.1)
    inputs = (X(2, 4, 6), X(2, 4, 6))
    out, note, done = lower(Apply(f), inputs, tmp_path, "int+fp")
    assert done.returncode == 0, done.stderr
    face = json.loads(note.read_text())["interface"]
    assert [s["dtype"] for s in face["outputs"]] == ["float32", "int8"]
    got = run(out, [np.clip(np.rint(x.numpy() / s["scale"]) + s["zero_point"], -128, 127).astype(np.int8) if s["scale"] else x.numpy()
                    for x, s in zip(inputs, face["inputs"])])
    assert np.allclose(got[0].reshape(2, 4, 4), f(*inputs)[0].numpy(), atol=1e-5)


def test_A9_parameters_of_the_result_end_on_the_last_reshape(tmp_path):
    _, face = check(layer((8, 16), F.linear), (X(2, 3, 4, 16),), tmp_path)
    assert face["outputs"][0]["shape"] == [2, 3, 4, 8] and face["outputs"][0]["scale"] == pytest.approx(0.08)


@pytest.mark.parametrize("inner", (lambda x: F.softmax(x, -1), lambda x: F.layer_norm(x, (8,)), lambda x: x.var(1, keepdim=True)),
                         ids=("softmax", "layer_norm", "variance"))
def test_A10_values_inside_a_decomposition_inherit_nothing(inner, tmp_path):
    """On the result's grid, 8 bits, the sums in between would lose everything."""
    check(Apply(lambda x: grid(inner(grid(x, 0.03, 4)), 0.02, -3)), (X(6, 8),), tmp_path, "int+fp")


def test_A33_argmax_has_32_bits_and_says_so(tmp_path):
    module, inputs = Apply(lambda x: grid(x, 0.03, 4).argmax(1) + 1), (X(6, 8),)
    out, note, done = lower(module, inputs, tmp_path, "int+fp")
    assert done.returncode == 0 and "tosa.narrowed" in done.stderr
    face = json.loads(note.read_text())["interface"]
    assert face["outputs"][0]["dtype"] == "int32"
    agree(module, inputs, out, note)


def test_B29_a_permute_with_two_readers_at_the_boundary(tmp_path):
    def f(x):
        y = grid(x, 0.03, 6).permute(2, 0, 1)
        return grid(y.reshape(4, 6), 0.03, 6), grid(y.sum(1), 0.1)
    check(Apply(f), (X(2, 3, 4),), tmp_path)


# Element types

@pytest.mark.parametrize("plain,in_place", ((F.relu, F.relu_), (lambda x: F.leaky_relu(x, 0.1), lambda x: F.leaky_relu_(x, 0.1))),
                         ids=("relu", "leaky_relu"))
def test_A36_in_place_activations_are_lowered_alike(plain, in_place, tmp_path):
    counts = []
    for function in (plain, in_place):
        out, _ = check(layer((8, 3, 3, 3), lambda x, w, b, f=function: f(grid(F.conv2d(x, w, b), 0.07, 2))), (X(1, 3, 6, 6),), tmp_path)
        counts.append(operators(out))
    assert counts[0] == counts[1]


def test_A36_an_activation_of_a_copy_leaves_the_original(tmp_path):
    def f(x):
        y = grid(x, 0.03)
        return grid(F.relu_(y.clone()), 0.03), grid(y + 0.5, 0.03)
    check(Apply(f), (X(4, 5),), tmp_path)


# Layouts

def test_A2_two_transposes_are_none(tmp_path):
    out, _ = check(Apply(lambda x: grid(grid(x, 0.03).t().t() + 1.0, 0.04)), (X(4, 5),), tmp_path)
    assert "tosa.transpose" not in operators(out)


def test_A18_five_dimensions_behind_a_convolution(tmp_path):
    check(layer((8, 3, 3, 3), lambda x, w, b: F.relu(F.conv2d(x, w, b)).permute(0, 2, 3, 1).reshape(1, 2, 2, 4, 8)), (X(1, 3, 6, 6),), tmp_path)


class TwoConvolutions(nn.Module):
    """A view of four dimensions as four others in between."""

    def __init__(self, view):
        super().__init__()
        torch.manual_seed(1)
        self.a, self.b, self.view = Weights((8, 4, 1, 1), 0.02), Weights((4, view[1], 1, 1), 0.08), view

    def forward(self, x):
        y = grid(F.conv2d(grid(x, 0.02), *self.a()), 0.08)
        return grid(F.conv2d(y.reshape(self.view), *self.b()), 0.2)


@pytest.mark.parametrize("view", ((1, 4, 8, 4), (1, 8, 2, 8), (1, 16, 4, 2), (2, 4, 4, 4)), ids=str)
def test_A18_views_that_mix_channels_and_those_that_do_not(view, tmp_path):
    """(1, 8, 2, 8) keeps batch and channels to themselves, the others do not."""
    check(TwoConvolutions(view), (X(1, 4, 4, 4),), tmp_path)


def test_A19_views_between_permutes(tmp_path):
    module = Apply(lambda x: grid((grid(x, 0.03).permute(0, 2, 1).unsqueeze(1) + 1.0).squeeze(1).permute(0, 2, 1), 0.04))
    check(module, (X(2, 3, 4),), tmp_path)


def test_A24_channels_last_weights(tmp_path):
    module = layer((8, 3, 3, 3), F.conv2d)
    module.parameters_.weight = module.parameters_.weight.to(memory_format=torch.channels_last)
    check(module, (X(1, 3, 6, 6),), tmp_path)


def test_A50_mean_that_drops_a_dimension(tmp_path):
    check(layer((4, 3, 3, 3), lambda x, w, b: F.conv2d(x, w, b).mean(2)), (X(1, 3, 6, 7),), tmp_path, "int+fp")


def test_A50_product_of_two_values(tmp_path):
    check(layer((3, 3, 1, 1), lambda x, w, b: grid(F.conv2d(x, w, b), 0.08) * x), (X(1, 3, 6, 7),), tmp_path)


def test_A65_all_extents_equal(tmp_path):
    check(layer((4, 4, 3, 3), lambda x, w, b: F.conv2d(x, w, b, padding=1)), (X(4, 4, 4, 4),), tmp_path)


def test_A66_batches_that_broadcast(tmp_path):
    check(Apply(lambda x, y: grid(grid(x, 0.03, 6) @ grid(y, 0.02, -4), 0.1, 1)), (X(3, 2, 4), X(5, 3, 4, 2)), tmp_path)


def test_B23_bilinear_by_a_sixteenth(tmp_path):
    check(Apply(lambda x: grid(F.interpolate(grid(x, 0.03, 6), scale_factor=1 / 16, mode="bilinear"), 0.03, 6)), (X(1, 2, 32, 32),), tmp_path)


def test_B30_no_dimensions(tmp_path):
    check(Apply(lambda x, y: grid(grid(x, 0.03, 6) - grid(y, 0.02, -4), 0.05)), (X(1)[0], X(2)[1]), tmp_path)


B38 = {
    "mean": Apply(lambda x: grid(grid(x, 0.03, 6).mean((2, 3)), 0.01, -3)),
    "select": Apply(lambda x: grid(x, 0.03, 6)[:, 1]),
    "view": Apply(lambda x: grid(x, 0.03, 6).reshape(1, -1)),
    "transposed": Transposed(torch.int8),
}


@pytest.mark.parametrize("name", B38)
def test_B38_an_ethos_u55_takes_what_is_emitted(name, tmp_path):
    module = B38[name]
    check(module, (X(1, 3, 8, 8),), tmp_path)
    told = json.loads(chute("explain", tmp_path / "m.pt2", "--target", "ethos-u55-128", "--json").stdout)
    assert told["converts"] and all(p["accepted"] for p in told["placements"]), told["placements"]


def test_B38_what_it_does_not_take_is_named(tmp_path):
    torch.export.save(torch.export.export(Apply(lambda x: x.exp()), (X(2, 3),)), str(tmp_path / "m.pt2"))
    told = json.loads(chute("explain", tmp_path / "m.pt2", "--target", "ethos-u55-128", "--json", expect=3).stdout)
    assert not told["converts"] and any(not p["accepted"] and p["failed"] for p in told["placements"])
