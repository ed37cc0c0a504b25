"""The drop-in for ExecuTorch: one import changed, chute lowers what the Arm partitioner delegates. Needs ExecuTorch
(`make arm`)."""
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
from executorch.exir import to_edge_transform_and_lower  # noqa: E402
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


def test_what_cannot_be_lowered_is_chutes_message(tmp_path):
    class Float(torch.nn.Module):
        def forward(self, x):
            return torch.exp(x)
    with pytest.raises(drop_in.LoweringError, match="error\\["):
        drop_in.lower(torch.export.export(Float(), (torch.ones(2, dtype=torch.complex64),)), "TOSA-1.0+FP")
