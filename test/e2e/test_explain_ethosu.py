"""chute explain --target ethos-u…: the limits of each processor per operator, and what would stay on the CPU.

A program is accepted for U85 and refused for U55 (and U65, which has the same limits) where the two differ.
"""
import json

import pytest
import torch
from conftest import chute
from test_tosa_int import Apply, Layer, X, grid
from torch import nn
from torch.nn import functional as F

U55, U65, U85 = "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"


def on_grid(f):
    return Apply(lambda x: grid(f(grid(x, 0.03, 4)), 0.04, 1))


# Program, inputs, the operator that is refused, what is said about it.
REFUSED = {
    "wide_stride": (Layer((8, 3, 3, 3), lambda x, w, b: F.conv2d(x, w, b, stride=4, padding=1)), (X(1, 3, 17, 17),), "CONV2D",
                    "stride 4 is above 3 where there is padding or dilation"),
    "tall_kernel": (Layer((2, 1, 65, 1), lambda x, w, b: F.conv2d(x, w, b)), (X(1, 1, 70, 2),), "CONV2D", "kernel height 65 is above 64"),
    "large_kernel": (Layer((1, 1, 64, 65), lambda x, w, b: F.conv2d(x, w, b)), (X(1, 1, 64, 66),), "CONV2D",
                     "kernel height times width 4160 is above 4096"),
    "conv3d": (Layer((2, 3, 2, 2, 2), F.conv3d), (X(1, 3, 4, 4, 4),), "CONV3D", "the processor has no such operator"),
    "transposed": (Layer((3, 4, 3, 3), lambda x, w, b: F.conv_transpose2d(x, w, stride=3), False),
                   (X(1, 3, 4, 4),), "TRANSPOSE_CONV2D", "transposed with stride 3x3"),
    "pool_of_a_batch": (on_grid(lambda x: F.avg_pool2d(x, 2)), (X(2, 3, 8, 8),), "AVG_POOL2D", "batch 2 is above 1"),
    "pool_with_a_wide_stride": (on_grid(lambda x: F.max_pool2d(x, 2, 4)), (X(1, 3, 10, 10),), "MAX_POOL2D", "stride 4 is above 3"),
    "pool_with_padding": (on_grid(lambda x: F.avg_pool2d(x, 9, 1, 4, count_include_pad=False)), (X(1, 3, 12, 12),), "AVG_POOL2D",
                          "kernel of a padded average 9 is above 8"),
    "bilinear": (on_grid(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")), (X(1, 3, 4, 4),), "RESIZE", "bilinear resizing"),
    "nearest_by_3": (on_grid(lambda x: F.interpolate(x, scale_factor=3)), (X(1, 3, 4, 4),), "RESIZE", "not by 2, 4 or 8"),
    "comparison": (Apply(lambda x, y: grid(x, 0.03) > grid(y, 0.03)), (X(3, 4), X(3, 4)), "GREATER", "the processor has no such operator"),
    "matmul_16_bits": (Apply(lambda x, y: grid(grid(x, 1e-4, 0, torch.int16) @ grid(y, 1e-4, 0, torch.int16), 3e-4, 0, torch.int16)),
                       (X(2, 5, 6), X(2, 6, 4)), "MATMUL", "element type i16 is none of i8"),
    "flip": (on_grid(lambda x: x.flip(0)), (X(3, 4),), "REVERSE", "reversing other than dimension 1 or 2 of 4"),
    "large_transpose": (on_grid(lambda x: x.permute(2, 1, 0)), (torch.zeros(1, 3, 70000),), "TRANSPOSE", "is above 65536"),
    "long_sum": (on_grid(lambda x: x.sum(1)), (torch.zeros(1, 2, 70000),), "REDUCE_SUM", "70000 is above 65536"),
}
BOTH_REFUSE = {
    "resize_by_much": (on_grid(lambda x: F.interpolate(x, scale_factor=2)), (torch.zeros(1, 1, 2, 8192),), "RESIZE", "size 16384 is above 16383"),
}


def explained(path, target, expect):
    return json.loads(chute("explain", path, "--target", target, "--json", expect=expect).stdout)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    def save(name, module, inputs):
        path = tmp_path_factory.mktemp("explain") / f"{name}.pt2"
        torch.manual_seed(0)
        torch.export.save(torch.export.export(module.eval(), inputs), str(path))
        return path
    return save


def refusal(told, operator):
    return [p["failed"] for p in told["placements"] if p["failed"] and any(e.startswith(operator + " ") for e in p["emitted"])]


@pytest.mark.parametrize("name", REFUSED)
def test_limits_of_u55_and_u65(export, name):
    module, inputs, operator, why = REFUSED[name]
    path = export(name, module, inputs)
    for target in (U55, U65):
        told = explained(path, target, 3)
        assert any(why in clause for clause in refusal(told, operator)), told["placements"]
        assert {p["code"] for p in told["problems"]} == {"tosa.ethosu"}
    told = explained(path, U85, 0)
    assert told["converts"] and all(p["accepted"] for p in told["placements"]), told["placements"]


@pytest.mark.parametrize("name", BOTH_REFUSE)
def test_limits_of_every_family(export, name):
    module, inputs, operator, why = BOTH_REFUSE[name]
    path = export(name, module, inputs)
    for target in (U55, U85):
        assert any(why in clause for clause in refusal(explained(path, target, 3), operator))


@pytest.mark.parametrize("name", ["convolution", "add", "sigmoid", "average_pool", "matmul", "nearest"])
def test_what_all_of_them_take(export, name):
    from test_tosa_int import PROGRAMS
    path = export(name, *PROGRAMS[name])
    for target in (U55, U65, U85):
        told = explained(path, target, 0)
        assert told["converts"] and told["partitions"] == [{"nodes": len(told["placements"]),
                                                            "operators": sum(told["output"]["operators"].values())}]


class Detour(nn.Module):
    """An operator that U55 lacks lies on one of two ways: what follows it is a partition of its own."""

    def forward(self, x):
        first = grid(torch.sigmoid(grid(x, 0.03)), 1 / 128)
        flipped = grid(first.flip(1), 1 / 128)
        return grid(torch.tanh(flipped), 1 / 128), grid(torch.tanh(first), 1 / 64)


def test_partitions_around_what_stays_on_the_cpu(export):
    path = export("detour", Detour(), (X(3, 8),))
    told = explained(path, U55, 3)
    kinds = {p["emitted"][0].split()[0] + str(i): p for i, p in enumerate(told["placements"])}
    cpu = [p for p in told["placements"] if p["partition"] is None]
    assert [p["emitted"] for p in cpu] == [["REVERSE 3x8 i8"]] and cpu[0]["failed"], kinds
    assert len(told["partitions"]) == 2
    assert {p["partition"] for p in told["placements"] if p["accepted"]} == {0, 1}
    assert len(explained(path, U85, 0)["partitions"]) == 1
    text = chute("explain", path, "--target", U55, expect=3).stdout
    assert "on the target in 2 partitions, the others on the CPU" in text and "target 1" in text and "cpu" in text


def test_reals_stay_on_the_cpu(export):
    path = export("floats", nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), (X(1, 3, 8, 8),))
    told = explained(path, U85, 3)
    assert not told["partitions"] and all("needs FP" in p["failed"] for p in told["placements"])
