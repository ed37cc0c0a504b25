"""Normalizations and softmax."""
import torch

from .draw import MAKERS, maker


def affine(d, shape):
    return d.pick((None, None), (d.tensor(shape), d.tensor(shape)), (d.tensor(shape), None), (None, d.tensor(shape)))


@maker("aten.layer_norm.default", "aten.native_layer_norm.default")
def _(d):
    d.shape = d.any_shape(1)
    tail = list(d.shape[-d.random.randint(1, len(d.shape)):])
    return d.tensor(), tail, *affine(d, tail), d.pick(1e-3, 1e-5)


@maker("aten.rms_norm.default", "aten._fused_rms_norm.default")
def _(d):
    d.shape = d.any_shape(1)
    tail = list(d.shape[-d.random.randint(1, min(2, len(d.shape))):])
    return d.tensor(), tail, d.pick(None, d.tensor(tail)), d.pick(1e-3, None)


@maker("aten.group_norm.default")
def _(d):
    groups, of = d.size(1, 3), d.size(1, 3)
    d.shape = (d.size(1, 3), groups * of, *d.any_shape(0, 3))
    return d.tensor(), groups, *affine(d, (groups * of,)), 1e-3


@maker("aten.native_group_norm.default")
def _(d):
    x, groups, weight, bias, eps = MAKERS["aten.group_norm.default"](d)
    n, c = x.shape[:2]
    weight, bias = (t if t is None else t.contiguous() for t in (weight, bias))  # PyTorch 2.13 reads them as if they were
    return x, weight, bias, n, c, x.numel() // (n * c), groups, eps


def batch(d, low=0):
    c = d.size(1, 4)
    d.shape = (d.size(1, 3), c, *d.any_shape(low, 3))
    return d.tensor(), *affine(d, (c,)), d.tensor((c,)), d.tensor((c,), low=0.5)


@maker("aten._native_batch_norm_legit_no_training.default")
def _(d):
    return *batch(d), 0.1, 1e-3


@maker("aten.batch_norm.default")
def _(d):
    return *batch(d), False, 0.1, 1e-3, False


@maker("aten.native_batch_norm.default", "aten._native_batch_norm_legit.default")
def _(d):
    return *batch(d), False, 0.1, 1e-3


@maker("aten._native_batch_norm_legit_functional.default")
def _(d):
    return *batch(d), d.some(0.3), 0.1, 1e-3


@maker("aten.miopen_batch_norm.default", "aten._batch_norm_no_update.default")
def _(d):
    return *batch(d), 0.1, 1e-3


@maker("aten.instance_norm.default")
def _(d):
    x, weight, bias, mean, var = batch(d, 1)
    running = d.some(0.3)
    return x, weight, bias, mean if running else None, var if running else None, not running, 0.1, 1e-3, False


@maker("aten._softmax.default", "aten._log_softmax.default")
def _(d):
    d.kind = d.kind if d.kind.is_floating_point else torch.float32  # PyTorch takes integers where there are none
    return d.tensor(), d.dim(), False


@maker("aten._safe_softmax.default", "aten.softmax.int", "aten.log_softmax.int")
def _(d):
    return d.tensor(), d.dim(), d.pick(None, None, torch.float32)


@maker("aten.prelu.default", "aten._prelu_kernel.default")
def _(d):
    c = d.size()
    x = d.tensor((d.size(1, 3), c, *d.any_shape(0, 2)))
    return x, d.tensor(d.pick((1,), (c,)), d.kind)


@maker("aten._prelu_kernel.default")
def _(d):
    return d.tensor(), d.tensor(d.pick(d.shape, (1,) * len(d.shape)))


for _name in ("_weight_norm", "_weight_norm_interface"):
    @maker(f"aten.{_name}.default")
    def _(d, any_dim=_name == "_weight_norm"):
        # Of a vector PyTorch 2.13 exports another shape than it computes, and of nothing it crashes.
        d.empty = False
        d.shape = d.any_shape(2, 4)
        rank = len(d.shape)
        dim = d.pick(*range(-rank, rank)) if any_dim else d.pick(0, rank - 1)
        kept = None if dim == -1 else dim % rank
        # PyTorch 2.13 reads both as if they were contiguous.
        return d.tensor().contiguous(), d.tensor([s if i == kept else 1 for i, s in enumerate(d.shape)]).contiguous(), dim


@maker("aten.glu.default")
def _(d):
    d.shape = list(d.any_shape(1, 4))
    dim = d.dim()
    d.shape[dim] = 2 * d.size(1, 3)
    return d.tensor(), dim


@maker("aten.gelu.default")
def _(d):
    return (d.tensor(),), d.pick({}, {"approximate": "tanh"}, {"approximate": "none"})
