#!/usr/bin/env python3
"""Random programs of single operators, many in one exported module, converted and compared with PyTorch.

usage: operator_programs.py [--programs N] [--seed S] [--record FILE] [OPERATOR...]

Draws N programs (50) of every operator that chute lowers, or of those named; converts; compares chute's evaluator and
tico's interpreter on the .circle file with PyTorch. A failure prints the operator, the seed and the program; the same
seed and operator give it again. --record writes which element types were converted and agreed, for docs/operators.md.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import oracles  # noqa: E402
from operator_arguments import draw, resolve  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))
TRIES = 12  # per program, before an operator counts as one whose arguments can not be drawn
TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 1e-1}
SHORT = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
         torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
# Operators that torch.export itself takes apart, refuses, or gives a result that depends on memory.
LEFT_OUT = {"aten.empty.memory_format", "aten.empty_like.default", "aten.empty_strided.default", "aten.new_empty.default",
            "aten.as_strided_.default", "aten.new_empty_strided.default", "aten.item.default", "aten.set_.source_Tensor",
            # PyTorch itself crashes on odd arguments of these.
            "aten._fft_r2c.default", "aten._native_batch_norm_legit.no_stats"}


def chute(*arguments):
    return subprocess.run([CHUTE, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def operators():
    """Names of the operators that are lowered, whose programs are the same on every run."""
    facts = json.loads(chute("operators", "--json").stdout)
    return [f["name"] for f in facts if f["fate"] in ("core", "rule", "in place") and f["name"].startswith("aten.") and
            f["name"] not in LEFT_OUT and not f["name"].endswith(".out") and drawable(f["name"])]


def drawable(name):
    try:
        op = resolve(name)
    except AttributeError:  # of another version of torch
        return False
    return torch.Tag.nondeterministic_seeded not in op.tags and torch.Tag.data_dependent_output not in op.tags


class Program(nn.Module):
    """One call. Tensors among the arguments are the program's inputs."""

    def __init__(self, name, number, args, kwargs):
        super().__init__()
        self.name, self.number, self.op = name, number, resolve(name)
        leaves, self.spec = torch.utils._pytree.tree_flatten((args, kwargs))
        self.inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.rest = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.in_place = name.rsplit(".", 1)[0].endswith("_")

    def forward(self, *inputs):
        leaves = list(self.rest)
        for place, tensor in zip(self.places, inputs):
            leaves[place] = tensor
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.spec)
        if self.in_place:
            args = (args[0].clone(), *args[1:])
        out = self.op(*args, **kwargs)
        return [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]

    def text(self):
        leaves = [f"{SHORT.get(x.dtype, x.dtype)}{list(x.shape)}" for x in self.inputs]
        rest = [r for i, r in enumerate(self.rest) if i not in self.places]
        return f"{self.name} program {self.number}: inputs {', '.join(leaves)}; {rest}"

    def kinds(self):
        return {SHORT[x.dtype] for x in self.inputs[:1]}

    def tolerance(self):
        return max([TOLERANCE.get(t.dtype, 1e-3 if t.is_floating_point() else 1e-4) for t in (*self.inputs, *self.expected)])


def sane(tensors):
    """Results that say something: there are some, none is huge, and integers stand for themselves."""
    if not tensors or any(t.dtype not in SHORT or t.numel() > 20000 for t in tensors):
        return False
    return all(not t.is_floating_point() or t.numel() == 0 or t.nan_to_num(0, 0, 0).abs().max() < 1e4 for t in tensors)


def programs(name, count, seed):
    """Up to `count` programs that PyTorch runs; the draws depend on the name and the seed only."""
    generator = random.Random(zlib.crc32(name.encode()) + seed)
    made = []
    for number in range(count * TRIES):
        if len(made) == count:
            break
        state = generator.getrandbits(32)
        try:
            args, kwargs = draw(name, random.Random(state))
            program = Program(name, number, args, kwargs)
            with torch.no_grad():
                program.expected = [t.clone() for t in program(*(x.clone() for x in program.inputs))]
        except Exception:  # PyTorch refuses these arguments
            continue
        if sane(program.expected) and all(x.dtype in SHORT for x in program.inputs):
            made.append(program)
    return made


class Pack(nn.Module):
    def __init__(self, members):
        super().__init__()
        for i, member in enumerate(members):
            setattr(self, f"p{i}", member)
        self.members = members

    def forward(self, *inputs):
        out, at = [], 0
        for i in range(len(self.members)):
            member = getattr(self, f"p{i}")
            out += member(*inputs[at:at + len(member.inputs)])
            at += len(member.inputs)
        return tuple(out)


class Result:
    def __init__(self):
        self.agreed, self.refused, self.wrong = [], [], []


def float_on_the_way(array):
    return array.astype(np.float32) if array.dtype == np.float64 else array


def check(members, folder, result):
    """Converts one pack and compares; members that chute refuses are put aside, the rest is tried again."""
    model, circle = folder / "model.pt2", folder / "model.circle"
    while members:
        inputs = tuple(x.clone() for m in members for x in m.inputs)
        try:
            torch.export.save(torch.export.export(Pack(members), inputs), str(model))
        except Exception as error:
            if len(members) == 1:
                return  # nothing to convert: torch.export does not take this call
            half = len(members) // 2
            check(members[:half], folder, result)
            members = members[half:]
            continue
        done = chute("convert", model, "-o", circle, "--json")
        if done.returncode == 0:
            break
        refused = blamed(done.stderr, members)
        if done.returncode != 3 or not refused:
            if len(members) == 1:
                (result.refused if done.returncode == 3 else result.wrong).append((members[0], done.stderr.strip()[-400:]))
                return
            half = len(members) // 2
            check(members[:half], folder, result)
            members = members[half:]
            continue
        result.refused += [(members[i], why) for i, why in sorted(refused.items())]
        members = [m for i, m in enumerate(members) if i not in refused]
    if members:
        compare(members, inputs, circle, folder, result)


def blamed(stderr, members):
    """{position of a member: why} from the module paths of the diagnostics."""
    out = {}
    for line in stderr.splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        where = said.get("module_path", "").split(".")[0]
        if said.get("severity") == "error" and where.startswith("p") and where[1:].isdigit() and int(where[1:]) < len(members):
            out.setdefault(int(where[1:]), f"{said['code']}: {said['message']}")
    return out


def compare(members, inputs, circle, folder, result):
    bound = oracles.bind(circle, [x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy() for x in inputs])
    np.savez(folder / "in.npz", **{f"in{i}": x for i, x in enumerate(bound)})
    done = chute("run", circle, "--inputs", folder / "in.npz", "-o", folder / "out.npz")
    runs = {"tico": oracles.apart(oracles.run_reference, circle, bound, seconds=300)[0]}
    if done.returncode == 0:
        runs["chute"] = oracles.load(folder / "out.npz", "out")
    elif "eval.no_kernel" not in done.stderr:
        if len(members) == 1:
            result.wrong.append((members[0], f"chute run: {done.stderr.strip()[-300:]}"))
        else:  # find the one
            half = len(members) // 2
            check(members[:half], folder, result)
            check(members[half:], folder, result)
        return
    runs = {who: got for who, got in runs.items() if got is not None}
    at = 0
    for member in members:
        want = [t.float().numpy() if t.dtype == torch.bfloat16 else float_on_the_way(t.numpy()) for t in member.expected]
        bound_to = member.tolerance()
        problems = []
        for who, got in runs.items():
            _, wrong = oracles.difference(got[at:at + len(want)], want, bound_to, bound_to)
            if wrong:
                problems.append(f"{who}: {wrong}")
        at += len(want)
        if problems:
            result.wrong.append((member, "; ".join(problems)))
        elif runs:
            result.agreed.append(member)


def run(chosen, count, seed, size=50):
    """Packs of `size` programs, an operator's together where they fill one."""
    result, waiting = Result(), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for operator in chosen:
            waiting += programs(operator, count, seed)
            if len(waiting) >= size:
                check(waiting, folder, result)
                waiting = []
        check(waiting, folder, result)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record")
    given = parser.parse_args()
    torch.set_num_threads(1)
    result = run(given.operators or operators(), given.programs, given.seed)
    for member, why in result.wrong:
        print(f"WRONG seed {given.seed} {member.text()}\n    {why}")
    refusals = {}
    for member, why in result.refused:
        refusals.setdefault((member.name, why.split("; ")[0]), []).append(member)
    for (name, why), which in sorted(refusals.items()):
        print(f"refused {len(which)} of {name}: {why}")
    print(f"{len(result.agreed)} agree, {len(result.refused)} refused, {len(result.wrong)} wrong")
    if given.record:
        kinds = {}
        for member in result.agreed:
            kinds.setdefault(member.name, set()).update(member.kinds())
        rows = [f"{name} {' '.join(k for k in SHORT.values() if k in found)}" for name, found in sorted(kinds.items())]
        pathlib.Path(given.record).write_text("\n".join(rows) + "\n")
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
