"""Indexing, scattering, slicing, tables and bounds."""
from .draw import ANY, FLOATS, T, named


def index(r, values=False):
    s = r.shape(1, 4)
    while 0 in s:
        s = r.shape(1, 4)
    b = r.shape(0, 2)
    ix = [T(r.choice(["i64", "i32"]), r.broadcast(b)) if r.random() < 0.6 else None for _ in range(r.randint(1, len(s)))]
    if not any(ix):
        ix[0] = T("i64", b)
    a = {"self": T(r.choice(ANY), s), "indices": ix}
    if values:
        a["values"] = T(a["self"].dtype, [])
    return a


def along(r, names=("index", "indices"), reduce="amax"):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    i = list(s)
    i[d] = r.randint(1, 3)
    e = r.choice(ANY)
    a = {"self": T(e, s), "dim": d - len(s) if r.random() < 0.4 else d, "src": T(e, i), "value": 1,
         "reduce": reduce, "source": T(e, s)}
    for n in names:
        a[n] = T("i64", i)
    return a


def along1(r):
    s = r.shape(1, 3)
    d = r.randrange(len(s))
    n = r.randint(1, 4)
    e = r.choice(ANY)
    src = list(s)
    src[d] = n
    return {"self": T(e, s), "dim": d, "index": T(r.choice(["i64", "i32"]), [n]), "source": T(e, src), "value": 1,
            "reduce": "amax"}


def embedding_bag(r):
    n, bags = r.randint(1, 6), r.randint(1, 3)
    return {"weight": T("f32", [7, 4]), "indices": T("i64", [n]), "offsets": T("i64", [bags + 1]), "mode": r.randint(0, 2),
            "include_last_offset": r.random() < 0.5, "per_sample_weights": None}


def slices(r):
    s = r.shape(1, 4)
    d = r.randrange(-len(s), len(s))
    return {"self": T(r.choice(ANY), s), "dim": d, "start": r.choice([None, 0, 1, -1, -2, 9]),
            "end": r.choice([None, 1, 2, -1, 9, 2**63 - 1]), "step": r.choice([1, 1, 2, 3]), "src": T("f32", s)}


MAKERS = {
    r"index\.Tensor": lambda r, m: index(r),
    r"index_put_?$": lambda r, m: index(r, True),
    r"scatter\.(value_)?reduce": lambda r, m: along(r, reduce="add"),
    r"gather$|scatter|take_along": lambda r, m: along(r),
    r"index_fill_?.int_Tensor": lambda r, m: {**along1(r), "value": T("f32", [])},
    r"index_(add|copy|fill|reduce|select)": lambda r, m: along1(r),
    r"(select)_scatter": named(self=T("f32", [3, 4]), src=T("f32", [3]), dim=1, index=2),
    r"slice_scatter": named(self=T("f32", [3, 4]), src=T("f32", [3, 2]), dim=1, start=1, end=3),
    r"diagonal_scatter": named(self=T("f32", [3, 4]), src=T("f32", [3])),
    r"as_strided(_copy)?$": named(self=T("f32", [4, 6]), size=[2, 3], stride=[1, 2]),
    r"as_strided_scatter": named(self=T("f32", [4, 6]), src=T("f32", [2, 3]), size=[2, 3], stride=[1, 2]),
    r"masked_scatter": named(self=T("f32", [3, 4]), mask=T("bool", [3, 4]), source=T("f32", [12])),
    r"masked_fill": lambda r, m: (lambda s: {"self": T(r.choice(ANY), s), "mask": T("bool", r.broadcast(s)), "value": T("f32", []) if "Tensor" in m.string else 1})(r.shape()),
    r"put_?$": named(self=T("f32", [3, 4]), index=T("i64", [2]), source=T("f32", [2])),
    r"take$": named(self=T("f32", [3, 4]), index=lambda r: T("i64", r.shape())),
    r"_?embedding_bag": lambda r, m: embedding_bag(r),
    r"embedding$": named(weight=lambda r: T(r.choice(FLOATS), [9, 4]), indices=lambda r: T(r.choice(["i64", "i32"]), r.shape(0, 3))),
    r"one_hot": named(self=lambda r: T("i64", r.shape()), num_classes=5),
    r"(slice|slice_copy)\.": lambda r, m: slices(r),
    r"unfold": lambda r, m: {"self": T("f32", [3, 8]), "dimension": r.choice([1, -1]), "size": r.randint(1, 4), "step": r.randint(1, 3)},
    r"bucketize": named(self=lambda r: T("f32", r.shape()), boundaries=T("f32", [5])),
    r"kthvalue": named(self=T("f32", [3, 4]), k=1, dim=lambda r: r.choice([0, 1, -1]), keepdim=lambda r: r.random() < 0.5),
    r"topk": lambda r, m: {"self": T(r.choice(FLOATS), [4, 6]), "k": r.randint(0, 4), "dim": r.choice([0, 1, -1])},
}
