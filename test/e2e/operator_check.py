"""Converts packs of programs (operator_programs.py) and compares chute's evaluator and tico's interpreter with PyTorch."""
import pathlib
import tempfile
from dataclasses import dataclass, field

import numpy as np
import oracles
import torch
from operator_programs import SHORT, Pack, blamed, chute, programs

MISDECLARED = (" requires dimension ", " requires rank ", " has dtype ")  # tico's words for a file that says what is not so


@dataclass
class Verdict:
    """What became of one program."""
    operator: str
    text: str
    kind: str  # of the first operand
    fate: str = "agreed"  # agreed, refused, wrong, or unexported: torch.export does not take this call
    why: str = ""
    runtimes: list = field(default_factory=list)  # that had values to compare


class Check:
    def __init__(self, folder):
        self.folder, self.verdicts = folder, []

    def say(self, member, fate="agreed", why="", runtimes=()):
        kind = SHORT[member.tensors[0].dtype] if member.tensors else ""
        self.verdicts.append(Verdict(member.name, member.text(), kind, fate, why, list(runtimes)))

    def halves(self, members):
        half = len(members) // 2
        self.pack(members[:half])
        self.pack(members[half:])

    def pack(self, members):
        """Programs that are refused are put aside and the rest is tried again; one that breaks the pack is found by halving."""
        model, circle = self.folder / "model.pt2", self.folder / "model.circle"
        while members:
            inputs = tuple(x for m in members for x in m.inputs)
            try:
                torch.export.save(torch.export.export(Pack(members), inputs), str(model))
            except Exception as error:
                if len(members) > 1:
                    return self.halves(members)
                return self.say(members[0], "unexported", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300])
            done = chute("convert", model, "-o", circle, "--json")
            if done.returncode == 0:
                return self.compare(members, circle)
            refused = blamed(done.stderr, members)
            if done.returncode != 3 or not refused:
                if len(members) > 1:
                    return self.halves(members)
                return self.say(members[0], "refused" if done.returncode == 3 else "wrong", f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")
            for i, why in sorted(refused.items()):
                self.say(members[i], "refused", why)
            members = [m for i, m in enumerate(members) if i not in refused]

    def compare(self, members, circle):
        given = [x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy() for m in members for x in m.tensors]
        bound = oracles.bind(circle, given)
        np.savez(self.folder / "in.npz", **{f"in{i}": x for i, x in enumerate(bound)})
        done = chute("run", circle, "--inputs", self.folder / "in.npz", "-o", self.folder / "out.npz")
        if done.returncode and len(members) > 1:
            return self.halves(members)
        runs = {}
        if done.returncode == 0:
            runs["chute"] = [(value, None) for value in oracles.load(self.folder / "out.npz", "out")]
        elif "eval.no_kernel" not in done.stderr:
            return self.say(members[0], "wrong", f"chute run: {done.stderr.strip()[-300:]}")
        theirs, failed = oracles.apart(oracles.run_reference_in_part, circle, bound, seconds=300)
        if theirs is not None:
            runs["tico"] = theirs
        elif len(members) > 1 and "crashed" in failed:
            return self.halves(members)
        at = 0
        for member in members:
            count, answers = len(member.expected), list(member.answers())
            problems, compared = [], []
            for who, values in runs.items():
                mine = values[at:at + count]
                lost = next((why for value, why in mine if value is None), None)
                if lost is not None:
                    if any(words in lost for words in MISDECLARED):
                        problems.append(f"{who}: {lost}")
                    continue
                wrong = [oracles.difference([v for v, _ in mine], want, member.tolerance(), member.tolerance())[1] for want in answers]
                if all(wrong):
                    problems.append(f"{who}: {wrong[0]}")
                compared.append(who)
            at += count
            self.say(member, "wrong" if problems else "agreed", "; ".join(problems), compared)


def check(chosen, count, seed, size=50):
    """Verdicts on `count` programs of each operator in `chosen`, in packs of about `size`."""
    with tempfile.TemporaryDirectory() as name:
        checker, waiting = Check(pathlib.Path(name)), []
        for operator in chosen:
            waiting += programs(operator, count, seed)
            if len(waiting) >= size:
                checker.pack(waiting)
                waiting = []
        checker.pack(waiting)
    return checker.verdicts
