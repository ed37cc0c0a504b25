"""The drop-in for ExecuTorch: one import changed, chute lowers what the Arm partitioner delegates. Needs ExecuTorch
(`make arm`)."""
import shutil
import sys

import numpy as np
import pytest
import real_models
import torch
from conftest import CHUTE, ROOT

pytest.importorskip("executorch.backends.arm.tosa.partitioner")
tosa_reference_model = pytest.importorskip("tosa_reference_model")
sys.path.insert(0, str(ROOT / "python"))
import chute.executorch as drop_in  # noqa: E402
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config  # noqa: E402
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec  # noqa: E402
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower  # noqa: E402
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # noqa: E402


@pytest.fixture(autouse=True)
def built(monkeypatch):
    monkeypatch.setenv("CHUTE", str(ROOT / CHUTE) if not CHUTE.startswith("/") else CHUTE)


def lowered(program, spec):
    edge = to_edge_transform_and_lower(program, partitioner=[drop_in.TOSAPartitioner(spec)])
    graph = edge.exported_program().graph_module
    delegates = [getattr(graph, node.args[0].target) for node in graph.graph.nodes if "call_delegate" in str(node.target)]
    assert len(delegates) == 1 and delegates[0].backend_id == "TOSABackend"
    return edge, graph, delegates[0].processed_bytes


def run(tosa, values):
    got, status = tosa_reference_model.run(tosa, values, verbosity="NONE", tosa_level="NONE")
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID
    return [np.array(v) for v in got]


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18", "deit"])
def test_float(name):
    torch.manual_seed(0)
    build, example = real_models.MODELS[name]
    module, inputs = build().eval(), tuple(example())
    edge, _, tosa = lowered(torch.export.export(module, inputs), TosaCompileSpec("TOSA-1.0+FP"))
    got, want = run(tosa, [x.numpy() for x in inputs])[0], module(*inputs).detach().numpy()
    assert np.allclose(got.reshape(want.shape), want, rtol=1e-3, atol=1e-3)
    assert edge.to_executorch().buffer.count(b"TOSABackend") >= 1


@pytest.mark.parametrize("name", ["mobilenet_v2", "deit"])
def test_int8(name):
    torch.manual_seed(0)
    build, example = real_models.MODELS[name]
    module, inputs = build().eval(), tuple(example())
    spec = TosaCompileSpec("TOSA-1.0+INT")
    rules = TOSAQuantizer(spec)
    rules.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(module, inputs).module(check_guards=False), rules)
    prepared(*inputs)
    converted = convert_pt2e(prepared)
    _, graph, tosa = lowered(torch.export.export(converted, inputs), spec)
    # ExecuTorch keeps the outermost quantize and dequantize on the CPU: their arguments are the delegate's grids.
    calls = [n for n in graph.graph.nodes if "quantize_per_tensor" in str(n.target)]
    (_, s, z, low, high, _), (_, out_s, out_z, *_) = calls[0].args, calls[-1].args
    stored = np.clip(np.rint(inputs[0].numpy() / s) + z, low, high).astype(np.int8)
    got, want = run(tosa, [stored])[0], converted(*inputs).detach().numpy()
    assert np.abs((got.astype(np.float64).reshape(want.shape) - out_z) * out_s - want).max() <= 1.01 * out_s


class Delegated(torch.fx.Interpreter):
    """Runs a lowered program: what is on the CPU as ExecuTorch's operators, delegates in Arm's reference model."""

    def __init__(self, program):
        super().__init__(program.graph_module)
        self.program, self.delegates = program, 0

    def call_function(self, target, args, kwargs):
        if "call_delegate" not in str(target):
            return super().call_function(target, args, kwargs)
        got = run(args[0].processed_bytes, [x.contiguous().numpy() for x in args[1:]])
        self.delegates += 1
        return [torch.from_numpy(g).to(w.dtype).reshape(w.shape) for g, w in zip(got, self.node.meta["val"], strict=True)]

    def run_node(self, node):
        self.node = node
        return super().run_node(node)

    def outputs(self, *inputs):
        signature = self.program.graph_signature
        stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        tensors = {**self.program.state_dict, **self.program.constants}
        given, values = iter(inputs), []
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                values.append(tensors[stored[node.name]] if node.name in stored else next(given))
        with torch.no_grad():
            return self.run(*values)


class LeavesOne(torch.nn.Module):
    """A shift by a number known only at run time has no TOSA form in chute, though the Arm backend takes it."""

    def forward(self, x, a, b):
        return torch.tanh(x) * 2 + torch.bitwise_left_shift(a, b).to(torch.float32), torch.sigmoid(x)


def test_what_chute_refuses_stays_on_the_cpu():
    x, a, b = torch.randn(2, 5), torch.arange(10, dtype=torch.int32).reshape(2, 5), torch.ones(2, 5, dtype=torch.int32)
    program = torch.export.export(LeavesOne(), (x, a, b))
    edge = to_edge_transform_and_lower(program, partitioner=[drop_in.TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    left = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert any("bitwise_left_shift" in name for name in left) and not any("tanh" in name or "sigmoid" in name for name in left)
    lowered_program = Delegated(edge.exported_program())
    got = lowered_program.outputs(x, a, b)
    assert lowered_program.delegates >= 1
    for g, w in zip(got, LeavesOne()(x, a, b), strict=True):
        assert torch.allclose(g, w, rtol=1e-3, atol=1e-3)


class Classifier(torch.nn.Module):
    """Its index is of 64 bits and leaves the network, a sort in the middle has no TOSA operator at all (A33, B29)."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 5)

    def forward(self, x):
        y = torch.relu(self.conv(x)).permute(0, 2, 3, 1)
        z = torch.sort(y.mean((1, 2)), -1)[0]
        logits = self.fc(z)
        return logits, logits.argmax(1), y.reshape(1, -1, 4), y.sum(1)


@pytest.mark.parametrize("spec", ["TOSA-1.0+FP", "TOSA-1.0+INT", "TOSA-1.0+INT+FP", "TOSA-1.0+INT+int16", "TOSA-1.1+FP"])
def test_specs_and_partial_graphs(spec):
    torch.manual_seed(0)
    module, inputs = Classifier().eval(), (torch.randn(1, 3, 8, 8),)
    compile_spec = TosaCompileSpec(spec)
    if "INT" in spec:
        rules = TOSAQuantizer(compile_spec)
        rules.set_global(get_symmetric_quantization_config())
        prepared = prepare_pt2e(torch.export.export(module, inputs).module(check_guards=False), rules)
        prepared(*inputs)
        module = convert_pt2e(prepared)
    edge = to_edge_transform_and_lower(torch.export.export(module, inputs), partitioner=[drop_in.TOSAPartitioner(compile_spec)])
    lowered_program = Delegated(edge.exported_program())
    got, want = lowered_program.outputs(*inputs), module(*inputs)
    assert lowered_program.delegates >= 2
    for g, w in zip(got, want, strict=True):  # a step of 0.016, added up over six rows
        assert g.dtype == w.dtype and torch.allclose(g.float(), w.float(), rtol=1e-3, atol=0.1 if "INT" in spec else 1e-3)


@pytest.mark.skipif(drop_in.EthosUPartitioner is None or not shutil.which("vela"), reason="vela is not installed")
@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_ethos_u(target):
    from executorch.backends.arm.ethosu import EthosUCompileSpec
    from executorch.backends.arm.quantizer import EthosUQuantizer
    torch.manual_seed(0)
    module, inputs = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval(), (torch.randn(1, 3, 8, 8),)
    spec = EthosUCompileSpec(target)
    rules = EthosUQuantizer(spec)
    rules.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(module, inputs).module(check_guards=False), rules)
    prepared(*inputs)
    edge = to_edge_transform_and_lower(torch.export.export(convert_pt2e(prepared), inputs), partitioner=[drop_in.EthosUPartitioner(spec)])
    delegates = [m for m in edge.exported_program().graph_module.children() if hasattr(m, "backend_id")]
    assert [d.backend_id for d in delegates] == ["EthosUBackend"] and b"vela_bin_stream" in delegates[0].processed_bytes
    assert b"EthosUBackend" in edge.to_executorch().buffer


def test_what_cannot_be_lowered_is_chutes_message(tmp_path):
    class Float(torch.nn.Module):
        def forward(self, x):
            return torch.exp(x)
    with pytest.raises(drop_in.LoweringError, match="error\\["):
        drop_in.lower(torch.export.export(Float(), (torch.ones(2, dtype=torch.complex64),)), "TOSA-1.0+FP")
