"""Products of matrices, attention and recurrent layers."""
from .draw import ANY, FLOATS, T, named


def attention(r):
    b, h, l, s, e, v = r.ints(1, 4, 6)
    d = r.choice(FLOATS)
    lead = [b, h]
    kv = [b, h]
    m = T(r.choice(["bool", d]), r.broadcast([b, h, l, s])) if r.random() < 0.4 else None
    return {"query": T(d, lead + [l, e]), "key": T(d, kv + [s, e]), "value": T(d, kv + [s, v]), "attn_mask": m,
            "is_causal": m is None and r.random() < 0.3, "enable_gqa": False, "dropout_p": 0.0, "scale": None,
            "dropout_mask": None}


def rnn(r, gates, lstm=False):
    b, t, i, h, l = r.ints(1, 4, 5)
    bi, first, bias = r.random() < 0.5, r.random() < 0.5, r.random() < 0.5
    d = 2 if bi else 1
    p = []
    for k in range(l):
        for _ in range(d):
            p += [T("f32", [gates * h, i if k == 0 else h * d]), T("f32", [gates * h, h])]
            p += [T("f32", [gates * h])] * 2 if bias else []
    s = T("f32", [l * d, b, h])
    return {"input": T("f32", [b, t, i] if first else [t, b, i]), "hx": [s, s] if lstm else s, "params": p,
            "has_biases": bias, "num_layers": l, "dropout": 0.0, "train": False, "bidirectional": bi,
            "batch_first": first}


def cell(r, gates, lstm=False):
    b, i, h = r.ints(1, 4, 3)
    s = T("f32", [b, h])
    return {"input": T("f32", [b, i]), "hx": [s, s] if lstm else s, "w_ih": T("f32", [gates * h, i]),
            "w_hh": T("f32", [gates * h, h]), "b_ih": None, "b_hh": None}


def einsum(r):
    n = dict(zip("abcdijkn", [2, 3, 4, 5, 2, 3, 4, 1]))
    eq = r.choice(["ij,jk->ik", "ij,jk", "bij,bjk->bik".replace("b", "a"), "...ij,...jk->...ik", "i,i", "ii->i", "ii",
                   "abc->cab", "abcd,abed->abce".replace("e", "i"), "ij,ij->", "...a->...", "a...,ab->b...", "ab , b -> a"])
    ops = []
    for term in eq.split("->")[0].split(","):
        s = []
        for c in term.replace("...", ".").replace(" ", ""):
            s += [2, 3][r.randint(0, 1):] if c == "." else [n[c]]
        ops.append(T("f32", s))
    return {"equation": eq, "tensors": ops}


def bmm(r):
    b, n, k, m = r.ints(1, 4, 4)
    e = r.choice(FLOATS)
    return {"self": T(e, [b, n, k]), "mat2": T(e, [b, k, m])}


def add_mm(r, batch=False, over=False):
    b, n, k, m = r.ints(1, 4, 4)
    e = r.choice(FLOATS)
    lead = [b] if batch else []
    out = [n, m] if over else lead + [n, m]
    x, y = T(e, lead + [n, k]), T(e, lead + [k, m])
    return {"self": T(e, r.choice([out, [m], [1] * len(out)])), "mat1": x, "mat2": y, "batch1": x, "batch2": y}


def any_matmul(r):
    k, e = r.randint(1, 4), r.choice(FLOATS)
    x = r.choice([[k], [3, k], [2, 3, k], [5, 2, 3, k]])
    y = r.choice([[k], [k, 2], [2, k, 2], [1, k, 4]])
    return {"self": T(e, x), "other": T(e, y)}


MAKERS = {
    r"_scaled_dot_product_flash": lambda r, m: (lambda a: {**a, "value": a["key"]})(attention(r)),
    r"_scaled_dot|scaled_dot": lambda r, m: attention(r),
    r"_native_multi": named(query=T("f32", [2, 5, 8]), key=T("f32", [2, 5, 8]), value=T("f32", [2, 5, 8]), embed_dim=8, num_head=2, qkv_weight=T("f32", [24, 8]), qkv_bias=T("f32", [24]), proj_weight=T("f32", [8, 8]), proj_bias=T("f32", [8]), mask=None, need_weights=lambda r: r.random() < 0.5, average_attn_weights=lambda r: r.random() < 0.5),
    r"gru\.input": lambda r, m: rnn(r, 3),
    r"rnn_\w+\.input": lambda r, m: rnn(r, 1),
    r"lstm\.input": lambda r, m: rnn(r, 4, True),
    r"gru_cell": lambda r, m: cell(r, 3),
    r"rnn_tanh_cell": lambda r, m: cell(r, 1),
    r"lstm_cell": lambda r, m: cell(r, 4, True),
    r"einsum": lambda r, m: einsum(r),
    r"mm$": lambda r, m: (lambda a: {"self": T(a["self"].dtype, a["self"].shape[1:]), "mat2": T(a["self"].dtype, a["mat2"].shape[1:])})(bmm(r)),
    r"_int_mm": named(self=T("i8", [32, 16]), mat2=T("i8", [16, 8])),
    r"bmm$": lambda r, m: bmm(r),
    r"addmm": lambda r, m: add_mm(r),
    r"baddbmm": lambda r, m: add_mm(r, True),
    r"addbmm": lambda r, m: add_mm(r, True, True),
    r"matmul$": lambda r, m: any_matmul(r),
    r"mv$": named(self=T("f32", [3, 4]), vec=T("f32", [4])),
    r"addmv": named(self=T("f32", [3]), mat=T("f32", [3, 4]), vec=T("f32", [4])),
    r"v?dot$": named(self=T("f32", [4]), tensor=T("f32", [4]), other=T("f32", [4])),
    r"outer": named(self=lambda r: T(r.choice(ANY), [3]), vec2=lambda r: T(r.choice(ANY), [4])),
    r"addr": named(self=T("f32", [3, 4]), vec1=T("f32", [3]), vec2=T("f32", [4])),
    r"inner": named(self=T("f32", [2, 3, 4]), other=T("f32", [5, 4])),
    r"chain_matmul": named(matrices=[T("f32", [2, 3]), T("f32", [3, 4]), T("f32", [4, 5])]),
    r"tensordot": named(self=T("f32", [3, 4, 5]), other=T("f32", [4, 3, 2]), dims_self=[1, 0], dims_other=[0, 1]),
    r"bilinear": named(input1=T("f32", [2, 3]), input2=T("f32", [2, 4]), weight=T("f32", [5, 3, 4]), bias=T("f32", [5])),
    r"_trilinear": named(i1=T("f32", [2, 3]), i2=T("f32", [5, 3, 4]), i3=T("f32", [2, 4]), expand1=[1, 3], expand2=[0], expand3=[1, 2], sumdim=[2, 3]),
    r"linalg_solve": lambda r, m: {"A": T("f32", [2, 3, 3]), "B": T("f32", r.choice([[2, 3], [2, 3, 4], [3, 4]]))},
    r"linalg_(det|inv)|cholesky": named(A=T("f32", [2, 3, 3]), self=T("f32", [2, 3, 3])),
    r"(linalg_)?cross": named(self=T("f32", [2, 3]), other=T("f32", [1, 3]), dim=1),
}
