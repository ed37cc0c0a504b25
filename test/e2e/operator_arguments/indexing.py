"""Gathers, scatters, masks, tables and sorting."""
import torch

from .draw import MAKERS, maker


def along(d, low=1, high=4):
    """Draws a shape with at least one dimension; returns one of them."""
    d.shape = d.any_shape(low, high)
    return d.dim()


def smaller(d):
    return [d.random.randint(1, s) if s else 0 for s in d.shape]


@maker("aten.bincount.default")
def _(d):
    n, kind = 0 if d.empty else d.size(1, 9), d.pick(torch.int64, torch.int32, torch.uint8)
    numbers = torch.randint(0, d.size(1, 9), (n,), generator=d.generator()).to(kind)
    return numbers, d.tensor((n,)) if d.some(0.5) else None, d.pick(0, 0, 3, 12)


@maker("aten.gather.default")
def _(d):
    dim = along(d)
    return d.tensor(), dim, d.index(d.shape[dim], smaller(d))


@maker("aten.take.default")
def _(d):
    x = d.tensor()
    return x, d.index(x.numel(), negative=True)


@maker("aten.put.default")
def _(d):
    x = d.tensor()
    at = torch.randperm(x.numel(), generator=d.generator())[:d.size(1, 3)]
    return x, at, d.tensor(at.shape), d.some(0.5)


@maker("aten.take_along_dim.default")
def _(d):
    dim = along(d)
    shape = list(d.shape)
    shape[dim] = 2
    return d.tensor(), d.index(d.shape[dim], shape), dim


@maker("aten.scatter.src", "aten.scatter_add.default")
def _(d):
    dim = along(d)
    rows = d.random.randint(0, d.shape[dim])
    index = torch.rand(d.shape, generator=d.generator()).argsort(dim).narrow(dim, 0, rows)  # no place is written twice
    return d.tensor(), dim, index, d.tensor(index.shape)


@maker("aten.scatter.value")
def _(d):
    dim = along(d)
    return d.tensor(), dim, d.index(d.shape[dim], smaller(d)), d.number()


@maker("aten.scatter_reduce.two")
def _(d):
    dim = along(d, 1, 3)
    how = d.pick("sum", "prod", "mean", "amax", "amin")
    return (d.tensor(), dim, d.index(d.shape[dim], smaller(d)), d.tensor(d.shape), how), {"include_self": d.some(0.5)}


@maker("aten.scatter.reduce")
def _(d):
    dim = along(d, 1, 3)
    index = d.index(d.shape[dim], smaller(d))
    return (d.tensor(), dim, index, d.tensor(index.shape)), {"reduce": d.pick("add", "multiply")}


@maker("aten.scatter.value_reduce")
def _(d):
    dim = along(d, 1, 3)
    return (d.tensor(), dim, d.index(d.shape[dim], smaller(d)), d.pick(2, 3, -1)), {"reduce": d.pick("add", "multiply")}


@maker("aten.index_reduce.default")
def _(d):
    dim, n = along(d, 1, 3), d.size(1, 4)
    source = list(d.shape)
    source[dim] = n
    return (d.tensor(), dim, d.index(d.shape[dim], (n,)), d.tensor(source), d.pick("prod", "mean", "amax", "amin")), {"include_self": d.some(0.5)}


@maker("aten.index_select.default")
def _(d):
    dim = along(d)
    return d.tensor(), dim, d.index(d.shape[dim], (d.size(1, 4),))


@maker("aten.index_fill.int_Scalar")
def _(d):
    return *MAKERS["aten.index_select.default"](d), d.number()


@maker("aten.index_fill.int_Tensor")
def _(d):
    return *MAKERS["aten.index_select.default"](d), d.tensor(())


@maker("aten.index_add.default", "aten.index_copy.default")
def _(d):
    dim = along(d)
    index = torch.randperm(d.shape[dim], generator=d.generator())[:d.random.randint(0, d.shape[dim])]
    source = list(d.shape)
    source[dim] = len(index)
    return d.tensor(), dim, index, d.tensor(source)


def positions(d):
    """An index list for a tensor of shape `d.shape`, None for whole dimensions; and the shape that it selects."""
    at = d.pick((3,), (2, 1), (1,), ())
    chosen = d.random.sample(range(len(d.shape)), d.random.randint(1, len(d.shape)))
    return [d.index(size, at, negative=True) if i in chosen else None for i, size in enumerate(d.shape)]


@maker("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _(d):
    d.shape = d.any_shape(1, 4)
    return d.tensor(), positions(d)


@maker("aten.index_put.default", "aten._unsafe_index_put.default")
def _(d):
    d.shape = d.any_shape(1, 4)
    if d.some(0.3):
        return d.tensor(), [d.tensor(d.shape[:d.random.randint(1, len(d.shape))], torch.bool)], d.tensor(())
    where = positions(d)
    value = d.tensor(d.pick((), (1,)))
    return d.tensor(), where, value, d.some(0.3) and d.kind != torch.bool


@maker("aten.masked_scatter.default")
def _(d):
    x = d.tensor()
    return x, d.tensor(d.shape, torch.bool), d.tensor((x.numel(),))


@maker("aten.masked_fill.Tensor")
def _(d):
    return d.tensor(), d.tensor(d.related(), torch.bool), d.tensor((), d.second_kind())


@maker("aten.masked_fill.Scalar")
def _(d):
    return d.tensor(), d.tensor(d.related(), torch.bool), d.number()


@maker("aten.embedding.default")
def _(d):
    rows = d.size(1, 6)
    return d.tensor((rows, d.size())), d.index(rows, d.any_shape(0, 3)), d.pick(-1, 0), d.some(0.2), False


@maker("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default", "aten.embedding_bag.default")
def _(d):
    rows, count = d.size(2, 6), d.size(2, 7)
    offsets = torch.tensor([0, *sorted(d.random.randint(0, count) for _ in range(d.random.randint(0, 3)))])
    return d.tensor((rows, d.size())), d.index(rows, (count,)), offsets, False, d.random.randint(0, 2)


@maker("aten.embedding_bag.padding_idx")
def _(d):
    weight, indices, offsets, _, mode = MAKERS["aten.embedding_bag.default"](d)
    each = d.tensor((len(indices),), weight.dtype) if mode == 0 and d.some(0.3) else None
    return weight, indices, offsets, False, mode, False, each, False, d.pick(None, 0, -1)


@maker("aten.repeat_interleave.Tensor")
def _(d):
    return (torch.randint(0, 4, (0 if d.empty else d.size(1, 9),), generator=d.generator()).to(d.pick(torch.int64, torch.int32)),)


@maker("aten.one_hot.default")
def _(d):
    return d.index(4, d.any_shape(0, 4)), d.pick(4, 6)


@maker("aten.topk.default")
def _(d):
    dim = along(d)
    return d.distinct(), d.random.randint(0, d.shape[dim]), dim, d.some(0.7)


@maker("aten.kthvalue.default")
def _(d):
    dim = along(d)
    return d.distinct(), d.random.randint(1, max(1, d.shape[dim])), dim, d.some(0.5)


@maker("aten.sort.default", "aten.argsort.default")
def _(d):
    dim = along(d)
    return d.distinct(), dim, d.some(0.5)


@maker("aten.sort.stable", "aten.argsort.stable")
def _(d):
    dim = along(d)
    return (d.tensor(),), {"stable": True, "dim": dim, "descending": d.some(0.5)}


@maker("aten.median.dim", "aten.mode.default", "aten.cummax.default", "aten.cummin.default")
def _(d):
    dim = along(d)
    return d.distinct(), dim


@maker("aten.median.default", "aten.nanmedian.default")
def _(d):
    d.empty = False  # the middle of no integers is no value
    d.shape = d.any_shape()
    return (d.tensor(),)


@maker("aten.bucketize.Tensor")
def _(d):
    bounds = torch.tensor([-1.0, 0.0, 0.5, 1.5])[:d.size(1, 4)]
    return (d.tensor(), bounds), d.pick({}, {"right": True}, {"out_int32": True})


@maker("aten.searchsorted.Tensor")
def _(d):
    shape = d.any_shape(1, 3)
    bounds = d.tensor((*shape[:-1], d.size()), torch.float32).sort(-1)[0]
    return (bounds, d.tensor(shape, torch.float32)) if d.some(0.5) else (bounds.flatten().sort()[0], d.tensor(None, torch.float32)), \
        d.pick({}, {"right": True}, {"out_int32": True})


@maker("aten.isin.Tensor_Tensor")
def _(d):
    return (d.tensor(), d.tensor((d.size(),))), {"assume_unique": False, "invert": d.some(0.5)}


@maker("aten.repeat_interleave.self_int")
def _(d):
    return d.tensor(), d.random.randint(0, 3), d.pick(None, d.dim()) if d.shape else None
