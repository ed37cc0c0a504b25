"""Element-wise operators and tensors made from nothing."""
import torch

from .draw import ANY, DTYPES, FLOATS, INTS, T, named


def pool(r, n):
    k = r.ints(1, 4, n)
    x = ([2] if r.random() < 0.8 else []) + [3] + r.ints(6, 12, n)
    return {"self": T(r.choice(FLOATS), x), "kernel_size": k, "stride": r.choice([[], r.ints(1, 4, n)]),
            "padding": [r.randint(0, q // 2) for q in k], "ceil_mode": r.random() < 0.5,
            "dilation": [1] * n if r.random() < 0.6 else r.ints(1, 2, n), "divisor_override": None}


def bounds(r):
    a = r.choice([1, 2, 0, 0.5, -3]), r.choice([7, 10, 5.5, 2]), r.choice([1, 2, 3, 0.5, 1.5])
    e = r.choice([None, None, torch.float32, torch.int64, torch.int32, torch.float16])
    return {"start": a[0], "end": a[1], "step": a[2], "dtype": e}


def mix(r, *names):
    """Broadcasting operands of independent element types."""
    s = r.shape(0, 4)
    return {n: T(r.choice(ANY), r.broadcast(s)) for n in names}


def linear(r):
    i, o, e = r.randint(1, 4), r.randint(1, 4), r.choice(FLOATS)
    b = T(e, [o]) if r.random() < 0.5 else None
    return {"input": T(e, r.shape(0, 3) + [i]), "weight": T(e, [o, i]), "bias": b}


MAKERS = {
    r"(avg|max)_pool(\d)d": lambda r, m: pool(r, int(m[2])),
    r"arange": lambda r, m: bounds(r),
    r"linear$": lambda r, m: linear(r),
    r"where\.": lambda r, m: {**mix(r, "condition", "self", "other"), "condition": T("bool", [])} if r.random() < 0.3 else (lambda s: {"condition": T("bool", r.broadcast(s)), "self": T(r.choice(ANY), r.broadcast(s)), "other": T(r.choice(ANY), r.broadcast(s))})(r.shape(1, 3)),
    r"complex|polar": lambda r, m: (lambda e, s: {n: T(e, s) for n in ["real", "imag", "abs", "angle"]})(r.choice(["f32", "f64"]), r.shape()),
    r"searchsorted": named(sorted_sequence=T("f32", [5]), self=lambda r: T("f32", r.shape())),
    r"vander": named(x=T("i64", [3]), N=lambda r: r.choice([None, 5])),
    r"randint": named(high=9, low=1, size=[2, 3], dtype=lambda r: r.choice([torch.int64, torch.float32])),
    r"randperm": named(n=6),
    r"eye": named(n=3, m=4),
    r"(linspace|logspace)": named(start=1, end=4, steps=5),
    r"(tril|triu)_indices": lambda r, m: {"row": r.randint(1, 4), "col": r.randint(1, 4), "offset": r.randint(-2, 2)},
    r"empty_strided|new_empty_strided": named(self=T("i32", [2]), size=[2, 3], stride=[3, 1]),
    r"hann": named(window_length=8),
    r"(full|zeros|ones|rand|randn|empty.memory_format|new_\w+)$": lambda r, m: {"self": T(r.choice(ANY), [2]), "size": r.shape(), "stride": None, "fill_value": r.choice([1, 2.5, True]), "dtype": r.choice([None, None, torch.int32, torch.float16])},
    r"to\.(other)|type_as": lambda r, m: {"self": T(r.choice(ANY), r.shape()), "other": T(r.choice(ANY), [2])},
    r"(_to_copy|to\.dtype.*|full_like|zeros_like|ones_like|empty_like)": lambda r, m: {"self": T(r.choice(ANY), r.shape()), "dtype": DTYPES[r.choice(ANY)], "fill_value": 1},
    r"(var|std)(_mean)?\.correction": lambda r, m: (lambda s: {"self": T(r.choice(FLOATS + ["c64"]), s), "dim": r.choice([None, r.subset(len(s), 1)]), "keepdim": r.random() < 0.5, "correction": r.choice([0, 1])})(r.shape()),
    r"multinomial": named(self=T("f32", [3, 5]), num_samples=4),
    r"nextafter|heaviside|logaddexp2?$|hypot|gcd|lcm|isclose": lambda r, m: (lambda e, s: {"self": T(e, r.broadcast(s)), "other": T(e, r.broadcast(s)), "values": T(e, s)})(r.choice(INTS if m[0] in ("gcd", "lcm") else FLOATS), r.shape()),
    r"histc": named(self=T("f32", [9]), bins=lambda r: r.randint(1, 9)),
    r"trace": named(self=lambda r: T(r.choice(ANY), [3, 4])),
    r"addc(mul|div)_?": lambda r, m: (lambda s, es: {"self": T(r.choice(es), s), "tensor1": T(r.choice(es), r.broadcast(s)), "tensor2": T(r.choice(es), r.broadcast(s))})(r.shape(), r.choice([FLOATS, ANY])),
    r"lerp": lambda r, m: (lambda s, e: {"self": T(e, s), "end": T(e, r.broadcast(s)), "weight": T(e, r.broadcast(s)) if "Tensor" in m.string else 0.5})(r.shape(), r.choice(FLOATS)),
    r"diff": lambda r, m: {"self": T("f32", [3, 5]), "n": r.randint(1, 2), "dim": r.choice([0, 1, -1]), "prepend": r.choice([None, T("f32", [3, 5])]), "append": None},
}
