"""Programs with symbolic sizes as TOSA, whose shapes are static: the sizes are those that --sizes names, otherwise those of the
export's example inputs."""
import json

import numpy as np
import oracles
import pytest
import torch
from conftest import chute
from torch import nn
from torch.export import Dim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(2, 3, 3, padding=1), nn.Linear(3, 5)

    def forward(self, x):
        y = torch.relu(self.conv(x)).mean((2, 3))
        return self.head(y), torch.cat((x, x.flip(2)), 2).flatten(1)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    torch.manual_seed(0)
    module = Net().eval()
    path = tmp_path_factory.mktemp("sizes") / "model.pt2"
    shapes = ({0: Dim("batch", min=1, max=8), 2: Dim("height", min=2, max=64)},)
    torch.export.save(torch.export.export(module, (torch.randn(2, 2, 6, 5),), dynamic_shapes=shapes), str(path))
    sizes = json.loads(chute("explain", path, "--json").stdout)["dynamic_sizes"]
    return module, path, {"batch" if s["max"] == 8 else "height": s["name"] for s in sizes}


def check(module, path, x):
    tosa, note = path.with_suffix(".tosa"), path.with_suffix(".json")
    face = json.loads(note.read_text())["interface"]
    assert face["inputs"][0]["shape"] == list(x.shape)
    with torch.no_grad():
        want = module(x)
    for got, w in zip(oracles.run_tosa(tosa, [x.numpy()]), want):
        assert got.shape == tuple(w.shape) and np.allclose(got, w.numpy(), atol=1e-4)


def convert(path, *more, expect=0):
    return chute("convert", path, "-o", path.with_suffix(".tosa"), "--profile", "fp", "--report", path.with_suffix(".json"), *more,
                 expect=expect).stderr


def test_sizes_of_the_example(program):
    pytest.importorskip("tosa_reference_model")
    module, path, names = program
    said = convert(path)
    assert "note[sizes.fixed]" in said and f"{names['batch']}=2" in said and f"{names['height']}=6" in said
    check(module, path, torch.randn(2, 2, 6, 5))


def test_sizes_that_are_asked_for(program):
    pytest.importorskip("tosa_reference_model")
    module, path, names = program
    said = convert(path, "--sizes", f"{names['batch']}=3,{names['height']}=9")
    assert "sizes.fixed" not in said
    check(module, path, torch.randn(3, 2, 9, 5))


def test_sizes_that_the_program_does_not_have(program):
    _, path, names = program
    assert "error[sizes.range]" in convert(path, "--sizes", f"{names['batch']}=1000", expect=2)
    assert "error[sizes.unknown]" in convert(path, "--sizes", "nothing=3", expect=2)
    assert "error[sizes.form]" in convert(path, "--sizes", f"{names['batch']}:3", expect=2)
    refused = chute("convert", path, "-o", path.with_suffix(".circle"), "--sizes", f"{names['batch']}=3", expect=2).stderr
    assert "cli.output.sizes" in refused


def test_a_size_that_depends_on_data_is_refused(tmp_path):
    path = tmp_path / "mask.pt2"

    class Mask(nn.Module):
        def forward(self, x):
            return x[x > 0]

    torch.export.save(torch.export.export(Mask(), (torch.randn(6),)), str(path))
    assert chute("convert", path, "-o", tmp_path / "m.tosa", expect=3).stderr
