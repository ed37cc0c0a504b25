"""Vela behind `--target`: a stand-in for the program checks what it is given and what becomes of its files; the real one
(PyPI: ethos-u-vela) runs where it is installed."""
import json
import os
import shutil
import stat
import struct
import textwrap

import numpy as np
import pytest
import torch
from conftest import chute
from test_tosa_int import Layer, X
from torch.nn import functional as F

STAND_IN = """\
#!{python}
import pathlib, sys
import numpy as np
out = pathlib.Path(next(a for a in sys.argv if a.startswith("--output-dir=")).split("=", 1)[1])
model = pathlib.Path(sys.argv[-1])
assert model.read_bytes()[4:8] == b"TOSA"
assert "--accelerator-config=ethos-u55-128" in sys.argv and "--memory-mode=Shared_Sram" in sys.argv
if "{fail}":
    print("first line"); print("{fail}"); sys.exit(1)
(out / "network_per-layer.csv").write_text("Original Operator,NNG Operator,Target,Op Cycles,MAC Count,Util% (MAC),Name\\n"
                                           "Conv2D,Conv2D,NPU,256,432,1.5,conv2d\\n")
(out / "network_summary_x.csv").write_text("network,cycles_total,sram_memory_used\\nnetwork,960,0.25\\n")
np.savez(out / "network_vela.npz", cmd_data=b"COP1abc", weight_data=b"www", scratch_size=np.int64(288),
         input_shape=np.array([[1, 1, 1, 3, 8, 8]]), input_elem_size=np.array([1]), input_offset=np.array([128]),
         input_region=np.array([1]), output_shape=np.array([[1, 1, 1, 8, 8, 8]]), output_elem_size=np.array([1]),
         output_offset=np.array([16]), output_region=np.array([1]), extra=np.array([{{}}], dtype=object))
"""


@pytest.fixture
def model(tmp_path):
    torch.manual_seed(0)
    layer = Layer((8, 3, 3, 3), lambda x, w, b: F.conv2d(x, w, b, padding=1)).eval()
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(layer, (X(1, 3, 8, 8),)), str(path))
    return path


def stand_in(folder, fail=""):
    import sys
    path = folder / "vela"
    path.write_text(textwrap.dedent(STAND_IN).format(python=sys.executable, fail=fail))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "CHUTE_VELA": str(path)}


def blocks(stream):
    at = 0
    while at < len(stream):
        name, size = struct.unpack_from("<16sI", stream, at)
        yield name.rstrip(b"\0").decode(), stream[at + 32:at + 32 + size]
        at += 32 + (size + 15) // 16 * 16


def payload(path):
    data = path.read_bytes()
    _, _, base, size = struct.unpack_from("<IQQQ", data, 12)
    return data[base:base + size]


def test_the_program_holds_velas_blocks_and_the_report_its_figures(model, tmp_path):
    out, note = tmp_path / "m.pte", tmp_path / "m.json"
    chute("convert", model, "-o", out, "--target", "ethos-u55-128", "--report", note, env=stand_in(tmp_path))
    got = dict(blocks(payload(out)))
    assert list(got) == ["vela_bin_stream", "cmd_data", "weight_data", "scratch_size", "inputs", "outputs", "vela_end_stream"]
    assert got["cmd_data"] == b"COP1abc" and got["scratch_size"] == struct.pack("<I", 288)
    assert got["inputs"] == struct.pack("<10i", 1, 1, 1, 1, 3, 8, 8, 1, 128, 1)
    report = json.loads(note.read_text())["accelerator"]
    assert report["totals"]["cycles_total"] == 960
    layer = report["layers"][0]
    assert layer["operator"] == "Conv2D" and layer["cycles"] == 256 and layer["target"] == "NPU"


def test_velas_complaint_is_passed_on(model, tmp_path):
    out = tmp_path / "m.pte"
    done = chute("convert", model, "-o", out, "--target", "ethos-u55-128", expect=1,
                 env=stand_in(tmp_path, "Conv2D: input data type not supported"))
    assert "ethosu.vela.failed" in done.stderr and "data type not supported" in done.stderr and not out.exists()


def test_a_missing_vela_and_an_unknown_target_have_a_way_out(model, tmp_path):
    env = {**os.environ, "CHUTE_VELA": str(tmp_path / "nowhere")}
    done = chute("convert", model, "-o", tmp_path / "m.pte", "--target", "ethos-u55-128", expect=3, env=env)
    assert "pip install ethos-u-vela" in done.stderr
    done = chute("convert", model, "-o", tmp_path / "m.pte", "--target", "ethos-u99", expect=2)
    assert "ethos-u85-256" in done.stderr
    done = chute("convert", model, "-o", tmp_path / "m.circle", "--target", "ethos-u55-128", expect=2)
    assert "cli.output.target" in done.stderr


@pytest.mark.skipif(not shutil.which("vela"), reason="vela (PyPI: ethos-u-vela) is not installed")
@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_vela_takes_the_file(model, tmp_path, target):
    out, note = tmp_path / "m.pte", tmp_path / "m.json"
    chute("convert", model, "-o", out, "--target", target, "--report", note)
    got = dict(blocks(payload(out)))
    assert got["cmd_data"].startswith(b"COP1")
    layers = json.loads(note.read_text())["accelerator"]["layers"]
    assert layers and all(layer["target"] == "NPU" for layer in layers)
    assert np.isfinite([layer["cycles"] for layer in layers]).all()
