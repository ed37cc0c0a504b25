"""Networks, small and at their real sizes, quantized by the Arm backend's own quantizer (prepare, calibrate, convert), lowered
by chute, run by Arm's reference model and compiled by Vela. Needs ExecuTorch: `make arm` prepares an environment for it.
"""
import json
import os
import shutil

import full_size_models
import numpy as np
import pytest
import real_models
import torch
from conftest import chute

quantizer = pytest.importorskip("executorch.backends.arm.quantizer")
tosa_reference_model = pytest.importorskip("tosa_reference_model")
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec  # noqa: E402
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # noqa: E402

SMALL = {name: real_models.MODELS[name] for name in ("mobilenet_v2", "resnet18", "deit", "llama", "lstm", "unet")}
NETWORKS = SMALL | {f"{name}-full-size": model for name, model in full_size_models.MODELS.items()}
# Steps of the output's grid. The first two layers of DeiT-tiny are PyTorch's to the bit; in twelve, sums of floats that fall
# between two steps, where PyTorch rounds by the order of its additions, spread: the file that the Arm backend itself makes of
# this program is 4 steps from PyTorch too (0.94 in the mean).
STEPS = {"deit-full-size": 5}


@pytest.fixture(scope="module", params=NETWORKS)
def quantized(request, tmp_path_factory):
    torch.manual_seed(0)
    build, example = NETWORKS[request.param]
    module, inputs = build().eval(), tuple(example())
    rules = quantizer.TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT"))
    rules.set_global(quantizer.get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(module, inputs).module(check_guards=False), rules)
    prepared(*inputs)
    converted = convert_pt2e(prepared)
    path = tmp_path_factory.mktemp(request.param) / "m.pt2"
    torch.export.save(torch.export.export(converted, inputs), str(path))
    want = converted(*inputs)
    return path, inputs, want if isinstance(want, (list, tuple)) else [want], STEPS.get(request.param, 1)


def test_integers_are_pytorchs(quantized, tmp_path):
    path, inputs, want, steps = quantized
    out, note = tmp_path / "m.tosa", tmp_path / "m.json"
    chute("convert", path, "-o", out, "--profile", "int", "--report", note)
    face = json.loads(note.read_text())["interface"]
    given = []
    for x, side in zip(inputs, face["inputs"]):
        value = x.numpy()
        if side["scale"]:
            limits = np.iinfo(side["dtype"])
            value = np.clip(np.rint(value / side["scale"]) + side["zero_point"], limits.min, limits.max)
        given.append(value.astype(side["dtype"]).reshape(side["shape"]))
    got, status = tosa_reference_model.run(out.read_bytes(), given, verbosity="NONE", tosa_level="NONE")
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID
    for g, w, side in zip(got, want, face["outputs"]):
        real = (np.array(g, dtype=np.float64).reshape(side["shape"]) - side["zero_point"]) * side["scale"]
        assert np.abs(real - w.detach().numpy()).max() <= (steps + 0.01) * side["scale"]


@pytest.mark.skipif(not shutil.which(os.environ.get("CHUTE_VELA", "vela")), reason="vela is not installed")
def test_vela_puts_everything_on_the_accelerator(quantized, tmp_path):
    out, note = tmp_path / "m.pte", tmp_path / "m.json"
    chute("convert", quantized[0], "-o", out, "--target", "ethos-u85-256", "--report", note, timeout=600)
    layers = json.loads(note.read_text())["accelerator"]["layers"]
    assert layers and {layer["target"] for layer in layers} == {"NPU"}
    read = pytest.importorskip("executorch.exir._serialize._program").deserialize_pte_binary(out.read_bytes())
    assert getattr(read, "program", read).execution_plan[0].delegates[0].id == "EthosUBackend"


@pytest.mark.skipif(not shutil.which(os.environ.get("CHUTE_VELA", "vela")), reason="vela is not installed")
@pytest.mark.parametrize("quantized", SMALL, indirect=True)
def test_the_stream_is_the_one_executorch_makes(quantized, tmp_path):
    vela = pytest.importorskip("executorch.backends.arm.arm_vela")
    out, tosa = tmp_path / "m.pte", tmp_path / "m.tosa"
    chute("convert", quantized[0], "-o", out, "--target", "ethos-u85-256")
    chute("convert", quantized[0], "-o", tosa, "--profile", "int")
    flags = ["--accelerator-config=ethos-u85-256", "--config=Arm/vela.ini", "--system-config=Ethos_U85_SYS_DRAM_Mid",
             "--memory-mode=Sram_Only", "--output-format=raw"]
    theirs = vela.vela_compile(tosa.read_bytes(), flags).processed_bytes
    assert out.read_bytes().endswith(theirs)
