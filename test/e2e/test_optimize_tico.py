"""Files that TICO writes, and files that TICO's optimizer gives up on: chute optimizes them, `tico-circle verify`
accepts the results, and tico's interpreter and onert compute what they did before."""
import contextlib
import io
import pathlib

import flatbuffers
import numpy as np
import pytest
import tico
import torch
from circle_schema import circle
from conftest import chute
from oracles import apart, circle_inputs, count_operators, difference, restore_shape, run_onert, run_reference
from tico.circle.cli.main import main as tico_circle
from tico.config.v1 import CompileConfigV1
from torch import nn
from torch.nn import functional as F


class Views(nn.Module):  # data movement alone: bit for bit
    def forward(self, x):
        y = x.unsqueeze(0).squeeze(0).permute(1, 0, 2).permute(1, 0, 2).reshape(4, -1).reshape(4, 6, 2)
        a, b = y[:, :3], y[:, 3:]
        return torch.cat([torch.cat([b, a], 1), y.neg()], 1), y.transpose(1, 2).contiguous()[:, 0:2][:, 1:2]


class Integers(nn.Module):
    def forward(self, x, n):
        return (n + 3 - 5).abs() * 1 + 0, n.reshape(-1).reshape(4, 12) + 0, torch.minimum(n, n)


class Linears(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 5), nn.Linear(2, 5)
        self.register_buffer("s", torch.linspace(0.5, 2, 2))
        self.register_buffer("t", torch.linspace(-1, 1, 5))

    def forward(self, x):
        return F.relu(self.a(x * self.s) * self.t + self.t), self.a(x) + self.b(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.RMSNorm(12, eps=1e-6), nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        q, k, v = (t.view(4, -1, 3, 4).transpose(1, 2) for t in self.qkv(self.norm(x.reshape(4, 1, 12))).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v)
        return F.gelu(self.out(y.transpose(1, 2).reshape(4, 1, 12)), approximate="tanh")


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn, self.dw = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Conv2d(6, 6, 3, 2, 1, groups=6)

    def forward(self, x):
        y = F.hardswish(self.bn(self.stem(x.reshape(1, 3, 4, 4))))
        y = F.relu6(self.dw(F.pad(y, (1, 1, 1, 1))))
        return y.mean((2, 3)), torch.softmax(y, -1)


class Arithmetic(nn.Module):
    def forward(self, x):
        y = x * 3 / 2 + 0
        return y / torch.sqrt(y * y + 1), torch.clamp(y * 1, 0, 6), y.mean(1).mean(1), F.leaky_relu(-(-y), 0.1)


MODELS = {"views": (Views(), 1, True), "integers": (Integers(), 2, True), "linears": (Linears(), 1, False),
          "attention": (Attention(), 1, False), "convolutions": (Convolutions(), 1, False),
          "arithmetic": (Arithmetic(), 1, False)}


def inputs_of(n):
    torch.manual_seed(3)
    return (torch.randn(4, 6, 2), torch.randint(-9, 9, (4, 6, 2), dtype=torch.int32))[:n]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Every model as TICO writes it, before its own optimizer and after."""
    folder = tmp_path_factory.mktemp("tico")
    for name, (model, n, _) in MODELS.items():
        inputs = inputs_of(n)
        if name == "convolutions":
            inputs = (torch.randn(48),)
        for optimized in (False, True):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                done = tico.convert(model.eval(), inputs, config=CompileConfigV1(circle_optimize=optimized))
            done.save(folder / f"{name}.{'o1' if optimized else 'raw'}.circle")
    return folder


def verified(path):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = tico_circle(["verify", str(path)])
    assert code == 0, out.getvalue()
    chute("verify", path)


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
@pytest.mark.parametrize("name", MODELS)
def test_files_of_tico(written, tmp_path, name, level):
    _, n, exact = MODELS[name]
    before, after = written / f"{name}.raw.circle", tmp_path / "after.circle"
    chute("optimize", before, "-o", after, level, "--verify-each")
    verified(after)
    if level != "-O0":
        assert count_operators(after) <= count_operators(written / f"{name}.o1.circle")
    assert [(n, k, list(s)) for n, k, s in circle_inputs(after)] == [(n, k, list(s)) for n, k, s in circle_inputs(before)]
    values = [np.asarray(v) for v in inputs_of(n)] if name != "convolutions" else [np.linspace(-2, 2, 48, dtype=np.float32)]
    for runtime in (run_reference, run_onert):
        want, refused = apart(runtime, before, values)
        if refused:
            continue  # what the runtime can not do before says nothing
        got, refused = apart(runtime, after, values)
        assert not refused, (runtime.__name__, refused)
        if runtime is run_reference:
            truth = want
        elif difference(restore_shape(want, truth), truth, 2e-5, 2e-6)[1]:
            if level == "-O0":
                continue
            want = truth  # onert 0.1.0 computes SPLIT_V wrongly, and chute takes equal ones away
        got = [g.reshape(w.shape) for g, w in zip(got, want)]
        if exact:
            assert all(np.array_equal(g, w) for g, w in zip(got, want)), runtime.__name__
        else:
            _, wrong = difference(got, want, 2e-5, 2e-6)
            assert not wrong, (runtime.__name__, wrong)


def edited(source, out, edit):
    model = circle.Model.ModelT.InitFromPackedBuf(pathlib.Path(source).read_bytes(), 0)
    edit(model)
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    out.write_bytes(builder.Output())
    return out


def empty_quantization(model):
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            tensor.quantization = circle.QuantizationParameters.QuantizationParametersT()


def test_empty_quantization_tables_mean_none(written, tmp_path):
    """TICO finds nothing to do on such a file."""
    plain, empty = written / "arithmetic.raw.circle", tmp_path / "empty.circle"
    edited(plain, empty, empty_quantization)
    counts = []
    for source in (plain, empty):
        chute("optimize", source, "-o", tmp_path / "out.circle")
        counts.append(count_operators(tmp_path / "out.circle"))
    assert counts[0] == counts[1] < count_operators(plain)


def test_more_rewrites_than_tico_allows(tmp_path):
    """10,050 rewrites in one pass end TICO's optimizer with a traceback."""
    n = 10050
    rows = ["graph @m(%v0: f32[4]) -> (\"y\": f32[4]) {"]
    rows += [f"  %v{i + 1} = circle.cast(%v{i}) {{in_data_type = f32, out_data_type = f32}} : f32[4]" for i in range(n)]
    rows += [f"  %y = circle.exp(%v{n}) : f32[4]", "  return %y", "}"]
    (tmp_path / "casts.ir").write_text("\n".join(rows) + "\n")
    chute("optimize", tmp_path / "casts.ir", "-o", tmp_path / "raw.circle", "-O0")
    assert count_operators(tmp_path / "raw.circle") == n + 1
    chute("optimize", tmp_path / "raw.circle", "-o", tmp_path / "out.circle")
    assert count_operators(tmp_path / "out.circle") == 1
    verified(tmp_path / "out.circle")


def test_slice_ends_of_int_max(tmp_path):
    (tmp_path / "slice.ir").write_text("""graph @m(%x: f32[1,6]) -> ("y": f32[6], "z": f32[1,6]) {
  %b = core.constant dense<[0, 0]> : i32[2]
  %e = core.constant dense<[2147483647, 2147483647]> : i32[2]
  %s = core.constant dense<[1, 1]> : i32[2]
  %a = circle.strided_slice(%x, %b, %e, %s) {shrink_axis_mask = 1} : f32[6]
  %c = circle.strided_slice(%x, %b, %e, %s) : f32[1,6]
  %y = circle.exp(%a) : f32[6]
  %z = circle.exp(%c) : f32[1,6]
  return %y, %z
}
""")
    chute("optimize", tmp_path / "slice.ir", "-o", tmp_path / "out.circle")
    model = circle.Model.ModelT.InitFromPackedBuf((tmp_path / "out.circle").read_bytes(), 0)
    codes = {model.operatorCodes[op.opcodeIndex].builtinCode for op in model.subgraphs[0].operators}
    assert circle.BuiltinOperator.BuiltinOperator.STRIDED_SLICE not in codes


def test_contracts_of_tensors_that_no_rule_touches(written, tmp_path):
    """A calibrated range without scale, a negative range: TICO stops at the first such tensor that it visits."""
    def odd(model):
        for tensor in model.subgraphs[0].tensors:
            q = circle.QuantizationParameters.QuantizationParametersT()
            q.min, q.max = [-1.0], [1.0]
            tensor.quantization = q
    source = edited(written / "arithmetic.raw.circle", tmp_path / "odd.circle", odd)
    chute("optimize", source, "-o", tmp_path / "out.circle")
    assert count_operators(tmp_path / "out.circle") <= count_operators(written / "arithmetic.o1.circle")
