"""Programs that keep state: with `--state io` the caller hands a buffer in and gets its new content back, so that several runs in
a row give what the module gives, in every runtime.
"""
import numpy as np
import oracles
import pytest
import torch
from conftest import chute
from test_dynamic import numbers, run_tico
from torch import nn


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x * self.count


class Cache(nn.Module):
    """Keys at a position that is an input; the rest of the cache stays."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 6, 4))

    def forward(self, x, at):
        self.keys.index_copy_(1, at, x)
        return torch.softmax(x @ self.keys.transpose(1, 2), -1)


class Window(nn.Module):
    """A view of the buffer is written: the last rows move up."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.rows.copy_(torch.cat((self.rows[1:], x), 0))
        self.rows[0].mul_(0.5)
        self.total.add_(x[0])
        return self.rows.mean(0), self.total * 2


# A27: writes between the outputs; returned values come first in their order, state after them. The counter has one of each.
PROGRAMS = {
    "counter": (Counter, lambda k: (torch.rand(3),)),
    "cache": (Cache, lambda k: (torch.rand(1, 1, 4), torch.tensor([k]))),
    "A27_window": (Window, lambda k: (torch.rand(1, 3),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_state_io(tmp_path, name):
    factory, inputs = PROGRAMS[name]
    torch.manual_seed(len(name))
    module = factory().eval()
    start = [b.clone().numpy() for b in module.buffers()]
    torch.export.save(torch.export.export(module, inputs(0)), str(tmp_path / "model.pt2"))
    circle = tmp_path / "model.circle"
    chute("convert", tmp_path / "model.pt2", "-o", circle, "--state", "io", "--verify-each")
    chute("verify", circle)
    calls = [inputs(k) for k in range(4)]
    with torch.no_grad():
        wanted = [numbers(module(*call)) for call in calls]
    end = [b.numpy() for b in module.buffers()]

    def evaluate(path, values):
        np.savez(tmp_path / "in.npz", **{f"in{i}": x for i, x in enumerate(oracles.bind(path, values))})
        chute("run", path, "--inputs", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
        return oracles.load(tmp_path / "out.npz", "out"), None

    ran = []
    for who, run in (("chute", evaluate), ("tico", lambda p, v: oracles.apart(run_tico, p, v)),
                     ("onert", lambda p, v: oracles.apart(oracles.run_onert, p, v))):
        state = start
        for call, want in zip(calls, wanted):
            got, why = run(circle, [*numbers(call), *state])
            if got is None:
                break
            assert len(got) == len(want) + len(state), who
            got = oracles.restore_shape(got, want + end)
            _, wrong = oracles.difference(got[:len(want)], want, 1e-5, 1e-5)
            assert not wrong, f"{who}: {wrong}"
            state = got[len(want):]
        else:
            _, wrong = oracles.difference(state, end, 1e-5, 1e-5)
            assert not wrong, f"{who}: state: {wrong}"
            ran.append(who)
    assert "chute" in ran and len(ran) > 1, ran


class Exchange(nn.Module):
    """Two buffers change places, one is returned as it was, one is written without being read."""

    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.tensor([1.0, 2.0]))
        self.register_buffer("b", torch.tensor([3.0, 5.0]))
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x):
        a, b = self.a.clone(), self.b.clone()
        self.a.copy_(b)
        self.b.copy_(a)
        self.last.copy_(x)
        return a, x + b


VARIABLE = PROGRAMS | {"exchange": (Exchange, lambda k: (torch.rand(2) * k,))}


def several_runs(folder, model, calls):
    """What `chute run` gives when it keeps the buffers in a file between runs, and what the file holds at the end."""
    kept, ran = folder / "state.npz", []
    kept.unlink(missing_ok=True)
    for values in calls:
        np.savez(folder / "in.npz", **{f"in{i}": x for i, x in enumerate(values)})
        chute("run", model, "--inputs", folder / "in.npz", "--state", kept, "-o", folder / "out.npz")
        ran.append(oracles.load(folder / "out.npz", "out"))
    return ran, dict(np.load(kept))


@pytest.mark.parametrize("how", ("-O0", "-O1", "-O2", "cleanup"))
@pytest.mark.parametrize("name", VARIABLE)
def test_state_variable(tmp_path, name, how):
    """Variable tensors carry what was written from run to run, also in files that were read and written again; both runtimes
    of ONE say that they have none (docs/adr/0008)."""
    factory, inputs = VARIABLE[name]
    torch.manual_seed(len(name))
    module = factory().eval()
    torch.export.save(torch.export.export(module, inputs(0)), str(tmp_path / "model.pt2"))
    circle = tmp_path / "model.circle"
    chute("convert", tmp_path / "model.pt2", "-o", circle, "--state", "variable", "--verify-each")
    chute("verify", circle)
    if how == "cleanup":
        chute("cleanup", circle, "-o", tmp_path / "again.circle")
    else:
        chute("optimize", circle, how, "-o", tmp_path / "again.circle", "--verify-each")
    chute("verify", tmp_path / "again.circle")
    calls = [numbers(inputs(k)) for k in range(4)]
    with torch.no_grad():
        wanted = [numbers(module(*map(torch.from_numpy, call))) for call in calls]
    end = {key: b.numpy() for key, b in module.named_buffers()}
    for model in (tmp_path / "model.pt2", circle, tmp_path / "again.circle"):
        ran, kept = several_runs(tmp_path, model, [oracles.bind(circle, call) for call in calls])
        for got, want in zip(ran, wanted):
            _, wrong = oracles.difference(got, want, 1e-5, 1e-5)
            assert not wrong, f"{model.name}: {wrong}"
        assert set(kept) == set(end), model.name
        _, wrong = oracles.difference([kept[key] for key in end], list(end.values()), 1e-5, 1e-5)
        assert not wrong, f"{model.name}: {wrong}"


def test_variables_are_the_default_and_few_runtimes_have_them(tmp_path):
    torch.export.save(torch.export.export(Counter().eval(), (torch.rand(3),)), str(tmp_path / "model.pt2"))
    said = chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle").stderr
    assert "circle.state.variable" in said and "--state io" in said and "warning" not in said
    chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "asked.circle", "--state", "variable")
    assert (tmp_path / "asked.circle").read_bytes() == (tmp_path / "model.circle").read_bytes()
    for runtime, why in ((oracles.run_reference, "Variable (stateful) tensors are not supported"), (oracles.run_onert, "NNFW_STATUS_ERROR")):
        got, said = oracles.apart(runtime, tmp_path / "model.circle", [np.ones(3, np.float32)])
        assert got is None and why in said
    chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.tosa", "--state", "variable", expect=2)


def test_state_is_dropped_with_a_warning(tmp_path):
    torch.export.save(torch.export.export(Counter().eval(), (torch.rand(3),)), str(tmp_path / "model.pt2"))
    done = chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle", "--state", "drop")
    assert "circle.mutation.buffer" in done.stderr and "--state io" in done.stderr
    chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle", "--state", "elsewhere", expect=2)


def test_config_file(tmp_path):
    class Masked(nn.Module):
        def forward(self, x):
            return x + torch.full((4, 4), float("-inf")).triu(1)

    torch.export.save(torch.export.export(Masked(), (torch.rand(4, 4),)), str(tmp_path / "model.pt2"))
    config, circle = tmp_path / "tico.yaml", tmp_path / "model.circle"
    config.write_text("version: '1.0'\nlegalize_causal_mask_value: True  # for the NPU\n")
    chute("convert", tmp_path / "model.pt2", "-o", circle, "--config", config)
    [got] = oracles.run_reference(circle, [np.zeros((4, 4), np.float32)])
    assert got[0, 1] == -120
    chute("convert", tmp_path / "model.pt2", "-o", circle, "--config", config, "--set", "legalize_causal_mask_value=false")
    [got] = oracles.run_reference(circle, [np.zeros((4, 4), np.float32)])
    assert got[0, 1] == -np.inf
    config.write_text("version: '1.0'\nlegalize_causal_mask: true\n")
    done = chute("convert", tmp_path / "model.pt2", "-o", circle, "--config", config, expect=2)
    assert "tico.yaml:2" in done.stderr and "legalize_causal_mask_value" in done.stderr
    config.write_text("legalize_causal_mask_value: true\n")
    chute("convert", tmp_path / "model.pt2", "-o", circle, "--config", config, expect=2)
