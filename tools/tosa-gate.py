#!/usr/bin/env python3
"""Judge a report of ../shared/check/tosa_corpus.py against the floors the project holds.

usage: tosa-gate.py REPORT.json CORPUS [WORK]

A floor is how many of the cases that the Arm backend lowers wholly (status "full") must pass. Raise the numbers as
more passes. With WORK, the folder of the files that were written, operators are counted: in all no more than the Arm
backend has (`tosa_ops` of each case), and fewer TRANSPOSE and RESHAPE.
"""
import collections
import json
import pathlib
import sys

FLOORS = {"fp": 143, "int": 145}
LAYOUT = ("TRANSPOSE", "RESHAPE")


def operators(path):
    """How often each operator occurs in a TOSA file."""
    import flatbuffers.table as table
    import flatbuffers.number_types as n
    data = path.read_bytes()

    def root():
        return table.Table(data, int.from_bytes(data[:4], "little"))

    def field(t, slot):
        at = t.Offset(4 + 2 * slot)
        return t.Pos + at if at else None

    def tables(t, slot):
        at = t.Offset(4 + 2 * slot)
        if not at:
            return []
        start = t.Vector(at)
        return [table.Table(data, t.Indirect(start + 4 * i)) for i in range(t.VectorLen(at))]

    counts = collections.Counter()
    for region in tables(root(), 1):
        for block in tables(region, 1):
            for op in tables(block, 1):
                at = field(op, 0)
                counts[op.Get(n.Uint32Flags, at) if at else 0] += 1
    return counts


def main():
    rows = json.loads(pathlib.Path(sys.argv[1]).read_text())
    corpus = pathlib.Path(sys.argv[2])
    work = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    groups = collections.defaultdict(lambda: [0, 0])
    ours, theirs = collections.Counter(), collections.Counter()
    codes = {"TRANSPOSE": 61, "RESHAPE": 57}
    for row in rows:
        profile = row.get("profile") or next(p for p in ("fp", "int") if (corpus / p / row["case"]).is_dir())
        meta = json.loads((corpus / profile / row["case"] / "case.json").read_text())
        if meta["status"] != "full":
            continue
        groups[profile][0 if row["ok"] else 1] += 1
        written = work / profile / f"{row['case']}.tosa" if work else None
        if written and row["ok"] and written.exists():
            counts = operators(written)
            ours["all"] += sum(counts.values())
            theirs["all"] += sum(meta["tosa_ops"].values())
            for name in LAYOUT:
                ours[name] += counts[codes[name]]
                theirs[name] += meta["tosa_ops"].get(name, 0)
    short = []
    for name in sorted(set(groups) | set(FLOORS)):
        passed, failed = groups[name]
        floor = FLOORS.get(name, 0)
        print(f"tosa corpus {name}: {passed} of {passed + failed} pass, {floor} needed")
        if passed < floor:
            short.append(name)
    if work:
        for name in ("all", *LAYOUT):
            print(f"tosa operators, {name}: {ours[name]}, the Arm backend {theirs[name]}")
        if ours["all"] > theirs["all"] or sum(ours[n] for n in LAYOUT) >= sum(theirs[n] for n in LAYOUT):
            short.append("operators")
    if short:
        print("tosa corpus: below the floor: " + ", ".join(short))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
