"""ExecuTorch programs: read back by flatc with the schema, the delegated payload byte for byte, and by the executorch
package where that is installed."""
import json
import struct
import subprocess

import pytest
from conftest import ROOT, chute

EXAMPLE = ROOT / "examples" / "mobilenet_small" / "model.pt2"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pte")
    for name in ("m.pte", "m.tosa"):
        chute("convert", EXAMPLE, "-o", folder / name)
    return folder


def header(data):
    assert data[4:8] == b"ET12" and data[8:12] == b"eh00"
    length, program, base, payload = struct.unpack_from("<IQQQ", data, 12)
    assert length == 32 and base % 128 == 0 and base >= program and base + payload == len(data)
    return program, base


def test_the_payload_is_the_tosa_file(files):
    data = (files / "m.pte").read_bytes()
    _, base = header(data)
    assert data[base:] == (files / "m.tosa").read_bytes()


def test_flatc_reads_the_program(files):
    data = (files / "m.pte").read_bytes()
    program, _ = header(data)
    (files / "program.pte").write_bytes(data[:program])
    done = subprocess.run(["flatc", "--json", "--strict-json", "--raw-binary", "--defaults-json", "-o", files,
                           ROOT / "schema" / "executorch_program.fbs", "--", files / "program.pte"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    got = json.loads((files / "program.json").read_text())
    plan = got["execution_plan"][0]
    assert plan["name"] == "forward" and plan["inputs"] == [0] and plan["outputs"] == [1]
    call = plan["chains"][0]["instructions"][0]
    assert call["instr_args_type"] == "DelegateCall" and call["instr_args"]["args"] == [0, 1]
    delegate = plan["delegates"][0]
    assert delegate["id"] == "TOSABackend" and delegate["processed"] == {"location": "SEGMENT", "index": 1}
    specs = {s["key"]: bytes(s["value"]).decode() for s in delegate["compile_specs"]}
    assert specs["tosa_spec"] == "TOSA-1.0+FP" and specs["output_format"] == "tosa"
    tensor = plan["values"][0]["val"]
    assert tensor["scalar_type"] == "FLOAT" and tensor["dim_order"] == list(range(len(tensor["sizes"])))
    assert got["segments"][1]["size"] == (files / "m.tosa").stat().st_size


def test_same_bytes_every_time(files):
    chute("convert", EXAMPLE, "-o", files / "again.pte")
    assert (files / "again.pte").read_bytes() == (files / "m.pte").read_bytes()


def test_the_executorch_package_reads_it(files):
    serialize = pytest.importorskip("executorch.exir._serialize._program")
    read = serialize.deserialize_pte_binary((files / "m.pte").read_bytes())
    plan = getattr(read, "program", read).execution_plan[0]
    assert plan.name == "forward" and plan.delegates[0].id == "TOSABackend"


def test_executorchs_runtime_loads_it(files):
    """Its method and tensors are those of the report. The package brings no runtime of TOSA, and says just that."""
    runtime = pytest.importorskip("executorch.runtime")
    chute("convert", EXAMPLE, "-o", files / "m.pte", "--report", files / "note.json")
    face = json.loads((files / "note.json").read_text())["interface"]
    program = runtime.Runtime.get().load_program(str(files / "m.pte"), verification=runtime.Verification.InternalConsistency)
    assert program.method_names == {"forward"}
    about = program.metadata("forward")
    for sides, count, of in ((face["inputs"], about.num_inputs(), about.input_tensor_meta),
                             (face["outputs"], about.num_outputs(), about.output_tensor_meta)):
        assert [list(of(i).sizes()) for i in range(count)] == [side["shape"] for side in sides]
        assert all(of(i).dtype() == 6 for i in range(count)) and all(side["dtype"] == "float32" for side in sides)
    with pytest.raises(RuntimeError, match="0x:20"):  # DelegateInvalidCompatibility: no such backend
        program.load_method("forward")
