#!/usr/bin/env python3
"""Judge a report of ../shared/check/circle_corpus.py against the floors the project holds.

usage: corpus-gate.py REPORT.json

A floor is how many cases of a group must pass; `None` means all of them. Raise the numbers as more passes:
they exist so that nothing that worked stops working.
"""
import collections
import json
import sys

FLOORS = {"net": None, "model": None, "op": None, "quant": None, "unit": None}


def main():
    with open(sys.argv[1]) as report:
        rows = json.load(report)
    groups = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        groups[row["case"].split(".", 1)[0]][0 if row["ok"] else 1] += 1
    short = []
    for name in sorted(set(groups) | set(FLOORS)):
        passed, failed = groups[name]
        floor = FLOORS.get(name, 0)
        floor = passed + failed if floor is None else floor
        print(f"corpus {name}: {passed} of {passed + failed} pass, {floor} needed")
        if passed < floor or (name in FLOORS and passed + failed == 0):
            short.append(name)
    if short:
        print("corpus: below the floor: " + ", ".join(short))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
