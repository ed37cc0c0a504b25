"""What `verify` looks at grows as the file does, and contracts are computed once per kind of operator."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))


def chain(path, blocks):
    """Blocks of layers with weights of their own, as text, then as a file."""
    rows = ["graph @chain(%v0: f32[4,8]) -> (\"y\": f32[4,8]) {"]
    for i in range(blocks):
        w = [[((i + r * c) % 97 - 3) / 8 for c in range(8)] for r in range(8)]
        rows += [f"  %w{i} = core.constant dense<{w}> : f32[8,8]",
                 f"  %p{i} = core.constant dense<[1, 0]> : i32[2]",
                 f"  %a{i} = circle.fully_connected(%v{i}, %w{i}, none) {{keep_num_dims = true}} : f32[4,8]",
                 f"  %t{i} = circle.transpose(%a{i}, %p{i}) : f32[8,4]",
                 f"  %s{i} = circle.softmax(%t{i}) {{beta = 1.0}} : f32[8,4]",
                 f"  %v{i + 1} = circle.transpose(%s{i}, %p{i}) : f32[4,8]"]
    path.write_text("\n".join(rows) + f"\n  return %v{blocks}\n}}\n")
    out = path.with_suffix(".circle")
    subprocess.run([CHUTE, "optimize", path, "-O0", "-o", out], check=True, capture_output=True)
    return out


def work(path):
    done = subprocess.run([CHUTE, "verify", path, "--stats", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    return json.loads(done.stderr)


def test_work_follows_size(tmp_path):
    small, large, larger = (work(chain(tmp_path / f"{n}.ir", n)) for n in (100, 200, 400))
    for counter in ("tensors", "operators", "operands"):
        assert small[counter] < large[counter] < 2.05 * small[counter] + 16
        assert large[counter] < larger[counter] < 2.05 * large[counter] + 16
    assert small["contracts"] == large["contracts"] == larger["contracts"] == 4


def test_every_wrong_operator_is_named(tmp_path):
    """Kinds that fail are looked at operator by operator."""
    import flatbuffers
    from circle_schema import circle as schema
    path = chain(tmp_path / "chain.ir", 50)
    model = schema.Model.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    codes = schema.BuiltinOperator.BuiltinOperator
    wrong = [i for i, op in enumerate(model.subgraphs[0].operators)
             if model.operatorCodes[op.opcodeIndex].builtinCode == codes.SOFTMAX]
    for i in wrong:
        model.subgraphs[0].tensors[model.subgraphs[0].operators[i].outputs[0]].shape = [4, 8]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    path.write_bytes(bytes(builder.Output()))
    done = subprocess.run([CHUTE, "verify", path, "--json"], capture_output=True, text=True)
    assert done.returncode == 1
    named = [json.loads(line)["object"] for line in done.stderr.splitlines() if "circle.operator.contract" in line]
    assert {f"model.subgraphs[0].operators[{i}].outputs[0]" for i in wrong} <= set(named)
