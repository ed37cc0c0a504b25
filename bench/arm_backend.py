"""Lowers a `.pt2` with ExecuTorch's Arm backend, for the times beside chute's: arm_backend.py MODEL.pt2 FP|INT.

Run by an environment that has executorch 1.5.1. Quantized programs must hold quantize/dequantize pairs.
"""
import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


def main(model, profile):
    program = torch.export.load(model)
    partitioner = TOSAPartitioner(TosaCompileSpec(f"TOSA-1.0+{profile}"))
    lowered = to_edge_transform_and_lower(program, partitioner=[partitioner])
    graph = lowered.exported_program().graph_module
    if not any("call_delegate" in str(node.target) for node in graph.graph.nodes):
        sys.exit("nothing was delegated")


if __name__ == "__main__":
    main(*sys.argv[1:])
