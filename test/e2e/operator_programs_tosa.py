#!/usr/bin/env python3
"""Random programs of single operators to TOSA floats, run by Arm's reference model and compared with PyTorch.

usage: operator_programs_tosa.py [--programs N] [--seed S] [OPERATOR...]

Draws N programs (10) of every operator that chute lowers, or of those named (operator_programs.py). The same seed and
operator give a program again. Refusals are counted by reason; a file that Arm's reference model or `chute verify`
refuses, and other numbers than PyTorch's, are wrong.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import oracles  # noqa: E402
from operator_programs import Pack, blamed, chute, operators, programs  # noqa: E402

PATTERNS = {"bfloat16": torch.bfloat16}  # kept as bit patterns by the reference model


def tensors(member):
    return [x for x in member.inputs if isinstance(x, torch.Tensor)]


def as_array(tensor):
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float64) else tensor).numpy()


def stored(tensor, side):
    """A tensor as the file takes it; `side` is the input's entry in the report."""
    kind = PATTERNS.get(side["dtype"])
    value = tensor.to(kind).view(torch.uint16).numpy() if kind else as_array(tensor).astype(side["dtype"])
    return np.ascontiguousarray(value).reshape(side["shape"])


def plain(array, side):
    kind, array = PATTERNS.get(side["dtype"]), np.asarray(array)
    if kind and array.itemsize == 2:  # chute run widens them
        array = torch.from_numpy(array.view(np.int16).copy()).view(kind).float().numpy()
    return array.reshape(side["shape"])


class Check:
    """Packs of programs, one file each; what breaks a pack is found by halving."""

    def __init__(self, folder):
        self.folder, self.agreed, self.refused, self.wrong = folder, [], [], []

    def halves(self, members):
        half = len(members) // 2
        self.pack(members[:half])
        self.pack(members[half:])

    def pack(self, members):
        model, tosa, note = (self.folder / f"model.{e}" for e in ("pt2", "tosa", "json"))
        while members:
            inputs = tuple(x.clone() if isinstance(x, torch.Tensor) else x for m in members for x in m.inputs)
            try:
                torch.export.save(torch.export.export(Pack(members), inputs), str(model))
            except Exception:  # torch.export does not take this call
                return self.halves(members) if len(members) > 1 else None
            done = chute("convert", model, "-o", tosa, "--json", "--profile", "fp", "--report", note)
            if done.returncode == 0:
                return self.compare(members, tosa, json.loads(note.read_text())["interface"])
            refused = blamed(done.stderr, members)
            if done.returncode != 3 or not refused:
                if len(members) > 1:
                    return self.halves(members)
                (self.refused if done.returncode == 3 else self.wrong).append((members[0], done.stderr.strip()[-400:]))
                return None
            self.refused += [(members[i], why) for i, why in sorted(refused.items())]
            members = [m for i, m in enumerate(members) if i not in refused]
        return None

    def outputs(self, tosa, bound):
        """({runtime: arrays}, None) or (None, why)."""
        done = chute("verify", tosa)
        if done.returncode:
            return None, f"chute verify: {done.stderr.strip()[:300]}"
        theirs, why = oracles.apart(oracles.run_tosa, tosa, bound, seconds=300)
        if theirs is None:
            return None, why
        given = {f"in{i}": x.view("V2") if x.dtype == np.uint16 else x for i, x in enumerate(bound)}
        np.savez(self.folder / "in.npz", **given)
        done = chute("run", tosa, "--inputs", self.folder / "in.npz", "-o", self.folder / "out.npz")
        if done.returncode and "eval.no_kernel" not in done.stderr:
            return None, f"chute run: {done.stderr.strip()[-300:]}"
        ours = {} if done.returncode else {"chute run": oracles.load(self.folder / "out.npz", "out")}
        return {"reference model": theirs, **ours}, None

    def compare(self, members, tosa, face):
        bound = [stored(x, side) for x, side in zip((x for m in members for x in tensors(m)), face["inputs"], strict=True)]
        runs, why = self.outputs(tosa, bound)
        if runs is None:
            return self.halves(members) if len(members) > 1 else self.wrong.append((members[0], why))
        runs = {who: [plain(g, side) for g, side in zip(got, face["outputs"], strict=True)] for who, got in runs.items()}
        at = 0
        for member in members:
            want = [as_array(t) for t in member.expected]
            narrow = [w.astype(np.int32) if w.dtype == np.int64 else w for w in want]
            limit = member.tolerance()
            wrong = [f"{who}: {bad}" for who, got in runs.items()
                     if (bad := oracles.difference(got[at:at + len(want)], narrow, limit, limit)[1])]
            at += len(want)
            (self.wrong if wrong else self.agreed).append((member, "; ".join(wrong)))
        return None


def run(chosen, count, seed, size=50, tell=lambda check: None):
    """A Check that has seen `count` programs of each operator, in packs of about `size`."""
    waiting = []
    with tempfile.TemporaryDirectory() as name:
        check = Check(pathlib.Path(name))
        for operator in chosen:
            waiting += programs(operator, count, seed)
            if len(waiting) >= size:
                check.pack(waiting)
                waiting = []
                tell(check)
        check.pack(waiting)
        tell(check)
    return check


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--programs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["PATH"] = ""  # an abort of the reference model would look for a debugger
    told = 0

    def tell(check):
        nonlocal told
        for member, why in check.wrong[told:]:
            print(f"WRONG seed {given.seed} {member.text()}\n    {why}", flush=True)
        told = len(check.wrong)

    check = run(given.operators or operators(), given.programs, given.seed, tell=tell)
    reasons = {}
    for member, why in check.refused:
        reasons.setdefault((member.name, why.split("; ")[0].split(" (")[0]), []).append(member)
    for (name, why), which in sorted(reasons.items()):
        print(f"refused {len(which)} of {name}: {why}")
    print(f"{len(check.agreed)} agree, {len(check.refused)} refused, {len(check.wrong)} wrong")
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
