"""Convolutions, poolings and columns: windows over spatial dimensions."""
import torch

from .draw import MAKERS, maker


def window(d, n):
    return [d.size(1, 3) for _ in range(n)]


def spatial(d, n, low, high):
    return [d.size(low, high) for _ in range(n)]


def conv_arguments(d, n, transposed=False):
    groups = d.pick(1, 1, 2, 4)
    cin, cout = 4, d.pick(4, 8)
    kernel = window(d, n)
    batch = () if d.some(0.15) else (d.pick(1, 2),)
    x = d.tensor((*batch, cin, *spatial(d, n, 4, 7 if n < 3 else 5)))
    weight = d.tensor((cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel))
    bias = d.tensor((cout // groups * groups,)) if d.some(0.6) else None
    stride, padding = [d.size(1, 3) for _ in range(n)], [d.random.randint(0, k) for k in kernel]
    dilation = [d.pick(1, 1, 2) for _ in range(n)]
    return x, weight, bias, stride, padding, dilation, groups


def one_for_all(d, sizes):
    """Sometimes a list of one, which stands for every dimension."""
    return sizes[:1] if d.some(0.2) else sizes


def convolution(d, n):
    x, weight, bias, stride, padding, dilation, groups = conv_arguments(d, n)
    return x, weight, bias, one_for_all(d, stride), one_for_all(d, padding), one_for_all(d, dilation), groups


def same_or_valid(d, n):
    x, weight, bias, _, _, dilation, groups = conv_arguments(d, n)
    return x, weight, bias, [1] * n, d.pick("same", "valid"), dilation, groups


def transposed(d, n):
    x, weight, bias, stride, padding, dilation, groups = conv_arguments(d, n, True)
    return x, weight, bias, stride, padding, [d.random.randint(0, s - 1) for s in stride], groups, dilation


for _n in (1, 2, 3):
    MAKERS[f"aten.conv{_n}d.default"] = lambda d, n=_n: convolution(d, n)
    MAKERS[f"aten.conv{_n}d.padding"] = lambda d, n=_n: same_or_valid(d, n)
    MAKERS[f"aten.conv_transpose{_n}d.{'default' if _n == 1 else 'input'}"] = lambda d, n=_n: transposed(d, n)


@maker("aten.convolution.default", "aten._convolution.default")
def _(d):
    n, turned = d.pick(1, 2, 2, 3), d.some(0.4)
    x, weight, bias, stride, padding, dilation, groups = conv_arguments(d, n, turned)
    extra = [d.random.randint(0, s - 1) if turned else 0 for s in stride]
    return x, weight, bias, stride, padding, dilation, turned, extra, groups


MAKERS["aten._convolution.default"] = lambda d: (*MAKERS["aten.convolution.default"](d), False, False, False, False)


@maker("aten._convolution_mode.default")
def _(d):
    return same_or_valid(d, d.pick(1, 2, 3))


@maker("aten.conv_tbc.default")
def _(d):
    cin, cout, k = d.size(), d.size(), d.size(1, 3)
    return d.tensor((d.size(3, 6), d.size(1, 2), cin)), d.tensor((k, cin, cout)), d.tensor((cout,)), d.random.randint(0, 2)


def pool_arguments(d, n):
    kernel = window(d, n)
    batch = () if d.some(0.2) else (d.pick(1, 2),)
    x = d.tensor((*batch, 3, *spatial(d, n, 4, 8 if n < 3 else 5)))
    stride = d.pick([], [d.size(1, 3) for _ in range(n)], [2])
    return x, kernel, stride, [d.random.randint(0, k // 2) for k in kernel]


def max_pool(d, n):
    return *pool_arguments(d, n), d.pick([1], [1], [2] * n), d.some(0.3)


def avg_pool(d, n):
    return *pool_arguments(d, n), d.some(0.3), d.some(0.5), *([] if n == 1 else [d.pick(None, None, 3)])


def adaptive(d, n, holes=False):
    batch = () if d.some(0.2) else (d.pick(1, 2),)
    sizes = [d.size(1, 4) for _ in range(n)]
    if holes and n > 1 and d.some(0.2):
        sizes[0] = None
    return d.tensor((*batch, 2, *spatial(d, n, 3, 7 if n < 3 else 5))), sizes


for _n in (1, 2, 3):
    MAKERS[f"aten.max_pool{_n}d.default"] = lambda d, n=_n: max_pool(d, n)
    MAKERS[f"aten.max_pool{_n}d_with_indices.default"] = MAKERS[f"aten.max_pool{_n}d.default"]
    MAKERS[f"aten.avg_pool{_n}d.default"] = lambda d, n=_n: avg_pool(d, n)
    MAKERS[f"aten.adaptive_avg_pool{_n}d.default"] = lambda d, n=_n: adaptive(d, n)
    MAKERS[f"aten._adaptive_avg_pool{_n}d.default"] = MAKERS[f"aten.adaptive_avg_pool{_n}d.default"]
    MAKERS[f"aten.adaptive_max_pool{_n}d.default"] = MAKERS[f"aten.adaptive_avg_pool{_n}d.default"]


@maker("aten.im2col.default")
def _(d):
    batch = () if d.some(0.2) else (d.pick(1, 2),)
    return d.tensor((*batch, d.size(1, 3), d.size(4, 6), d.size(4, 6))), window(d, 2), [d.size(1, 2), d.size(1, 2)], \
        [d.random.randint(0, 1), d.random.randint(0, 1)], d.pick([1, 1], [2, 1])


@maker("aten.col2im.default")
def _(d):
    size, kernel = [d.size(4, 6), d.size(4, 6)], [d.size(1, 3), d.size(1, 3)]
    dilation, padding, stride = [d.size(1, 2), 1], [d.random.randint(0, 1), 0], [d.size(1, 2), d.size(1, 2)]
    places = [(s + 2 * p - dl * (k - 1) - 1) // st + 1 for s, p, dl, k, st in zip(size, padding, dilation, kernel, stride)]
    batch = () if d.some(0.2) else (d.pick(1, 2),)
    return d.tensor((*batch, d.size(1, 3) * kernel[0] * kernel[1], places[0] * places[1])), size, kernel, dilation, padding, stride


@maker("aten.max_unpool2d.default")
def _(d):
    x, at = torch.nn.functional.max_pool2d(d.tensor((1, 2, 4, 6), torch.float32), 2, return_indices=True)
    return x, at, [4, 6]
