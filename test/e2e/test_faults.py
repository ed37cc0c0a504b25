"""Faults that users of such tools have reported whose right result is more than a value: what the file holds, its size, its bytes,
the work that it takes. Named after their rows in the project's list of faults; the others are cases_faults.py's, the dynamic
ones cases_dynamic.py's, the quantized ones test_quantized_faults.py's.
"""
import json
import subprocess
import zipfile

import oracles
import pytest
import torch
import torch.export.pt2_archive._package
from circle_schema import circle as schema
from conftest import CHUTE, chute
from test_dynamic import numbers, run_tico
from torch import nn


def export(folder, module, inputs, **more):
    path = folder / "model.pt2"
    torch.export.save(torch.export.export(module.eval(), inputs, **more), str(path))
    return path


def convert(folder, module, inputs, *options, **more):
    circle = folder / "model.circle"
    chute("convert", export(folder, module, inputs, **more), "-o", circle, *options)
    chute("verify", circle)
    return circle


def unpacked(path):
    return schema.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)


def rename(model, out, names):
    """The program with other names of ATen operators."""
    seen = set()
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename.endswith(".json"):
                for one, other in names.items():
                    seen |= {one} if f'"torch.ops.aten.{one}"'.encode() in data else set()
                    data = data.replace(f'"torch.ops.aten.{one}"'.encode(), f'"torch.ops.aten.{other}"'.encode())
            new.writestr(member, data)
    assert seen == set(names)
    return out


def agrees(path, module, inputs):
    with torch.no_grad():
        want = numbers(module(*inputs))
    got, why = oracles.apart(oracles.run_reference, path, numbers(inputs), seconds=240)
    assert got is not None, why
    _, wrong = oracles.difference(got, want, 1e-5, 1e-5)
    assert not wrong, wrong


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x, unused):
        self.seen.add_(x)
        return x * 2


def test_a42_effects_and_interface_stay(tmp_path):
    """Nothing reads the buffer's new content or the second input: the write stays, and so does the input."""
    circle = convert(tmp_path, Stateful(), (torch.rand(3), torch.rand(2)), "--state", "variable")
    chute("optimize", circle, "-O2", "-o", tmp_path / "small.circle")
    for path in (circle, tmp_path / "small.circle"):
        graph = unpacked(path).subgraphs[0]
        assert [graph.tensors[i].name for i in graph.inputs] == [b"x", b"unused"]
        written = [t for op in graph.operators for t in op.outputs if graph.tensors[t].isVariable]
        assert len(written) == 1
    circle = convert(tmp_path, Stateful(), (torch.rand(3), torch.rand(2)), "--state", "io")
    graph = unpacked(circle).subgraphs[0]
    assert [graph.tensors[i].name for i in graph.inputs] == [b"x", b"unused", b"seen"]
    assert len(graph.outputs) == 2


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({name: nn.Linear(4, 3) for name in ("b", "a", "d", "c")})

    def forward(self, x):
        return {name: head(x[..., :4]).relu() for name, head in self.heads.items()}


@pytest.mark.parametrize("form", ("circle", "tosa"))
def test_a73_c11_the_same_bytes_each_time(tmp_path, form):
    model = export(tmp_path, Features(), (torch.rand(2, 6),))
    files = []
    for threads in (1, 2, 5):
        chute("convert", model, "-o", tmp_path / f"{threads}.{form}", "--threads", threads)
        files.append((tmp_path / f"{threads}.{form}").read_bytes())
    assert files[0] == files[1] == files[2]


def test_b9_overload_packets(tmp_path):
    """Operators called by the packet's name, without an overload."""
    class Module(nn.Module):
        def forward(self, x, y):
            return torch.relu(x) + y * x

    renamed = rename(export(tmp_path, Module(), (torch.rand(2, 3), torch.rand(2, 3))), tmp_path / "packets.pt2",
                     {name: name.split(".")[0] for name in ("relu.default", "add.Tensor", "mul.Tensor")})
    for name in (tmp_path / "model.pt2", renamed):
        chute("convert", name, "-o", name.with_suffix(".circle"))
    assert renamed.with_suffix(".circle").read_bytes() == (tmp_path / "model.circle").read_bytes()
    agrees(renamed.with_suffix(".circle"), Module(), (torch.rand(2, 3), torch.rand(2, 3)))


class Overloads(nn.Module):
    def forward(self, x):
        return x.mean() + x.mean(1), x.amax(1), *x.max(1), x.max()


def test_b9_lookalike_arguments_tell_overloads_of_one_name_apart(tmp_path):
    renamed = rename(export(tmp_path, Overloads(), (torch.rand(2, 3),)), tmp_path / "packets.pt2",
                     {"mean.default": "mean", "mean.dim": "mean", "max.default": "max", "max.dim": "max"})
    chute("convert", renamed, "-o", tmp_path / "packets.circle")
    agrees(tmp_path / "packets.circle", Overloads(), (torch.rand(2, 3),))


@pytest.mark.parametrize("name", ("mean.nothing", "relu"))
def test_b9_lookalike_a_name_that_fits_nothing_is_refused(tmp_path, name):
    """An overload that there is not, a packet none of whose overloads takes these arguments."""
    renamed = rename(export(tmp_path, Overloads(), (torch.rand(2, 3),)), tmp_path / "packets.pt2", {"mean.dim": name})
    done = subprocess.run([CHUTE, "convert", renamed, "-o", tmp_path / "packets.circle"], capture_output=True, text=True)
    assert done.returncode and "error[" in done.stderr and name in done.stderr
    assert not (tmp_path / "packets.circle").exists()


class DataSized(nn.Module):
    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, x):
        return torch.cat((x[0], x[x > self.bound], x[:0].reshape(-1)))


@pytest.mark.parametrize("bound", (0.5, 9.0))
def test_b31_what_may_be_empty_at_run_time_stays_in_the_cat(tmp_path, bound):
    """A part whose size its data tells, once with elements and once without; and one that is always empty, which goes."""
    module, x = DataSized(bound), torch.rand(3, 4)
    circle = convert(tmp_path, module, (x,))
    model = unpacked(circle)
    codes = {name: number for name, number in vars(schema.BuiltinOperator.BuiltinOperator).items()}
    cats = [op for op in model.subgraphs[0].operators
            if model.operatorCodes[op.opcodeIndex].builtinCode == codes["CONCATENATION"]]
    assert [len(op.inputs) for op in cats] == [2]
    assert list(model.subgraphs[0].tensors[model.subgraphs[0].outputs[0]].shapeSignature) == [-1]
    inputs, want = numbers((x,)), numbers(module(x))
    got, why = oracles.apart(run_tico, circle, inputs)
    assert got is not None, why
    assert not oracles.difference(got, want, 0, 0)[1]


def test_b31_lookalike_a_known_part_needs_no_run_time_size(tmp_path):
    class Module(nn.Module):
        def forward(self, x):
            return torch.cat((x[0], x[:0].reshape(-1), torch.nonzero(x > 0)[:0, 0].float()))

    circle = convert(tmp_path, Module(), (torch.rand(3, 4),))
    graph = unpacked(circle).subgraphs[0]
    assert graph.tensors[graph.outputs[0]].shapeSignature is None
    agrees(circle, Module(), (torch.rand(3, 4),))


def test_b13_static_tensors_have_no_signature(tmp_path):
    class Module(nn.Module):
        def forward(self, x, y):
            return x * 2 + 1, y.reshape(-1, 2)

    dynamic = torch.export.Dim.AUTO
    circle = convert(tmp_path, Module(), (torch.rand(3, 2), torch.rand(4, 4)), dynamic_shapes=(None, {0: dynamic}))
    graph = unpacked(circle).subgraphs[0]
    signatures = {t.name: None if t.shapeSignature is None else list(t.shapeSignature) for t in graph.tensors}
    assert signatures[b"x"] is None and signatures[b"y"] == [-1, 4]
    assert all(s is None or -1 in s for s in signatures.values()), signatures


def test_b14_empty_tensors_share_buffer_zero(tmp_path):
    circle = convert(tmp_path, nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.Softmax(-1)), (torch.rand(2, 4),))
    model = unpacked(circle)
    graph = model.subgraphs[0]
    computed = {t for op in graph.operators for t in op.outputs} | set(graph.inputs)
    assert computed and all(graph.tensors[t].buffer == 0 for t in computed)
    assert model.buffers[0].data is None and sum(b.data is None for b in model.buffers) == 1


def test_b35_the_symbol_stays(tmp_path):
    class Module(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] > 1 else x

    circle = convert(tmp_path, Module(), (torch.rand(6, 3),), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=64)},))
    graph = unpacked(circle).subgraphs[0]
    assert list(graph.tensors[graph.outputs[0]].shapeSignature) == [-1, 3]
    for rows in (2, 6, 9):
        agrees(circle, Module(), (torch.rand(rows, 3),))


@pytest.mark.parametrize("rows, scaled", ((6, True), (1, False)))
def test_b35_lookalike_a_known_size_is_compared_at_once(tmp_path, rows, scaled):
    class Module(nn.Module):
        def forward(self, x):
            return x * 2 + 1 if x.shape[0] > 1 else x + 1

    circle = convert(tmp_path, Module(), (torch.rand(rows, 3),))
    graph = unpacked(circle).subgraphs[0]
    assert all(t.shapeSignature is None for t in graph.tensors) and len(graph.operators) == 1 + scaled
    agrees(circle, Module(), (torch.rand(rows, 3),))


def test_c1_a_broadcast_constant_stays_small(tmp_path):
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("one", torch.full((1, 1), 0.5))

        def forward(self, x):
            return self.one.expand(1024, 1024) * 2, self.one.repeat(512, 512) + x

    circle = convert(tmp_path, Module(), (torch.rand(1),))
    assert circle.stat().st_size < 10_000
    agrees(circle, Module(), (torch.rand(1),))


def test_c2_a_chain_of_a_thousand(tmp_path):
    class Module(nn.Module):
        def forward(self, x):
            for _ in range(500):
                x = torch.tanh(x * x)
            return x

    agrees(convert(tmp_path, Module(), (torch.rand(2),)), Module(), (torch.rand(2),))


def test_c13_big_constants_are_read_once(tmp_path):
    """Folding, merging and writing look at a weight of 16 MiB a fixed number of times, however many passes run."""
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2048, 2048)

        def forward(self, x):
            return torch.relu(self.fc(x)) @ self.fc.weight

    model = export(tmp_path, Module(), (torch.rand(1, 2048),))
    done = chute("convert", model, "-o", tmp_path / "model.circle", "--stats", "--json")
    passes, _ = json.JSONDecoder().raw_decode(done.stderr[done.stderr.index("["):])
    size = 4 * 2048 * 2048
    assert sum(p["bytes_hashed"] for p in passes) <= 2 * size
    assert sum(p["bytes_copied"] for p in passes) <= size // 8
    assert (tmp_path / "model.circle").stat().st_size < 1.01 * 2 * size


def test_c13_lookalike_a_constant_that_folding_changes_is_written_once(tmp_path):
    """Twice the weight, transposed: each element is copied as often as the steps that change it, not once per pass."""
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.rand(1024, 512))

        def forward(self, x):
            return x @ (self.w * 2)

    module = Module()
    model = export(tmp_path, module, (torch.rand(1, 1024),))
    done = chute("convert", model, "-o", tmp_path / "model.circle", "--stats", "--json")
    passes, _ = json.JSONDecoder().raw_decode(done.stderr[done.stderr.index("["):])
    size = 4 * 1024 * 512
    assert size <= sum(p["bytes_copied"] for p in passes) <= 3 * size
    assert (tmp_path / "model.circle").stat().st_size < 1.01 * size
    agrees(tmp_path / "model.circle", module, (torch.rand(1, 1024),))


def test_c12_each_method_of_an_archive_is_its_own(tmp_path):
    """Two programs whose names, shapes and operators agree, and whose weights and one number do not."""
    class Method(nn.Module):
        def __init__(self, times):
            super().__init__()
            self.fc, self.times = nn.Linear(4, 4), times

        def forward(self, x):
            return self.fc(x) * self.times

    methods, x = {"prefill": Method(2), "decode": Method(3)}, torch.rand(2, 4)
    programs = {name: torch.export.export(m.eval(), (x,)) for name, m in methods.items()}
    torch.export.pt2_archive._package.package_pt2(str(tmp_path / "model.pt2"), exported_programs=programs)
    for name, method in methods.items():
        circle = tmp_path / f"{name}.circle"
        chute("convert", tmp_path / "model.pt2", "--model", name, "-o", circle)
        agrees(circle, method, (x,))
    said = chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "any.circle", expect=4).stderr
    assert "prefill" in said and "decode" in said
