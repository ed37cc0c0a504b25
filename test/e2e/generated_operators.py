#!/usr/bin/env python3
"""Random programs of single operators, many in one exported module, converted and compared with PyTorch.

usage: generated_operators.py [--programs N] [--seed S] [--jobs J] [--table FILE] [--record FILE] [OPERATOR...]

Draws N programs (50) of every operator that chute lowers, or of those named; converts; compares chute's evaluator and
tico's interpreter on the .circle file with PyTorch. A failure prints the operator, the seed and the program; the same
seed and operator give it again. A refusal passes only with a reason in operator_refusals.py. --table writes what became
of each operator's programs; --record which element types were converted and agreed, for docs/operators.md.
"""
import argparse
import collections
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import operator_check  # noqa: E402
import operator_programs  # noqa: E402
from operator_refusals import reason  # noqa: E402

FATES = ("agreed", "refused", "wrong", "unexported")


def child(names, given, pipe):
    pipe.send(operator_check.check(names, given.programs, given.seed, max(50, given.programs)))


def run(names, given):
    """Yields lists of verdicts. A task has a process of its own, so that a crash of PyTorch's costs one task."""
    context = multiprocessing.get_context("fork")
    torch.export.export(torch.nn.ReLU(), (torch.zeros(1),))  # what it imports is imported once
    share = max(1, 50 // given.programs)
    waiting = collections.deque(names[i:i + share] for i in range(0, len(names), share))
    running = []
    while waiting or running:
        while waiting and len(running) < given.jobs:
            task, (ours, theirs) = waiting.popleft(), context.Pipe(duplex=False)
            process = context.Process(target=child, args=(task, given, theirs))
            process.start()
            theirs.close()
            running.append((ours, process, task))
        ready = multiprocessing.connection.wait([ours for ours, _, _ in running])
        for entry in [e for e in running if e[0] in ready]:
            ours, process, task = entry
            running.remove(entry)
            try:
                yield task, ours.recv()
            except EOFError:
                if len(task) > 1:
                    waiting.extendleft([name] for name in task)
                else:
                    yield task, [operator_check.Verdict(task[0], task[0], "", "wrong", "the process died")]
            process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table")
    parser.add_argument("--record")
    given = parser.parse_args()
    torch.set_num_threads(1)
    names = given.operators or operator_programs.operators()
    verdicts, unlisted = [], collections.Counter()
    for task, some in run(names, given):
        verdicts += some
        for v in some:
            if v.fate == "wrong":
                print(f"WRONG seed {given.seed} {v.text}\n    {v.why}", flush=True)
            elif v.fate == "refused" and reason(v) is None:
                unlisted[v.operator, v.why.split("; ")[0]] += 1
                if unlisted[v.operator, v.why.split("; ")[0]] == 1:
                    print(f"REFUSED seed {given.seed} {v.text}\n    {v.why}", flush=True)
    by = collections.defaultdict(list)
    for v in verdicts:
        by[v.operator].append(v)
    table = [f"{'operator':60} {'drawn':>5} " + " ".join(f"{f:>10}" for f in FATES) + f" {'in tico':>8}"]
    for name in names:
        counts = collections.Counter(v.fate for v in by[name])
        table.append(f"{name:60} {len(by[name]):5} " + " ".join(f"{counts[f]:10}" for f in FATES) +
                     f" {sum('tico' in v.runtimes for v in by[name]):8}")
    if given.table:
        pathlib.Path(given.table).write_text("\n".join(table) + "\n")
    else:
        print("\n".join(table))
    never = [name for name in names if not any(v.fate == "agreed" for v in by[name])]
    few = [f"{name} ({len(by[name])})" for name in names if len(by[name]) < given.programs]
    reasons = collections.Counter(reason(v) for v in verdicts if v.fate == "refused" and reason(v))
    print("\n".join(f"refused {count}: {why}" for why, count in reasons.most_common()))
    print(f"fewer programs than asked: {', '.join(few) or 'none'}")
    print(f"never agreed: {', '.join(never) or 'none'}")
    total = collections.Counter(v.fate for v in verdicts)
    print(f"{total['agreed']} agree ({sum('tico' in v.runtimes for v in verdicts)} in tico's interpreter too), {total['refused']} refused "
          f"({sum(unlisted.values())} without a listed reason), {total['unexported']} not exported by PyTorch, {total['wrong']} wrong")
    if given.record:
        kinds = collections.defaultdict(set)
        for v in verdicts:
            if v.fate == "agreed":
                kinds[v.operator].add(v.kind)
        order = operator_programs.SHORT.values()
        rows = [f"{name} {' '.join(k for k in order if k in found)}" for name, found in sorted(kinds.items())]
        pathlib.Path(given.record).write_text("\n".join(rows) + "\n")
    return 1 if total["wrong"] or unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
