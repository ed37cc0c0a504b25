"""The shared quantized attention stack, 1, 4 and 16 blocks, against PyTorch in tico's interpreter.

Every tensor of a block lies on a grid of 0.02, so one product or sum in fifty falls on the middle between two steps,
and the order in which 32 floats are added decides where it goes; the next block computes on the difference. PyTorch
itself, its matrix products summed in float64, is 2 steps from PyTorch after one block, 4 after four and 12 after
sixteen. TICO's own file of the same program gives the same numbers as chute's, bit for bit, at one block and at four (the
test runs one: TICO takes minutes for four). So two steps are asked of each block on PyTorch's own input of it, and of the whole stack no more than two
steps beyond what sums in another order leave open.
"""
import functools
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT, chute
from test_quantized import interface, real, run_tico

BENCH = ROOT.parent / "shared" / "bench"
STEP = 0.02
INPUTS = 2
PRODUCTS = ("aten.linear.default", "aten.matmul.default")

pytestmark = pytest.mark.skipif(not (BENCH / "tile_pt2.py").exists(), reason="no ../shared beside this checkout")


class Values(torch.fx.Interpreter):
    """Runs an exported program and keeps what each of `names` was; `products` is the type in which products are summed."""

    def __init__(self, program, names, products=torch.float32):
        super().__init__(program.graph_module)
        self.program, self.names, self.products, self.kept = program, names, products, {}

    def call_function(self, target, arguments, keywords):
        if str(target) in PRODUCTS and self.products is not torch.float32:
            wide = [a.to(self.products) if isinstance(a, torch.Tensor) else a for a in arguments]
            return target(*wide, **keywords).float()
        return super().call_function(target, arguments, keywords)

    def run_node(self, node):
        value = super().run_node(node)
        if node.name in self.names:
            self.kept[node.name] = value.detach().numpy()
        return value

    def __call__(self, x):
        state = {**self.program.state_dict, **self.program.constants}
        with torch.no_grad():
            self.run(*[state[s.target] if s.target in state else x for s in self.program.graph_signature.input_specs])
        return self.kept


def suffix(block):
    return f"_b{block}" if block else ""


def result(block):
    return "fake_quantize_per_tensor_affine_79" + suffix(block)


def distance(got, want):
    return float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max() / STEP)


@functools.cache
def inputs():
    return [torch.randn(1, 8, 32, generator=torch.Generator().manual_seed(seed)) for seed in range(INPUTS)]


@pytest.fixture(scope="module", params=[1, 4, 16])
def stack(request, tmp_path_factory):
    """(number of blocks, the .circle, for each input PyTorch's value after every block, the same with sums in float64)"""
    blocks, folder = request.param, tmp_path_factory.mktemp("stack")
    model, out = folder / "model.pt2", folder / "model.circle"
    subprocess.run([sys.executable, BENCH / "tile_pt2.py", BENCH / "block_fq16.pt2", str(blocks), model], check=True,
                   stdout=subprocess.DEVNULL)
    chute("convert", model, "-o", out)
    chute("verify", out)
    program = torch.export.load(str(model))
    nodes = {node.name for node in program.graph.nodes}
    # the exporter's own name is kept in the first block of some sizes, and numbered in others
    names = [name if name in nodes else name + "_b0" for name in map(result, range(blocks))]
    runs = [[[Values(program, names, kind)(x)[name] for name in names] for x in inputs()]
            for kind in (torch.float32, torch.float64)]
    return blocks, out, *runs


def on_pytorch(path, values):
    (got,) = run_tico(path, values)
    return real(got, interface(path)[1][0])


def test_every_block_is_within_two_steps(stack, tmp_path):
    blocks, out, exact, _ = stack
    for block in range(blocks):
        part = tmp_path / f"{block}.circle"
        ends = [*(["--from", "add_13" + suffix(block - 1)] if block else []),
                *(["--to", "add_13" + suffix(block)] if block + 1 < blocks else [])]
        chute("extract", out, "-o", part, *ends) if ends else part.write_bytes(out.read_bytes())
        for x, after in zip(inputs(), exact):
            got = on_pytorch(part, [after[block - 1] if block else x.numpy()])
            assert distance(got, after[block]) <= 2.01, f"block {block} of {blocks}"


def test_the_stack_is_within_two_steps_of_what_sums_leave_open(stack):
    blocks, out, exact, wide = stack
    left_open = max(distance(a[-1], b[-1]) for a, b in zip(exact, wide))
    for x, after in zip(inputs(), exact):
        assert distance(on_pytorch(out, [x.numpy()]), after[-1]) <= 2.01 + (left_open if blocks > 1 else 0)


def test_one_block_has_the_numbers_of_ticos_own_file(stack, tmp_path):
    blocks, out, _, _ = stack
    if blocks != 1:
        pytest.skip("TICO takes minutes")
    import tico
    tico.convert_from_exported_program(torch.export.load(str(out.parent / "model.pt2"))).save(str(tmp_path / "tico.circle"))
    for x in inputs():
        assert np.array_equal(on_pytorch(out, [x.numpy()]), on_pytorch(tmp_path / "tico.circle", [x.numpy()]))
