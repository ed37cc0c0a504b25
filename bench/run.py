#!/usr/bin/env python3
"""Benchmarks of whole processes, chute beside its peers, and a report in Markdown.

    bench/run.py [convert] [toolkit] [tosa] [--chute FILE] [--largest N] [--limit SECONDS] [--no-peers] [--out FILE]

Sections (all by default):
  convert  the quantized attention stack from `.pt2` to Circle: chute, TICO, mlir-opt on a TOSA graph of as many
           operators, and bare reading (simdjson over the JSON plus every weight byte)
  toolkit  Circle files of 1,000 to 800,000 operators: verify, inspect, extract, optimize, beside tico-circle
  tosa     the attention stack, float and quantized, to TOSA, beside the ExecuTorch Arm backend

Sections that are not run keep what the report says of them. A peer is run at the sizes that it finishes within --limit
(600 s of processor time); beyond them its growth is extrapolated and marked
as fitted. Times are the best of three runs, of one machine, in one session: only ratios mean something.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import sys

import sections
from workloads import ROOT, WORK


def earlier(out):
    """{section: its text} of a report that is there."""
    parts = re.split(r"^(?=## )", out.read_text(), flags=re.M)[1:] if out.exists() else []
    return {name: part.rstrip("\n") + "\n" for part in parts for name, title in sections.TITLES.items()
            if part.startswith(f"## {title}\n")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[[], *sections.ALL], help="what to run (all)")
    parser.add_argument("--chute", default=os.environ.get("CHUTE", str(ROOT / "build" / "bench" / "chute")))
    parser.add_argument("--venv", default=os.environ.get("CHUTE_VENV", str(ROOT / ".venv")), help="with tico")
    parser.add_argument("--arm-venv", default=os.environ.get("CHUTE_ARM_VENV", str(ROOT / "build" / "bench" / "venv-arm")),
                        help="with executorch; made by `tools/bootstrap --arm`")
    parser.add_argument("--largest", type=int, default=10**9, help="no workload of more nodes or operators than this")
    parser.add_argument("--limit", type=float, default=600, help="seconds of processor time that a peer gets for one run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", default=str(ROOT / "bench" / "results.md"))
    args = parser.parse_args()
    args.mlir_opt = shutil.which("mlir-opt-19")
    out = pathlib.Path(args.out)
    head = ("# Benchmark results\n\n"
            f"`make bench` on {os.cpu_count()} cores, {platform.machine()}. Best of {args.repeat} runs each; compare "
            "within a table only.\n")
    parts = earlier(out)
    for name in args.sections or sections.ALL:
        try:
            parts[name] = sections.ALL[name](args, out)
        except sections.Missing as missing:
            parts[name] = f"## {sections.TITLES[name]}\n\nNot run: {missing}.\n"
        # What is done is kept when a later section fails.
        out.write_text("\n".join([head, *(parts[n] for n in sections.ALL if n in parts)]))
        print(f"bench: {name} done", file=sys.stderr)
    print(f"bench: wrote {out}; workloads stay in {WORK}", file=sys.stderr)


if __name__ == "__main__":
    main()
