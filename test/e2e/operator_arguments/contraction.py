"""Products of matrices, attention, recurrent cells and layers."""
import torch

from .draw import MAKERS, maker


@maker("aten.mm.default")
def _(d):
    k = d.size()
    return d.tensor((d.size(), k)), d.tensor((k, d.size()))


@maker("aten.bmm.default")
def _(d):
    b, k = d.size(1, 3), d.size()
    return d.tensor((b, d.size(), k)), d.tensor((b, k, d.size()))


@maker("aten.matmul.default", "aten.linalg_matmul.default")
def _(d):
    left = d.pick((4,), (3, 4), (2, 3, 4), (5, 1, 3, 4), (0, 4))
    right = d.pick((4,), (4, 2), (2, 4, 3), (1, 2, 4, 3), (2, 1, 1, 4, 3))
    return d.tensor(left), d.tensor(right)


@maker("aten.dot.default", "aten.inner.default", "aten.vdot.default", "aten.linalg_vecdot.default")
def _(d):
    n = d.size()
    return d.tensor((n,)), d.tensor((n,))


@maker("aten.linear.default")
def _(d):
    k, n = d.size(), d.size()
    return d.tensor((*d.any_shape(0, 4), k)), d.tensor((n, k)), *([d.tensor((n,))] if d.some(0.6) else [])


def scaled(d):
    return d.pick({}, {"beta": 2, "alpha": 3}, {"beta": 0}, {"alpha": -1})


@maker("aten.addmm.default")
def _(d):
    m, k, n = d.size(), d.size(), d.size()
    return (d.tensor(d.pick((n,), (m, n), (1, n), ())), d.tensor((m, k)), d.tensor((k, n))), scaled(d)


@maker("aten.baddbmm.default")
def _(d):
    b, m, k, n = d.size(1, 3), d.size(), d.size(), d.size()
    return (d.tensor(d.pick((b, m, n), (n,), (1, 1, n))), d.tensor((b, m, k)), d.tensor((b, k, n))), scaled(d)


@maker("aten.addbmm.default")
def _(d):
    b, m, k, n = d.size(1, 3), d.size(), d.size(), d.size()
    return (d.tensor((m, n)), d.tensor((b, m, k)), d.tensor((b, k, n))), scaled(d)


@maker("aten.mv.default")
def _(d):
    k = d.size()
    return d.tensor((d.size(), k)), d.tensor((k,))


@maker("aten.addmv.default")
def _(d):
    m, k = d.size(), d.size()
    return (d.tensor(d.pick((m,), (1,), ())), d.tensor((m, k)), d.tensor((k,))), scaled(d)


@maker("aten.addr.default")
def _(d):
    m, n = d.size(), d.size()
    return (d.tensor(d.pick((m, n), (n,), ())), d.tensor((m,)), d.tensor((n,))), scaled(d)


@maker("aten.chain_matmul.default", "aten.linalg_multi_dot.default")
def _(d):
    sizes = [d.size() for _ in range(d.size(3, 5))]
    return ([d.tensor(pair) for pair in zip(sizes, sizes[1:])],)


@maker("aten.linalg_cross.default")
def _(d):
    d.shape = list(d.any_shape(1, 4))
    dim = d.dim()
    d.shape[dim] = 3
    return (d.tensor(), d.tensor()), {"dim": dim}


@maker("aten.cross.default")
def _(d):
    (a, b), keywords = MAKERS["aten.linalg_cross.default"](d)
    return a, b, keywords["dim"]


@maker("aten.linalg_matrix_power.default", "aten.matrix_power.default")
def _(d):
    n = d.size(1, 4)
    return d.tensor((*d.any_shape(0, 2), n, n), low=-1, high=1), d.random.randint(0, 4)


@maker("aten.bilinear.default")
def _(d):
    a, b, n, lead = d.size(), d.size(), d.size(), d.any_shape(1, 2)
    return d.tensor((*lead, a)), d.tensor((*lead, b)), d.tensor((n, a, b)), d.pick(None, d.tensor((n,)))


@maker("aten._trilinear.default")
def _(d):
    """What bilinear is made of: rows of a and b against weights, in one product of rank 4."""
    a, b, n, lead = d.size(), d.size(), d.size(), d.size()
    return d.tensor((lead, a)), d.tensor((n, a, b)), d.tensor((lead, b)), d.pick([1, 3], [-1, 1]), [d.pick(0, -4)], [1, 2], d.pick([2, 3], [-1], [3, 0]), d.pick(0, 1)


def square(d):
    """Matrices away from singular ones, whose rows stand in any order."""
    n, kind = d.size(1, 6), d.pick(torch.float32, torch.float64)
    order = torch.randperm(n, generator=d.generator())
    return (d.tensor((*d.any_shape(0, 2), n, n), kind, -1, 1) + n * torch.eye(n, dtype=kind))[..., order, :]


@maker("aten.det.default", "aten.linalg_det.default", "aten.logdet.default", "aten.slogdet.default", "aten.linalg_slogdet.default")
def _(d):
    return (square(d) * d.pick(1, 1, 1, 0),)


@maker("aten.inverse.default", "aten.linalg_inv.default")
def _(d):
    return (square(d),)


@maker("aten.linalg_solve.default")
def _(d):
    a = square(d)
    left, n, lead = d.some(0.7), a.shape[-1], a.shape[:-2]
    if left and d.some(0.3):
        return (a, d.tensor(d.pick((n,), (*lead, n)), a.dtype)), {}
    return (a, d.tensor((*lead, *((n, d.size()) if left else (d.size(), n))), a.dtype)), {"left": left}


@maker("aten.cholesky.default", "aten.linalg_cholesky.default")
def _(d):
    a = square(d)
    return (a @ a.mT + torch.eye(a.shape[-1], dtype=a.dtype),), d.pick({}, {"upper": True})


EQUATIONS = (("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bkj->bik", ((2, 3, 4), (2, 5, 4))), ("ii->i", ((3, 3),)),
             ("...i,i->...", ((2, 3, 4), (4,))), ("ij->ji", ((2, 3),)), ("i,j->ij", ((2,), (3,))), ("bhqd,bhkd->bhqk", ((1, 2, 3, 4), (1, 2, 5, 4))),
             ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))), ("ij->", ((2, 3),)), ("ij,ij->", ((2, 3), (2, 3))), ("ij,kj", ((2, 3), (4, 3))))


@maker("aten.einsum.default")
def _(d):
    equation, shapes = d.pick(*EQUATIONS)
    return equation, [d.tensor(s) for s in shapes]


@maker("aten.scaled_dot_product_attention.default")
def _(d):
    batch, q, k, e = d.pick((), (2,), (1, 2), (2, 1, 2)), d.size(1, 4), d.size(1, 5), d.size(1, 4)
    causal = d.some(0.3)
    mask = None if causal else d.pick(None, None, d.tensor((q, k)), torch.ones(q, k, dtype=torch.bool).tril(2), d.tensor((*batch, q, k)))
    return (d.tensor((*batch, q, e)), d.tensor((*batch, k, e)), d.tensor((*batch, k, d.pick(e, 3))), mask, 0.0, causal), \
        d.pick({}, {"scale": 0.3})


def cell(d, gates):
    b, i, h = d.size(1, 3), d.size(), d.size()
    biases = (d.tensor((gates * h,)), d.tensor((gates * h,))) if d.some(0.5) else ()
    return d.tensor((b, i)), d.tensor((b, h)), d.tensor((gates * h, i)), d.tensor((gates * h, h)), *biases


for _name, _gates in (("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3)):
    MAKERS[f"aten.{_name}_cell.default"] = lambda d, gates=_gates: cell(d, gates)


@maker("aten.lstm_cell.default")
def _(d):
    x, h, *rest = cell(d, 4)
    return x, [h, d.tensor(h.shape)], *rest


def layers(d, gates):
    """Arguments of a recurrent layer behind its input and state: weights, biases, layers, directions."""
    i, h, depth, two, biases, first = d.size(), d.size(1, 4), d.size(1, 2), d.some(0.4), d.some(0.6), d.some(0.5)
    ways = 2 if two else 1
    weights = []
    for layer in range(depth):
        for _ in range(ways):
            weights += [d.tensor((gates * h, i if layer == 0 else h * ways)), d.tensor((gates * h, h))]
            weights += [d.tensor((gates * h,)), d.tensor((gates * h,))] if biases else []
    steps, batch = d.size(1, 4), d.size(1, 3)
    x = d.tensor((batch, steps, i) if first else (steps, batch, i))
    return x, d.tensor((depth * ways, batch, h)), weights, (biases, depth, 0.0, False, two, first)


for _name, _gates in (("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3)):
    MAKERS[f"aten.{_name}.input"] = lambda d, gates=_gates: (lambda x, h, w, rest: (x, h, w, *rest))(*layers(d, gates))


@maker("aten.lstm.input")
def _(d):
    x, h, weights, rest = layers(d, 4)
    return x, [h, d.tensor(h.shape)], weights, *rest


@maker("aten._int_mm.default")
def _(d):
    k = 8 * d.size(1, 2)  # what the kernel takes
    return d.tensor((d.size(17, 20), k), torch.int8), d.tensor((k, 8 * d.size(1, 2)), torch.int8)
