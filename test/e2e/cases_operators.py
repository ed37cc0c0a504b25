"""Operators and argument forms beyond those of cases.py: losses, masks, scans, reducing scatters, integer bits, and what
TICO has no rule for. Registered beside them.
"""
import torch
from torch import nn
from torch.nn import functional as F

from cases import b, case, f, i, pos

# Losses
classes = i(4, low=0, high=5)
for _reduction in ("none", "mean", "sum"):
    case(f"l1_loss_{_reduction}", lambda x, y, r=_reduction: F.l1_loss(x, y, reduction=r), f(3, 4), f(3, 4))
    case(f"mse_loss_{_reduction}", lambda x, y, r=_reduction: F.mse_loss(x, y, reduction=r), f(3, 4), f(3, 4))
    case(f"huber_loss_{_reduction}", lambda x, y, r=_reduction: F.huber_loss(x, y, reduction=r, delta=0.7), f(3, 9), f(3, 9))
    case(f"smooth_l1_loss_{_reduction}", lambda x, y, r=_reduction: F.smooth_l1_loss(x, y, reduction=r, beta=0.5), f(3, 9), f(3, 9))
    case(f"cross_entropy_{_reduction}", lambda x, y, r=_reduction: F.cross_entropy(x, y, reduction=r), f(4, 5), classes)
    case(f"nll_loss_{_reduction}", lambda x, y, r=_reduction: F.nll_loss(F.log_softmax(x, 1), y, reduction=r), f(4, 5), classes)
    case(f"bce_{_reduction}", lambda x, y, r=_reduction: F.binary_cross_entropy(x, y, reduction=r), f(3, 4, low=0.1, high=0.9), f(3, 4, low=0, high=1))
    case(f"kl_div_{_reduction}", lambda x, y, r=_reduction: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction=r), f(3, 4), f(3, 4))
case("smooth_l1_loss_beta_zero", lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), f(3, 4), f(3, 4))
case("kl_div_log_target", lambda x, y: F.kl_div(F.log_softmax(x, 1), F.log_softmax(y, 1), reduction="batchmean", log_target=True), f(3, 4), f(3, 4))
case("soft_margin_loss", lambda x, y: F.soft_margin_loss(x, y.sign()), f(3, 4), f(3, 4))
case("bce_weight", lambda x, y, w: F.binary_cross_entropy(x, y, w), f(3, 4, low=0.1, high=0.9), f(3, 4, low=0, high=1), pos(4))
case("bce_of_zero_and_one", lambda x, y: F.binary_cross_entropy(x.round(), y.round()), f(3, 4, low=0, high=1), f(3, 4, low=0, high=1))
case("bce_logits", lambda x, y: F.binary_cross_entropy_with_logits(x * 20, y), f(3, 4), f(3, 4, low=0, high=1))
case("bce_logits_pos_weight", lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p, reduction="sum"),
     f(3, 4), f(3, 4, low=0, high=1), pos(4), pos(4))
case("cross_entropy_weight_ignore", lambda x, y, w: F.cross_entropy(x, y, w, ignore_index=2), f(6, 5), i(6, low=0, high=5), pos(5))
case("cross_entropy_smoothing", lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1, ignore_index=1), f(6, 5), i(6, low=0, high=5))
case("cross_entropy_smoothing_weight", lambda x, y, w: F.cross_entropy(x, y, w, label_smoothing=0.2), f(6, 5), i(6, low=0, high=5), pos(5))
case("cross_entropy_segmentation", lambda x, y: F.cross_entropy(x, y), f(2, 5, 3, 4), i(2, 3, 4, low=0, high=5))
case("cross_entropy_probabilities", lambda x, y: F.cross_entropy(x, F.softmax(y, 1), label_smoothing=0.1), f(4, 5), f(4, 5))
case("cross_entropy_unbatched", lambda x, y: F.cross_entropy(x, y), f(5), i(low=0, high=5))
case("nll_loss_2d", lambda x, y, w: F.nll_loss(x, y, w, ignore_index=0), f(2, 4, 3, 3), i(2, 3, 3, low=0, high=4), pos(4))
case("cosine_embedding_loss", lambda x, y, t: F.cosine_embedding_loss(x, y, t.sign()), f(3, 4), f(3, 4), f(3))
case("triplet_margin_loss", lambda x, y, z: F.triplet_margin_loss(x, y, z), f(3, 4), f(3, 4), f(3, 4))
case("hinge_embedding_loss", lambda x, t: F.hinge_embedding_loss(x, t.sign()), f(3, 4), f(3, 4))
case("margin_ranking_loss", lambda x, y, t: F.margin_ranking_loss(x, y, t.sign(), margin=0.3), f(4), f(4), f(4))
case("poisson_nll_loss", lambda x, y: F.poisson_nll_loss(x, y.abs()), f(3, 4), f(3, 4))
case("multilabel_soft_margin_loss", lambda x, y: F.multilabel_soft_margin_loss(x, y.round()), f(3, 4), f(3, 4, low=0, high=1))

# Masks
case("masked_scatter", lambda x, m, s: x.masked_scatter(m, s), f(3, 4), b(3, 4), f(12))
case("masked_scatter_broadcast", lambda x, m, s: x.masked_scatter(m, s), f(2, 3, 4), b(3, 1), f(2, 12))
case("masked_scatter_int", lambda x, m, s: x.masked_scatter(m, s), i(9), b(9), i(9))


def put_mask_scalar(x, m):
    y = x.clone()
    y[m] = 0.5
    return y


def put_mask_row(x, m, r):
    y = x.clone()
    y[m] = r
    return y


def put_mask_values(x, r):
    y = x.clone()
    y[torch.tensor([True, False, True, True])] = r
    return y


def put_mask_selected(x, m, z):
    y = x.clone()
    y[m] = z[m]
    return y


def put_mask_accumulate(x, m):
    return x.index_put((m,), torch.tensor(2.0), accumulate=True)


case("put_mask_scalar", put_mask_scalar, f(3, 4), b(3, 4))
case("put_mask_leading", put_mask_scalar, f(3, 4, 2), b(3, 4))
case("put_mask_row", put_mask_row, f(3, 4), b(3), f(4))
case("put_mask_values", put_mask_values, f(4, 3), f(3, 3))
case("put_mask_selected", put_mask_selected, f(3, 4), b(3, 4), f(3, 4))
case("put_mask_accumulate", put_mask_accumulate, f(3, 4), b(3, 4))
case("index_mask_constant", lambda x: x[torch.tensor([True, False, True, True])], f(4, 3))
case("index_mask_constant_second", lambda x: x[:, torch.tensor([True, False, True])], f(4, 3))

# Scans
for _name in ("cummax", "cummin"):
    case(_name, lambda x, op=getattr(torch, _name): tuple(op(x, dim=1)), f(3, 7, 2))
    case(f"{_name}_ties", lambda x, op=getattr(torch, _name): tuple(op(x, dim=-1)), i(3, 9, low=0, high=3))
    case(f"{_name}_values", lambda x, op=getattr(torch, _name): op(x, dim=0).values, f(5, 3))
case("cumprod", lambda x: x.cumprod(dim=1), f(3, 6))
case("cumprod_int", lambda x: x.cumprod(dim=0), i(4, 3, low=1, high=4))
case("cumsum_int32", lambda x: x.cumsum(dim=0), i(4, 3, dtype=torch.int32))
case("cumsum_bool", lambda x: x.cumsum(dim=-1), b(4, 3))
case("cumsum_dtype", lambda x: x.cumsum(dim=-1, dtype=torch.float32), i(4, 3))
case("logcumsumexp", lambda x: x.logcumsumexp(dim=1), f(3, 6))

# Scatters that reduce
at = i(3, 4, low=0, high=5)
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    for _self in (True, False):
        _suffix = f"{_reduce}{'' if _self else '_without_self'}"
        case(f"scatter_reduce_{_suffix}", lambda x, p, s, r=_reduce, o=_self: x.scatter_reduce(0, p, s, r, include_self=o), f(5, 4), at, f(3, 4))
        case(f"scatter_reduce_inner_{_suffix}", lambda x, p, s, r=_reduce, o=_self: x.scatter_reduce(1, p, s, r, include_self=o),
             i(3, 5, 3), i(2, 4, 2, low=0, high=5), i(3, 4, 3))
        if _reduce != "sum":
            case(f"index_reduce_{_suffix}", lambda x, p, s, r=_reduce, o=_self: x.index_reduce(1, p, s, r, include_self=o), f(2, 5, 3), i(4, low=0, high=5), f(2, 4, 3))
case("scatter_multiply", lambda x, p, s: x.scatter(0, p, s, reduce="multiply"), f(5, 4), at, f(3, 4))
case("scatter_add_value", lambda x, p: x.scatter(0, p, 1.5, reduce="add"), f(5, 4), at)
case("scatter_reduce_inplace", lambda x, p, s: (x * 1).scatter_reduce_(0, p, s, "amax"), f(5, 4), at, f(3, 4))

# Bags
def bag(mode, **more):
    return lambda: nn.EmbeddingBag(10, 4, mode=mode, **more)


for _mode in ("sum", "mean", "max"):
    case(f"embedding_bag_{_mode}", bag(_mode), i(3, 5, low=0, high=10))
    case(f"embedding_bag_offsets_{_mode}", bag(_mode), i(7, low=0, high=10), lambda: torch.tensor([0, 2, 2, 5]))
    case(f"embedding_bag_padding_{_mode}", bag(_mode, padding_idx=1), i(3, 5, low=0, high=4))
case("embedding_bag_last_offset", bag("mean", include_last_offset=True), i(7, low=0, high=10), lambda: torch.tensor([0, 2, 5, 7]))
case("embedding_bag_weighted", lambda w, x, s: F.embedding_bag(x, w, per_sample_weights=s, mode="sum"), f(10, 4), i(3, 5, low=0, high=10), f(3, 5))

# Bits
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _op = getattr(torch, _name)
    case(f"{_name}_int64", lambda x, y, op=_op: op(x, y), i(3, 9, low=-1000, high=1000), i(3, 9, low=-1000, high=1000))
    case(f"{_name}_int32", lambda x, y, op=_op: op(x, y), i(9, low=-99, high=99, dtype=torch.int32), i(9, low=-99, high=99, dtype=torch.int32))
    case(f"{_name}_scalar", lambda x, op=_op: op(x, 13), i(3, 9, low=-100, high=100))
    case(f"{_name}_mask", lambda x, op=_op: op(x, 0xF), i(3, 9, low=-100, high=100, dtype=torch.int32))
    case(f"{_name}_uint8", lambda x, y, op=_op: op(x, y), i(9, low=0, high=256, dtype=torch.uint8), i(9, low=0, high=256, dtype=torch.uint8))
case("bitwise_not_int", lambda x: ~x, i(3, 9))
case("left_shift", lambda x, n: x << n, i(9, low=-9, high=9), i(9, low=0, high=6))
case("right_shift", lambda x, n: x >> n, i(9, low=-99, high=99), i(9, low=0, high=6))
case("right_shift_scalar", lambda x: x >> 2, i(9, low=-99, high=99, dtype=torch.int32))
case("unpack_int4", lambda x: torch.stack((x & 0xF, x >> 4), -1).flatten(-2).float() * 0.1, i(3, 4, low=0, high=256, dtype=torch.uint8))

# Elementwise forms
case("round_decimals", lambda x: torch.round(x, decimals=2), f(3, 9))
case("round_decimals_negative", lambda x: torch.round(x, decimals=-1), f(3, 9, low=-90, high=90))
case("xlogy", lambda x, y: torch.xlogy(x, y), lambda: torch.tensor([0.0, 1.0, 2.0, 0.0]), lambda: torch.tensor([0.0, 2.0, 0.5, 3.0]))
case("xlogy_scalar", lambda x: torch.xlogy(2.0, x) + torch.xlogy(x, 3.0), pos(3, 4))
case("special_xlog1py", lambda x, y: torch.special.xlog1py(x, y), pos(3, 4), pos(3, 4))
case("logaddexp", lambda x, y: torch.logaddexp(x, y) + torch.logaddexp2(x, y), f(3, 4), f(3, 4))
case("hypot", lambda x, y: torch.hypot(x, y), f(3, 4), f(3, 4))
case("fmax_fmin", lambda x, y: torch.fmax(x, y) - torch.fmin(x, y), f(3, 4), f(3, 4))
case("copysign", lambda x, y: torch.copysign(x, y), f(3, 4), f(3, 4))
case("heaviside", lambda x, y: torch.heaviside(x.round(), y), f(3, 9), f(3, 9))
case("sgn_frac", lambda x: torch.sgn(x) + torch.frac(x), f(3, 9))
case("exp2", lambda x: torch.exp2(x), f(3, 9))
case("erfc", lambda x: torch.erfc(x), f(3, 9))
case("sinc", lambda x: torch.sinc(x), f(3, 9))
case("logit", lambda x: torch.logit(x) + torch.logit(x, eps=0.3), f(3, 9, low=0.1, high=0.9))
case("asinh_acosh_atanh", lambda x: torch.asinh(x) + torch.acosh(x.abs() + 1.1) + torch.atanh(x / 3), f(3, 9))
case("ldexp", lambda x, y: torch.ldexp(x, y), f(9), i(9, low=-4, high=5))
case("float_power", lambda x: torch.float_power(x, 2).float(), f(3, 4))
case("isfinite", lambda x: torch.isfinite(x / x.round()), f(3, 9))
case("isclose", lambda x, y: torch.isclose(x.round(), y.round()), f(3, 9), f(3, 9))
case("isin", lambda x: torch.isin(x, torch.tensor([1, 3, 5])), i(3, 9, low=0, high=7))
case("isin_inverted", lambda x: torch.isin(x, torch.tensor([1, 3, 5]), invert=True), i(3, 9, low=0, high=7))
case("softshrink_hardshrink", lambda x: F.softshrink(x, 0.3) + F.hardshrink(x, 0.4) + F.tanhshrink(x), f(3, 9))
case("celu_alpha", lambda x: F.celu(x, 0.7) + F.elu(x, 1.3), f(3, 9))
case("threshold", lambda x: F.threshold(x, 0.2, -1.0), f(3, 9))
case("rrelu_eval", lambda x: F.rrelu(x, 0.1, 0.3), f(3, 9))
case("clamp_int32", lambda x: x.clamp(-2, 3), i(3, 9, dtype=torch.int32))
case("clamp_int_by_floats", lambda x: x.clamp(-1.5, 2.5), i(3, 9))
case("div_int_true", lambda x, y: x / y, i(3, 4), i(3, 4, low=1))
case("div_scalar_mode", lambda x: torch.div(x, 3, rounding_mode="trunc") + torch.div(x, 3, rounding_mode="floor"), f(3, 9, low=-9, high=9))
case("remainder_negative", lambda x: torch.remainder(x, -3) + torch.fmod(x, -3), i(3, 9))
case("remainder_scalar_tensor", lambda x: torch.remainder(7, x), i(9, low=1))
case("pow_int_negative_base", lambda x: torch.pow(-2, x), i(9, low=0, high=6))
case("lerp_tensor", lambda x, y, w: torch.lerp(x, y, w), f(3, 4), f(3, 4), f(3, 4, low=0, high=1))
case("nan_to_num_values", lambda x: torch.nan_to_num(x / x.round(), nan=1.0, posinf=2.0, neginf=-3.0), f(3, 9))
case("sigmoid_of_bool", lambda x: torch.sigmoid(x) + x.float(), b(3, 4))
case("signbit", lambda x: torch.signbit(x), f(3, 9))
case("deg2rad", lambda x: torch.deg2rad(x) + torch.rad2deg(x), f(3, 9))
case("polygon_area", lambda x: torch.cross(x, x.roll(1, 0), dim=-1), f(4, 3))
case("addr_outer_kron", lambda x, y: torch.addr(torch.outer(x, y), x, y) + torch.kron(x, y).view(3, 4), f(3), f(4))

# Contractions and convolutions
case("einsum_diagonal", lambda x: torch.einsum("bii->b", x), f(2, 3, 3))
case("einsum_diagonal_kept", lambda x: torch.einsum("bii->bi", x), f(2, 3, 3))
case("einsum_trace", lambda x: torch.einsum("ii", x), f(3, 3))
case("einsum_three", lambda x, y, z: torch.einsum("ij,jk,kl->il", x, y, z), f(2, 3), f(3, 4), f(4, 2))
case("einsum_ellipsis", lambda x, y: torch.einsum("...ij,...jk->...ik", x, y), f(2, 3, 4), f(2, 4, 5))
case("bilinear", lambda: nn.Bilinear(3, 4, 5), f(2, 3), f(2, 4))
case("cdist", lambda x, y: torch.cdist(x, y), f(3, 4), f(5, 4))
case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, dim=1), f(3, 4), f(3, 4))
case("pairwise_distance", lambda x, y: F.pairwise_distance(x, y), f(3, 4), f(3, 4))
case("tensordot", lambda x, y: torch.tensordot(x, y, dims=([1, 2], [0, 1])), f(2, 3, 4), f(3, 4, 5))
case("addbmm", lambda z, x, y: torch.addbmm(z, x, y), f(3, 5), f(2, 3, 4), f(2, 4, 5))
case("addmv", lambda z, x, y: torch.addmv(z, x, y), f(3), f(3, 4), f(4))
case("chain_matmul", lambda x, y, z: torch.linalg.multi_dot((x, y, z)), f(2, 3), f(3, 4), f(4, 2))
case("matrix_power", lambda x: torch.linalg.matrix_power(x, 3), f(3, 3))
case("conv3d", lambda: nn.Conv3d(2, 3, 3, padding=1), f(1, 2, 4, 5, 5))
case("conv3d_same_even", lambda: nn.Conv3d(2, 3, 2, padding="same"), f(1, 2, 4, 5, 5))
case("conv3d_stride_dilation", lambda: nn.Conv3d(2, 3, (2, 3, 1), stride=(2, 1, 2), dilation=(2, 1, 1)), f(1, 2, 7, 5, 5))
case("conv3d_grouped", lambda: nn.Conv3d(4, 4, 2, groups=2), f(1, 4, 3, 4, 4))
case("conv_transpose1d", lambda: nn.ConvTranspose1d(3, 4, 3, 2, 1, output_padding=1), f(1, 3, 5))
case("conv_transpose3d", lambda: nn.ConvTranspose3d(2, 3, 2, 2), f(1, 2, 3, 4, 4))
case("conv_transpose3d_padding", lambda: nn.ConvTranspose3d(2, 3, 3, (1, 2, 2), 1, output_padding=(0, 1, 1)), f(1, 2, 3, 4, 4))
case("conv_transpose_grouped", lambda: nn.ConvTranspose2d(4, 6, 3, 2, groups=2), f(1, 4, 4, 4))
case("conv_transpose_dilated", lambda: nn.ConvTranspose2d(3, 4, 3, 2, dilation=2), f(1, 3, 4, 4))
case("conv_stride_wider_than_kernel", lambda: nn.Conv2d(3, 4, 1, stride=3), f(1, 3, 7, 8))
case("conv_circular_padding", lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), f(1, 3, 5, 6))
case("conv_reflect_padding", lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), f(1, 3, 5, 6))
case("rnn_tanh", lambda: nn.RNN(4, 3, batch_first=True), f(2, 5, 4))
case("rnn_relu_bidirectional", lambda: nn.RNN(4, 3, 2, nonlinearity="relu", bidirectional=True), f(5, 2, 4))
case("lstm_projection", lambda: nn.LSTM(4, 6, proj_size=3), f(5, 2, 4))
case("lstm_no_bias", lambda: nn.LSTM(4, 3, bias=False), f(5, 2, 4))
case("lstm_cell", lambda: nn.LSTMCell(4, 3), f(2, 4))
case("gru_cell", lambda: nn.GRUCell(4, 3), f(2, 4))
case("rnn_unbatched", lambda: nn.GRU(4, 3), f(5, 4))

# Pools and pictures
case("max_pool2d_dilated", lambda x: F.max_pool2d(x, 2, stride=1, dilation=2), f(1, 3, 7, 7))
case("max_pool2d_indices", lambda x: F.max_pool2d(x, 2, return_indices=True), f(1, 3, 6, 6))
case("max_pool3d", lambda x: F.max_pool3d(x, 2), f(1, 2, 4, 6, 6))
case("max_pool3d_padded", lambda x: F.max_pool3d(x, 3, 2, 1), f(1, 2, 5, 6, 7))
case("avg_pool3d", lambda x: F.avg_pool3d(x, 2, 1, 1), f(1, 2, 4, 5, 5))
case("avg_pool2d_ceil", lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True), f(1, 3, 8, 8))
case("avg_pool2d_divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), f(1, 3, 6, 6))
case("lp_pool2d", lambda x: F.lp_pool2d(x.abs() + 0.1, 2, 2), f(1, 3, 6, 6))
case("adaptive_avg_pool2d_uneven", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), f(1, 3, 7, 9))
case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (2, 3)), f(1, 3, 7, 6))
case("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), f(1, 3, 7))
case("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (1, 2, 2)), f(1, 2, 3, 4, 6))
case("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), f(1, 2, 4, 6))
case("unfold", lambda x: F.unfold(x, 3, padding=1), f(1, 2, 5, 5))
case("fold", lambda x: F.fold(x, (5, 5), 3, padding=1), f(1, 18, 25))
case("tensor_unfold", lambda x: x.unfold(1, 3, 2), f(2, 9))
case("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=False), f(1, 2, 5, 6), f(1, 4, 3, 2, low=-1, high=1))
case("affine_grid", lambda t: F.affine_grid(t, [1, 2, 4, 5], align_corners=True), f(1, 2, 3))
case("local_response_norm", lambda x: F.local_response_norm(x, 3), f(1, 5, 4, 4))
case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), f(1, 2, 4, 6))
case("channel_shuffle", lambda x: F.channel_shuffle(x, 2), f(1, 4, 3, 3))
for _mode in ("bilinear", "bicubic"):
    for _align in (False, True):
        case(f"resize_{_mode}_{_align}", lambda x, m=_mode, a=_align: F.interpolate(x, size=(7, 9), mode=m, align_corners=a), f(1, 2, 4, 5))
case("resize_nearest_size", lambda x: F.interpolate(x, size=(7, 9)), f(1, 2, 4, 5))
case("resize_nearest_down", lambda x: F.interpolate(x, size=(3, 2)), f(1, 2, 7, 5))
case("resize_nearest_exact", lambda x: F.interpolate(x, size=(7, 9), mode="nearest-exact"), f(1, 2, 4, 5))
case("resize_linear", lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"), f(1, 2, 5))
case("resize_trilinear", lambda x: F.interpolate(x, scale_factor=2.0, mode="trilinear"), f(1, 2, 2, 3, 3))
case("resize_nearest_3d", lambda x: F.interpolate(x, scale_factor=2.0), f(1, 2, 2, 3, 3))
case("resize_antialias", lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), f(1, 2, 7, 9))
case("batch_norm_no_stats", lambda: nn.BatchNorm2d(3, track_running_stats=False), f(2, 3, 4, 4))
case("instance_norm_no_affine", lambda: nn.InstanceNorm1d(3), f(2, 3, 6))
case("instance_norm_stats", lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), f(2, 3, 4, 5))
case("group_norm_rank2", lambda: nn.GroupNorm(2, 6), f(4, 6))
case("weight_norm", lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), f(2, 4))
case("spectral_norm", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), f(2, 4), rtol=1e-4, atol=1e-4)
case("renorm", lambda x: torch.renorm(x, 2, 0, 1.0), f(3, 4))

# Reductions and order
case("any_int", lambda x: x.any(dim=1), i(4, 3, low=0, high=2))
case("all_float_dims", lambda x: torch.all(x.round() != 0), f(3, 4))
case("amax_bool", lambda x: x.amax(dim=1), b(3, 4))
case("amax_int32", lambda x: x.amax(dim=0), i(3, 4, dtype=torch.int32))
case("aminmax", lambda x: tuple(torch.aminmax(x, dim=1)), f(3, 4))
case("argmax_int", lambda x: x.argmax(dim=1), lambda: torch.arange(12).view(3, 4) * 5 % 7)
case("argmax_bool", lambda x: x.int().argmax(dim=1), b(3, 4))
case("sum_uint8", lambda x: x.sum(), i(3, 9, low=0, high=256, dtype=torch.uint8))
case("mean_dtype", lambda x: x.mean(dtype=torch.float32), i(3, 4))
case("prod_all", lambda x: x.prod(), f(2, 3))
case("prod_int_keepdim", lambda x: x.prod(dim=1, keepdim=True), i(3, 4, low=1, high=4))
case("count_nonzero", lambda x: x.round().count_nonzero(dim=1), f(3, 9))
case("norm_orders", lambda x: torch.stack([torch.linalg.vector_norm(x, p, 1) for p in (1, 2, 3, float("inf"), 0)]), f(3, 4))
case("norm_frobenius", lambda x: torch.linalg.matrix_norm(x) + x.norm(), f(2, 3, 4))
case("norm_nuclear_free", lambda x: torch.linalg.matrix_norm(x, 1) + torch.linalg.matrix_norm(x, float("inf")), f(2, 3, 4))
case("var_mean", lambda x: torch.var_mean(x, dim=(0, 2), correction=0), f(2, 3, 4))
case("std_mean", lambda x: torch.std_mean(x, dim=1), f(3, 4))
case("nansum_nanmean", lambda x: torch.nansum(x / x.round(), 1).nan_to_num(0) + torch.nanmean(x, 1), f(3, 4, low=0.6))
case("sort", lambda x: tuple(torch.sort(x, dim=1)), f(3, 9))
case("sort_descending", lambda x: torch.sort(x, dim=0, descending=True).values, f(5, 3))
case("argsort", lambda x: torch.argsort(x, dim=-1), f(3, 9))
case("median_dim", lambda x: tuple(x.median(dim=1)), f(3, 5))
case("median_all", lambda x: x.median(), f(3, 5))
case("kthvalue", lambda x: tuple(x.kthvalue(2, dim=1)), f(3, 5))
case("quantile", lambda x: torch.quantile(x, 0.3, dim=1), f(3, 5))
case("searchsorted", lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5, 1.0]), x), f(3, 9))
case("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 1.0]), right=True), f(3, 9))
case("topk_smallest", lambda x: tuple(torch.topk(x, 2, dim=0, largest=False)), f(5, 3))
case("histogram_free_bincount", lambda x: (x.unsqueeze(1) == torch.arange(5)).sum(0), i(9, low=0, high=5))
case("dist", lambda x, y: torch.dist(x, y) + torch.dist(x, y, 1), f(3, 4), f(3, 4))
case("trapezoid", lambda x: torch.trapezoid(x, dx=0.5), f(3, 4))
case("diff", lambda x: torch.diff(x, n=2), f(3, 6))
case("cov_free_corr", lambda x: (x - x.mean(1, keepdim=True)) @ (x - x.mean(1, keepdim=True)).T / 3, f(3, 4))

# Positions, movement
case("index_put_two", lambda x, p, q, v: x.index_put((p, q), v), f(4, 5), i(3, low=0, high=2), lambda: torch.tensor([0, 2, 4]), f(3))
case("index_put_two_accumulate", lambda x, p, q, v: x.index_put((p, q), v, accumulate=True), f(4, 5, 2), i(3, low=-4, high=4), i(3, low=-5, high=5), f(3, 2))
case("index_put_none_first", lambda x, p, v: torch.ops.aten.index_put(x, [None, p], v), f(3, 5), lambda: torch.tensor([4, 1]), f(3, 2))
case("index_put_broadcast_indices", lambda x, v: x.index_put((torch.tensor([[0], [2]]), torch.tensor([1, 3])), v), f(4, 5), f(2, 2))
case("index_put_apart", lambda x, p, q, v: torch.ops.aten.index_put(x, [p, None, q], v), f(4, 2, 5), lambda: torch.tensor([0, 3]), lambda: torch.tensor([1, 4]), f(2, 2))
case("index_add", lambda x, p, s: x.index_add(0, p, s, alpha=2), f(5, 3), i(4, low=0, high=5), f(4, 3))
case("index_copy", lambda x, s: x.index_copy(1, torch.tensor([2, 0]), s), f(3, 4), f(3, 2))
case("index_fill", lambda x, p: x.index_fill(1, p, 7.0), f(3, 4), i(2, low=0, high=4))
case("scatter_add", lambda x, p, s: x.scatter_add(1, p, s), f(3, 5), i(3, 4, low=0, high=5), f(3, 4))
case("scatter_value", lambda x, p: x.scatter(1, p, 9.0), f(3, 5), i(3, 2, low=0, high=5))
case("take_along_dim", lambda x, p: torch.take_along_dim(x, p, 1), f(3, 5), i(3, 2, low=0, high=5))
case("take", lambda x, p: torch.take(x, p), f(3, 5), i(4, low=0, high=15))
case("flip_two", lambda x: x.flip((0, 2)), f(2, 3, 4))
case("rot90", lambda x: torch.rot90(x, 1, (1, 2)), f(2, 3, 4))
case("diagonal", lambda x: x.diagonal(1, 1, 2), f(2, 4, 5))
case("diag_embed", lambda x: torch.diag_embed(x), f(2, 3))
case("as_strided", lambda x: torch.as_strided(x, (2, 3), (1, 2), 1), f(8))
case("repeat_three", lambda x: x.repeat(2, 3, 2), f(1, 2, 3))
case("slice_reverse_free", lambda x: x.flip(0)[::2], f(6, 3))
case("slice_scatter_step", lambda x, s: torch.slice_scatter(x, s, 0, 0, 6, 3), f(6, 3), f(2, 3))
case("slice_scatter_negative", lambda x, s: torch.slice_scatter(x, s, 1, -2), f(3, 5), f(3, 2))
case("select_minus_one", lambda x: x[:, -1], f(3, 4))
case("cartesian_prod", lambda x, y: torch.cartesian_prod(x, y), f(3), f(2))
case("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="xy"), f(3), f(2))
case("tensor_split", lambda x: torch.tensor_split(x, 3, dim=1), f(2, 7))
case("unfold_negative_pad", lambda x: F.pad(x, (-1, 2, 1, -1)), f(3, 4))
case("pad_circular", lambda x: F.pad(x, (1, 2), mode="circular"), f(1, 2, 5))
case("pad_rank5", lambda x: F.pad(x, (1, 1, 0, 2, 1, 0)), f(1, 2, 2, 3, 3))
case("pad_bool", lambda x: F.pad(x, (1, 1), value=True), b(2, 3))
case("roll_flat", lambda x: x.roll(2), f(2, 5))
case("vander_free", lambda x: torch.stack([x ** k for k in range(3)], -1), f(4))
case("tril_indices", lambda x: x[tuple(torch.tril_indices(4, 4))], f(4, 4))
case("block_diag", lambda x, y: torch.block_diag(x, y), f(2, 3), f(3, 2))
case("hstack_vstack", lambda x, y: torch.hstack((x, y)) @ torch.vstack((x, y)), f(2, 2), f(2, 2))
case("movedim_swapaxes", lambda x: torch.movedim(x, 0, 2).swapaxes(0, 1), f(2, 3, 4))
case("linspace_logspace", lambda x: x + torch.linspace(0, 1, 4) + torch.logspace(0, 1, 4), f(3, 4))
case("eye", lambda x: x @ torch.eye(4) + torch.eye(3, 4), f(3, 4))
case("zero_size_output", lambda x: x[:, 3:3] + 1, f(2, 4))
case("zero_size_reduce", lambda x: x[:, 3:3].sum(1), f(2, 4))
case("rank0_outputs", lambda x: (x.sum(), x.mean(), x.argmax()), f(3, 4))

# Arithmetic of small integers wraps before it is summed
u8 = i(4, 5, low=0, high=256, dtype=torch.uint8)
case("l1_loss_uint8", lambda x, y: F.l1_loss(x, y, reduction="sum"), u8, u8)
case("cosine_embedding_loss_uint8", lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1, -1]), 0.5, reduction="sum"), u8, u8)
case("hinge_embedding_loss_uint8", lambda x, y: F.hinge_embedding_loss(x, y, 3.5, reduction="sum"), u8, i(4, 5, low=-1, high=2))
case("poisson_nll_loss_uint8", lambda x, y: F.poisson_nll_loss(x, y, reduction="sum"), i(4, 5, low=0, high=4, dtype=torch.uint8), u8)
case("poisson_nll_loss_neither_mean_nor_sum", lambda x, y: torch.ops.aten.poisson_nll_loss(x, y, True, False, 1e-8, 3), pos(3, 4), pos(4))

# Nothing, and less than usual
case("logcumsumexp_of_nothing", lambda x: torch.logcumsumexp(x, 1), f(2, 0, 3))
case("logsumexp_of_nothing", lambda x: torch.logsumexp(x, 1), f(2, 0, 3))
case("std_of_nothing", lambda x: torch.std_mean(x, (0, 1), correction=-0.75), f(3, 0, 2))
case("softmax_of_no_integers", lambda x: x.softmax(1), i(0, 2))
case("embedding_bag_last_row_is_padding", lambda p, w: F.embedding_bag(p, w, torch.tensor([0, 3]), mode="sum", padding_idx=-1), i(7, low=0, high=4), f(4, 3))
case("rsub_half_of_integers", lambda x, y: torch.rsub(x, y, alpha=0.5), i(2, 5, dtype=torch.int16), f(2, 5))
case("tile_no_times", lambda x: torch.cat((x.tile(0, 1), x)), f(2, 3))
case("tensordot_of_size_1", lambda x, y: torch.tensordot(x, y, ([1, 0], [2, 1])), f(3, 1, 4), f(2, 3, 5))
case("scatter_sum_of_bools", lambda x, p, s: x.scatter_reduce(1, p, s, "sum", include_self=False), b(3, 5), i(3, 4, low=0, high=5), b(3, 4))
case("scatter_product_of_bools", lambda x, p, s: x.scatter_reduce(0, p, s, "prod"), b(3, 5), i(3, 5, low=0, high=3), b(3, 5))
case("batch_norm_of_no_integers", lambda x: F.instance_norm(x), i(3, 1, 0, 2))


# Small systems of equations; the leading elements are not the largest
def turned(x):
    return (x + 4 * torch.eye(x.shape[-1])).roll(1, -2)


case("inverse", lambda x: torch.inverse(turned(x)), f(2, 3, 3))
case("determinant", lambda x: (torch.det(turned(x)), torch.linalg.det(x[0] * 0), torch.logdet(turned(x)), *torch.linalg.slogdet(x)), f(2, 4, 4), rtol=1e-4)
case("solve", lambda x, y: (torch.linalg.solve(turned(x), y), torch.linalg.solve(turned(x), y.mT, left=False), torch.linalg.solve(turned(x), y[..., 0])),
     f(2, 5, 5), f(2, 5, 3))
case("cholesky", lambda x: (torch.linalg.cholesky(x @ x.mT + torch.eye(4)), torch.linalg.cholesky(x @ x.mT + torch.eye(4), upper=True)), f(2, 4, 4))


def mlp(dtype):
    return lambda: nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 3)).to(dtype)


for _dtype in (torch.float16, torch.float64):
    case(f"mlp_{str(_dtype)[6:]}", mlp(_dtype), f(2, 4, dtype=_dtype), rtol=2e-2, atol=2e-2)
