"""Random arguments for any ATen operator, read from its signature: shapes, dtypes, dims, scalars, defaults given or left out.

`draw(name, random)` gives one candidate call; whoever asks tries it in PyTorch and draws again when PyTorch refuses it.
Operators whose arguments depend on each other have a maker of their own below.
"""
import torch

FLOATS, INTS = (torch.float32, torch.float32, torch.float32, torch.float16, torch.bfloat16), (torch.int64, torch.int32)
# float64 becomes float32 on the way; narrow integers have few kernels in any runtime.
RARE = (torch.float64, torch.uint8, torch.int8, torch.int16)
MAKERS = {}


def maker(*names):
    def register(function):
        for name in names:
            MAKERS[name] = function
        return function
    return register


def resolve(name):
    _, packet, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


class Draw:
    """One call: tensors from `random`, all others remembered so that arguments fit each other."""

    def __init__(self, random):
        self.random = random
        self.kind = random.choice((*FLOATS, *FLOATS, *INTS, torch.bool, random.choice(RARE)))
        self.shape = self.any_shape()

    def any_shape(self, low=0, high=4):
        return tuple(self.random.choice((1, 2, 3, 4, 5)) for _ in range(self.random.randint(low, high)))

    def generator(self):
        return torch.Generator().manual_seed(self.random.getrandbits(32))

    def tensor(self, shape=None, kind=None, low=-2.0, high=2.0):
        shape, kind = self.shape if shape is None else tuple(shape), kind or self.kind
        if kind == torch.bool:
            return torch.rand(shape, generator=self.generator()) > 0.5
        if kind.is_floating_point:
            return (torch.rand(shape, generator=self.generator()) * (high - low) + low).to(kind)
        bottom = 0 if kind == torch.uint8 else -9
        return torch.randint(bottom, 10, shape, generator=self.generator()).to(kind)

    def related(self):
        """A shape that broadcasts with the first one, mostly."""
        pick = self.random.random()
        if pick < 0.5:
            return self.shape
        if pick < 0.9:
            shape = tuple(d if self.random.random() < 0.7 else 1 for d in self.shape)
            return shape[self.random.randint(0, len(shape)):] if self.random.random() < 0.3 else shape
        return self.any_shape()

    def index(self, size, shape=None, negative=False):
        shape = self.any_shape(1, 2) if shape is None else shape
        return torch.randint(-size if negative else 0, size, shape, generator=self.generator())

    def dim(self, rank=None):
        rank = len(self.shape) if rank is None else rank
        return self.random.randint(-rank, rank - 1) if rank else self.random.choice((0, -1))

    def dims(self):
        rank = len(self.shape)
        chosen = self.random.sample(range(rank), self.random.randint(0, rank))
        return [d - rank if self.random.random() < 0.5 else d for d in chosen]

    def number(self):
        return self.random.choice((0, 1, 2, 3, -1, -2, 0.5, 1.5, -0.75, 2.0))

    def second_kind(self):
        return self.kind if self.random.random() < 0.75 else self.random.choice((*FLOATS, *INTS))


def argument(d, arg, first):
    """A value for one argument of the signature."""
    kind, name = str(arg.type), arg.name
    optional = kind.startswith("Optional[")
    if optional:
        if d.random.random() < 0.4:
            return None
        kind = kind[9:-1]
    if kind == "Tensor":
        return d.tensor() if first else d.tensor(d.related(), d.second_kind())
    if kind == "List[Tensor]":
        return [d.tensor() for _ in range(d.random.randint(1, 3))]
    if kind == "number":
        return d.number()
    if kind == "bool":
        return d.random.random() < 0.5
    if kind == "float":
        return d.random.choice((0.1, 0.5, 1.0, 2.0, 1e-5))
    if kind in ("int", "SymInt"):
        if "dim" in name or name in ("axis0", "axis1", "source", "destination", "start_dim", "end_dim"):
            return d.dim()
        if name == "dtype" or name == "layout":
            return None
        return d.random.randint(0, 3)
    if kind in ("List[int]", "List[SymInt]"):
        if "dim" in name:
            return d.dims()
        return [d.random.randint(0, 3) for _ in range(d.random.randint(1, 3))]
    if kind == "ScalarType" or name == "dtype":
        return d.random.choice((torch.float32, torch.int64, torch.int32))
    raise LookupError(f"no values for {name}: {kind}")


IGNORED = {"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking", "out"}


def draw(name, random):
    """(positional arguments, keyword arguments) of one candidate call."""
    d = Draw(random)
    make = MAKERS.get(name) or MAKERS.get(name.replace("_.", "."))  # an in-place form takes what its functional form takes
    if make:
        made = make(d)
        return made if isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], dict) else (made, {})
    schema = resolve(name)._schema
    positional, keywords, first = [], {}, True
    open_end = random.random() < 0.5  # leave out what has a default
    for arg in schema.arguments:
        if arg.name in IGNORED or (str(arg.type) == "int" and arg.name in ("dtype",)):
            continue
        has_default = arg.has_default_value()
        if arg.kwarg_only:
            if not has_default or random.random() < 0.4:
                keywords[arg.name] = scalar_type(d) if arg.name == "dtype" else argument(d, arg, first)
            continue
        if has_default and open_end and random.random() < 0.5:
            break
        value = scalar_type(d) if arg.name == "dtype" else argument(d, arg, first)
        first = first and not isinstance(value, (torch.Tensor, list))
        positional.append(value)
    return tuple(positional), keywords


def scalar_type(d):
    return d.random.choice((None, torch.float32, torch.int64, torch.int32))


# --- arguments that depend on each other
@maker("aten.view.default", "aten.reshape.default", "aten.view_copy.default", "aten._unsafe_view.default")
def _(d):
    x = d.tensor()
    sizes, left = [], x.numel()
    while left > 1 and d.random.random() < 0.7:
        sizes.append(d.random.choice([k for k in range(1, left + 1) if left % k == 0]))
        left //= sizes[-1]
    sizes.append(left)
    d.random.shuffle(sizes)
    if d.random.random() < 0.3:
        sizes[d.random.randrange(len(sizes))] = -1
    return x, sizes


@maker("aten.expand.default", "aten.broadcast_to.default", "aten.expand_copy.default")
def _(d):
    x = d.tensor([s if d.random.random() < 0.5 else 1 for s in d.shape])
    size = [d.random.choice((s, -1)) if s != 1 else d.random.choice((1, 2, 3)) for s in x.shape]
    return x, [d.random.choice((1, 2)) for _ in range(d.random.randint(0, 2))] + size


@maker("aten.permute.default", "aten.permute_copy.default")
def _(d):
    return d.tensor(), d.random.sample(range(len(d.shape)), len(d.shape))


@maker("aten.repeat.default", "aten.tile.default")
def _(d):
    return d.tensor(), [d.random.choice((1, 2, 3)) for _ in range(len(d.shape) + d.random.randint(0, 1))]


@maker("aten.slice.Tensor", "aten.slice_copy.Tensor")
def _(d):
    d.shape = d.any_shape(1)
    return d.tensor(), d.dim(), d.random.choice((None, 0, 1, -2)), d.random.choice((None, 2, 3, 99, -1)), d.random.choice((1, 1, 2, 3))


@maker("aten.slice_scatter.default")
def _(d):
    x = d.tensor((4, 6, 3))
    start, end, step = d.random.choice(((0, 4, 1), (1, 4, 2), (-3, 99, 1), (None, None, 1), (0, 4, 3)))
    return x, x[:, start:end:step] * 2 if d.kind != torch.bool else x[:, start:end:step], 1, start, end, step


@maker("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def _(d):
    d.shape = d.any_shape(1)
    dim = d.dim()
    parts = []
    for _ in range(d.random.randint(1, 4)):
        shape = list(d.shape)
        shape[dim] = d.random.choice((1, 2, 3))
        parts.append(d.tensor(shape, d.second_kind()))
    return parts, dim


@maker("aten.split_with_sizes.default", "aten.split.sizes", "aten.split_with_sizes_copy.default", "aten.unsafe_split_with_sizes.default")
def _(d):
    d.shape = (*d.any_shape(0, 2), 6)
    return d.tensor(), d.random.choice(([1, 2, 3], [6], [2, 2, 2], [5, 1])), -1


@maker("aten.constant_pad_nd.default")
def _(d):
    d.shape = d.any_shape(1)
    pads = [d.random.choice((0, 1, 2, -1)) for _ in range(2 * d.random.randint(1, len(d.shape)))]
    return d.tensor(), pads, d.random.choice((0, 1, 0.5 if d.kind.is_floating_point else 2))


@maker("aten.reflection_pad1d.default", "aten.replication_pad1d.default")
def _(d):
    return d.tensor((*d.any_shape(1, 2), 5)), [d.random.randint(0, 3), d.random.randint(0, 3)]


@maker("aten.reflection_pad2d.default", "aten.replication_pad2d.default")
def _(d):
    return d.tensor((2, 3, 5, 4)), [d.random.randint(0, 3) for _ in range(4)]


@maker("aten.gather.default")
def _(d):
    d.shape = d.any_shape(1, 3)
    dim = d.dim()
    shape = [d.random.randint(1, s) for s in d.shape]
    return d.tensor(), dim, d.index(d.shape[dim], shape)


@maker("aten.take_along_dim.default")
def _(d):
    d.shape = d.any_shape(1, 3)
    dim = d.dim()
    shape = list(d.shape)
    shape[dim] = 2
    return d.tensor(), d.index(d.shape[dim], shape), dim


@maker("aten.scatter.src", "aten.scatter_add.default")
def _(d):
    d.shape = (d.random.randint(2, 5), d.random.randint(1, 4))
    rows = d.random.randint(1, d.shape[0])
    index = torch.stack([torch.randperm(d.shape[0], generator=d.generator())[:rows] for _ in range(d.shape[1])], 1)
    return d.tensor(), 0, index, d.tensor(index.shape)


@maker("aten.scatter.value")
def _(d):
    d.shape = d.any_shape(1, 3)
    dim = d.dim()
    return d.tensor(), dim, d.index(d.shape[dim], [d.random.randint(1, s) for s in d.shape]), d.number()


@maker("aten.scatter_reduce.two")
def _(d):
    d.shape = d.any_shape(1, 3)
    dim = d.dim()
    index = d.index(d.shape[dim], [d.random.randint(1, s) for s in d.shape])
    how = d.random.choice(("sum", "prod", "mean", "amax", "amin"))
    return (d.tensor(), dim, index, d.tensor(d.shape), how), {"include_self": d.random.random() < 0.5}


@maker("aten.index_reduce.default")
def _(d):
    d.shape = d.any_shape(1, 3)
    dim, n = d.dim(), d.random.randint(1, 4)
    source = list(d.shape)
    source[dim] = n
    return (d.tensor(), dim, d.index(d.shape[dim], (n,)), d.tensor(source), d.random.choice(("prod", "mean", "amax", "amin"))), {"include_self": d.random.random() < 0.5}


@maker("aten.index_select.default", "aten.index_fill.int_Scalar")
def _(d):
    d.shape = d.any_shape(1)
    dim = d.dim()
    return d.tensor(), dim, d.index(d.shape[dim], (d.random.randint(1, 4),)), d.number()


MAKERS["aten.index_select.default"] = lambda d: MAKERS["aten.index_fill.int_Scalar"](d)[:3]


@maker("aten.index_add.default", "aten.index_copy.default")
def _(d):
    d.shape = d.any_shape(1, 3)
    dim = d.dim()
    index = torch.randperm(d.shape[dim], generator=d.generator())[:d.random.randint(1, d.shape[dim])]
    source = list(d.shape)
    source[dim] = len(index)
    return d.tensor(), dim, index, d.tensor(source)


def positions(d):
    """An index list for a tensor of shape `d.shape`, None for whole dimensions."""
    at = d.random.choice(((3,), (2, 1), (1,)))
    chosen = d.random.sample(range(len(d.shape)), d.random.randint(1, len(d.shape)))
    return [d.index(size, at, negative=True) if i in chosen else None for i, size in enumerate(d.shape)]


@maker("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _(d):
    d.shape = d.any_shape(1, 3)
    return d.tensor(), positions(d)


@maker("aten.index_put.default", "aten._unsafe_index_put.default")
def _(d):
    d.shape = d.any_shape(1, 3)
    if d.random.random() < 0.3:
        return d.tensor(), [d.tensor(d.shape[:d.random.randint(1, len(d.shape))], torch.bool)], d.tensor(())
    where = positions(d)
    value = d.tensor(d.random.choice(((), (1,))))
    return d.tensor(), where, value, d.random.random() < 0.3 and d.kind != torch.bool


@maker("aten.masked_scatter.default")
def _(d):
    x = d.tensor()
    return x, d.tensor(d.shape, torch.bool), d.tensor((x.numel(),))


@maker("aten.embedding.default")
def _(d):
    return d.tensor((5, 3)), d.index(5)


@maker("aten.one_hot.default")
def _(d):
    return d.index(4, d.shape), d.random.choice((4, 6))


@maker("aten.mm.default")
def _(d):
    return d.tensor((3, 4)), d.tensor((4, d.random.randint(1, 5)))


@maker("aten.bmm.default")
def _(d):
    return d.tensor((2, 3, 4)), d.tensor((2, 4, 5))


@maker("aten.matmul.default", "aten.linalg_matmul.default")
def _(d):
    left = d.random.choice(((4,), (3, 4), (2, 3, 4), (5, 1, 3, 4)))
    right = d.random.choice(((4,), (4, 2), (2, 4, 3), (1, 2, 4, 3)))
    return d.tensor(left), d.tensor(right)


@maker("aten.linear.default")
def _(d):
    return d.tensor((*d.any_shape(0, 3), 4)), d.tensor((3, 4)), *([d.tensor((3,))] if d.random.random() < 0.6 else [])


@maker("aten.addmm.default")
def _(d):
    return (d.tensor(d.random.choice(((5,), (3, 5), (1, 5)))), d.tensor((3, 4)), d.tensor((4, 5))), d.random.choice(({}, {"beta": 2, "alpha": 3}))


@maker("aten.baddbmm.default")
def _(d):
    return (d.tensor((2, 3, 5)), d.tensor((2, 3, 4)), d.tensor((2, 4, 5))), d.random.choice(({}, {"beta": 2, "alpha": 3}))


def window(d, n):
    return [d.random.randint(1, 3) for _ in range(n)]


def conv_arguments(d, n, transposed=False):
    groups = d.random.choice((1, 1, 2, 4))
    cin, cout = 4, d.random.choice((4, 8))
    kernel = window(d, n)
    x = d.tensor((d.random.choice((1, 2)), cin, *(d.random.randint(4, 7) for _ in range(n))))
    weight = d.tensor((cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel))
    bias = d.tensor((cout,)) if d.random.random() < 0.6 else None
    stride, padding = [d.random.randint(1, 2) for _ in range(n)], [d.random.randint(0, k - 1) for k in kernel]
    dilation = [d.random.choice((1, 1, 2)) for _ in range(n)]
    return x, weight, bias, stride, padding, dilation, groups


for _n, _name in ((1, "conv1d"), (2, "conv2d"), (3, "conv3d")):
    MAKERS[f"aten.{_name}.default"] = lambda d, n=_n: conv_arguments(d, n)
    MAKERS[f"aten.{_name}.padding"] = lambda d, n=_n: (lambda a: (*a[:3], [1] * n, d.random.choice(("same", "valid")), *a[5:]))(conv_arguments(d, n))
    MAKERS[f"aten.conv_transpose{_n}d.{'default' if _n == 1 else 'input'}"] = lambda d, n=_n: (lambda a: (*a[:5], [d.random.randint(0, s - 1) for s in a[3]], a[6], a[5]))(conv_arguments(d, n, True))


@maker("aten.convolution.default")
def _(d):
    n, transposed = d.random.choice((1, 2, 2)), d.random.random() < 0.4
    a = conv_arguments(d, n, transposed)
    return *a[:6], transposed, [0] * n, a[6]


def pool_arguments(d, n):
    kernel = window(d, n)
    x = d.tensor((1, 3, *(d.random.randint(4, 8) for _ in range(n))))
    return x, kernel, d.random.choice(([], [2] * n, [1] * n)), [d.random.randint(0, k // 2) for k in kernel]


for _n in (1, 2, 3):
    MAKERS[f"aten.max_pool{_n}d.default"] = lambda d, n=_n: (*pool_arguments(d, n), d.random.choice((1, 1, 2)), d.random.random() < 0.3)
    MAKERS[f"aten.avg_pool{_n}d.default"] = lambda d, n=_n: (*pool_arguments(d, n), d.random.random() < 0.3, d.random.random() < 0.5)
    if _n > 1:
        MAKERS[f"aten.max_pool{_n}d_with_indices.default"] = MAKERS[f"aten.max_pool{_n}d.default"]
    MAKERS[f"aten.adaptive_avg_pool{_n}d.default"] = lambda d, n=_n: (d.tensor((1, 2, *(d.random.randint(3, 7) for _ in range(n)))), [d.random.randint(1, 4) for _ in range(n)])
    MAKERS[f"aten.adaptive_max_pool{_n}d.default"] = MAKERS[f"aten.adaptive_avg_pool{_n}d.default"]


@maker("aten.layer_norm.default")
def _(d):
    d.shape = d.any_shape(1)
    tail = list(d.shape[-d.random.randint(1, len(d.shape)):])
    weight, bias = d.random.choice(((None, None), (d.tensor(tail), d.tensor(tail)), (d.tensor(tail), None)))
    return d.tensor(), tail, weight, bias, 1e-3


@maker("aten.rms_norm.default")
def _(d):
    d.shape = d.any_shape(1)
    tail = list(d.shape[-1:])
    return d.tensor(), tail, d.random.choice((None, d.tensor(tail))), d.random.choice((1e-3, None))


@maker("aten.group_norm.default")
def _(d):
    d.shape = (2, 6, *d.any_shape(0, 2))
    weight, bias = d.random.choice(((None, None), (d.tensor((6,)), d.tensor((6,)))))
    return d.tensor(), d.random.choice((1, 2, 3)), weight, bias, 1e-3


@maker("aten._native_batch_norm_legit_no_training.default")
def _(d):
    d.shape = (2, 3, *d.any_shape(0, 2))
    weight, bias = d.random.choice(((None, None), (d.tensor((3,)), d.tensor((3,)))))
    return d.tensor(), weight, bias, d.tensor((3,)), d.tensor((3,), low=0.5), 0.1, 1e-3


@maker("aten.scaled_dot_product_attention.default")
def _(d):
    batch = d.random.choice(((2,), (1, 2)))
    q, k, v = d.tensor((*batch, 3, 4)), d.tensor((*batch, 5, 4)), d.tensor((*batch, 5, 4))
    mask = d.random.choice((None, None, d.tensor((3, 5)), torch.ones(3, 5, dtype=torch.bool).tril(2)))
    return (q, k, v, mask), d.random.choice(({}, {"scale": 0.3}, {"is_causal": True} if mask is None else {}))


@maker("aten.topk.default")
def _(d):
    d.shape = d.any_shape(1, 3)
    dim = d.dim()
    x = torch.randperm(torch.Size(d.shape).numel(), generator=d.generator()).reshape(d.shape).to(d.kind)  # no ties
    return x, d.random.randint(1, d.shape[dim]), dim, d.random.random() < 0.7


@maker("aten.sort.default", "aten.argsort.default")
def _(d):
    d.shape = d.any_shape(1, 3)
    x = torch.randperm(torch.Size(d.shape).numel(), generator=d.generator()).reshape(d.shape).to(d.kind)
    return x, d.dim(), d.random.random() < 0.5


@maker("aten.upsample_nearest2d.vec")
def _(d):
    return d.tensor((1, 2, d.random.randint(2, 5), d.random.randint(2, 5))), *d.random.choice((([5, 7], None), (None, [2.0, 2.0]), (None, [1.5, 3.0])))


@maker("aten.upsample_bilinear2d.vec", "aten.upsample_bicubic2d.vec")
def _(d):
    x = d.tensor((1, 2, d.random.randint(2, 5), d.random.randint(2, 5)))
    return (x, [5, 7], d.random.random() < 0.5, None) if d.random.random() < 0.5 else (x, None, d.random.random() < 0.5, [2.0, 3.0])


@maker("aten.pixel_shuffle.default")
def _(d):
    return d.tensor((*d.any_shape(0, 1), 8, 2, 3)), 2


@maker("aten.pixel_unshuffle.default")
def _(d):
    return d.tensor((*d.any_shape(0, 1), 2, 4, 6)), 2


@maker("aten.glu.default")
def _(d):
    return d.tensor((*d.any_shape(0, 2), 6)), -1


@maker("aten.prelu.default")
def _(d):
    x = d.tensor((2, 3, *d.any_shape(0, 2)))
    return x, d.tensor(d.random.choice(((1,), (3,))), d.kind)


@maker("aten.gelu.default")
def _(d):
    return (d.tensor(),), d.random.choice(({}, {"approximate": "tanh"}, {"approximate": "none"}))


for _name in ("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.divide.Tensor_mode", "aten.divide.Scalar_mode"):
    MAKERS[_name] = lambda d, n=_name: ((d.tensor(), d.tensor(d.related(), d.second_kind()) if "Tensor" in n else d.number()),
                                        {"rounding_mode": d.random.choice((None, "trunc", "floor"))})


@maker("aten.einsum.default")
def _(d):
    equation, shapes = d.random.choice((("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bkj->bik", ((2, 3, 4), (2, 5, 4))), ("ii->i", ((3, 3),)),
                                        ("...i,i->...", ((2, 3, 4), (4,))), ("ij->ji", ((2, 3),)), ("i,j->ij", ((2,), (3,)))))
    return equation, [d.tensor(s) for s in shapes]


@maker("aten._softmax.default", "aten._log_softmax.default")
def _(d):
    return d.tensor(), d.dim(), False


@maker("aten.cross_entropy_loss.default", "aten.nll_loss_nd.default", "aten.nll_loss.default")
def _(d):
    tail = d.any_shape(0, 2)
    return d.tensor((3, 4, *tail)), d.index(4, (3, *tail)), d.random.choice((None, d.tensor((4,), low=0.5))), d.random.randint(0, 2), d.random.choice((-100, 1))


for _name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss", "kl_div"):
    MAKERS[f"aten.{_name}.default"] = lambda d: (d.tensor(), d.tensor(), d.random.randint(0, 2))


@maker("aten.binary_cross_entropy_with_logits.default", "aten.binary_cross_entropy.default")
def _(d):
    return d.tensor(low=0.05, high=0.95), d.tensor(low=0.0, high=1.0), d.random.choice((None, d.tensor(low=0.5)))


MAKERS["aten.binary_cross_entropy.default"] = lambda d: (d.tensor(low=0.05, high=0.95), d.tensor(low=0.0, high=1.0), None, d.random.randint(0, 2))


@maker("aten.bucketize.Tensor")
def _(d):
    return (d.tensor(kind=torch.float32), torch.tensor([-1.0, 0.0, 0.5, 1.5])), d.random.choice(({}, {"right": True}, {"out_int32": True}))


@maker("aten.searchsorted.Tensor")
def _(d):
    return (torch.tensor([-1.0, 0.0, 0.5, 1.5]), d.tensor(kind=torch.float32)), d.random.choice(({}, {"right": True}))


@maker("aten.bitwise_left_shift.Tensor", "aten.bitwise_right_shift.Tensor", "aten.__lshift__.Tensor", "aten.__rshift__.Tensor")
def _(d):
    return d.tensor(kind=torch.int64), d.index(6, d.shape)  # more bits than there are is undefined


@maker("aten.bitwise_left_shift.Tensor_Scalar", "aten.bitwise_right_shift.Tensor_Scalar", "aten.__lshift__.Scalar", "aten.__rshift__.Scalar")
def _(d):
    return d.tensor(kind=torch.int64), d.random.randint(0, 6)


@maker("aten.mv.default")
def _(d):
    return d.tensor((3, 4)), d.tensor((4,))


@maker("aten.addmv.default")
def _(d):
    return d.tensor((3,)), d.tensor((3, 4)), d.tensor((4,))


@maker("aten.addbmm.default")
def _(d):
    return d.tensor((3, 5)), d.tensor((2, 3, 4)), d.tensor((2, 4, 5))


@maker("aten.im2col.default")
def _(d):
    return d.tensor((1, 2, 5, 6)), window(d, 2), [1, 1], [1, 0], d.random.choice(([1, 1], [2, 1]))


@maker("aten.col2im.default")
def _(d):
    return d.tensor((1, 8, 20)), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]


@maker("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default", "aten.embedding_bag.default")
def _(d):
    return d.tensor((6, 3)), d.index(6, (7,)), torch.tensor([0, 2, 2, 5]), False, d.random.randint(0, 2)


@maker("aten.batch_norm.default")
def _(d):
    d.shape = (2, 3, *d.any_shape(0, 2))
    return d.tensor(), d.tensor((3,)), d.tensor((3,)), d.tensor((3,)), d.tensor((3,), low=0.5), False, 0.1, 1e-3, False


@maker("aten.instance_norm.default")
def _(d):
    d.shape = (2, 3, 4, *d.any_shape(0, 1))
    weight, bias = d.random.choice(((None, None), (d.tensor((3,)), d.tensor((3,)))))
    return d.tensor(), weight, bias, None, None, True, 0.1, 1e-3, False


@maker("aten.native_group_norm.default")
def _(d):
    return d.tensor((2, 6, 4)), d.tensor((6,)), d.tensor((6,)), 2, 6, 4, 3, 1e-3


@maker("aten.masked_fill.Tensor")
def _(d):
    return d.tensor(), d.tensor(d.shape, torch.bool), d.tensor(())


@maker("aten.select_scatter.default")
def _(d):
    return d.tensor((3, 4)), d.tensor((3,)), 1, d.random.choice((0, -1, 2))


@maker("aten.diagonal_scatter.default")
def _(d):
    return d.tensor((4, 4)), d.tensor((3,)), d.random.choice((1, -1))


@maker("aten.scatter.reduce")
def _(d):
    return (d.tensor((4, 3)), 0, d.index(4, (2, 3)), d.tensor((2, 3))), {"reduce": d.random.choice(("add", "multiply"))}


@maker("aten.scatter.value_reduce")
def _(d):
    return (d.tensor((4, 3)), 0, d.index(4, (2, 3)), 2), {"reduce": d.random.choice(("add", "multiply"))}


@maker("aten.nll_loss_forward.default")
def _(d):
    return d.tensor((3, 4)), d.index(4, (3,)), None, d.random.randint(0, 2), -100


@maker("aten.nll_loss2d_forward.default")
def _(d):
    return d.tensor((3, 4, 2, 2)), d.index(4, (3, 2, 2)), None, d.random.randint(0, 2), -100


@maker("aten.index_fill.int_Tensor")
def _(d):
    return d.tensor((3, 4)), 1, d.index(4, (2,)), d.tensor(())


for _n, _name in ((1, "linear1d"), (3, "trilinear3d")):
    MAKERS[f"aten.upsample_{_name}.vec"] = lambda d, n=_n: (d.tensor((1, 2, *[3] * n)), [5] * n, d.random.random() < 0.5, None)
for _n in (1, 2, 3):
    MAKERS[f"aten._upsample_nearest_exact{_n}d.vec"] = lambda d, n=_n: (d.tensor((1, 2, *[3] * n)), [5] * n, None)
    if _n != 2:
        MAKERS[f"aten.upsample_nearest{_n}d.vec"] = MAKERS[f"aten._upsample_nearest_exact{_n}d.vec"]


@maker("aten.lstm_cell.default", "aten.gru_cell.default", "aten.rnn_tanh_cell.default")
def _(d):
    return d.tensor((2, 3)), d.tensor((2, 4)), d.tensor((4, 3)), d.tensor((4, 4))


MAKERS["aten.gru_cell.default"] = lambda d: (d.tensor((2, 3)), d.tensor((2, 4)), d.tensor((12, 3)), d.tensor((12, 4)))
MAKERS["aten.lstm_cell.default"] = lambda d: (d.tensor((2, 3)), [d.tensor((2, 4)), d.tensor((2, 4))], d.tensor((16, 3)), d.tensor((16, 4)))


@maker("aten.as_strided.default")
def _(d):
    return d.tensor((24,)), [2, 3], d.random.choice(([3, 1], [1, 2], [6, 2])), d.random.randint(0, 4)


@maker("aten.arange.start_step")
def _(d):
    return d.random.choice(((0, 7, 2), (1.0, 3.0, 0.5), (5, 0, -1)))


@maker("aten.full.default")
def _(d):
    return list(d.shape), d.number()


@maker("aten.logit.default", "aten.special_logit.default")
def _(d):
    return d.tensor(low=0.1, high=0.9), d.random.choice((None, 0.2))
