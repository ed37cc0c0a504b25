"""Random quantized programs as TOSA integers, in Arm's reference model: each step is within one step of its grid of what
PyTorch makes of the operands that the file computed (three for functions of 16 bits: their tables hold every 128th
value). SEEDS=FROM:TO in the environment runs others.
"""
import json
import os

import numpy as np
import pytest
import torch
from quantized_programs import UNARY, Draw
from test_tosa_int import grid, lower, run, stored_inputs

FROM, TO = map(int, os.environ.get("SEEDS", "0:24").split(":"))


@pytest.mark.parametrize("seed", range(FROM, TO))
def test_random_program(seed, tmp_path):
    draw = Draw(seed)
    module, text = draw.module(), "\n".join(draw.text)
    out, note, done = lower(module, tuple(draw.inputs), tmp_path)
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    face = json.loads(note.read_text())["interface"]
    got = run(out, stored_inputs(face, draw.inputs))
    values = [grid(x, *g, draw.dtype) for x, g in zip(draw.inputs, draw.first)]
    for i, (g, side) in enumerate(zip(got, face["outputs"], strict=True)):
        assert side["dtype"] in ("int8", "int16") and side["scale"], (side, text)
        real = (torch.from_numpy(g.astype(np.float32)).reshape(side["shape"]) - side["zero_point"]) * side["scale"]
        steps = ((real - module.step(i, values)).abs() / side["scale"]).max()
        function = draw.steps[i][0]
        most = 3.01 if draw.dtype == torch.int16 and function in UNARY.values() else 1.01
        assert steps <= most, f"v{i + 2}: {steps:.1f} steps apart\n{text}"
        values.append(real)
