"""The files that the benchmarks read, made once under build/bench/work."""
import json
import pathlib
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "bench"
WORK = ROOT / "build" / "bench" / "work"

NODES_PER_BLOCK = 213
LONGEST_CHAIN = 100_000  # operators


class Missing(Exception):
    """A workload whose generator is not there."""


def generator(name):
    path = SHARED / name
    if not path.exists():
        raise Missing(f"{name} is not beside this checkout (../shared/bench)")
    return path


def without_fake_quantize(source, target):
    """The float form of an archive: every fake-quantize node gives way to its operand."""
    names = {}

    def rename(node):
        if isinstance(node, list):
            for child in node:
                rename(child)
        elif isinstance(node, dict):
            if isinstance(node.get("name"), str) and "arg" not in node:
                node["name"] = names.get(node["name"], node["name"])
            for child in node.values():
                rename(child)

    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("models/model.json"):
                program = json.loads(data)
                graph, nodes = program["graph_module"]["graph"], []
                for node in graph["nodes"]:
                    rename(node["inputs"])
                    if "fake_quantize" in node["target"]:
                        result = node["outputs"][0]["as_tensor"]["name"]
                        names[result] = node["inputs"][0]["arg"]["as_tensor"]["name"]
                        graph["tensor_values"].pop(result, None)
                    else:
                        nodes.append(node)
                graph["nodes"] = nodes
                rename(graph["outputs"])
                rename(program["graph_module"]["signature"])
                data = json.dumps(program).encode()
            new.writestr(item, data)


def float_template():
    path = WORK / "float_template.pt2"
    if not path.exists():
        without_fake_quantize(generator("block_fq16.pt2"), path)
    return path


def int8_template(arm_python):
    """One block as ExecuTorch's Arm quantizer makes it, with quantize and dequantize operators."""
    path = WORK / "int8_template.pt2"
    if not path.exists():
        if not pathlib.Path(arm_python).exists():
            raise Missing("ExecuTorch is not installed; `tools/bootstrap --arm` does")
        part = path.with_suffix(".part")
        subprocess.run([arm_python, ROOT / "bench" / "arm_quantize.py", float_template(), part], check=True,
                       capture_output=True)
        part.rename(path)
    return path


def attention(blocks, kind="fake16", arm_python=None):
    """The attention stack of that many blocks as a `.pt2`: `fake16` (16-bit fake quantization, 213 nodes a block), `float`,
    or `int8` (by ExecuTorch's quantizer, which `arm_python` must have)."""
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / f"{kind}_{blocks}.pt2"
    if path.exists():
        return path
    template = (generator("block_fq16.pt2") if kind == "fake16" else float_template() if kind == "float"
                else int8_template(arm_python))
    part = path.with_suffix(".part")
    subprocess.run([sys.executable, generator("tile_pt2.py"), template, str(blocks), part], check=True,
                   stdout=subprocess.DEVNULL)
    part.rename(path)
    return path


def count_nodes(model):
    """Operators of a `.pt2`."""
    with zipfile.ZipFile(model) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        return len(json.loads(archive.read(name))["graph_module"]["graph"]["nodes"])


def circle_chain(operators, kind, chute):
    """A Circle file of attention-like blocks: `clean`, or `redundant` with work in every block. The generator takes hours for
    the longest, which is several of 100,000 operators, each behind the one before."""
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / f"chain_{kind}_{operators}.circle"
    if path.exists():
        return path
    part = path.with_suffix(".part.circle")
    if operators > LONGEST_CHAIN:
        piece = circle_chain(LONGEST_CHAIN, kind, chute)
        subprocess.run([chute, "merge", *[piece] * (operators // LONGEST_CHAIN), "-o", part], check=True, capture_output=True)
        part.rename(path)
        return path
    extra = ["--dirt", "1", "--no-share"] if kind == "redundant" else []
    subprocess.run([sys.executable, generator("make_circle_chain.py"), "--ops", str(operators), *extra, "-o", part],
                   check=True, stdout=subprocess.DEVNULL)
    part.rename(path)
    return path
