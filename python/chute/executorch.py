"""ExecuTorch's Arm partitioners and backends with chute doing the lowering. Change one import:

    from chute.executorch import TOSAPartitioner     # was executorch.backends.arm.tosa.partitioner
    from chute.executorch import EthosUPartitioner   # was executorch.backends.arm.ethosu

Partitioning, compile specs and what follows (Vela for Ethos-U, the `.pte`) stay ExecuTorch's: this module replaces the one
step between, `TOSABackend._preprocess`, for the process that imports it, and leaves nodes that chute refuses out of the
partitions, so that they run on the CPU. The executable is $CHUTE, or `chute` on PATH, or
build/release/chute of the checkout that this file lies in.
"""
import copy
import os
import pathlib
import shutil
import subprocess
import tempfile

import torch
from executorch.backends.arm.tosa.backend import TOSABackend
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir.backend.backend_details import PreprocessResult

from chute.partition import KEPT, NotRefused, TAG, aten_target, refusals

try:
    from executorch.backends.arm.ethosu import EthosUPartitioner
except ImportError:  # without Vela there is no Ethos-U backend
    EthosUPartitioner = None

__all__ = ["TOSAPartitioner", "EthosUPartitioner", "LoweringError", "lower"]


class LoweringError(RuntimeError):
    """What chute said of a partition that it cannot lower."""


def executable():
    given = os.environ.get("CHUTE") or shutil.which("chute")
    if given:
        return given
    built = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "chute"
    if built.exists():
        return str(built)
    raise LoweringError("chute is not on PATH; set CHUTE to the executable")


def to_aten(program):
    """A copy whose edge operators are the ATen ones behind them, which is what torch.export.save writes."""
    graph_module = copy.deepcopy(program.graph_module)
    for module in graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            node.target = aten_target(node)
            node.meta = {key: node.meta[key] for key in KEPT if key in node.meta}
        module.recompile()
    return torch.export.ExportedProgram(
        root=graph_module, graph=graph_module.graph, graph_signature=program.graph_signature, state_dict=program.state_dict,
        range_constraints=program.range_constraints, module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs, constants=program.constants, verifiers=[torch._export.verifier.Verifier])


def command(tosa_spec):
    """The command line that converts for "TOSA-1.0+INT", "TOSA-1.0+FP", …, up to the archive."""
    parts = tosa_spec.upper().split("+")[1:]
    profile = "int+fp" if {"INT", "FP"} <= set(parts) else "int" if "INT" in parts else "fp"
    return [executable(), "convert", "--profile", profile, "--set", "quant_io=float"]


def lower(program, tosa_spec):
    """The TOSA flatbuffer of an edge or ATen program. `tosa_spec`: "TOSA-1.0+INT", "TOSA-1.0+FP", …"""
    with tempfile.TemporaryDirectory() as folder:
        model, out = pathlib.Path(folder, "partition.pt2"), pathlib.Path(folder, "partition.tosa")
        torch.export.save(to_aten(program), str(model))
        done = subprocess.run([*command(tosa_spec), str(model), "-o", str(out), "--quiet"], capture_output=True, text=True)
        if done.returncode:
            raise LoweringError(done.stderr.strip())
        return out.read_bytes()


def _preprocess(edge_program, compile_spec):
    return PreprocessResult(processed_bytes=lower(edge_program, str(compile_spec.tosa_spec)))


def _partition(self, exported_program):
    """ExecuTorch's partitions without the nodes that chute refuses."""
    given, allowed = self.additional_checks, NotRefused()
    mixed = str(self.tosa_spec).replace("+INT", "+INT+FP", 1) if "+FP" not in str(self.tosa_spec) else str(self.tosa_spec)
    self.additional_checks = [*(given or ()), allowed]
    try:
        for _ in range(ROUNDS):
            result = _arm_partition(self, exported_program)
            refused = refusals(exported_program, command(mixed)) - allowed.names
            if not refused:
                break
            allowed.names |= refused
            for node in exported_program.graph.nodes:
                node.meta.pop(TAG, None)
        return result
    finally:
        self.additional_checks = given


ROUNDS = 8  # how often partitions are drawn anew without what was refused; what is left then is an error
_arm_partition = TOSAPartitioner.partition
TOSAPartitioner.partition = _partition
TOSABackend._preprocess = staticmethod(_preprocess)
