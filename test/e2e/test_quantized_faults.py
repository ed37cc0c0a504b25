"""Faults that users of quantizing converters have reported: one test for each kind, named after its row in the list."""
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from circle_schema import circle
from conftest import chute
from quantized_models import Weight, fq
from test_quantized import agree, convert, export, interface, real, run_tico
from torch import nn


class Net(nn.Module):
    def __init__(self, body, **children):
        super().__init__()
        torch.manual_seed(3)
        self.body = body
        for name, child in children.items():
            setattr(self, name, child() if isinstance(child, type) else child)

    def forward(self, *x):
        return self.body(self, *x)


def graph_of(path):
    return circle.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0).subgraphs[0]


def test_a6_int8_sigmoid_over_its_whole_domain(tmp_path):
    """Each of the 256 stored inputs gives its own value: no step twice, none off by one."""
    net = Net(lambda s, x: torch.fake_quantize_per_tensor_affine(
        torch.sigmoid(torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -127, 127)), 1 / 254, -127, -127, 127))
    x = (torch.arange(-128, 128) - 3) * 0.05
    path = agree(tmp_path, net, (x,))
    (ins,), (outs,), count = interface(path)
    assert ins[0] == np.int8 and count == {"LOGISTIC": 1}
    with torch.no_grad():
        want = net(x).numpy()
    stored = np.arange(-128, 128).astype(np.int8)
    np.savez(tmp_path / "all.npz", in0=stored)
    chute("run", path, "--inputs", tmp_path / "all.npz", "-o", tmp_path / "out.npz")
    for got in (np.load(tmp_path / "out.npz")["out0"], run_tico(path, [x.numpy()])[0]):
        assert np.abs(real(got, outs) - want).max() <= 1.01 / 254


def test_a8_the_boundary_keeps_the_type_that_it_declares(tmp_path):
    net = Net(lambda s, x, y: fq(torch.matmul(fq(x, "int8"), fq(y, "int8")), "int8", -9, 9).permute(0, 2, 1).reshape(2, 12))
    path = agree(tmp_path, net, (torch.randn(2, 3, 5), torch.randn(2, 5, 4)))
    assert interface(path)[1][0][0] == np.int8
    path, _ = convert(tmp_path, "--set", "quant_io=float")
    assert interface(path)[1][0][0] == np.float32
    assert interface(path)[2]["DEQUANTIZE"] == 1


def test_a9_parameters_of_the_result_end_on_the_last_operator(tmp_path):
    """A vector times a matrix is reshape, FULLY_CONNECTED, reshape."""
    net = Net(lambda s, x: fq(F.linear(fq(x, "uint8"), s.w()), "uint8", -3, 12), w=Weight((6, 8), "uint8"))
    path = agree(tmp_path, net, (torch.randn(8),))
    graph = graph_of(path)
    scale = lambda t: graph.tensors[t].quantization.scale[0]
    assert abs(scale(graph.outputs[0]) - 15 / 255) < 1e-6
    assert len(graph.operators) >= 2
    for op in graph.operators:
        # Whatever comes after the product has the product's parameters, before it the input's.
        made = scale(op.outputs[0])
        assert min(abs(made - 15 / 255), abs(made - 8 / 255)) < 1e-6


def test_a10_values_inside_a_decomposition_inherit_nothing(tmp_path):
    net = Net(lambda s, x: fq(s.norm(fq(x, "int8")), "int8", -4, 4), norm=nn.LayerNorm(8))
    path = agree(tmp_path, net, (torch.randn(3, 8),))
    graph = graph_of(path)
    quantized = [t for t in graph.tensors if t.quantization is not None and t.quantization.scale is not None]
    assert len(quantized) == 2  # the input and the result


def test_a32_each_consumer_reads_its_own_scale(tmp_path):
    def body(s, x):
        y = F.conv2d(fq(x, "int16"), s.w(), padding=1)
        return fq(y, "int16", -9, 9), fq(y, "uint8", -2, 2), y
    path = agree(tmp_path, Net(body, w=Weight((4, 3, 3, 3), "int8")), (torch.randn(1, 3, 5, 6),))
    assert [o[0] for o in interface(path)[1]] == [np.int16, np.uint8, np.float32]


def test_a32_each_consumer_reads_its_own_scale_without_reals(tmp_path):
    def body(s, x):
        y = F.conv2d(fq(x, "int16"), s.w(), padding=1)
        return fq(y, "int16", -9, 9), fq(y, "uint8", -2, 2)
    path = agree(tmp_path, Net(body, w=Weight((4, 3, 3, 3), "int8")), (torch.randn(1, 3, 5, 6),))
    assert [o[0] for o in interface(path)[1]] == [np.int16, np.uint8] and interface(path)[2]["QUANTIZE"] <= 2


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_a36_in_place_activations_are_quantized_alike(tmp_path, activation):
    counts = []
    for in_place in (False, True):
        def body(s, x, in_place=in_place):
            y = F.conv2d(fq(x, "uint8"), s.w())
            y = getattr(F, activation)(y, inplace=in_place)
            return fq(y, "uint8", -1, 8)
        folder = tmp_path / str(in_place)
        counts.append(interface(agree(folder, Net(body, w=Weight((4, 3, 1, 1), "uint8")), (torch.randn(1, 3, 5, 6),)))[2])
    assert counts[0] == counts[1]


def test_a37_quantized_constants_add_as_reals(tmp_path):
    def body(s, x):
        return fq(fq(x, "int8") + fq(s.a() + s.b(), "int8", -2, 2), "int8", -7, 7)
    agree(tmp_path, Net(body, a=Weight((8,), "int8", None), b=Weight((8,), "uint8", None)), (torch.randn(2, 8),))


@pytest.mark.parametrize("swap", [False, True])
def test_a38_operands_of_two_types(tmp_path, swap):
    def body(s, x, y):
        a, b = fq(x, "int16"), fq(y, "uint8")
        return F.relu(fq(b + a if swap else a + b, "int16", -8, 8)), fq(a * b, "uint8", -9, 9)
    agree(tmp_path, Net(body), (torch.randn(3, 8), torch.randn(3, 8)))


def test_a38_one_quantized_value_with_many_readers(tmp_path):
    def body(s, x):
        q = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.03, 5, 0, 255, torch.uint8)
        read = lambda: torch.ops.quantized_decomposed.dequantize_per_tensor(q, 0.03, 5, 0, 255, torch.uint8)
        return fq(read() + read(), "uint8"), fq(read() * 2.0, "int16"), read()
    agree(tmp_path, Net(body), (torch.randn(3, 8),))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_a41_gelu_keeps_its_approximation(tmp_path, approximate):
    net = Net(lambda s, x: fq(F.gelu(fq(x, "int16"), approximate=approximate), "int16"))
    path = agree(tmp_path, net, (torch.linspace(-4, 4, 64).reshape(8, 8),))
    (op,) = graph_of(path).operators
    assert op.builtinOptions.approximate == (approximate == "tanh")


def test_b12_transposed_constants_of_any_type(tmp_path):
    """A stored constant is permuted with its bytes and its scales."""
    def body(s, x):
        return fq(fq(x, "uint8") + fq(s.c, "uint8").t(), "uint8", -8, 8), fq(F.linear(fq(x, "uint8"), s.w().t()), "uint8", -9, 9)
    net = Net(body, w=Weight((8, 5), "uint8", 1))
    net.register_buffer("c", torch.randn(8, 3))
    path = agree(tmp_path, net, (torch.randn(3, 8),))
    assert "TRANSPOSE" not in interface(path)[2]


def test_a_clip_made_of_parameters_is_kept(tmp_path):
    """A narrow range between two wider ones clips; joining the two roundings would lose that."""
    net = Net(lambda s, x: fq(fq(fq(x, "int8") * 2.0, "int8", -1, 1), "int8", -8, 8))
    path = agree(tmp_path, net, (torch.randn(4, 8) * 3,))
    assert interface(path)[2] == {"MUL": 1, "QUANTIZE": 1}


def test_the_same_bytes_each_time(tmp_path):
    net = Net(lambda s, x: fq(F.linear(fq(x, "int16"), s.w(), s.b), "int16", -9, 9), w=Weight((64, 64), "uint8"),
              b=nn.Parameter(torch.randn(64)))
    export(tmp_path, net, (torch.randn(3, 64),))
    files = []
    for threads in (1, 2, 2):
        files.append(convert(tmp_path, "--threads", threads)[0].read_bytes())
    assert files[0] == files[1] == files[2]
