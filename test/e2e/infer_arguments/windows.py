"""Windows over spatial dimensions, resizing, sampling, padding and Fourier transforms."""
from .draw import ANY, FLOATS, T, image, named


def conv(r, n, transposed=False, padding=None):
    g = r.choice([1, 1, 2])
    i, o = g * r.randint(1, 3), g * r.randint(1, 3)
    k = r.ints(1, 3, n)
    e = r.choice(FLOATS)
    x = ([r.randint(1, 3)] if r.random() < 0.8 else []) + [i] + r.ints(7, 11, n)
    w = ([i, o // g] if transposed else [o, i // g]) + k
    a = {"input": T(e, x), "weight": T(e, w), "bias": T(e, [o]) if r.random() < 0.5 else None,
         "stride": r.ints(1, 3, n), "padding": r.ints(0, 2, n), "dilation": r.ints(1, 2, n), "groups": g}
    if padding:
        a["padding"] = r.choice(["valid", "same"])
        if a["padding"] == "same":
            a["stride"] = [1] * n
    if transposed:
        a["output_padding"] = [r.randint(0, s - 1) for s in a["stride"]]
    return a


def convolution(r):
    n, t = r.randint(1, 3), r.random() < 0.4
    a = conv(r, n, t)
    if len(a["input"].shape) == n + 1:
        a["input"].shape.insert(0, 2)
    a.update(transposed=t, output_padding=a.get("output_padding", [0] * n), benchmark=False,
             deterministic=False, cudnn_enabled=True, allow_tf32=True)
    return a


def adaptive(r, n):
    x = ([2] if r.random() < 0.8 else []) + [3] + r.ints(4, 9, n)
    return {"self": T("f32", x), "output_size": r.ints(1, 5, n)}


def upsample(r, n, vec):
    x = T("f32", [2, 3] + r.ints(3, 7, n))
    a = {"self": x, "input": x, "output_size": r.ints(2, 12, n), "align_corners": r.random() < 0.5}
    if vec and r.random() < 0.6:
        a["output_size"] = None
        a["scale_factors"] = [r.choice([1.5, 2.0, 0.5, 1.3, 3.0, 0.7]) for _ in range(n)]
    elif vec:
        a["scale_factors"] = None
    return a


def pads(r, n, extra=1):
    s = r.ints(1, 3, r.randint(extra, 2)) + r.ints(4, 7, n)
    p = r.ints(0, 3, 2 * n)
    return {"self": T(r.choice(FLOATS), s), "pad": p, "padding": p}


def constant_pad(r):
    s = r.ints(3, 6, r.randint(1, 4))
    return {"self": T(r.choice(ANY), s), "pad": r.ints(-1, 3, 2 * r.randint(1, len(s))), "mode": "constant", "value": 1}


MAKERS = {
    r"(conv)(\d)d$": lambda r, m: conv(r, int(m[2])),
    r"(conv)(\d)d\.padding$": lambda r, m: conv(r, int(m[2]), padding=True),
    r"(conv_transpose)(\d)d": lambda r, m: conv(r, int(m[2]), True),
    r"_?convolution$": lambda r, m: convolution(r),
    r"conv_tbc": lambda r, m: {"self": T("f32", [7, 2, 3]), "weight": T("f32", [3, 3, 4]), "bias": T("f32", [4]), "pad": r.randint(0, 2)},
    r"_?(adaptive)_..._pool(\d)d": lambda r, m: adaptive(r, int(m[2])),
    r"max_unpool2d": named(self=lambda r: T("f32", [2, 3, 4, 4]), indices=T("i64", [2, 3, 4, 4]), output_size=[8, 8]),
    r"fractional": named(self=lambda r: T("f32", [2, 3, 9, 9]), kernel_size=[2, 2], output_size=[4, 5], random_samples=T("f32", [2, 3, 2])),
    r"_?upsample_\D+(\d)d(?:_aa)?(\.vec)?$": lambda r, m: upsample(r, int(m[1]), m[2]),
    r"(reflection|replication)_pad(\d)d": lambda r, m: pads(r, int(m[2])),
    r"_pad_circular": lambda r, m: pads(r, 1, 2),
    r"_pad_enum": lambda r, m: {**pads(r, 1, 2), "mode": 1, "value": None},
    r"(constant_pad_nd|pad)$": lambda r, m: constant_pad(r),
    r"grid_sampler(_2d)?$": named(input=T("f32", [2, 3, 5, 5]), grid=T("f32", [2, 4, 6, 2]), interpolation_mode=0, padding_mode=0, align_corners=False),
    r"grid_sampler_3d": named(input=T("f32", [2, 3, 5, 5, 5]), grid=T("f32", [2, 4, 6, 7, 3]), interpolation_mode=0, padding_mode=0, align_corners=False),
    r"affine_grid": lambda r, m: r.choice([{"theta": T("f32", [2, 2, 3]), "size": [2, 3, 4, 5]}, {"theta": T("f32", [2, 3, 4]), "size": [2, 3, 4, 5, 6]}]) | {"align_corners": False},
    r"im2col": lambda r, m: {"self": image(r), "kernel_size": r.ints(1, 3, 2), "dilation": [1, 1], "padding": r.ints(0, 1, 2), "stride": r.ints(1, 2, 2)},
    r"col2im": named(self=T("f32", [2, 12, 9]), output_size=[4, 4], kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[1, 1]),
    r"(stft)": lambda r, m: {"self": T("f32", r.choice([[100], [2, 100]])), "n_fft": 16, "hop_length": r.choice([None, 5]), "win_length": None, "window": None, "return_complex": True, "onesided": r.choice([None, True, False])},
    r"_fft_r2c": lambda r, m: {"self": T("f32", [3, 8]), "dim": r.choice([[1], [0, 1]]), "normalization": 0, "onesided": r.random() < 0.7},
    r"_fft_c2r": lambda r, m: {"self": T("c64", [3, 5]), "dim": [1], "normalization": 0, "last_dim_size": r.choice([8, 9])},
    r"_fft_c2c": lambda r, m: {"self": T("c64", [3, 5]), "dim": [1], "normalization": 0, "forward": True},
    r"fft_rfft$": lambda r, m: {"self": T(r.choice(["f32", "i64", "f64"]), [3, 8]), "n": r.choice([None, 6, 9]), "dim": r.choice([0, -1])},
    r"fft_rfft(2|n)": lambda r, m: {"self": T("f32", [3, 8, 7]), "s": r.choice([None, [4, 6]]), "dim": r.choice([[-2, -1], [0, 1]])},
}
