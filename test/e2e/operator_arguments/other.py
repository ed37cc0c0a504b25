"""Element-wise operators whose second argument has conditions, and tensors made from nothing."""
import torch

from .draw import MAKERS, maker

WHOLE = (torch.int64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

for _name in ("div", "divide"):
    MAKERS[f"aten.{_name}.Tensor_mode"] = lambda d: ((d.tensor(), d.tensor(d.related(), d.second_kind())), {"rounding_mode": d.pick(None, "trunc", "floor")})
    MAKERS[f"aten.{_name}.Scalar_mode"] = lambda d: ((d.tensor(), d.number()), {"rounding_mode": d.pick(None, "trunc", "floor")})


@maker("aten.bitwise_left_shift.Tensor", "aten.bitwise_right_shift.Tensor", "aten.__lshift__.Tensor", "aten.__rshift__.Tensor")
def _(d):
    d.kind = d.pick(*WHOLE)
    return d.tensor(), d.index(6, d.shape).to(d.kind)  # more bits than there are is undefined


@maker("aten.bitwise_left_shift.Tensor_Scalar", "aten.bitwise_right_shift.Tensor_Scalar", "aten.__lshift__.Scalar", "aten.__rshift__.Scalar")
def _(d):
    return d.tensor(kind=d.pick(*WHOLE)), d.random.randint(0, 6)


@maker("aten.bitwise_left_shift.Scalar_Tensor", "aten.bitwise_right_shift.Scalar_Tensor")
def _(d):
    return d.pick(1, 5, -7), d.index(6, d.shape).to(d.pick(*WHOLE))


for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"):
    for _form in ("Scalar", "Scalar_Tensor"):
        MAKERS[f"aten.{_name}.{_form}"] = lambda d, turned=_form != "Scalar": (lambda x, n: (n, x) if turned else (x, n))(
            d.tensor(kind=d.pick(torch.bool, *WHOLE)), d.pick(0, 1, 5, True, -3))


@maker("aten.arange.start_step")
def _(d):
    return d.pick((0, 7, 2), (1.0, 3.0, 0.5), (5, 0, -1), (0, 0, 1), (-2, 2.5, 1)), d.pick({}, {"dtype": d.pick(torch.float32, torch.int64, torch.int32)})


@maker("aten.arange.start")
def _(d):
    return d.pick((0, 7), (1.0, 3.5), (-2, 3), (2, 2)), d.pick({}, {"dtype": d.pick(torch.float32, torch.int64, torch.int32)})


@maker("aten.full.default")
def _(d):
    return (list(d.shape), d.number()), d.pick({}, {"dtype": d.kind})


@maker("aten.zeros.default", "aten.ones.default")
def _(d):
    return (list(d.shape),), d.pick({}, {"dtype": d.kind})


@maker("aten.logit.default", "aten.special_logit.default")
def _(d):
    return d.tensor(low=0.1, high=0.9), d.pick(None, 0.2)


@maker("aten.quantile.scalar", "aten.nanquantile.scalar")
def _(d):
    d.shape = d.any_shape(1, 4)
    return (d.tensor(), d.pick(0.0, 0.25, 0.5, 0.9, 1.0), d.pick(None, d.dim()), d.some(0.5)), \
        {"interpolation": d.pick("linear", "lower", "higher", "nearest", "midpoint")}


@maker("aten.roll.default")
def _(d):
    dims = d.dims()
    return d.tensor(), [d.random.randint(-3, 4) for _ in dims] or [2], dims


@maker("aten.rot90.default")
def _(d):
    d.shape = d.any_shape(2)
    return d.tensor(), d.random.randint(-3, 4), d.random.sample(range(len(d.shape)), 2)


@maker("aten.diff.default")
def _(d):
    d.shape = d.any_shape(1, 4)
    return d.tensor(), d.size(1, 2), d.dim()


@maker("aten.tril_indices.default", "aten.triu_indices.default")
def _(d):
    return (d.random.randint(0, 5), d.random.randint(0, 5), d.random.randint(-2, 2)), {"dtype": torch.int64}


@maker("aten.renorm.default")
def _(d):
    d.shape = d.any_shape(2, 4)
    return d.tensor(), d.pick(1, 2), d.dim(), d.pick(0.5, 1.0, 3.0)


@maker("aten.fake_quantize_per_tensor_affine.default")
def _(d):
    return d.tensor(), d.pick(0.1, 0.05), d.pick(0, 3, -5), -128, 127


@maker("aten.fake_quantize_per_channel_affine.default")
def _(d):
    d.shape = d.any_shape(1, 4)
    axis = d.dim() % len(d.shape)
    n = d.shape[axis]
    return d.tensor(), d.tensor((n,), torch.float32, 0.01, 0.2), torch.zeros(n, dtype=torch.int32), axis, -128, 127


@maker("aten.nansum.default", "aten.nanmean.default")
def _(d):
    # For an empty list of dimensions PyTorch 2.13 exports another shape than it computes.
    return (d.tensor(), d.pick(None, d.dims() or [d.dim()]), d.some(0.5)), d.pick({}, {"dtype": torch.float32})
