"""Shapes, slices, joins and paddings."""
import torch

from .draw import maker


@maker("aten.view.default", "aten.reshape.default", "aten.view_copy.default", "aten._unsafe_view.default")
def _(d):
    x = d.tensor()
    sizes, left = [], x.numel()
    while left > 1 and d.some(0.7):
        sizes.append(d.random.choice([k for k in range(1, left + 1) if left % k == 0]))
        left //= sizes[-1]
    sizes.append(left)
    d.random.shuffle(sizes)
    if d.some(0.3):
        sizes[d.random.randrange(len(sizes))] = -1
    return x, sizes


@maker("aten.expand.default", "aten.broadcast_to.default", "aten.expand_copy.default")
def _(d):
    d.shape = d.any_shape(0, 4)
    x = d.tensor([s if d.some(0.5) else 1 for s in d.shape])
    size = [d.pick(s, -1) if s != 1 else d.pick(0, 1, 2, 3) if d.empty else d.pick(1, 2, 3) for s in x.shape]
    return x, [d.pick(1, 2) for _ in range(d.random.randint(0, 2))] + size


@maker("aten.permute.default", "aten.permute_copy.default")
def _(d):
    rank = len(d.shape)
    return d.tensor(), [k - rank if d.some(0.3) else k for k in d.random.sample(range(rank), rank)]


@maker("aten.repeat.default", "aten.tile.default")
def _(d):
    d.shape = d.any_shape(0, 4)
    return d.tensor(), [d.pick(0, 1, 2, 3) if d.empty else d.pick(1, 2, 3) for _ in range(len(d.shape) + d.random.randint(0, 1))]


@maker("aten.slice.Tensor", "aten.slice_copy.Tensor")
def _(d):
    d.shape = d.any_shape(1)
    return d.tensor(), d.dim(), d.pick(None, 0, 1, -2, -9), d.pick(None, 2, 3, 99, -1, 2**63 - 1), d.pick(1, 1, 2, 3)


@maker("aten.slice_scatter.default")
def _(d):
    d.shape = d.any_shape(1, 4)
    dim, x = d.dim(), d.tensor()
    start, end, step = d.pick((0, 4, 1), (1, 4, 2), (-3, 99, 1), (None, None, 1), (0, 4, 3), (2, 1, 1))
    part = x.movedim(dim, 0)[start:end:step].movedim(0, dim)
    return x, d.tensor(part.shape), dim, start, end, step


@maker("aten.select_scatter.default")
def _(d):
    d.shape = d.any_shape(1, 4)
    dim, x = d.dim(), d.tensor()
    at = d.random.randint(-x.shape[dim], x.shape[dim] - 1)
    return x, d.tensor(x.select(dim, at).shape), dim, at


@maker("aten.diagonal_scatter.default")
def _(d):
    d.shape = d.any_shape(2, 4)
    first, second = d.random.sample(range(len(d.shape)), 2)
    x, offset = d.tensor(), d.pick(-1, 0, 1)
    return x, d.tensor(x.diagonal(offset, first, second).shape), offset, first, second - len(d.shape)


@maker("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def _(d):
    d.shape = d.any_shape(1)
    dim = d.dim()
    parts = []
    for _ in range(d.random.randint(1, 4)):
        shape = list(d.shape)
        shape[dim] = d.pick(0, 1, 2) if d.empty else d.pick(1, 2, 3)
        parts.append(d.tensor(shape, d.second_kind()))
    return parts, dim


@maker("aten.split_with_sizes.default", "aten.split.sizes", "aten.split_with_sizes_copy.default", "aten.unsafe_split_with_sizes.default")
def _(d):
    d.shape = list(d.any_shape(1, 4))
    dim = d.dim()
    d.shape[dim] = 6
    return d.tensor(), d.pick([1, 2, 3], [6], [2, 2, 2], [5, 1], [0, 6]), dim


@maker("aten.tensor_split.indices")
def _(d):
    d.shape = d.any_shape(1, 4)
    return d.tensor(), [d.random.randint(-3, 6) for _ in range(d.random.randint(0, 3))], d.dim()



@maker("aten.unbind.int", "aten.unbind_copy.int")
def _(d):
    d.shape = d.any_shape(1)
    return d.tensor(), d.dim()


@maker("aten.select.int", "aten.select_copy.int")
def _(d):
    d.shape = d.any_shape(1)
    dim = d.dim()
    return d.tensor(), dim, d.random.randint(-d.shape[dim], d.shape[dim] - 1)


@maker("aten.narrow.default", "aten.narrow_copy.default")
def _(d):
    d.shape = d.any_shape(1)
    dim = d.dim()
    start = d.random.randint(0, d.shape[dim])
    return d.tensor(), dim, start, d.random.randint(0, d.shape[dim] - start)


@maker("aten.unfold.default", "aten.unfold_copy.default")
def _(d):
    d.shape = d.any_shape(1, 4)
    dim = d.dim()
    return d.tensor(), dim, d.random.randint(1, max(d.shape[dim], 1)), d.size(1, 3)


@maker("aten.constant_pad_nd.default")
def _(d):
    d.shape = d.any_shape(1)
    pads = [d.pick(0, 1, 2, -1) for _ in range(2 * d.random.randint(1, len(d.shape)))]
    return d.tensor(), pads, d.pick(0, 1, 0.5 if d.kind.is_floating_point else 2)


def pad_arguments(d, n):
    shape = (*((2, 3) if d.some(0.6) else (2,)), *(d.size(3, 6) for _ in range(n)))
    return d.tensor(shape), [d.random.randint(-1, 2) for _ in range(2 * n)]


for _n in (1, 2, 3):
    maker(f"aten.reflection_pad{_n}d.default", f"aten.replication_pad{_n}d.default")(lambda d, n=_n: pad_arguments(d, n))



@maker("aten.pad.default")
def _(d):
    n, mode = d.size(1, 3), d.pick("constant", "reflect", "replicate", "circular")
    return *pad_arguments(d, n), mode, d.pick(None, 1.5) if mode == "constant" else None


@maker("aten._pad_enum.default")
def _(d):
    mode = d.random.randint(0, 3)
    return *pad_arguments(d, d.size(1, 3)), mode, d.pick(None, 1.5) if mode == 0 else None


@maker("aten._pad_circular.default")
def _(d):
    return pad_arguments(d, d.size(1, 3))


@maker("aten.pixel_shuffle.default")
def _(d):
    r = d.size(1, 3)
    return d.tensor((*d.any_shape(0, 2), d.size(1, 2) * r * r, d.size(), d.size())), r


@maker("aten.pixel_unshuffle.default")
def _(d):
    r, d.empty = d.size(1, 3), False  # of an empty tensor PyTorch 2.13 keeps the shape
    return d.tensor((*d.any_shape(0, 2), d.size(), d.size(1, 3) * r, d.size(1, 3) * r)), r


@maker("aten.channel_shuffle.default", "aten.native_channel_shuffle.default")
def _(d):
    groups = d.size(1, 3)
    return d.tensor((d.size(), groups * d.size(1, 3), *d.any_shape(1, 2))), groups


@maker("aten.as_strided.default", "aten.as_strided_copy.default")
def _(d):
    return torch.arange(24).reshape(d.pick((24,), (4, 6), (2, 3, 4))).to(d.kind), [2, 3], d.pick([3, 1], [1, 2], [6, 2], [0, 1]), d.random.randint(0, 4)


@maker("aten.as_strided_scatter.default")
def _(d):
    x = torch.arange(24).reshape(d.pick((24,), (4, 6), (2, 3, 4))).to(d.kind)
    return x, d.tensor((2, 3)).contiguous(), [2, 3], d.pick([3, 1], [1, 2], [6, 2]), d.random.randint(0, 4)


@maker("aten.meshgrid.indexing")
def _(d):
    return ([d.tensor((d.size(),)) for _ in range(d.size(1, 3))],), {"indexing": d.pick("ij", "xy")}


@maker("aten.unflatten.int")
def _(d):
    a, b = d.size(1, 3), d.size(1, 3)
    d.shape = list(d.any_shape(1, 4))
    dim = d.dim()
    d.shape[dim] = a * b
    return d.tensor(), dim, d.pick([a, b], [a, -1], [-1, b], [a, 1, b])



@maker("aten.squeeze.default", "aten.squeeze_copy.default")
def _(d):
    return (d.tensor([1 if d.some(0.5) else s for s in d.shape]),)


@maker("aten.squeeze.dim", "aten.squeeze_copy.dim")
def _(d):
    return d.tensor([1 if d.some(0.5) else s for s in d.shape]), d.dim()


@maker("aten.squeeze.dims", "aten.squeeze_copy.dims")
def _(d):
    return d.tensor([1 if d.some(0.5) else s for s in d.shape]), d.dims()


@maker("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def _(d):
    d.shape = d.any_shape(0, 4)
    return d.tensor(), d.dim(len(d.shape) + 1)
