"""Circle operators in `chute run`, each against PyTorch or NumPy on the same numbers."""
import numpy as np
import pytest
import torch
from conftest import chute
from torch import nn
from torch.nn import functional as F

RNG = np.random.default_rng(11)
TYPES = {"float32": "f32", "int32": "i32", "int64": "i64", "bool": "bool"}


def x(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def i(*values):
    return np.array(values, np.int32)


def type_of(array):
    return f"{TYPES[array.dtype.name]}[{','.join(map(str, array.shape))}]"


def evaluate(tmp_path, op, inputs, outputs, attrs="", call=None):
    """One operator on `inputs` (None: absent), with result types like those of `outputs`."""
    present = [k for k, v in enumerate(inputs) if v is not None]
    names = ["none" if v is None else f"%a{k}" for k, v in enumerate(inputs)]
    results = ", ".join(f"%y{k}" for k in range(len(outputs)))
    text = (f"graph @g({', '.join(f'%a{k}: {type_of(inputs[k])}' for k in present)}) -> "
            f"({', '.join(f'{chr(34)}y{k}{chr(34)}: {type_of(o)}' for k, o in enumerate(outputs))}) {{\n"
            f"  {results} = circle.{op}({', '.join(names)}) {attrs} : {', '.join(map(type_of, outputs))}\n  return {results}\n}}\n")
    (tmp_path / "g.ir").write_text(text)
    np.savez(tmp_path / "in.npz", **{f"a{k}": inputs[k] for k in present})
    chute("run", tmp_path / "g.ir", "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    got = np.load(tmp_path / "out.npz")
    for k, want in enumerate(outputs):
        assert got[f"out{k}"].shape == want.shape
        np.testing.assert_allclose(got[f"out{k}"], want, rtol=2e-5, atol=2e-5, err_msg=text)


def nchw(a):
    return torch.from_numpy(np.moveaxis(a, -1, 1).copy())


def nhwc(t):
    return np.moveaxis(t.numpy(), 1, -1).copy()


def depth_to_space(a, b):
    n, h, w, c = a.shape
    return a.reshape(n, h, w, b, b, c // b // b).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // b // b)


def space_to_batch(a, block, pad):
    a = np.pad(a, [(0, 0), *pad, (0, 0)])
    return np.concatenate([a[:, p::block[0], q::block[1]] for p in range(block[0]) for q in range(block[1])])


IMAGE = x(2, 4, 6, 8)
BLOCKS = space_to_batch(x(1, 5, 5, 3), (2, 3), [(1, 0), (0, 1)])
ROWS = x(5, 3)
IDS = i(2, 0, 2, 1, 0)


def segment(fold, start):
    out = np.full((3, 3), start, np.float32)
    for r, k in enumerate(IDS):
        out[k] = fold(out[k], ROWS[r])
    return out


def update(a, b, start):
    a = a.copy()
    a[tuple(slice(s, s + n) for s, n in zip(start, b.shape))] = b
    return a


CASES = {
    "depth_to_space": ([IMAGE], [depth_to_space(IMAGE, 2)], "{block_size = 2}"),
    "space_to_depth": ([depth_to_space(IMAGE, 2)], [IMAGE], "{block_size = 2}"),
    "space_to_batch_nd": ([IMAGE, i(2, 3), np.array([[1, 1], [0, 3]], np.int32)],
                          [space_to_batch(IMAGE, (2, 3), [(1, 1), (0, 3)])], ""),
    "batch_to_space_nd": ([space_to_batch(IMAGE, (2, 3), [(1, 1), (0, 3)]), i(2, 3), np.array([[1, 1], [0, 3]], np.int32)],
                          [IMAGE], ""),
    "dilate": ([np.array([[1, 2], [3, 4]], np.float32), i(2, 3), np.float32(9).reshape(())],
               [np.array([[1, 9, 9, 2], [9, 9, 9, 9], [3, 9, 9, 4]], np.float32)], ""),
    "reverse_sequence": ([ROWS, i(3, 1, 5)], [np.stack([np.concatenate([ROWS[:n, k][::-1], ROWS[n:, k]]) for k, n in enumerate((3, 1, 5))], 1)],
                         "{seq_dim = 0, batch_dim = 1}"),
    "matrix_diag": ([ROWS], [np.stack([np.diag(r) for r in ROWS])], ""),
    "matrix_set_diag": ([x(2, 3, 3) * 0 + 1, x(2, 3) * 0 + 7], [np.stack([np.ones((3, 3)) + 6 * np.eye(3)] * 2).astype(np.float32)], ""),
    "zeros_like": ([ROWS], [ROWS * 0], ""),
    "rank": ([IMAGE], [np.array(4, np.int32)], ""),
    "one_hot": ([i(2, 0, 5), np.array(3, np.int32), np.float32(2).reshape(()), np.float32(-1).reshape(())],
                [np.array([[-1, 2, -1], [-1, -1, -1], [2, -1, -1]], np.float32)], "{axis = 0}"),
    "scatter_nd": ([np.array([[1], [0], [1]], np.int32), ROWS[:3], i(4, 3)],
                   [np.stack([ROWS[1], ROWS[0] + ROWS[2], ROWS[0] * 0, ROWS[0] * 0])], ""),
    "sparse_to_dense": ([np.array([[0, 1], [2, 0]], np.int32), i(3, 2), np.array([5, 6], np.float32), np.float32(1).reshape(())],
                        [np.array([[1, 5], [1, 1], [6, 1]], np.float32)], "{validate_indices = false}"),
    "segment_sum": ([ROWS, i(0, 0, 1, 2, 2)], [np.stack([ROWS[0] + ROWS[1], ROWS[2], ROWS[3] + ROWS[4]])], ""),
    "unsorted_segment_sum": ([ROWS, IDS, np.array(3, np.int32)], [segment(np.add, 0)], ""),
    "unsorted_segment_prod": ([ROWS, IDS, np.array(3, np.int32)], [segment(np.multiply, 1)], ""),
    "unsorted_segment_max": ([ROWS, IDS, np.array(3, np.int32)], [segment(np.maximum, -np.inf)], ""),
    "unsorted_segment_min": ([ROWS, IDS, np.array(3, np.int32)], [segment(np.minimum, np.inf)], ""),
    "embedding_lookup": ([i(4, 0), ROWS], [ROWS[[4, 0]]], ""),
    "dynamic_update_slice": ([ROWS, ROWS[:2, :2] + 9, i(4, 1)], [update(ROWS, ROWS[:2, :2] + 9, (3, 1))], ""),
    "gather": ([x(2, 3, 4), np.array([[2, 0], [1, 1]], np.int32)], None, "{axis = 1, batch_dims = 1}"),
    "unique": ([np.array([3, 1, 3, 2], np.float32)], [np.array([3, 1, 2], np.float32), i(0, 1, 0, 2)], '{idx_out_type = i32}'),
    "bucketize": ([np.array([0, 1, 1.5, 9], np.float32)], [i(0, 1, 1, 2)], "{boundaries = [1.0, 2.0]}"),
    "add_n": ([ROWS, ROWS * 2, ROWS * 3], [ROWS * 6], ""),
    "broadcast_args": ([i(3, 1), i(2, 1, 5)], [i(2, 3, 5)], ""),
    "l2_normalization": ([ROWS], [F.normalize(torch.from_numpy(ROWS), dim=-1, eps=1e-6).numpy()], "{fused_activation_function = \"NONE\"}"),
    "local_response_normalization": ([IMAGE], [nhwc(F.local_response_norm(nchw(IMAGE), 5, alpha=0.5 * 5, beta=0.75, k=2.0))],
                                     "{radius = 2, bias = 2.0, alpha = 0.5, beta = 0.75}"),
    "instance_norm": ([IMAGE, x(8), x(8)], None, "{epsilon = 0.01, fused_activation_function = \"NONE\"}"),
    "l2_pool_2d": ([IMAGE], [nhwc(F.avg_pool2d(nchw(IMAGE) ** 2, (2, 3), (2, 1)).sqrt())],
                   '{padding = "VALID", stride_h = 2, stride_w = 1, filter_height = 2, filter_width = 3, fused_activation_function = "NONE"}'),
    "conv_3d": ([x(1, 4, 5, 6, 2), x(3, 2, 3, 2, 4), x(4)], None,
                '{padding = "VALID", stride_d = 1, stride_h = 2, stride_w = 1, fused_activation_function = "RELU"}'),
    "conv_3d_transpose": ([i(1, 6, 7, 8, 3), x(2, 3, 3, 3, 4), x(1, 5, 3, 6, 4), None], None,
                          '{padding = "VALID", stride_d = 1, stride_h = 2, stride_w = 1, fused_activation_function = "NONE"}'),
    "rope": ([x(1, 2, 3, 4), x(1, 1, 3, 4), x(1, 1, 3, 4)], None, '{mode = "GPT_NEOX"}'),
    "fake_quant": ([x(4, 5)], [torch.fake_quantize_per_tensor_affine(torch.zeros(1), 1.0, 0, 0, 255).numpy()], None),
}


def complete(name):
    inputs, outputs, attrs = CASES[name]
    if name == "gather":
        outputs = [np.stack([a[k] for a, k in zip(*inputs)])]
    elif name == "instance_norm":
        outputs = [nhwc(F.instance_norm(nchw(inputs[0]), weight=torch.from_numpy(inputs[1]), bias=torch.from_numpy(inputs[2]), eps=0.01))]
    elif name == "conv_3d":
        weight = torch.from_numpy(inputs[1]).permute(4, 3, 0, 1, 2)
        outputs = [nhwc(torch.relu(F.conv3d(nchw(inputs[0]), weight, torch.from_numpy(inputs[2]), stride=(1, 2, 1))))]
    elif name == "conv_3d_transpose":
        weight = torch.from_numpy(inputs[1]).permute(4, 3, 0, 1, 2)
        outputs = [nhwc(F.conv_transpose3d(nchw(inputs[2]), weight, stride=(1, 2, 1)))]
    elif name == "rope":
        low, high = np.split(inputs[0], 2, -1)
        outputs = [inputs[0] * inputs[2] + np.concatenate([-high, low], -1) * inputs[1]]
    elif name == "fake_quant":
        scale = 3 / 255
        outputs = [torch.fake_quantize_per_tensor_affine(torch.from_numpy(inputs[0]), scale, 85, 0, 255).numpy()]
        attrs = "{min = -1.0, max = 2.0, num_bits = 8, narrow_range = false}"
    return inputs, outputs, attrs


@pytest.mark.parametrize("name", CASES)
def test_operator(name, tmp_path):
    evaluate(tmp_path, name, *complete(name))


def test_where_finds_its_size(tmp_path):
    mask = np.array([[True, False], [True, True]])
    (tmp_path / "g.ir").write_text('graph @g(%a0: bool[2,2]) -> ("y": i64[d,2]) {\n  %y = circle.where(%a0) : i64[d,2]\n  return %y\n}\n')
    np.savez(tmp_path / "in.npz", a0=mask)
    chute("run", tmp_path / "g.ir", "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert np.array_equal(np.load(tmp_path / "out.npz")["out0"], np.argwhere(mask))


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("projected", [False, True])
def test_lstm(time_major, projected, tmp_path):
    """PyTorch orders the gates input, forget, cell, output, and has two biases."""
    torch.manual_seed(1)
    lstm = nn.LSTM(3, 4, batch_first=not time_major, proj_size=2 if projected else 0)
    data = torch.randn(5, 2, 3) if time_major else torch.randn(2, 5, 3)
    with torch.no_grad():
        want = lstm(data)[0].numpy()
    parts = {k: np.split(v.detach().numpy(), 4) for k, v in lstm.named_parameters() if "hr" not in k}
    bias = [p + q for p, q in zip(parts["bias_ih_l0"], parts["bias_hh_l0"])]
    project = lstm.weight_hr_l0.detach().numpy() if projected else None
    operands = [data.numpy(), *parts["weight_ih_l0"], *parts["weight_hh_l0"], None, None, None, *bias, project, None,
                np.zeros((2, want.shape[-1]), np.float32), np.zeros((2, 4), np.float32)]
    evaluate(tmp_path, "unidirectional_sequence_lstm", operands, [want],
             f'{{fused_activation_function = "TANH", cell_clip = 0.0, proj_clip = 0.0, time_major = {str(time_major).lower()}}}')


def test_rnn(tmp_path):
    torch.manual_seed(2)
    rnn = nn.RNN(3, 4, batch_first=True)
    data = torch.randn(2, 5, 3)
    with torch.no_grad():
        want = rnn(data)[0].numpy()
    w, r, b, c = (p.detach().numpy() for p in (rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0))
    evaluate(tmp_path, "unidirectional_sequence_rnn", [data.numpy(), w, r, b + c, np.zeros((2, 4), np.float32)], [want],
             '{fused_activation_function = "TANH", time_major = false}')
