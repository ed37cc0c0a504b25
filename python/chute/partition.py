"""Which nodes of an ExecuTorch partition chute refuses, so that they stay on the CPU."""
import json
import pathlib
import re
import subprocess
import tempfile

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch.export.graph_signature import (ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument)
from torch.fx.passes.operator_support import OperatorSupportBase

TAG = "delegation_tag"
KEPT = ("val", "stack_trace", "nn_module_stack")  # what ExecuTorch notes on nodes besides is not for the archive


class NotRefused(OperatorSupportBase):
    """A check that partitioners take: everything but the nodes named."""

    def __init__(self):
        self.names = set()

    def is_node_supported(self, submodules, node):
        return node.name not in self.names


def aten_target(node):
    return node.target._op if isinstance(node.target, EdgeOpOverload) else node.target


def delegated(program):
    """The tagged nodes as a program of their own, or None: there are none, or they hold what can not be cut out (nested
    graphs, sizes known only at run time). Values from elsewhere are inputs, values used elsewhere outputs."""
    nodes = [n for n in program.graph.nodes if n.op == "call_function" and TAG in n.meta]
    inside = set(nodes)
    if not nodes or any(n.op == "get_attr" for n in program.graph.nodes):
        return None
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    graph, made, inputs = torch.fx.Graph(), {}, []
    needed = {operand for node in nodes for operand in node.all_input_nodes if operand not in inside}
    for node in program.graph.nodes:
        if node not in needed:
            continue
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return None
        copy = made[node] = graph.placeholder(node.name)
        copy.meta = {"val": node.meta["val"]}
        spec, argument = specs.get(node.name), TensorArgument(name=copy.name)
        stored = spec is not None and spec.kind != InputKind.USER_INPUT
        inputs.append(InputSpec(spec.kind, argument, spec.target, spec.persistent) if stored
                      else InputSpec(InputKind.USER_INPUT, argument, None))
    for node in nodes:
        copy = made[node] = graph.node_copy(node, made.__getitem__)
        copy.name, copy.target = node.name, aten_target(node)
        copy.meta = {key: node.meta[key] for key in KEPT if key in node.meta}
    leaving = [made[n] for n in nodes if isinstance(n.meta.get("val"), torch.Tensor) and not set(n.users) <= inside]
    graph.output(tuple(leaving))
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=n.name), None) for n in leaving]
    stored = {spec.target for spec in inputs}
    return torch.export.ExportedProgram(
        root=torch.fx.GraphModule({}, graph), graph=graph, graph_signature=ExportGraphSignature(inputs, outputs),
        state_dict={k: v for k, v in program.state_dict.items() if k in stored}, range_constraints={}, module_call_graph=[],
        constants={k: v for k, v in program.constants.items() if k in stored}, verifiers=[torch._export.verifier.Verifier])


def blamed(program, said):
    """The nodes that an error of chute's is about; every one of a kind when it stands for several places. Quantizers are
    never to blame: partitions hold stand-ins for weights and scales, without which few of them fold."""
    nodes = {n.name: n for n in program.graph.nodes if n.op == "call_function" and TAG in n.meta}
    name, _, kind = said["object"].partition(" ")
    node = nodes.get(name.lstrip("%"))
    if node is None or "quantize_per" in kind or "quantize_per" in str(node.target):
        return set()
    several = re.search(r"\(\d+ places", said["message"])
    return {n.name for n in nodes.values() if n is node or (several and n.target == node.target)}


def refusals(program, convert):
    """Names of tagged nodes that chute can lower in no profile. `convert`: the command line up to the archive."""
    part = delegated(program)
    if part is None:
        return set()
    with tempfile.TemporaryDirectory() as folder:
        model, out = pathlib.Path(folder, "partition.pt2"), pathlib.Path(folder, "partition.tosa")
        torch.export.save(part, str(model))
        done = subprocess.run([*convert, str(model), "-o", str(out), "--json", "--quiet"], capture_output=True, text=True)
    said = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    return {name for finding in said if finding["severity"] == "error" for name in blamed(program, finding)}
