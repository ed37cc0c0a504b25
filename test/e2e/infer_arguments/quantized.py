"""quantized_decomposed and circle_custom operators."""
import torch

from .draw import FLOATS, NAMES, T


def quantization(r):
    """Operands of quantized_decomposed operators; each takes those that its schema names."""
    x, e = T(r.choice(FLOATS), [2, 4, 6]), r.choice([torch.int8, torch.uint8, torch.int16])
    per_token = T("f64", [2, 4, 1])
    return {"input": x, "scale": 0.1, "zero_point": 0, "quant_min": 0, "quant_max": 127, "dtype": e, "eps": 1e-5,
            "scales": per_token, "zero_points": T("i64", [2, 4, 1]), "axis": 1, "group_size": 3,
            "out_dtype": r.choice([None, torch.float16]), "output_dtype": r.choice([torch.float32, torch.float16])}


def quantization_of(r, name):
    a = quantization(r)
    one = T("f32", [1]), T("i64", [1])
    if ".tensor" in name:
        a.update(scale=one[0], zero_point=one[1])
    if name.endswith("tensor2"):
        a.update(quant_min=one[1], quant_max=one[1])
    if "choose" in name:
        a.update(quant_min=-127, quant_max=127, dtype=torch.int8)
    if "channel" in name:
        a.update(scales=T("f32", [4]), zero_points=T("i64", [4]))
    if "group" in name:
        a.update(input=T("f32", [4, 6]), scales=T("f32", [4, 2]), zero_points=T("i32", [4, 2]), dtype=torch.int8)
    if name.startswith("dequantize"):
        a["input"] = T(NAMES[a["dtype"]], a["input"].shape)
    return a


def channels_last(r, name):
    """Operands of circle_custom operators: [batch, height, width, channels]."""
    b, c, o = r.ints(1, 4, 3)
    x = T("f32", [b, *r.ints(6, 11, 2), c])
    k = r.ints(1, 3, 2)
    w = [1, *k, c] if "depthwise" in name else [o, *k, c]
    return {"input_": x, "hidden_states": x, "weight": T("f32", w) if "conv" in name else T("f32", [c]), "bias": None,
            "kernel_size": [2, 3], "size": r.ints(3, 9, 2), "elem_format": "int8", "axis": 3, "shared_exp_method": "max",
            "stride": r.choice([None, r.ints(1, 2, 2)]), "round": "nearest", "ceil_mode": r.choice([None, False]),
            "padding": r.choice(["valid", "same"]) if name.endswith("padding") else r.choice([None, r.ints(0, 1, 2)]),
            "groups": c if "depthwise" in name else 1, "output_padding": None, "running_mean": None, "running_var": None,
            "params": x, "indices": T("i32", [5, r.randint(1, 3)]), "divisor_override": None, "dilation": None}
