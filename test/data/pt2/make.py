#!/usr/bin/env python3
"""Writes the small archives beside it, with torch.export of torch 2.13.

usage: make.py [OUTPUT_DIRECTORY]

Each is a few kilobytes and shows one side of the format. Source paths in the recorded stack traces are
cut to file names, so that the files do not depend on the machine that made them.
"""
import io
import pathlib
import re
import sys
import zipfile

import torch
from torch import nn
from torch.export import Dim


class Linear(nn.Module):
    """Weights, a buffer, a non-persistent buffer, a lifted constant."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.register_buffer("shift", torch.tensor([0.5, -1.0]))
        self.register_buffer("mask", torch.tensor([True, False]), persistent=False)

    def forward(self, x):
        y = self.fc(x) + self.shift * 2
        return torch.where(self.mask, y, torch.tensor([7.0, 8.0]))


class Views(nn.Module):
    """Tied weights, a slice, a transposed and an expanded buffer of one storage; bf16 and int8."""

    def __init__(self):
        super().__init__()
        base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
        self.register_buffer("base", base)
        self.register_buffer("part", base[1:, 2:])
        self.register_buffer("turned", base.t())
        self.register_buffer("wide", torch.tensor([[1], [2]], dtype=torch.int8).expand(2, 3))
        self.register_buffer("bf", torch.tensor([1.5], dtype=torch.bfloat16))
        self.a = nn.Linear(4, 4, bias=False)
        self.b = nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        y = self.b(self.a(x)) @ self.turned
        return y, self.part * 1, self.wide + 1, self.bf * 2, self.base.sum()


class Dynamic(nn.Module):
    """Symbolic sizes in shapes, arguments and outputs; a size read from data."""

    def forward(self, x, n, scale=0.5):
        rows = x.shape[0]
        k = n.sum().item()
        torch._check(k >= 0)
        torch._check(k <= 9)
        return x.reshape(rows * 2, -1) * scale, torch.zeros(k, 2), rows + 1


class Mutation(nn.Module):
    """A cache that is written in place, and an input that is."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 2))
        self.register_buffer("still", torch.ones(2))

    def forward(self, x, at):
        self.cache[at] = x
        x.add_(1)
        return self.cache.sum(0) + self.still


class Control(nn.Module):
    """cond, while_loop and no_grad regions."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda v: self.fc(v) + 1, lambda v: v - 1, (x,))
        _, z = torch.ops.higher_order.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.zeros((), dtype=torch.int64), y), ())
        with torch.no_grad():
            z = self.fc(z)
        return z


class Lists(nn.Module):
    """Several results, tensor lists, absent arguments, non-finite numbers, odd names."""

    def forward(self, input, *, lambda_=None, flag=True):
        a, b = torch.split(input, [1, 2], dim=1)
        top, _ = torch.topk(b, 1)
        c = torch.cat([a, b], dim=-1).clamp(max=float("inf"))
        return {"c": torch.nn.functional.pad(c, (1, 1), value=float("-inf")), "top": top, "n": None, "k": 3}


class Autocast(nn.Module):
    """A lower-precision region: conversions that no node shows, and an inner region without them."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.norm = nn.LayerNorm(2)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.fc(x) @ x
            with torch.autocast("cpu", enabled=False):
                z = self.fc(x)
            loss = nn.functional.mse_loss(y, z)
            n = self.norm(y)
        return self.fc(x), n, loss


def strip(exported):
    """Leaves file names alone in every recorded stack trace, also in nested graphs."""
    for module in exported.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            trace = node.meta.get("stack_trace")
            if trace:
                node.meta["stack_trace"] = re.sub(r'File "[^"]*/([^/"]+)"', r'File "\1"', trace)
    return exported


def members(path):
    with zipfile.ZipFile(path) as z:
        return {n.split("/", 1)[1]: z.read(n) for n in z.namelist()}


def saved(tensors):
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    return buffer.getvalue()


def other_layouts(exported, out):
    """The program of linear.pt2 as torch 2.7 and 2.8 laid archives out, and deflated."""
    now = members(out / "linear.pt2")
    program = now["models/model.json"]
    weights = saved(dict(exported.state_dict))
    constants = saved({k: v for k, v in exported.constants.items() if isinstance(v, torch.Tensor)})
    with zipfile.ZipFile(out / "layout_a.pt2", "w") as z:
        z.writestr("serialized_exported_program.json", program)
        z.writestr("serialized_state_dict.pt", weights)
        z.writestr("serialized_constants.pt", constants)
        z.writestr("version", "8.7")
    with zipfile.ZipFile(out / "layout_b.pt2", "w") as z:
        z.writestr("linear/models/model.json", program)
        z.writestr("linear/data/weights/model.pt", weights)
        z.writestr("linear/data/constants/model.pt", constants)
        for name in ("archive_format", "archive_version", "byteorder"):
            z.writestr(f"linear/{name}", now[name])
    with zipfile.ZipFile(out / "deflated.pt2", "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in now.items():
            if not name.startswith("data/sample_inputs"):
                z.writestr(f"linear/{name}", data)


def seeds(out):
    """What the fuzzer of the reader starts from, beside this folder: a byte of options, then an archive (or,
    with bit 3, the program alone), without what the reader never looks at."""
    folder = out.parent.parent / "fuzz" / "reader_fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("linear", "views", "layout_a", "layout_b", "deflated"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(out / f"{name}.pt2") as old, zipfile.ZipFile(buffer, "w") as new:
            for info in old.infolist():
                if "sample_inputs" in info.filename:
                    continue
                data = old.read(info)
                if info.filename.endswith(("model.json", "program.json")):
                    data = shortened(data)
                new.writestr(info.filename, data, info.compress_type)
        (folder / f"{name}.pt2").write_bytes(b"\0" + buffer.getvalue())
    for name in ("dynamic", "mutation_functional", "control", "lists"):
        program = shortened(members(out / f"{name}.pt2")["models/model.json"])
        (folder / f"{name}.json").write_bytes(b"\x08" + program)


def shortened(program):
    return re.sub(rb'"metadata": \{("[^"\\]*": "(\\.|[^"\\])*"(, )?)*\}', b'"metadata": {}', program)


def main(out):
    torch.manual_seed(0)
    x = torch.ones
    programs = {
        "linear": (Linear(), (x(2, 3),), None),
        "views": (Views(), (x(2, 4),), None),
        "dynamic": (Dynamic(), (x(4, 6), torch.tensor([1, 2])), {"x": {0: Dim("rows", min=2, max=64)}, "n": None, "scale": None}),
        "mutation": (Mutation(), (x(1, 2), torch.tensor([1])), None),
        "control": (Control(), (x(1, 2),), None),
        "lists": (Lists(), (x(2, 3),), None),
        "autocast": (Autocast(), (x(2, 2),), None),
    }
    for name, (module, args, shapes) in programs.items():
        if name == "dynamic":
            args = (*args, 0.5)
        kwargs = {"lambda_": None, "flag": True} if name == "lists" else None
        exported = torch.export.export(module.eval(), args, kwargs, dynamic_shapes=shapes, strict=False)
        torch.export.save(strip(exported), str(out / f"{name}.pt2"))
        if name == "linear":
            other_layouts(exported, out)
        if name in ("mutation", "control"):
            core = exported.run_decompositions({})
            torch.export.save(strip(core), str(out / f"{name}_functional.pt2"))
    seeds(out)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent))
