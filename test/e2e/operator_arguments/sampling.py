"""Resizing and sampling at given places."""
import torch

from .draw import MAKERS, maker

RESIZES = {"upsample_nearest1d": 1, "upsample_nearest2d": 2, "upsample_nearest3d": 3, "_upsample_nearest_exact1d": 1,
           "_upsample_nearest_exact2d": 2, "_upsample_nearest_exact3d": 3, "upsample_linear1d": 1, "upsample_bilinear2d": 2,
           "upsample_trilinear3d": 3, "upsample_bicubic2d": 2, "_upsample_bilinear2d_aa": 2, "_upsample_bicubic2d_aa": 2}


def resized(d, n, low=1):
    """An input and the output's sizes."""
    x = d.tensor((d.pick(1, 1, 2), d.size(1, 3), *(d.size(low, 5) for _ in range(n))))
    return x, [max(low, d.pick(1, s, 2 * s, d.size(1, 8))) for s in x.shape[2:]]


def by_vector(d, n, corners, low):
    x, sizes = resized(d, n, low)
    scales = [d.pick(*((0.5, 1.0) if low == 1 else ()), 1.0, 1.5, 2.0, 3.0) for _ in range(n)] if d.some(0.5) else None
    return x, sizes if scales is None else None, *([d.some(0.5)] if corners else []), scales


def by_size(d, n, corners, low):
    x, sizes = resized(d, n, low)
    scales = [o / i if d.some(0.3) else None for o, i in zip(sizes, x.shape[2:])] if d.some(0.4) else []
    return x, sizes, *([d.some(0.5)] if corners else []), *scales


for _name, _n in RESIZES.items():
    _corners = "nearest" not in _name
    _low = 2 if _name.endswith("_aa") else 1  # PyTorch 2.13 repeats the first row of an antialiased result of one column
    MAKERS[f"aten.{_name}.vec"] = lambda d, n=_n, c=_corners, low=_low: by_vector(d, n, c, low)
    MAKERS[f"aten.{_name}.default"] = lambda d, n=_n, c=_corners, low=_low: by_size(d, n, c, low)


@maker("aten.grid_sampler_2d.default", "aten.grid_sampler.default")
def _(d):
    b = d.size(1, 2)
    return d.tensor((b, d.size(1, 3), d.size(2, 5), d.size(2, 5))), d.tensor((b, d.size(1, 4), d.size(1, 4), 2), low=-1.3, high=1.3), \
        d.random.randint(0, 2), d.random.randint(0, 2), d.some(0.5)


@maker("aten.grid_sampler_3d.default")
def _(d):
    b = d.size(1, 2)
    return d.tensor((b, d.size(1, 2), d.size(2, 4), d.size(2, 4), d.size(2, 4))), \
        d.tensor((b, d.size(1, 3), d.size(1, 3), d.size(1, 3), 3), low=-1.3, high=1.3), d.random.randint(0, 1), d.random.randint(0, 2), d.some(0.5)


@maker("aten.affine_grid_generator.default")
def _(d):
    b = d.size(1, 2)
    sizes = [b, d.size(1, 3), *(d.size(1, 5) for _ in range(d.pick(2, 2, 3)))]
    n = len(sizes) - 2
    d.kind = d.kind if d.kind.is_floating_point else torch.float32  # coordinates are fractions
    return d.tensor((b, n, n + 1)), sizes, d.some(0.5)
