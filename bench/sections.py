"""One function a section of the report: runs its workloads and returns Markdown."""
import json
import pathlib
import subprocess

from measure import best, run
from report import exponent, extrapolate, plot, seconds, table
from workloads import NODES_PER_BLOCK, ROOT, WORK, Missing, attention, circle_chain, count_nodes

TITLES = {"convert": "From `.pt2` to Circle: the quantized attention stack", "toolkit": "Circle toolkit",
          "tosa": "From `.pt2` to TOSA: the attention stack"}
BLOCKS = (1, 4, 16, 64, 470, 3757)
OPERATORS = (1_000, 10_000, 100_000, 800_000)
# The attention stack in three forms: chute's profile for it, and the Arm backend's (None: it takes no fake quantization).
TOSA_STACKS = (("float", "fp", "FP"), ("fake16", "int+fp", None), ("int8", "int+fp", "INT+FP"))
TOSA_BLOCKS = (1, 2, 4, 8, 16, 24, 32, 64, 470)
LONGEST_ARCHIVE = 100_000  # operators of one converted archive, which has 2 kB for each


def say(text):
    print(f"bench:   {text}", flush=True)


class Peer:
    """A slower program: runs while it keeps within the limit, and is extrapolated afterwards."""

    def __init__(self, args):
        self.limit, self.on, self.points, self.why = args.limit, not args.no_peers, [], ""

    def run(self, size, command, env=None):
        """Seconds at that size and whether they are fitted; (None, False) when nothing is known."""
        if self.on:
            cost = best(command, 1 if self.points and self.points[-1][1] > 5 else 2, self.limit, env)
            if cost.finished:
                self.points.append((size, cost.wall))
                return cost.wall, False
            self.on, self.why = False, cost.error
            say(f"{pathlib.Path(command[0]).name}: {cost.error}")
        return (extrapolate(self.points, size), True) if len(self.points) > 1 else (None, False)


def cell(value, fitted):
    return "–" if value is None else seconds(value) + (" (fitted)" if fitted else "")


def ratio(a, b):
    return "–" if not a or not b else f"{a / b:.3g}x"


def growth(points):
    slope = exponent(points)
    return "–" if slope is None else f"{slope:.2f}"


def save_plot(out, name, text):
    path = out.with_name(f"{out.stem}-{name}.svg")
    path.write_text(text)
    return f"![{name}]({path.name})\n"


def mlir_of_size(args, operators):
    """A TOSA-dialect MLIR text of about that many operators, written by chute; None when it cannot."""
    sample = attention(1, "float")
    one = WORK / "one.mlir"
    if run([args.chute, "convert", sample, "-o", one, "-q"]).error:
        return None
    per_block = max(1, one.read_text().count("tosa."))
    path = WORK / f"tosa_{operators}.mlir"
    if not path.exists():
        source = attention(max(1, round(operators / per_block)), "float")
        if run([args.chute, "convert", source, "-o", path, "-q"]).error:
            return None
    return path


def convert(args, out):
    bare = ROOT / "build" / "bench" / "bare_read"
    if not bare.exists():
        raise Missing("build/bench/bare_read is not built; `make bench` does")
    tico, mlir = Peer(args), Peer(args)
    mlir.on = mlir.on and args.mlir_opt is not None
    rows, ours, theirs, fitted, walls = [], [], [], [], []
    for blocks in BLOCKS:
        nodes = blocks * NODES_PER_BLOCK
        if nodes > args.largest:
            continue
        model, target = attention(blocks), WORK / "out.circle"
        say(f"convert, {nodes} nodes")
        one = best([args.chute, "convert", model, "-o", target, "-q", "--threads", "1"], args.repeat)
        two = best([args.chute, "convert", model, "-o", target, "-q"], args.repeat)
        check = best([args.chute, "verify", target], 1)
        floor = best([bare, model], args.repeat)
        for cost in (one, two, check, floor):
            if not cost.finished:
                return f"## {TITLES['convert']}\n\nFailed at {nodes} nodes: {cost.error}.\n"
        peer, is_fitted = tico.run(nodes, [f"{args.venv}/bin/pt2-to-circle", "-i", model, "-o", WORK / "tico.circle"])
        graph = mlir_of_size(args, nodes) if mlir.on else None
        other, other_fitted = mlir.run(nodes, [args.mlir_opt, "--canonicalize", "--cse", graph, "-o", "/dev/null"]) \
            if graph else (None, False)
        ours.append((nodes, two.wall))
        walls.append((nodes, one.user))
        if peer:
            (fitted if is_fitted else theirs).append((nodes, peer))
        rows.append((f"{nodes:,}", seconds(two.wall), seconds(one.user), f"{two.peak_mib:.0f} MiB",
                     f"{model.stat().st_size / 2**20:.1f} MiB", seconds(check.wall), cell(peer, is_fitted),
                     ratio(peer, two.wall), cell(other, other_fitted), seconds(floor.user),
                     ratio(one.user, floor.user)))
    text = [f"## {TITLES['convert']}\n",
            table(("nodes", "chute", "user, 1 thread", "peak memory", "input", "`chute verify`", "TICO 0.3.0",
                   "TICO / chute", "mlir-opt-19", "bare reading, user", "chute / bare, user"), rows),
            f"Growth exponents over these sizes: chute {growth(ours)} (wall), {growth(walls)} (user); TICO "
            f"{growth(theirs)} where it was run{'; ' + tico.why if tico.why else ''}. TICO converts; its start-up is "
            "part of it, as chute's is. mlir-opt parses, canonicalizes and CSEs a TOSA-dialect graph of as many "
            "operators that chute wrote as text. Bare reading parses the archive's JSON with simdjson and reads every "
            "weight byte.\n",
            save_plot(out, "convert", plot("From .pt2 to Circle", {
                "chute": {"points": ours}, "TICO 0.3.0": {"points": theirs, "fitted": fitted},
                "mlir-opt-19": {"points": mlir.points}}, "nodes", "wall time"))]
    return "\n".join(text)


def attention_circle(args, operators):
    """The quantized attention stack as chute writes it, of about that many operators."""
    path = WORK / f"attention_{operators}.circle"
    if path.exists():
        return path
    if operators > LONGEST_ARCHIVE:  # copies of a shorter one, one behind the other
        part = attention_circle(args, LONGEST_ARCHIVE)
        run([args.chute, "merge", *[part] * -(-operators // LONGEST_ARCHIVE), "-o", path, "-q"])
        return path
    one, floats = WORK / "one.circle", ["--set", "quant_io=float"]
    run([args.chute, "convert", attention(1), "-o", one, "-q", *floats])
    told = subprocess.run([args.chute, "inspect", one, "--json"], capture_output=True, text=True, check=True).stdout
    count = json.loads(told)["operators"]
    run([args.chute, "convert", attention(max(1, -(-operators // count))), "-o", path, "-q", *floats])
    return path


def toolkit(args, out):
    rows, series = [], {}
    for kind in ("clean", "redundant", "attention"):
        peers = {verb: Peer(args) for verb in ("verify", "optimize")}
        for operators in OPERATORS:
            if operators > args.largest:
                continue
            target = WORK / "out.circle"
            model = attention_circle(args, operators) if kind == "attention" else circle_chain(operators, kind, args.chute)
            say(f"toolkit, {kind}, {operators} operators")
            commands = {"verify": [args.chute, "verify", model], "inspect": [args.chute, "inspect", model],
                        "extract": [args.chute, "extract", model, "--ops", f"10:{operators // 2}", "-o", target],
                        "optimize": [args.chute, "optimize", model, "-O1", "-o", target]}
            costs = {verb: best(command, args.repeat) for verb, command in commands.items()}
            for verb, cost in costs.items():
                if not cost.finished:
                    return f"## {TITLES['toolkit']}\n\n`chute {verb}` failed on {operators} operators: {cost.error}.\n"
                series.setdefault(f"{verb}, {kind}", {"points": []})["points"].append((operators, cost.wall))
            peer = {verb: peers[verb].run(operators, [f"{args.venv}/bin/tico-circle", verb, model,
                                                      *(["-o", WORK / "tico.circle"] if verb == "optimize" else [])])
                    for verb in peers}
            rows.append((kind, f"{operators:,}", *(seconds(costs[verb].wall) for verb in commands),
                         f"{costs['optimize'].peak_mib:.0f} MiB", cell(*peer["verify"]), cell(*peer["optimize"]),
                         ratio(peer["optimize"][0], costs["optimize"].wall)))
    slopes = ", ".join(f"{name} {growth(s['points'])}" for name, s in series.items())
    return "\n".join([f"## {TITLES['toolkit']}\n",
                      table(("file", "operators", "verify", "inspect", "extract half", "optimize -O1", "its memory",
                             "tico-circle verify", "tico-circle optimize", "TICO / chute, optimize"), rows),
                      f"Growth exponents: {slopes}.\n",
                      save_plot(out, "toolkit", plot("Circle toolkit", series, "operators", "wall time"))])


def tosa(args, out):
    rows, series, ends = [], {}, []
    python = pathlib.Path(args.arm_venv, "bin", "python")
    for kind, profile, theirs in TOSA_STACKS:
        arm, ours = Peer(args), []
        arm.on = arm.on and theirs is not None and python.exists()
        for blocks in TOSA_BLOCKS:
            if blocks * NODES_PER_BLOCK > args.largest:
                continue
            try:
                model = attention(blocks, kind, python)
            except Missing as missing:
                rows.append((kind, str(blocks), str(missing), *["–"] * 4))
                break
            nodes = count_nodes(model)
            say(f"tosa, {kind}, {nodes} nodes")
            cost = best([args.chute, "convert", model, "-o", WORK / "out.tosa", "--profile", profile, "-q"], args.repeat)
            if not cost.finished:
                rows.append((kind, f"{nodes:,}", cost.error, *["–"] * 4))
                break
            peer, fitted = arm.run(nodes, [python, ROOT / "bench" / "arm_backend.py", model, theirs])
            ours.append((nodes, cost.wall))
            rows.append((kind, str(blocks), f"{nodes:,}", seconds(cost.wall), f"{cost.peak_mib:.0f} MiB",
                         cell(peer, fitted), ratio(peer, cost.wall)))
        series[f"chute, {kind}"] = {"points": ours}
        if arm.points:
            size, took = arm.points[-1]
            ends.append(f"{kind}, {size:,} nodes in {seconds(took)}: {ratio(took, dict(ours)[size])}")
            series[f"Arm backend, {kind}"] = {"points": arm.points}
    text = [f"## {TITLES['tosa']}\n",
            table(("model", "blocks", "nodes", "chute", "peak memory", "ExecuTorch Arm backend", "Arm backend / chute"), rows),
            "Growth exponents: " + ", ".join(f"{name} {growth(s['points'])}" for name, s in series.items()) + ".\n"]
    if ends:
        text.append(f"The largest sizes that the Arm backend finished in {args.limit:.0f} s of processor time: "
                    f"{'; '.join(ends)}. Its time is `to_edge_transform_and_lower` of a saved program with the start of "
                    "Python, as chute's holds its own start. `float`: the shared stack without its fake quantization; `fake16`: as "
                    "it is, which the Arm backend does not take; `int8`: what ExecuTorch's quantizer makes of one "
                    "block, stacked.\n")
    return "\n".join([*text, save_plot(out, "tosa", plot("From .pt2 to TOSA", series, "nodes", "wall time"))])


ALL = {"convert": convert, "toolkit": toolkit, "tosa": tosa}
