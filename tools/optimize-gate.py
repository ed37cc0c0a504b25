#!/usr/bin/env python3
"""Optimize every Circle file of a corpus run and hold the results to what the project promises.

usage: optimize-gate.py CHUTE FOLDER

FOLDER is what `tools/run-tests corpus` leaves: `report.json` and the files under `work`. They are optimized to
`optimized` and checked there as they were before (tico-circle verify, tico's interpreter and onert against PyTorch),
and chute's own evaluator runs both on the same made-up inputs. Then:
  * what passed before passes after
  * at least FEWER of the files have no more operators than TICO's, and all together have fewer
  * a file with more is one of LARGER, for the reason that docs/optimizer.md gives
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
FEWER = 0.97
LARGER = {
    "op.softmax.SimpleSafeSoftMax",  # rows that are masked throughout give 0
    "op.sum.SimpleSumDim2Int",  # TICO's SUM of i32 declares i64
    "op.split_with_sizes.SimpleSplitWithSizes",  # SPLIT_V, which onert computes wrongly
    "op.split_with_sizes.SimpleSplitWithSizesCopy",
    "op.split_with_sizes.SimpleSplitWithSizesCopyWithDim1",
    "op.split_with_sizes.SimpleSplitWithSizesWithDim1",
    "quant.passes.propagate_quant_param.SplitWithSizesTest.test_per_channel_qparam_is_not_propagated",
    "unit.utils.mx.QuantizeMXTest.test_export",  # TICO gives the input back in a type that no runtime reads
}
# Optimized quantized files may round once where the file before rounded twice: one step of a result.
EVALUATOR = ["--atol", "1e-5", "--rtol", "1e-4"]


def quantized(path):
    from circle_schema import circle
    model = circle.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    scales = [t.quantization.scale for g in model.subgraphs for t in g.tensors if t.quantization is not None]
    outputs = [model.subgraphs[0].tensors[i].quantization for i in model.subgraphs[0].outputs]
    steps = [float(max(q.scale)) for q in outputs if q is not None and q.scale is not None and len(q.scale)]
    return any(s is not None and len(s) for s in scales), max(steps, default=0.0)


def one(chute, before, after):
    """None, or what went wrong."""
    done = subprocess.run([chute, "optimize", before, "-o", after, "--verify-each"], capture_output=True, text=True)
    if done.returncode:
        return f"{before.name}: optimize: {done.stderr[-300:]}"
    bound = EVALUATOR
    is_quantized, step = quantized(before)
    if is_quantized and step:
        bound = ["--atol", str(3.01 * step), "--rtol", "0"]
    done = subprocess.run([chute, "compare", before, after, "--random", "1", *bound], capture_output=True, text=True)
    if done.returncode == 1 and f"error[eval.kernel] {before}" not in done.stdout + done.stderr:  # made-up indices
        return f"{before.name}: chute's evaluator: {(done.stdout + done.stderr)[-300:]}"
    return None


def main():
    chute, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    before = {row["case"]: row for row in json.loads((folder / "report.json").read_text())}
    optimized = folder / "optimized"
    shutil.rmtree(optimized, ignore_errors=True)
    optimized.mkdir()
    files = sorted((folder / "work").glob("*.circle"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [w for w in pool.map(lambda f: one(chute, f, optimized / f.name), files) if w]
    with open(folder / "optimized.log", "w") as log:
        subprocess.run([sys.executable, SHARED / "check" / "circle_corpus.py", "--corpus", SHARED / "corpus" / "tico",
                        "--artifacts", optimized, "--only", *(f.stem for f in files), "--json",
                        folder / "optimized.json"], stdout=log, stderr=log)
    rows = json.loads((folder / "optimized.json").read_text())
    wrong += [f"{row['case']}: {row['why']}" for row in rows if before[row["case"]]["ok"] and not row["ok"]]
    counted = [row for row in rows if row.get("peer_ops") is not None]
    larger = [row for row in counted if row["ops"] > row["peer_ops"]]
    wrong += [f"{row['case']}: {row['ops']} operators, TICO has {row['peer_ops']}" for row in larger
              if row["case"] not in LARGER]
    ours, peer = (sum(row[key] for row in counted) for key in ("ops", "peer_ops"))
    share = 1 - len(larger) / len(counted)
    print(f"optimize: {len(counted) - len(larger)} of {len(counted)} cases ({share:.1%}) have no more operators than "
          f"TICO's files, {FEWER:.0%} needed; {ours} operators in all, TICO {peer}")
    if share < FEWER or ours >= peer:
        wrong.append("more operators than promised")
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
