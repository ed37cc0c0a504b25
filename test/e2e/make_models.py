#!/usr/bin/env python3
"""Export every case of cases*.py, and random programs, and record PyTorch's outputs.

usage: make_models.py FOLDER [NAME...]

Writes FOLDER/<case>/{model.pt2,inputs.npz,expected.npz}. When FOLDER was made by these very scripts and this torch,
nothing is done. $CHUTE_GENERATED is the number of random programs (100). Export runs in as many processes as there are processors.
"""
import hashlib
import multiprocessing
import os
import pathlib
import shutil
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases_faults  # noqa: E402,F401
import cases_operators  # noqa: E402,F401
import cases_tricky  # noqa: E402,F401
from cases import CASES  # noqa: E402
from generated import Generated  # noqa: E402

GENERATED = [f"generated{seed}" for seed in range(int(os.environ.get("CHUTE_GENERATED", "100")))]


def tensors(tree):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def run(module, inputs):
    """What the module returned as out0, ...; buffers and inputs that it wrote to as state0, ..."""
    state = [*module.buffers(), *tensors(inputs)]
    before = [t.clone() for t in state]
    with torch.no_grad():
        returned = tensors(module(*inputs))
    changed = [t for t, old in zip(state, before) if not torch.equal(t, old)]
    return {f"{name}{i}": t.detach().numpy() for name, group in (("state", changed), ("out", returned))
            for i, t in enumerate(group)}


def record(folder, module, inputs, dynamic=None):
    """Export and run `module`; None, or why PyTorch could not."""
    given = [t.clone() for t in tensors(inputs)]
    folder.mkdir(parents=True)
    try:
        program = torch.export.export(module, inputs, dynamic_shapes=dynamic)
        torch.export.save(program, str(folder / "model.pt2"))  # before a run changes buffers
        expected = run(module, inputs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    np.savez(folder / "inputs.npz", **{f"in{i}": t.numpy() for i, t in enumerate(given)})
    np.savez(folder / "expected.npz", **expected)
    return None


def make(job):
    name, folder = job
    torch.set_num_threads(1)
    if name.startswith("generated"):
        module = Generated(int(name.removeprefix("generated"))).eval()
        problem = record(folder, module, module.make_inputs(0))
        (folder / "program.txt").write_text(module.text())
    else:
        problem = record(folder, *CASES[name].build(), CASES[name].dynamic)
    return name, problem


def fingerprint():
    here = pathlib.Path(__file__).resolve().parent
    text = b"".join((here / n).read_bytes() for n in ("cases.py", "cases_faults.py", "cases_operators.py", "cases_tricky.py", "generated.py", "make_models.py")) + f"{torch.__version__} {len(GENERATED)}".encode()
    return hashlib.sha256(text).hexdigest()


def make_all(folder, names=None):
    """Returns the cases that PyTorch itself could not export, with the reason: none, unless a case is wrong."""
    folder = pathlib.Path(folder)
    stamp = folder / "made-by"
    if not names and stamp.exists() and stamp.read_text() == fingerprint():
        return {}
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
    for name in names or ():
        shutil.rmtree(folder / name, ignore_errors=True)
    jobs = [(name, folder / name) for name in names or [*CASES, *GENERATED]]
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        failed = {name: why for name, why in pool.imap_unordered(make, jobs, chunksize=8) if why}
    if not names and not failed:
        stamp.write_text(fingerprint())
    return failed


if __name__ == "__main__":
    problems = make_all(sys.argv[1], sys.argv[2:])
    for case_name, reason in sorted(problems.items()):
        print(f"{case_name}: {reason}", file=sys.stderr)
    sys.exit(1 if problems else 0)
