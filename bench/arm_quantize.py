"""Quantizes a float `.pt2` to int8 as users of ExecuTorch's Arm backend do: arm_quantize.py MODEL.pt2 OUT.pt2.

Run by an environment that has executorch 1.5.1. The program is calibrated on one random input.
"""
import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


def main(model, out):
    torch.manual_seed(0)
    program = torch.export.load(model)
    inputs = tuple(torch.randn(node.meta["val"].shape) for node in program.graph.nodes
                   if node.name in program.graph_signature.user_inputs)
    quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT"))
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
    prepared(*inputs)
    torch.export.save(torch.export.export(convert_pt2e(prepared), inputs), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
