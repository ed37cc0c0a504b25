"""Normalizations, losses, distances and fake quantization."""
import torch

from .draw import FLOATS, T, named


def layer(r):
    s = r.shape(1, 4)
    n = r.randint(1, len(s))
    e = r.choice(FLOATS)
    w = T(e, s[-n:]) if r.random() < 0.5 else None
    return {"input": T(e, s), "normalized_shape": s[-n:], "weight": w, "bias": w, "eps": 1e-5}


def batch_norm(r):
    s = r.shape(2, 4)
    e = r.choice(FLOATS)
    c = T(e, [s[1]])
    return {"input": T(e, s), "weight": c, "bias": c, "running_mean": c, "running_var": c, "eps": 1e-5, "epsilon": 1e-5,
            "momentum": 0.1, "exponential_average_factor": 0.1, "cudnn_enabled": True, "training": r.random() < 0.4,
            "use_input_stats": True}


def group_norm(r):
    n, g, c, h, w = r.randint(1, 3), r.randint(1, 2), r.randint(1, 3), 3, 4
    e = r.choice(FLOATS)
    t = T(e, [g * c]) if r.random() < 0.5 else None
    return {"input": T(e, [n, g * c, h, w]), "weight": t, "bias": t, "N": n, "C": g * c, "HxW": h * w, "group": g,
            "num_groups": g, "eps": 1e-5, "cudnn_enabled": True}


def losses(r):
    s = r.shape(1, 3)
    return {"self": T("f32", s), "target": T("f32", s), "weight": None, "pos_weight": None, "reduction": r.randint(0, 2)}


def classes(r):
    n, c = r.randint(1, 4), r.randint(2, 5)
    s = r.choice([[c], [n, c], [n, c, 3]])
    t = s[:-1] if len(s) < 3 else [n, 3]
    return {"self": T("f32", s), "target": T("i64", t) if r.random() < 0.7 else T("f32", s), "weight": None,
            "reduction": r.randint(0, 2), "ignore_index": -100}


def fake_quant(r):
    s = r.shape(1, 4)
    d = r.randrange(len(s))
    many = T("f32", [s[d]])
    return {"self": T("f32", s), "scale": many, "zero_point": T("i32", [s[d]]), "axis": d, "quant_min": 0, "quant_max": 255}


def fake_quant1(r):
    return {"self": T("f32", r.shape()), "scale": 0.1, "zero_point": 3, "quant_min": 0, "quant_max": 255}


MAKERS = {
    r"(_fused_rms|rms|layer|native_layer)_norm": lambda r, m: layer(r),
    r"(native_)?group_norm": lambda r, m: group_norm(r),
    r".*(batch_norm|instance_norm)": lambda r, m: batch_norm(r),
    r"_weight_norm": named(v=lambda r: T("f32", [3, 4, 2]), g=T("f32", [3, 1, 1]), dim=0),
    r"_?prelu(_kernel)?": lambda r, m: {"self": T("f32", [2, 3, 4]), "weight": T("f32", [1, 3, 1] if "kernel" in m.string else [3])},
    r"(huber|l1|mse|smooth_l1|soft_margin)_loss|binary_cross|kl_div": lambda r, m: losses(r),
    r"cross_entropy|nll_loss": lambda r, m: classes(r),
    r"fake_quantize_per_channel": lambda r, m: fake_quant(r),
    r"fake_quantize_per_tensor.*tensor_qparams|_fake_quantize_per|_fake_quantize_learnable": lambda r, m: {**fake_quant1(r), "scale": T("f32", [1]), "zero_point": T("f32" if "learn" in m.string else "i32", [1]), "fake_quant_enabled": T("i64", [1])},
    r"fake_quantize_per_tensor": lambda r, m: fake_quant1(r),
    r"_?c?dist": named(x1=T("f32", [2, 3, 4]), x2=T("f32", [2, 5, 4]), p=2.0, compute_mode=None),
    r"_cdist": named(x1=T("f32", [2, 3, 4]), x2=T("f32", [2, 5, 4]), p=2.0, compute_mode=None),
    r"_?pdist": named(self=T("f32", [5, 4])),
    r"pairwise_dist": named(x1=T("f32", [5, 4]), x2=T("f32", [5, 4]), keepdim=lambda r: r.random() < 0.5),
    r"cosine_sim": named(x1=T("f32", [5, 4, 2]), x2=T("f32", [1, 4, 2]), dim=lambda r: r.choice([0, 1, -1])),
    r"renorm": named(self=T("f32", [3, 4]), p=2, dim=0, maxnorm=1.0),
    r"glu": lambda r, m: {"self": T("f32", [4, 6]), "dim": r.choice([0, -1])},
    r"normal_|uniform_|exponential": lambda r, m: {"self": T("f32", r.shape())},
    r"norm\.ScalarOpt_dim": lambda r, m: {"self": T("f32", [3, 4]), "p": 2, "dim": r.choice([[0], [0, 1]]), "keepdim": r.random() < 0.5, "dtype": torch.float64},
}
