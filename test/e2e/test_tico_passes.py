"""What TICO's rewrites of exported programs are for: each program is one that a pass of TICO matches (docs/tico-passes.md lists them);
the file holds these operators and no others, and gives PyTorch's results.
"""
from collections import Counter

import oracles
import pytest
import torch
from circle_schema import circle as schema
from conftest import chute
from test_dynamic import numbers
from torch import nn
from torch.nn import functional as F

NAMES = {v: k for k, v in vars(schema.BuiltinOperator.BuiltinOperator).items() if not k.startswith("_")}
CASES = {}


def tico(name, program, inputs, operators, **buffers):
    CASES[name] = (program, inputs, Counter(operators.split()), buffers)


def r(*shape):
    return torch.rand(shape) * 4 - 2


def twice(index):
    return torch.tensor(index).repeat_interleave(2)


def statistics(norm):
    for tensor in (*norm.parameters(), *norm.buffers()):
        if tensor.is_floating_point():
            tensor.data.uniform_(0.5, 1.5)
    return norm


class Buffered(nn.Module):
    def __init__(self, function, **buffers):
        super().__init__()
        self.function = function
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, *x):
        return self.function(self, *x)


tico("RemoveNop", lambda x: torch.relu(x.clone().detach().contiguous()), (r(2, 3),), "RELU")
tico("ExtractDtypeKwargs", lambda x: x + torch.full_like(x, 2, dtype=torch.int32), (r(2, 3),), "ADD")
tico("LowerCopy", lambda x, y: x.clone().copy_(y) * 2, (r(4, 3), r(3)), "BROADCAST_TO MUL")
tico("ConvertGatherToGatherNd", lambda x, i: x.gather(1, i), (r(3, 4), torch.tensor([[0, 3], [1, 1], [2, 0]])), "ADD RESHAPE GATHER")
tico("LowerMultiIndexToGatherNd", lambda x, i, j: x[i, j], (r(3, 4), torch.tensor([0, -1]), torch.tensor([1, 2])),
     "LESS ADD SELECT_V2 MUL LESS ADD SELECT_V2 ADD RESHAPE GATHER")
tico("ConvertLayoutOpToReshape", lambda x: x.unsqueeze(0).squeeze(2).view(6).relu(), (r(2, 1, 3),), "RESHAPE RELU")
tico("RestoreLinear", lambda m, x: torch.addmm(m.b, x, m.w.t()), (r(2, 4),), "FULLY_CONNECTED", b=torch.rand(3), w=torch.rand(3, 4))
tico("RestoreLinear_mm", lambda m, x: x @ m.w.permute(1, 0), (r(2, 4),), "FULLY_CONNECTED", w=torch.rand(3, 4))
tico("RestoreLinear_identity_permute", lambda m, x: x @ m.w.permute(0, 1), (r(2, 4),), "FULLY_CONNECTED", w=torch.rand(4, 4))
tico("ConvertToReLU6_hardtanh", lambda x: F.hardtanh(x * 4, 0.0, 6.0), (r(2, 3),), "MUL")
tico("ConvertToReLU6_clamps", lambda x: (x * 4).clamp(max=6).clamp(min=0), (r(2, 3),), "MUL")
tico("DecomposeAddmm", lambda z, x, y: torch.addmm(z, x, y, beta=1, alpha=0.5), (r(2, 3), r(2, 4), r(4, 3)), "BATCH_MATMUL MUL ADD")
tico("DecomposeSliceScatter", lambda x, s: torch.slice_scatter(x, s, 1, 1, 3), (r(2, 5), r(2, 2)), "CONCATENATION STRIDED_SLICE STRIDED_SLICE")
tico("DecomposeGroupNorm", nn.GroupNorm(2, 4), (r(2, 4, 3, 3),), "RESHAPE MEAN SUB MUL MEAN ADD RSQRT MUL RESHAPE")
tico("DecomposeBatchNorm", statistics(nn.BatchNorm2d(3)), (r(1, 3, 4, 4),), "MUL ADD")
tico("DecomposeGroupedConv2d", nn.Conv2d(4, 6, 3, groups=2), (r(1, 4, 5, 5),), "TRANSPOSE SPLIT CONV_2D CONV_2D CONCATENATION TRANSPOSE TRANSPOSE")
tico("CastATenWhereArgType", lambda m, x: torch.where(x > 0, m.i, m.f), (r(3),), "GREATER SELECT_V2", i=torch.tensor([1, 2, 3], dtype=torch.int32),
     f=torch.rand(3))
tico("ConvertRepeatToExpandCopy", lambda x: x.repeat(4, 1), (r(1, 3),), "BROADCAST_TO")
tico("RemoveRedundantPermute", lambda x: x.permute(0, 2, 1).permute(0, 2, 1).relu(), (r(2, 3, 4),), "RELU")
tico("RemoveRedundantPermute_composed", lambda x: x.permute(1, 2, 0).permute(1, 0, 2), (r(2, 3, 4),), "TRANSPOSE")
tico("RemoveRedundantExpandSlice", lambda x: x.expand(2, 3)[:, 0:3].relu(), (r(2, 3),), "RELU")
tico("FuseRedundantReshapeToMean", lambda x: x.mean(2).reshape(2, 3, 1) * 2, (r(2, 3, 4),), "MEAN MUL")
tico("RemoveRedundantReshape_P1", lambda x, s: (x.reshape(1, 2, 3, 4).permute(0, 1, 3, 2) * 0.5).reshape(2, 4, 3), (r(2, 3, 4), r(1)), "TRANSPOSE MUL")
tico("RemoveRedundantReshape_P2", lambda x: x.reshape(1, 2, 3, 4).permute(2, 0, 1, 3).reshape(3, 8), (r(2, 3, 4),), "TRANSPOSE RESHAPE")
tico("RemoveRedundantReshape_P3", lambda x, y: torch.softmax(x.reshape(2, 3, 4) + y.reshape(2, 3, 4), -1).reshape(1, 2, 3, 4), (r(1, 2, 3, 4), r(1, 2, 3, 4)),
     "ADD SOFTMAX")
tico("RemoveRedundantReshape_P4_P5", lambda x: x.reshape(6, 4).reshape(4, 6).reshape(4, 6), (r(2, 3, 4),), "RESHAPE")
tico("RemoveRedundantToCopy", lambda x: x.to(torch.float32).to("cpu").relu(), (r(2, 3),), "RELU")
tico("RemoveEmptyCatInputs", lambda x: torch.cat((torch.empty(0), x)).relu(), (r(3),), "RELU")
tico("MergeConsecutiveCat", lambda x, y: torch.cat((torch.cat((x, y), -1), x), 1), (r(2, 3), r(2, 3)), "CONCATENATION")
tico("CastMixedTypeArgs", lambda x, i: x * i, (r(3), torch.tensor([1, 2, 3])), "CAST MUL")
tico("ConstPropPass", lambda x: x + torch.arange(3) * 2 - torch.eye(3)[0], (r(3),), "ADD SUB")
tico("LowerToResizeNearestNeighbor", lambda x: F.interpolate(x, scale_factor=2.0), (r(1, 2, 3, 3),), "TRANSPOSE RESIZE_NEAREST_NEIGHBOR TRANSPOSE")
tico("LowerToResizeNearestNeighbor_index", lambda x: x[:, :, twice([0, 1, 2])[:, None], twice([0, 1, 2])], (r(1, 2, 3, 3),), "RESHAPE GATHER")
tico("LegalizePreDefinedLayout", nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)), (r(1, 3, 6, 6),), "TRANSPOSE CONV_2D MAX_POOL_2D TRANSPOSE")
tico("LowerPow2ToMul", lambda x: x**2, (r(2, 3),), "MUL")
tico("ConvertConv1dToConv2d", nn.Conv1d(3, 4, 3), (r(1, 3, 6),), "RESHAPE TRANSPOSE CONV_2D TRANSPOSE RESHAPE")
tico("ConvertConv3dToConv2d", nn.Conv3d(1, 2, (2, 3, 3)), (r(1, 1, 3, 4, 4),), "STRIDED_SLICE STRIDED_SLICE CONCATENATION RESHAPE CONV_2D RESHAPE TRANSPOSE RESHAPE")
tico("LowerSelectCopyToSlice", lambda x: x[:, -1], (r(2, 3),), "STRIDED_SLICE RESHAPE")
tico("LowerIndexSelectToSlice", lambda x: x.index_select(1, torch.tensor([1])), (r(2, 3),), "GATHER")
tico("FuseLeadingUnsqueezeReshape", lambda x: x.reshape(3, 4).permute(1, 0).reshape(1, 1, 4, 3), (r(3, 4),), "RESHAPE TRANSPOSE")
tico("EliminateRankRoundTrip", lambda x: (x.reshape(2, 3, 4).sigmoid() * 2).reshape(2, 1, 3, 4), (r(2, 1, 3, 4),), "LOGISTIC MUL")
tico("SegmentIndexSelectConst_off", lambda x: x.index_select(1, torch.tensor([0, 2, 1])), (r(2, 4),), "GATHER")


@pytest.mark.parametrize("name", CASES)
def test_tico_pass(tmp_path, name):
    program, inputs, operators, buffers = CASES[name]
    module = program if isinstance(program, nn.Module) else Buffered(program, **buffers) if buffers else Buffered(lambda _, *x: program(*x))
    module.eval()
    torch.export.save(torch.export.export(module, inputs), str(tmp_path / "model.pt2"))
    circle = tmp_path / "model.circle"
    chute("convert", tmp_path / "model.pt2", "-o", circle)
    model = schema.Model.ModelT.InitFromPackedBuf(circle.read_bytes(), 0)
    got = Counter(NAMES[model.operatorCodes[op.opcodeIndex].builtinCode] for op in model.subgraphs[0].operators)
    with torch.no_grad():
        want = numbers(module(*inputs))
    ran = 0
    for runtime in (oracles.run_reference, oracles.run_onert):
        results, why = oracles.apart(runtime, circle, numbers(inputs))
        if results is not None:
            _, wrong = oracles.difference(oracles.restore_shape(results, want), want, 1e-5, 1e-5)
            assert not wrong, f"{runtime.__name__}: {wrong}"
            ran += 1
    assert ran, why
    assert got == operators, f"{dict(got)}"


def export(folder, module, inputs):
    torch.export.save(torch.export.export(module.eval(), inputs), str(folder / "model.pt2"))
    return folder / "model.pt2"


def operators(path):
    model = schema.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    return Counter(NAMES[model.operatorCodes[op.opcodeIndex].builtinCode] for op in model.subgraphs[0].operators)


def repeat_heads(x):
    return x[:, :, None].expand(1, 2, 3, 4, 5).reshape(1, 6, 4, 5) * 2


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("left", torch.rand(3, 4))
        self.register_buffer("batch", torch.rand(1, 3, 4))
        self.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))


def test_switches(tmp_path):
    """Each of TICO's switches does something (or, for one, nothing), and the same from the command line and from TICO's file."""
    class Module(Constants):
        def forward(self, x, y, heads, n):
            return self.left @ x, self.batch @ y, x @ self.left.t(), x + self.mask, repeat_heads(heads)

    inputs = (r(4, 4), r(1, 4, 2), r(1, 2, 4, 5), 2)
    model, circle = export(tmp_path, Module(), inputs), tmp_path / "model.circle"

    def convert(*options):
        chute("convert", model, "-o", circle, *options)
        chute("verify", circle)
        return circle.read_bytes(), operators(circle), len(oracles.circle_inputs(circle))

    plain = convert()
    changed = {}
    for name, value in (("legalize_causal_mask_value", "true"), ("convert_expand_to_slice_cat", "true"), ("convert_lhs_const_mm_to_fc", "true"),
                        ("convert_rhs_const_mm_to_fc", "false"), ("convert_single_batch_lhs_const_bmm_to_fc", "true"),
                        ("eliminate_rank_round_trip", "true"), ("remove_constant_input", "false"), ("circle_optimize", "false")):
        changed[name] = convert("--set", f"{name}={value}")
        (tmp_path / "tico.yaml").write_text(f"version: '1.0'\n{name}: {value.title()}\n")
        assert convert("--config", tmp_path / "tico.yaml")[0] == changed[name][0], name
    assert changed["eliminate_rank_round_trip"] == plain
    assert changed["legalize_causal_mask_value"][0] != plain[0]
    assert changed["convert_expand_to_slice_cat"][1]["BROADCAST_TO"] < plain[1]["BROADCAST_TO"]
    assert changed["convert_lhs_const_mm_to_fc"][1]["FULLY_CONNECTED"] == plain[1]["FULLY_CONNECTED"] + 1
    assert changed["convert_single_batch_lhs_const_bmm_to_fc"][1]["FULLY_CONNECTED"] == plain[1]["FULLY_CONNECTED"] + 1
    assert changed["convert_rhs_const_mm_to_fc"][1]["FULLY_CONNECTED"] == plain[1]["FULLY_CONNECTED"] - 1
    assert changed["remove_constant_input"][2] == plain[2] + 1
    assert sum(changed["circle_optimize"][1].values()) >= sum(plain[1].values())


@pytest.mark.parametrize("name,value", (("circle_optimize", "false"), ("segment_index_select", "true"), ("remove_constant_input", "false")))
def test_switches_keep_results(tmp_path, name, value):
    class Module(nn.Module):
        def forward(self, x, n):
            return x.index_select(1, torch.tensor([0, 2, 4, 5])).reshape(2, 2, 2).reshape(2, 4).permute(1, 0).permute(1, 0) * n

    inputs = (r(2, 6), 3)
    model, circle = export(tmp_path, Module(), inputs), tmp_path / "model.circle"
    chute("convert", model, "-o", circle, "--set", f"{name}={value}")
    given = numbers(inputs) if name == "remove_constant_input" else numbers(inputs[:1])
    got, why = oracles.apart(oracles.run_reference, circle, given)
    assert got is not None, why
    _, wrong = oracles.difference(got, numbers(Module()(*inputs)), 1e-5, 1e-5)
    assert not wrong, wrong
    if name == "segment_index_select":
        assert operators(circle)["GATHER"] == 0 and operators(circle)["STRIDED_SLICE"] == 2


def test_an_unknown_switch_is_an_error(tmp_path):
    model = export(tmp_path, nn.ReLU(), (r(2),))
    done = chute("convert", model, "-o", tmp_path / "model.circle", "--set", "convert_lhs_mm=true", expect=2)
    assert "convert_lhs_const_mm_to_fc" in done.stderr
