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


def test_state_is_dropped_with_a_warning(tmp_path):
    torch.export.save(torch.export.export(Counter().eval(), (torch.rand(3),)), str(tmp_path / "model.pt2"))
    done = chute("convert", tmp_path / "model.pt2", "-o", tmp_path / "model.circle")
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
