"""Work grows in proportion to the network: each of the real models (test/e2e/real_models.py) with its layers repeated n, 2n and 4n
times. What grows is the kind of layer that the network stacks; every copy has weights of its own.

`make test` takes one of each kind; CHUTE_ALL_MODELS=1 takes all, which exports 87 programs.
"""
import copy
import hashlib
import os
import pathlib
import sys

import pytest
import torch
from test_scale import ROOT, check_growth
from torch import nn

E2E = ROOT / "test" / "e2e"
sys.path.insert(0, str(E2E))
import models_language as language  # noqa: E402
import models_vision as vision  # noqa: E402
from real_models import HEADS, MODELS, TOKENS  # noqa: E402

REPEATS = (2, 4, 8)
LATE = {"gru": (8, 16, 32)}  # its layers begin to share constants at the fourth
CHOSEN = [name for name in MODELS
          if os.environ.get("CHUTE_ALL_MODELS") or name in ("convnext", "vit", "lstm", "llama_cached", "mamba")]
STACKS = {"layers", "blocks", "encoder", "decoder"}  # lists of layers that are alike


def keeps_shape(module):
    """A layer whose copy can follow it."""
    if isinstance(module, vision.BasicBlock):
        return isinstance(module.down, nn.Identity)
    if isinstance(module, vision.InvertedResidual):
        return module.residual
    if isinstance(module, vision.Fire):
        return module.squeeze.in_channels == 2 * module.one.out_channels
    if isinstance(module, nn.Sequential) and len(module) and isinstance(module[0], nn.Conv2d):
        conv = module[0]
        same = tuple(k // 2 * d for k, d in zip(conv.kernel_size, conv.dilation))
        return conv.in_channels == conv.out_channels and conv.stride == (1, 1) and conv.padding == same
    return isinstance(module, (vision.ConvNeXtBlock, vision.EncoderBlock, vision.SwinBlock))


def deepened(module, times):
    """Every layer that can be followed by another of its kind is there `times` times."""
    found = 0
    for owner in list(module.modules()):
        for name, child in list(owner.named_children()):
            if isinstance(child, nn.Sequential):
                alike = [keeps_shape(layer) for layer in child]
            elif isinstance(child, nn.ModuleList) and name in STACKS:
                alike = [i > 0 for i in range(len(child))]  # the first may be of another kind (T5's has the bias table)
            else:
                continue
            layers = [layer for layer, repeat in zip(list(child), alike)
                      for layer in [layer, *(copy.deepcopy(layer) for _ in range(times - 1 if repeat else 0))]]
            found += sum(alike)
            child._modules.clear()
            for i, layer in enumerate(layers):
                child.add_module(str(i), layer)
    assert found, "nothing to repeat"
    return module


def cached_inputs(layers):
    return (TOKENS(1, 1), torch.zeros(1, 1, 1, 6), torch.tensor([[5]]), *(HEADS(5) for _ in range(2 * layers)))


def lstm(times):
    module = language.LSTM()
    module.lstm = nn.LSTM(8, 6, num_layers=times, bidirectional=True, batch_first=True)
    return module, MODELS["lstm"][1]()


def gru(times):
    module = language.GRU()
    module.gru = nn.GRU(8, 6, num_layers=times)
    return module, (torch.randn(5, 2, 8), torch.randn(times, 2, 6))


def deeplab(times):
    """Branches with dilated convolutions, which all go into the projection."""
    module = vision.DeepLab()
    first, *dilated = module.aspp
    module.aspp = nn.ModuleList([first, *(copy.deepcopy(branch) for branch in dilated for _ in range(times))])
    module.project = vision.conv_bn(8 * (len(module.aspp) + 1), 8, 1)
    return module, MODELS["deeplab"][1]()


def cached(**kind):
    return lambda times: (language.Llama(cached=True, layers=times, **kind), cached_inputs(times))


SPECIAL = {
    "lstm": lstm, "gru": gru, "deeplab": deeplab, "llama_cached": cached(), "qwen2_cached": cached(bias=True), "qwen3_cached": cached(qk_norm=True),
    "mamba": lambda times: (nn.Sequential(*(language.Mamba() for _ in range(times))), MODELS["mamba"][1]()),
}


def export(name, times, path):
    torch.manual_seed(times)
    torch.set_num_threads(1)
    if name in SPECIAL:
        module, inputs = SPECIAL[name](times)
    else:
        factory, make = MODELS[name]
        module, inputs = deepened(factory(), times), make()
    for parameter in module.parameters():
        parameter.data.uniform_(-0.5, 0.5)
    torch.export.save(torch.export.export(module.eval(), inputs), str(path))


@pytest.fixture(scope="session")
def deep_models():
    texts = [pathlib.Path(__file__), *(E2E / n for n in ("real_models.py", "models_language.py", "models_vision.py"))]
    folder = ROOT / "build" / "scale" / hashlib.sha256(b"".join(p.read_bytes() for p in texts) + torch.__version__.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", CHOSEN)
def test_steps_of_a_conversion_grow_linearly(deep_models, tmp_path, name):
    """(Row C4 of the faults that others have met: n equal attention blocks took n * n.)"""
    repeats = LATE.get(name, REPEATS)
    paths = [deep_models / f"{name}_{times}.pt2" for times in repeats]
    for times, path in zip(repeats, paths):
        if not path.exists():
            export(name, times, path)
    check_growth(paths, tmp_path / "out.circle")
