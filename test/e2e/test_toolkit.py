"""The tools on files: what they write is valid, and computes the same in a runtime that is not chute's."""
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import circle_features
import flatbuffers
import numpy as np
import oracles
import pytest
from circle_schema import circle
from conftest import CHUTE, ROOT, chute

EXAMPLES = ("mobilenet_small", "decoder_small")


def report(*arguments, **more):
    return json.loads(chute(*arguments, "--json", **more).stdout)


def read(path):
    return circle.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)


def write(model, path):
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    path.write_bytes(builder.Output())
    return path


def reference(path, values):
    outputs, why = oracles.apart(oracles.run_reference, str(path), values)
    assert outputs is not None, why
    return outputs


def tensor_names(path, ports):
    graph = read(path).subgraphs[0]
    return [graph.tensors[i].name.decode() for i in getattr(graph, ports)]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The examples as Circle files."""
    folder = tmp_path_factory.mktemp("toolkit")
    for name in EXAMPLES:
        chute("convert", ROOT / "examples" / name / "model.pt2", "-o", folder / f"{name}.circle")
    return folder


@pytest.fixture(scope="session")
def inputs():
    return {name: oracles.load(ROOT / "examples" / name / "inputs.npz", "in") for name in EXAMPLES}


# --- extract ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", EXAMPLES)
def test_extract_the_parts_compute_the_whole(name, files, inputs, tmp_path):
    """Cut in two, early and late: the second part on the first part's outputs gives the whole's."""
    whole = files / f"{name}.circle"
    count = len(read(whole).subgraphs[0].operators)
    want = reference(whole, inputs[name])
    for cut in (count // 4, count * 2 // 3):
        first, second = tmp_path / "first.circle", tmp_path / "second.circle"
        chute("extract", whole, "--ops", f"0-{cut - 1}", "-o", first)
        chute("extract", whole, "--ops", f"{cut}-{count - 1}", "-o", second)
        for part in (first, second):
            chute("verify", part)
        known = dict(zip(tensor_names(whole, "inputs"), inputs[name]))
        made = reference(first, [known[n] for n in tensor_names(first, "inputs")])
        known.update(zip(tensor_names(first, "outputs"), made))
        got = reference(second, [known[n] for n in tensor_names(second, "inputs")])
        known.update(zip(tensor_names(second, "outputs"), got))
        for tensor, expected in zip(tensor_names(whole, "outputs"), want):
            np.testing.assert_allclose(known[tensor], expected, rtol=1e-5, atol=1e-5)


def test_extract_everything_is_the_file(files, tmp_path):
    whole = files / "mobilenet_small.circle"
    count = len(read(whole).subgraphs[0].operators)
    made = report("extract", whole, "--ops", f"0-{count - 1}", "-o", tmp_path / "all.circle")
    assert made["operators"] == made["operators_before"] == count
    assert (tmp_path / "all.circle").read_bytes() == whole.read_bytes()


def test_extract_accepts_tico_s_selectors(files, tmp_path):
    whole = files / "decoder_small.circle"
    graph = read(whole).subgraphs[0]
    names = [graph.tensors[op.outputs[0]].name.decode() for op in graph.operators]
    a, b = names[2], names[8]
    chute("extract", whole, "--from-tensor", f"^{a}$", "--to-tensor", f"{b}", "--full-match", "-o", tmp_path / "a.circle")
    chute("extract", whole, "--from", a, "--to", b, "-o", tmp_path / "b.circle")
    assert (tmp_path / "a.circle").read_bytes() == (tmp_path / "b.circle").read_bytes()
    tico = pathlib.Path(sys.executable).with_name("tico-circle")
    subprocess.run([tico, "verify", str(tmp_path / "a.circle")], check=True, capture_output=True)


def test_extract_from_a_pt2_and_through_pipes(files, tmp_path):
    pt2 = ROOT / "examples" / "decoder_small" / "model.pt2"
    assert report("extract", pt2, "--ops", "3-6", "-o", tmp_path / "pt2.circle")["operators"] == 4
    chute("verify", tmp_path / "pt2.circle")
    chute("extract", files / "decoder_small.circle", "--ops", "3-6", "-o", tmp_path / "a.circle")
    with open(files / "decoder_small.circle", "rb") as stream:
        done = subprocess.run([CHUTE, "extract", "-", "--ops", "3-6", "-o", "-"], stdin=stream, capture_output=True)
    assert done.returncode == 0 and done.stdout == (tmp_path / "a.circle").read_bytes()
    assert b"4 of" in done.stderr


def test_extract_from_a_subgraph_by_index(files, inputs, tmp_path):
    """Entry points and subgraphs that operators call; the part computes what the whole file of it does."""
    one, two = files / "mobilenet_small.circle", files / "decoder_small.circle"
    chute("merge", one, two, "--mode", "signatures", "-o", tmp_path / "both.circle")
    assert len(read(tmp_path / "both.circle").subgraphs) == 2
    count = len(read(two).subgraphs[0].operators)
    chute("extract", tmp_path / "both.circle", "--subgraph", "1", "--ops", f"0-{count - 1}", "-o", tmp_path / "part.circle")
    chute("verify", tmp_path / "part.circle")
    assert len(read(tmp_path / "part.circle").subgraphs) == 1
    for g, w in zip(reference(tmp_path / "part.circle", inputs["decoder_small"]), reference(two, inputs["decoder_small"]), strict=True):
        np.testing.assert_array_equal(g, w)
    (tmp_path / "features.circle").write_bytes(circle_features.packed())
    features = circle_features.model()
    called = next(o.builtinOptions.bodySubgraphIndex for g in features.subgraphs for o in g.operators
                  if hasattr(o.builtinOptions, "bodySubgraphIndex"))
    made = report("extract", tmp_path / "features.circle", "--subgraph", str(called), "--ops", "0", "-o", tmp_path / "body.circle")
    assert made["operators_before"] == len(features.subgraphs[called].operators)
    chute("verify", tmp_path / "body.circle")
    done = chute("extract", two, "--subgraph", "1", "--ops", "0", "-o", tmp_path / "no.circle", "--json", expect=2)
    assert json.loads(done.stderr.splitlines()[0])["code"] == "circle.file.subgraph"
    chute("extract", tmp_path / "both.circle", "--subgraph", "1", "--signature", "x", "--ops", "0", "-o", tmp_path / "no.circle", expect=2)
    chute("extract", ROOT / "examples" / "decoder_small" / "model.pt2", "--subgraph", "1", "--ops", "0", "-o", tmp_path / "no.circle", expect=2)
    assert not (tmp_path / "no.circle").exists()


@pytest.mark.parametrize("arguments, code", [
    ((), "toolkit.select.none"), (("--ops", "9-3"), "toolkit.select.ops"), (("--ops", "100000"), "toolkit.select.ops"),
    (("--names", "no_such_*"), "toolkit.select.unmatched"), (("--regex", "--from", "("), "toolkit.pattern"),
    (("--module", "nowhere"), "toolkit.select.unmatched")])
def test_extract_says_what_is_wrong_with_a_selection(files, tmp_path, arguments, code):
    done = chute("extract", files / "decoder_small.circle", *arguments, "-o", tmp_path / "out.circle", "--json", expect=2)
    assert json.loads(done.stderr.splitlines()[0])["code"] == code
    assert not (tmp_path / "out.circle").exists()


# --- merge -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", EXAMPLES)
def test_merge_puts_the_parts_together_again(name, files, inputs, tmp_path):
    whole = files / f"{name}.circle"
    count = len(read(whole).subgraphs[0].operators)
    parts = []
    for first, last in ((0, count // 3), (count // 3 + 1, count // 2), (count // 2 + 1, count - 1)):
        parts.append(tmp_path / f"{first}.circle")
        chute("extract", whole, "--ops", f"{first}-{last}", "-o", parts[-1])
    made = report("merge", *parts, "-o", tmp_path / "whole.circle", "--share-inputs")
    assert made["connections"] and not made["renamed"]
    chute("verify", tmp_path / "whole.circle")
    assert report("diff", whole, tmp_path / "whole.circle")["same"] == count
    got = dict(zip(tensor_names(tmp_path / "whole.circle", "outputs"), reference(tmp_path / "whole.circle", inputs[name])))
    for tensor, want in zip(tensor_names(whole, "outputs"), reference(whole, inputs[name])):
        np.testing.assert_array_equal(got[tensor], want)


def test_merge_side_by_side_and_as_signatures(files, inputs, tmp_path):
    one, two = files / "mobilenet_small.circle", files / "decoder_small.circle"
    both = tmp_path / "both.circle"
    chute("merge", one, two, "--mode", "side-by-side", "-o", both)
    chute("verify", both)
    got = reference(both, inputs["mobilenet_small"] + inputs["decoder_small"])
    want = reference(one, inputs["mobilenet_small"]) + reference(two, inputs["decoder_small"])
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
    made = report("merge", one, two, one, "--mode", "signatures", "-o", tmp_path / "sig.circle")
    chute("verify", tmp_path / "sig.circle")
    model = read(tmp_path / "sig.circle")
    keys = [s.signatureKey.decode() for s in model.signatureDefs]
    assert keys == ["serving_default", "serving_default_1", "serving_default_2"] and len(made["renamed"]) == 2
    assert [s.subgraphIndex for s in model.signatureDefs] == [0, 1, 2]
    # What differs in a further subgraph is seen, too.
    assert report("diff", tmp_path / "sig.circle", tmp_path / "sig.circle")["equal"]
    chute("merge", one, one, one, "--mode", "signatures", "-o", tmp_path / "other.circle")
    assert any("subgraph" in d["what"] for d in report("diff", tmp_path / "sig.circle", tmp_path / "other.circle", expect=1)["interface"])
    sizes = [sum(len(b.data) for b in read(path).buffers if b.data is not None) for path in (one, two, tmp_path / "sig.circle")]
    assert sizes[2] <= sizes[0] + sizes[1], "equal weights are stored twice"
    chute("extract", tmp_path / "sig.circle", "--signature", "serving_default_1", "--ops", "0-5", "-o", tmp_path / "part.circle")
    chute("extract", two, "--ops", "0-5", "-o", tmp_path / "same.circle")
    assert report("diff", tmp_path / "part.circle", tmp_path / "same.circle", expect=1)["changes"] == []


def test_merge_says_what_does_not_fit(files, tmp_path):
    one, two, out = files / "mobilenet_small.circle", files / "decoder_small.circle", tmp_path / "out.circle"
    assert "toolkit.merge" in chute("merge", one, two, "-o", out, expect=2).stderr
    chute("merge", one, "-o", out, expect=2)
    chute("merge", one, two, "--connect", "nonsense", "-o", out, expect=2)
    chute("merge", one, two, "--connect", "no=where", "-o", out, expect=2)
    (tmp_path / "bad.circle").write_bytes(one.read_bytes()[:1000])
    chute("merge", one, tmp_path / "bad.circle", "-o", out, expect=4)
    assert not out.exists()


# --- cleanup ---------------------------------------------------------------------------------------------------------

def test_cleanup_drops_what_is_unused_and_keeps_values(files, inputs, tmp_path):
    model = read(files / "decoder_small.circle")
    graph = model.subgraphs[0]
    # Equal bytes under another name, a tensor and a code that nothing uses, an operator that nothing needs.
    op = graph.operators[-1]
    dead = circle.Operator.OperatorT()
    dead.opcodeIndex, dead.inputs, dead.builtinOptionsType, dead.builtinOptions = op.opcodeIndex, op.inputs, op.builtinOptionsType, op.builtinOptions
    spare = circle.Tensor.TensorT()
    like = graph.tensors[op.outputs[0]]
    spare.name, spare.shape, spare.type, spare.buffer = b"spare", like.shape, like.type, 0
    graph.tensors += [spare]
    dead.outputs = [len(graph.tensors) - 1]
    graph.operators.append(dead)
    unused = circle.Tensor.TensorT()
    unused.name, unused.shape, unused.type, unused.buffer = b"unused", [1], 0, 0
    graph.tensors.append(unused)
    extra = circle.Buffer.BufferT()
    extra.data = np.arange(64, dtype=np.uint8)
    model.buffers += [extra, extra]
    dirty = write(model, tmp_path / "dirty.circle")
    made = report("cleanup", dirty, "-o", tmp_path / "clean.circle")
    assert sum(made["dead_operators"].values()) == 1
    assert made["tensors"][0] - made["tensors"][1] >= 2
    assert made["buffers"][0] - made["buffers"][1] >= 2 and made["repeated_buffers"][1] == 0
    chute("verify", tmp_path / "clean.circle", "--warnings-as-errors")
    got = reference(tmp_path / "clean.circle", inputs["decoder_small"])
    for g, w in zip(got, reference(files / "decoder_small.circle", inputs["decoder_small"])):
        np.testing.assert_array_equal(g, w)
    again = report("cleanup", tmp_path / "clean.circle", "-o", tmp_path / "twice.circle")
    assert not again["dead_operators"] and (tmp_path / "twice.circle").read_bytes() == (tmp_path / "clean.circle").read_bytes()


def test_A43_custom_operators_keep_their_identity(tmp_path):
    """Three custom operators, two of one code with other options: codes, options and outputs stay one to one."""
    text = """graph @main(%x: f32[4]) -> ("a": f32[4], "b": f32[4], "c": f32[4]) {
  %a = circle.custom(%x) {custom_code = "One", custom_options = "first"} : f32[4]
  %b = circle.custom(%x) {custom_code = "Two", custom_options = "second"} : f32[4]
  %c = circle.custom(%x) {custom_code = "One", custom_options = "third"} : f32[4]
  return %a, %b, %c
}"""
    (tmp_path / "m.ir").write_text(text)
    chute("extract", tmp_path / "m.ir", "--ops", "0-2", "-o", tmp_path / "m.circle")
    chute("cleanup", tmp_path / "m.circle", "-o", tmp_path / "c.circle")
    for path in (tmp_path / "m.circle", tmp_path / "c.circle"):
        model = read(path)
        codes = [model.operatorCodes[op.opcodeIndex].customCode for op in model.subgraphs[0].operators]
        assert codes == [b"One", b"Two", b"One"]
        assert [bytes(op.customOptions) for op in model.subgraphs[0].operators] == [b"first", b"second", b"third"]
        assert len(model.subgraphs[0].outputs) == 3 and len(model.subgraphs[0].tensors) == 4


# --- diff and compare ------------------------------------------------------------------------------------------------

def edited(files, tmp_path, change):
    model = read(files / "mobilenet_small.circle")
    change(model)
    return write(model, tmp_path / "edited.circle")


def test_diff_ignores_names_order_and_packing(files, tmp_path):
    """The schema's own writer packs differently, and every tensor gets another name."""
    def rename(model):
        for i, tensor in enumerate(model.subgraphs[0].tensors):
            if i not in (*model.subgraphs[0].inputs, *model.subgraphs[0].outputs):
                tensor.name = b"t%d" % i
        model.subgraphs[0].tensors.append(model.subgraphs[0].tensors[0])
    made = report("diff", files / "mobilenet_small.circle", edited(files, tmp_path, rename))
    assert made["equal"] and made["same"] == made["operators_before"]


def test_diff_names_one_changed_option_weight_and_operator(files, tmp_path):
    before = files / "mobilenet_small.circle"
    count = len(read(before).subgraphs[0].operators)

    def option(model):
        op = next(o for o in model.subgraphs[0].operators[count // 2:] if hasattr(o.builtinOptions, "fusedActivationFunction"))
        op.builtinOptions.fusedActivationFunction = 0 if op.builtinOptions.fusedActivationFunction else 1
    made = report("diff", before, edited(files, tmp_path, option), expect=1)
    assert [c["kind"] for c in made["changes"]] == ["changed"] and made["same"] == count - 1
    assert made["changes"][0]["details"][0]["what"] == "attribute fused_activation_function"

    def weight(model):
        buffer = max(model.buffers, key=lambda b: 0 if b.data is None else len(b.data))
        data = buffer.data.copy()
        data[:4] = np.frombuffer((data[:4].view(np.float32) + 1).tobytes(), np.uint8)
        buffer.data = data
    made = report("diff", before, edited(files, tmp_path, weight), expect=1)
    assert not made["changes"] and len(made["constants"]) == 1
    assert made["constants"][0]["differing"] == 1 and abs(made["constants"][0]["max_abs"] - 1) < 1e-6

    chute("extract", before, "--ops", f"0-{count - 2}", "-o", tmp_path / "short.circle")
    made = report("diff", before, tmp_path / "short.circle", expect=1)
    assert made["removed"] == 1 and made["added"] == 0 and made["interface"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_compare_a_program_with_its_circle_file(name, files):
    folder = ROOT / "examples" / name
    made = report("compare", folder / "model.pt2", files / f"{name}.circle", "--inputs", folder / "inputs.npz", "--layers")
    assert made["within"] and made["first_parting"] is None and made["layers"]


def test_compare_names_the_first_layer_that_parts(files, tmp_path):
    graph = read(files / "mobilenet_small.circle").subgraphs[0]
    middle = next(i for i, op in enumerate(graph.operators) if i > 40 and op.builtinOptionsType == 1)  # Conv2DOptions

    def weight(model):
        tensor = model.subgraphs[0].tensors[model.subgraphs[0].operators[middle].inputs[1]]
        model.buffers[tensor.buffer].data = np.frombuffer((model.buffers[tensor.buffer].data.view(np.float32) * 1.5).tobytes(), np.uint8)
    other = edited(files, tmp_path, weight)
    made = report("compare", files / "mobilenet_small.circle", other, "--random", "5", "--layers", expect=1)
    first = made["layers"][made["first_parting"]]
    assert first["name"] == graph.tensors[graph.operators[middle].outputs[0]].name.decode()
    # The same verdict from a runtime that is not chute's: the outputs do part.
    values = [np.random.default_rng(0).random(shape, np.float32) for _, _, shape in oracles.circle_inputs(other)]
    assert not np.allclose(reference(files / "mobilenet_small.circle", values)[0], reference(other, values)[0], 1e-4, 1e-5)


def test_bisect_names_the_first_rewrite_that_changes_a_bit():
    model = ROOT / "examples" / "mobilenet_small" / "model.pt2"
    made = report("compare", model, "--bisect", "--atol", "0", "--rtol", "0", expect=1)
    assert made["pass"] and made["rule"] and made["application"] >= 1 and made["change"]
    assert not report("compare", model, "--bisect")["found"]


# --- plan ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("more", [(), ("--in-place",), ("--no-alias", "--alignment", "16")])
def test_plan_holds(name, more, files, tmp_path):
    """Lives recomputed from the file by other code; tensors that live together do not overlap."""
    made = report("plan", files / f"{name}.circle", "--svg", tmp_path / "plan.svg", *more)
    tensors, align = made["tensors"], int(more[-1]) if "--alignment" in more else 64
    assert made["lower_bound"] <= made["arena"] <= made["total"]
    assert made["arena"] <= 1.1 * made["lower_bound"]
    assert max(made["live"]) == made["lower_bound"] == made["live"][made["peak_step"]]
    for step, live in enumerate(made["live"]):
        now = [t for t in tensors if t["first"] <= step <= t["last"] and t["aligned"]]
        assert sum(t["aligned"] for t in now) == live
        ends = 0
        for t in sorted(now, key=lambda t: t["offset"]):
            assert t["offset"] >= ends and t["offset"] % align == 0
            ends = t["offset"] + t["aligned"]
    if "--no-alias" in more:
        graph = read(files / f"{name}.circle").subgraphs[0]
        last, first = {}, {t: 0 for t in graph.inputs}
        for step, op in enumerate(graph.operators):
            first.update({t: step for t in op.outputs})
            last.update({t: step for t in (*op.inputs, *op.outputs)})
        last.update({t: len(graph.operators) - 1 for t in graph.outputs})
        want = {graph.tensors[t].name.decode(): (first[t], last[t]) for t in first}
        assert {t["name"]: (t["first"], t["last"]) for t in tensors} == want
    root = xml.etree.ElementTree.parse(tmp_path / "plan.svg").getroot()
    assert root.tag.endswith("svg") and len(root.findall(".//{*}title")) == sum(t["aligned"] > 0 for t in tensors)


def test_plan_to_standard_output_is_the_picture_alone(files):
    done = chute("plan", files / "decoder_small.circle", "--svg", "-")
    assert done.stdout.startswith("<svg ") and done.stdout.endswith("</svg>\n")
    chute("plan", files / "decoder_small.circle", "--alignment", "3", expect=2)


def test_plan_of_another_order(tmp_path):
    """Branches whose order decides how much lives at a time: -O2 takes what `plan` promises, and the values stay."""
    rows = ['graph @m(%x: f32[1,256]) -> ("y": f32[1,256]) {', "  %axis = core.constant dense<[0]> : i32[1]"]
    wide = [f"w{i}" for i in range(6)]
    rows += [f"  %{w} = circle.concatenation(%x, %x, %x) {{axis = 0}}\n  %e{w} = circle.{f}(%{w})"
             for w, f in zip(wide, ("exp", "tanh", "sin", "cos", "abs", "logistic"))]
    rows += [f"  %s{w} = circle.sum(%e{w}, %axis) {{keep_dims = true}}" for w in wide]
    last = f"s{wide[0]}"
    for w in wide[1:]:
        rows.append(f"  %a{w} = circle.add(%{last}, %s{w})")
        last = f"a{w}"
    (tmp_path / "m.ir").write_text("\n".join(rows) + f"\n  return %{last}\n}}\n")
    chute("optimize", tmp_path / "m.ir", "-O0", "-o", tmp_path / "m.circle")
    chute("optimize", tmp_path / "m.circle", "-p", "order-for-memory", "-o", tmp_path / "o.circle")
    before, after = report("plan", tmp_path / "m.circle"), report("plan", tmp_path / "o.circle")
    assert before["reordered"]["better"] and not after["reordered"]["better"]
    assert after["lower_bound"] == before["reordered"]["lower_bound"] < before["lower_bound"] / 2
    assert before["order_bound"] <= after["lower_bound"] and "reordered" in chute("plan", tmp_path / "m.circle").stdout
    x = [np.random.default_rng(0).standard_normal((1, 256), np.float32)]
    for g, w in zip(reference(tmp_path / "o.circle", x), reference(tmp_path / "m.circle", x), strict=True):
        np.testing.assert_array_equal(g, w)


# --- reduce ----------------------------------------------------------------------------------------------------------

def test_reduce_to_the_operator_that_the_command_looks_for(files, tmp_path):
    look = f"{CHUTE} inspect {{}} --ir | grep -q circle.softmax"
    made = report("reduce", files / "decoder_small.circle", "--test", look, "-o", tmp_path / "small.circle")
    assert made["after"]["operators"] == 1 and made["after"]["bytes"] < 2000 and made["tests"] < 100
    assert made["after"]["elements"] <= 2 < made["before"]["elements"]
    chute("verify", tmp_path / "small.circle")
    assert not list(tmp_path.glob("*candidate*"))
    again = tmp_path / "again.circle"
    chute("reduce", files / "decoder_small.circle", "--test", look, "-o", again)
    assert again.read_bytes() == (tmp_path / "small.circle").read_bytes()


def test_reduce_a_difference_between_runtimes(files, tmp_path):
    """The test is a program of its own: it runs tico's interpreter, and looks for a negative number in an output."""
    script = tmp_path / "negative.py"
    script.write_text(f"""import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import numpy as np, oracles
values = [np.full(shape, 1, kind) for _, kind, shape in oracles.circle_inputs(sys.argv[1])]
sys.exit(not any((o < 0).any() for o in oracles.run_reference(sys.argv[1], values)))
""")
    made = report("reduce", files / "mobilenet_small.circle", "--test", f"{sys.executable} {script}", "--most-tests", "6",
                  "-o", tmp_path / "small.circle", timeout=300)
    assert made["after"]["operators"] < made["before"]["operators"] // 2
    subprocess.run([sys.executable, script, tmp_path / "small.circle"], check=True)


def test_reduce_says_why_it_can_not(files, tmp_path):
    small, model = tmp_path / "small.circle", files / "decoder_small.circle"
    assert "toolkit.reduce.test" in chute("reduce", model, "--test", "false", "-o", small, expect=1).stderr
    # A command that never ends says no.
    chute("reduce", model, "--test", "sleep 100; true", "--timeout", "1", "-o", small, expect=1)
    chute("reduce", model, "--test", "kill -9 $$; true", "-o", small, expect=1)
    chute("reduce", model, "--test", "true", "-o", "-", expect=2)
    chute("reduce", ROOT / "examples" / "decoder_small" / "model.pt2", "--test", "true", "-o", small, expect=2)
    assert not small.exists()


# --- every tool ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("verb", ["extract", "cleanup", "reduce"])
def test_bad_input_is_an_error_without_output(files, tmp_path, verb):
    more = {"extract": ("--ops", "0"), "reduce": ("--test", "true")}.get(verb, ())
    data = (files / "decoder_small.circle").read_bytes()
    for bad in (b"", b"garbage", data[:100], data[:len(data) // 2], data[:8] + bytes(len(data) - 8)):
        (tmp_path / "bad.circle").write_bytes(bad)
        chute(verb, tmp_path / "bad.circle", *more, "-o", tmp_path / "out.circle", expect=4)
        assert not (tmp_path / "out.circle").exists()
    chute(verb, tmp_path / "missing.circle", *more, "-o", tmp_path / "out.circle", expect=4)
    chute(verb, files / "decoder_small.circle", *more, "-o", tmp_path / "no" / "folder" / "out.circle", expect=5)


@pytest.mark.parametrize("verb", ["diff", "compare"])
def test_bad_input_of_two_is_an_error(files, tmp_path, verb):
    good, data = files / "decoder_small.circle", (files / "decoder_small.circle").read_bytes()
    for bad in (b"", b"garbage", data[:100], data[:8] + bytes(len(data) - 8)):
        (tmp_path / "bad.circle").write_bytes(bad)
        chute(verb, tmp_path / "bad.circle", good, expect=4)
        chute(verb, good, tmp_path / "bad.circle", expect=4)
    assert "inputs]" in chute("compare", good, files / "mobilenet_small.circle", expect=2).stderr


@pytest.mark.parametrize("arguments", [("compare", "a"), ("compare", "a", "b", "--bisect"), ("compare", "a", "b", "--atol", "x"),
                                       ("compare", "a", "b", "--atol", "-1"), ("diff", "a")])
def test_usage_errors(arguments):
    chute(*arguments, expect=2)
