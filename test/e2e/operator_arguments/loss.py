"""Losses and distances."""
import torch

from .draw import MAKERS, maker


@maker("aten.cross_entropy_loss.default", "aten.nll_loss_nd.default", "aten.nll_loss.default")
def _(d):
    tail, classes = d.any_shape(0, 2), d.size(2, 5)
    lead = () if not tail and d.some(0.3) else (d.size(1, 4),)
    return d.tensor((*lead, classes, *tail)), d.index(classes, (*lead, *tail)), d.pick(None, d.tensor((classes,), low=0.5)), \
        d.random.randint(0, 2), d.pick(-100, 1)


@maker("aten.nll_loss_forward.default")
def _(d):
    classes, n = d.size(2, 5), d.size(1, 4)
    return d.tensor((n, classes)), d.index(classes, (n,)), d.pick(None, d.tensor((classes,), low=0.5)), d.random.randint(0, 2), d.pick(-100, 1)


@maker("aten.nll_loss2d_forward.default", "aten.nll_loss2d.default")
def _(d):
    classes, n, h, w = d.size(2, 5), d.size(1, 3), d.size(1, 3), d.size(1, 3)
    return d.tensor((n, classes, h, w)), d.index(classes, (n, h, w)), d.pick(None, d.tensor((classes,), low=0.5)), d.random.randint(0, 2), -100


for _name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss", "kl_div"):
    MAKERS[f"aten.{_name}.default"] = lambda d: (d.tensor(), d.tensor(), d.random.randint(0, 2))


@maker("aten.binary_cross_entropy_with_logits.default")
def _(d):
    return d.tensor(low=0.05, high=0.95), d.tensor(low=0.0, high=1.0), d.pick(None, d.tensor(low=0.5)), d.pick(None, d.tensor(low=0.5)), d.random.randint(0, 2)


@maker("aten.binary_cross_entropy.default")
def _(d):
    return d.tensor(low=0.05, high=0.95), d.tensor(low=0.0, high=1.0), d.pick(None, d.tensor(low=0.5)), d.random.randint(0, 2)


def rows(d, *kinds):
    """Vectors of one length, one for each of `kinds`, in a batch of any rank."""
    shape = d.any_shape(1, 3)
    return [d.tensor(shape, kind) for kind in kinds]


@maker("aten.cosine_embedding_loss.default")
def _(d):
    n, k = d.size(), d.size()
    return d.tensor((n, k)), d.tensor((n, k)), torch.tensor([d.pick(-1, 1) for _ in range(n)]), d.pick(0.0, 0.5), d.random.randint(0, 2)


@maker("aten.margin_ranking_loss.default")
def _(d):
    return d.tensor(), d.tensor(), d.tensor().sign(), d.pick(0.0, 0.5), d.random.randint(0, 2)


@maker("aten.triplet_margin_loss.default")
def _(d):
    second = d.second_kind()
    return *rows(d, d.kind, second, second), d.pick(1.0, 0.5), d.pick(2.0, 1.0), 1e-6, d.some(0.3), d.random.randint(0, 2)


@maker("aten.hinge_embedding_loss.default")
def _(d):
    return d.tensor(), d.tensor().sign(), d.pick(1.0, 0.5), d.random.randint(0, 2)


@maker("aten.multi_margin_loss.default")
def _(d):
    classes, n = d.size(2, 5), d.size(1, 4)
    return d.tensor((n, classes)), d.index(classes, (n,)), d.pick(1, 2), d.pick(1.0, 0.5), None, d.random.randint(0, 2)


@maker("aten.gaussian_nll_loss.default")
def _(d):
    return d.tensor(), d.tensor(), d.tensor(low=0.5)


@maker("aten.cosine_similarity.default")
def _(d):
    return *rows(d, d.kind, d.kind), -1, d.pick(1e-8, 1e-3)


@maker("aten.pairwise_distance.default")
def _(d):
    return d.tensor(), d.tensor(d.related()), d.pick(2.0, 1.0, 3.0, float("inf")), 1e-6, d.some(0.5)


@maker("aten.cdist.default", "aten._cdist_forward.default")
def _(d):
    batch, k = d.pick((), (2,), (1, 2)), d.size()
    return d.tensor((*batch, d.size(), k)), d.tensor((*batch, d.size(), k)), d.pick(2.0, 1.0, 0.0, 3.0, float("inf")), None


@maker("aten.pdist.default", "aten._pdist_forward.default")
def _(d):
    return d.tensor((d.size(), d.size())), d.pick(2.0, 1.0, 0.0, 3.0, float("inf"))
