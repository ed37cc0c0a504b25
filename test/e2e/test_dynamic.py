"""One file, several sizes: every program of cases_dynamic.py is exported once, converted once, and run at each of its sizes by
chute's evaluator, tico's interpreter and onert; all of them have to give what PyTorch gives.

onert gives no result whose size it does not know before it runs. tico's interpreter lacks four operators that sizes need, so it
is given those (as numpy has them); the rest of it is its own.
"""
import hashlib
import multiprocessing
import os
import shutil

import numpy as np
import oracles
import pytest
import torch
from cases_dynamic import CASES
from conftest import HERE, ROOT, chute
from tico.circle.runtime import CircleReferenceRuntime
from tico.circle.runtime.kernels import default_kernel_registry
from tico.circle.runtime.kernels.base import builtin_code

# Cases that neither independent runtime executes at every size, with the reason; chute's evaluator still has to.
NO_ORACLE = {"topk_dynamic": "neither has a kernel for TOPK_V2 over dynamic sizes"}
NO_ORACLE |= dict.fromkeys(("map_dynamic_rounds", "scan_dynamic_rounds"), "tico has no WHILE, onert none over dynamic sizes")


def numbers(tree):
    """The tensors and numbers of what a program takes or returns, as arrays."""
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if leaf is not None]
    return [leaf.detach().numpy() if isinstance(leaf, torch.Tensor) else np.array(leaf) for leaf in leaves]


def run_tico(path, values):
    registry = default_kernel_registry()
    for name, kernel in (
        ("RANGE", lambda c: (np.arange(*(c.input(i).item() for i in range(3)), dtype=c.output_dtypes[0]),)),
        ("FILL", lambda c: (np.full(c.index_vector(0, name="dims"), c.input(1).item(), dtype=c.output_dtypes[0]),)),
        ("FLOOR_DIV", lambda c: (np.floor_divide(c.input(0), c.input(1)),)),
        ("WHERE", lambda c: (np.argwhere(c.input(0)),)),
    ):
        if registry.get(builtin_code(name)) is None:
            registry.register_named(name, kernel)
    runtime = CircleReferenceRuntime(path.read_bytes(), registry=registry)
    return [np.asarray(o) for o in runtime.run([torch.from_numpy(v) for v in oracles.bind(path, values)]).outputs]


def make(job):
    name, folder = job
    torch.set_num_threads(1)
    module, calls, dims = CASES[name].build()
    folder.mkdir(parents=True)
    try:
        with torch.no_grad():
            program = torch.export.export(module, calls[0], dynamic_shapes=dims)
            torch.export.save(program, str(folder / "model.pt2"))
            for k, inputs in enumerate(calls):
                np.savez(folder / f"call{k}.npz", **{f"in{i}": x for i, x in enumerate(numbers(inputs))},
                         **{f"out{i}": x for i, x in enumerate(numbers(module(*inputs)))})
    except Exception as error:
        return name, f"{type(error).__name__}: {error}"
    return name, None


@pytest.fixture(scope="session")
def exported():
    folder = ROOT / "build" / "e2e" / "dynamic"
    text = b"".join((HERE / f).read_bytes() for f in ("cases.py", "cases_tricky.py", "cases_dynamic.py", "test_dynamic.py"))
    stamp, fingerprint = folder / "made-by", hashlib.sha256(text + torch.__version__.encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == fingerprint):
        shutil.rmtree(folder, ignore_errors=True)
        with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
            problems = {n: why for n, why in pool.imap_unordered(make, [(n, folder / n) for n in CASES]) if why}
        assert not problems, "\n".join(f"{n}: {why}" for n, why in problems.items())
        stamp.write_text(fingerprint)
    return folder


def evaluate(tmp_path, model, values):
    np.savez(tmp_path / "in.npz", **{f"in{i}": x for i, x in enumerate(values)})
    chute("run", model, "--inputs", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    return oracles.load(tmp_path / "out.npz", "out")


def others(circle, case, calls):
    """Why neither independent runtime gave every call's results; None when one did."""
    notes = []
    for who, runtime in (("tico", run_tico), ("onert", oracles.run_onert)):
        for size, call in zip(case.sizes, calls):
            inputs, want = oracles.load(call, "in"), oracles.load(call, "out")
            got, why = oracles.apart(runtime, circle, inputs)
            if got is None:
                notes.append(f"{who} at {size} did not run it: {why}")
                break
            _, wrong = oracles.difference(oracles.restore_shape(got, want) if who == "onert" else got, want, case.rtol, case.atol)
            assert not wrong, f"{who} at {size}: {wrong}"
        else:
            return None
    return "; ".join(notes)


@pytest.mark.parametrize("name", CASES)
def test_sizes(exported, tmp_path, name):
    case, folder = CASES[name], exported / name
    circle = tmp_path / "model.circle"
    chute("convert", folder / "model.pt2", "-o", circle, "--verify-each")
    chute("verify", circle)
    calls = [folder / f"call{k}.npz" for k in range(len(case.sizes))]
    for size, call in zip(case.sizes, calls):
        inputs, want = oracles.load(call, "in"), oracles.load(call, "out")
        for model, values in ((folder / "model.pt2", inputs), (circle, oracles.bind(circle, inputs))):
            _, wrong = oracles.difference(evaluate(tmp_path, model, values), want, case.rtol, case.atol)
            assert not wrong, f"chute run {model.name} at {size}: {wrong}"
    why = others(circle, case, calls)
    assert not why or name in NO_ORACLE, why


def test_tables_name_cases():
    assert not set(NO_ORACLE) - set(CASES)
