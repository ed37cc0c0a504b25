"""Shapes, joins and splits."""
import torch

from .draw import ANY, T, image, named


def view_of(r, shape):
    """Another shape with as many elements, perhaps with a -1."""
    n = 1
    for d in shape:
        n *= d
    out = []
    while n > 1:
        f = r.choice([f for f in range(2, n + 1) if n % f == 0])
        out.append(f)
        n //= f
    out = [0] if 0 in shape else out
    if r.random() < 0.4:
        out.insert(r.randint(0, len(out)), 1)
    if out and 0 not in shape and r.random() < 0.5:
        out[r.randrange(len(out))] = -1
    return out


def view(r, name="size"):
    s = r.shape()
    return {"self": T(r.choice(ANY), s), name: view_of(r, s)}


def expand(r):
    s = r.shape(0, 3)
    size = r.ints(1, 3, r.randint(0, 2)) + [r.choice([d, -1]) if d != 1 else r.choice([1, 5, -1]) for d in s]
    return {"self": T(r.choice(ANY), s), "size": size}


def tensors(r, dims=(1, 4), same=False):
    s = r.shape(*dims)
    d = r.randrange(-len(s), len(s)) if s else 0
    e = r.choice(ANY)
    out = []
    for _ in range(r.randint(1, 4)):
        t = list(s)
        if not same and s:
            t[d] = r.randint(0, 4)
        out.append(T(e if r.random() < 0.7 else r.choice(ANY), t))
    return {"tensors": out, "dim": d if not same else r.randint(-len(s) - 1, len(s))}


def vectors(r, low=1, high=3):
    e = r.choice(["f32", "i64"])
    return {"tensors": [T(e, [r.randint(1, 4)]) for _ in range(r.randint(low, high))], "indexing": r.choice(["ij", "xy"])}


def unflatten(r):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    return {"self": T("f32", s), "dim": d, "sizes": view_of(r, [s[d]]) or [1]}


def split_sizes(r):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    cut = r.randint(0, s[d])
    return {"self": T("f32", s), "dim": d, "split_sizes": [cut, s[d] - cut], "split_size": [cut, s[d] - cut]}


MAKERS = {
    r"(_unsafe_)?view(_copy)?$": lambda r, m: view(r),
    r"reshape$": lambda r, m: view(r, "shape"),
    r"(reshape|expand)_as$": lambda r, m: {"self": T("f32", [2, 1]), "other": T("i32", [2, 1] if m[1] == "reshape" else [3, 2, 4])},
    r"expand(_copy)?$|broadcast_to": lambda r, m: expand(r),
    r"view\.dtype": named(self=lambda r: T(r.choice(["f32", "f16", "i8", "i64"]), [3, 8]), dtype=lambda r: r.choice([torch.float32, torch.int16, torch.uint8])),
    r"view_as_complex": named(self=lambda r: T(r.choice(["f32", "f64"]), r.shape() + [2])),
    r"(view_as_real|real|imag|_conj|conj|_conj_physical|resolve_conj)$": named(self=lambda r: T(r.choice(["c64", "c128"]), r.shape())),
    r"unflatten": lambda r, m: unflatten(r),
    r"flatten": lambda r, m: (lambda s, d: {"self": T("f32", s), "start_dim": d, "end_dim": r.choice([-1, len(s) - 1])})(r.shape(1, 4), 0),
    r"(cat|concat|concatenate)$": lambda r, m: tensors(r),
    r"stack$": lambda r, m: tensors(r, (0, 3), True),
    r"(h|v|d|column_)stack$": lambda r, m: tensors(r, (0, 4), True),
    r"block_diag": lambda r, m: {"tensors": [T("f32", r.shape(0, 2)) for _ in range(3)]},
    r"meshgrid|cartesian_prod": lambda r, m: vectors(r),
    r"broadcast_tensors": lambda r, m: (lambda s: {"tensors": [T(r.choice(ANY), r.broadcast(s)) for _ in range(3)]})(r.shape(1, 3)),
    r"combinations": named(self=lambda r: T("f32", [r.randint(1, 6)]), r=lambda r: r.randint(0, 4), with_replacement=lambda r: r.random() < 0.5),
    r"(split_with_sizes|unsafe_split_with_sizes|split\.sizes)": lambda r, m: split_sizes(r),
    r"(h|v|d)split": lambda r, m: {"self": T("f32", [4, 4, 6]), "sections": r.choice([1, 2])},
    r"tensor_split.indices": lambda r, m: {"self": T("f32", [6, 3]), "indices": r.choice([[1, 4], [0], [2, 9], [-2]])},
    r"pixel_shuffle": lambda r, m: {"self": T("f32", [2, 8, 3, 5]), "upscale_factor": 2},
    r"pixel_unshuffle": lambda r, m: {"self": T("f32", [2, 3, 4, 6]), "downscale_factor": 2},
    r"channel_shuffle": lambda r, m: {"self": image(r), "groups": 2},
    r"(permute|permute_copy)$": lambda r, m: (lambda s: {"self": T(r.choice(ANY), s), "dims": r.sample(range(len(s)), len(s))})(r.shape()),
    r"(flip|roll)$": lambda r, m: (lambda s: {"self": T("f32", s), "dims": r.subset(len(s), 1), "shifts": []})(r.shape(1, 4)) if m[1] == "flip" else {"self": T("f32", [2, 3]), "shifts": [1], "dims": r.choice([[0], []])},
    r"(move|swap)(axis|dims?|axes)_?\.?(intlist|int)?": lambda r, m: {"self": T("f32", [2, 3, 4]), "source": [0, 2] if m[3] == "intlist" else 0, "destination": [-1, 0] if m[3] == "intlist" else -1, "axis0": 0, "axis1": -1, "dim0": 0, "dim1": 2},
    r"repeat$": lambda r, m: (lambda s: {"self": T("f32", s), "repeats": r.ints(0, 3, len(s) + r.randint(0, 2))})(r.shape()),
    r"tile$": lambda r, m: {"self": T("f32", r.shape()), "dims": r.ints(1, 3, r.randint(0, 3))},
    r"repeat_interleave.self": lambda r, m: (lambda s: {"self": T("f32", s), "repeats": r.randint(1, 3), "dim": r.choice([None, 0, -1])})(r.shape(1, 3)),
    r"repeat_interleave.Tensor": named(repeats=T("i64", [3]), output_size=7),
    r"rot90": lambda r, m: {"self": T("f32", [2, 3, 4]), "k": r.randint(0, 3), "dims": r.choice([[0, 1], [2, 0]])},
    r"resize_": named(self=T("f32", [2, 3]), size=[4, 5]),
}
