"""Random programs of single operators: one call each, drawn from a seed and tried in PyTorch."""
import json
import os
import pathlib
import random
import re
import subprocess
import zlib

import numpy as np
import torch
from operator_arguments import draw, resolve
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))
TRIES = 40  # per program, before an operator counts as one whose arguments can not be drawn
# Relative and absolute; float64, float16 and bfloat16 are computed in float32.
TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 1e-1}
HALVES = (torch.float16, torch.bfloat16)
SHORT = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
         torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
# Operators that torch.export itself takes apart, refuses, or gives a result that depends on memory.
LEFT_OUT = {"aten.empty.memory_format", "aten.empty_like.default", "aten.empty_strided.default", "aten.new_empty.default",
            "aten.as_strided_.default", "aten.new_empty_strided.default", "aten.item.default", "aten.set_.source_Tensor",
            "aten.resize_.default",
            # PyTorch itself crashes on odd arguments of these.
            "aten._fft_r2c.default", "aten._native_batch_norm_legit.no_stats"}


def chute(*arguments):
    return subprocess.run([CHUTE, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def operators():
    """Names of the operators that are lowered, whose programs are the same on every run."""
    facts = json.loads(chute("operators", "--json").stdout)
    return [f["name"] for f in facts if f["fate"] in ("core", "rule", "in place") and f["name"].startswith("aten.") and
            f["name"] not in LEFT_OUT and not f["name"].endswith(".out") and drawable(f["name"])]


def drawable(name):
    try:
        op = resolve(name)
    except AttributeError:  # of another version of torch
        return False
    return torch.Tag.nondeterministic_seeded not in op.tags and torch.Tag.data_dependent_output not in op.tags


class Program(nn.Module):
    """One call. Its tensors are the program's inputs, its numbers are too when `open_numbers`. All results are its outputs, or
    the first alone, as most networks use them."""

    def __init__(self, name, number, args, kwargs, open_numbers=False, first_only=False):
        super().__init__()
        self.name, self.number, self.op = name, number, resolve(name)
        leaves, self.spec = torch.utils._pytree.tree_flatten((args, kwargs))
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) or (open_numbers and type(leaf) in (int, float))]
        self.inputs = [leaves[i] for i in self.places]
        self.tensors = [x for x in self.inputs if isinstance(x, torch.Tensor)]
        self.rest = [None if i in self.places else leaf for i, leaf in enumerate(leaves)]
        self.in_place = name.rsplit(".", 1)[0].endswith("_")
        self.first_only = first_only

    def forward(self, *inputs):
        leaves = list(self.rest)
        for place, value in zip(self.places, inputs):
            leaves[place] = value
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.spec)
        if self.in_place:
            args = (args[0].clone(), *args[1:])
        out = self.op(*args, **kwargs)
        return [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor)][:1 if self.first_only else None]

    def text(self):
        def of(x):
            if not isinstance(x, torch.Tensor):
                return f"number {x}"
            return f"{SHORT.get(x.dtype, x.dtype)}{list(x.shape)}" + ("" if x.is_contiguous() else f" strides {list(x.stride())}")
        _, keywords = torch.utils._pytree.tree_unflatten([*range(len(self.rest))], self.spec)
        rest = [r for i, r in enumerate(self.rest) if i not in self.places]
        return f"{self.name} program {self.number}: inputs {', '.join(map(of, self.inputs))}; {rest}{' by name ' + ','.join(keywords) if keywords else ''}" + \
            ("; first result" if self.first_only else "")

    def answers(self):
        """Lists of results, any of which is right: PyTorch's, and its results where halves are computed in float32."""
        yield [as_numpy(t) for t in self.expected]
        if any(x.dtype in HALVES for x in (*self.tensors, *self.expected)):
            wide = [x.float() if isinstance(x, torch.Tensor) and x.dtype in HALVES else x for x in self.inputs]
            try:
                with torch.no_grad():
                    yield [as_numpy(t) for t in self(*wide)]
            except RuntimeError:  # not for these element types
                pass

    def tolerance(self):
        """Absolute and relative. PyTorch resizes bytes with weights of 8 to 15 bits."""
        if "upsample" in self.name and self.expected[0].dtype == torch.uint8:
            return 1.0
        return max([TOLERANCE.get(t.dtype, 1e-3 if t.is_floating_point() else 1e-4) for t in (*self.tensors, *self.expected)])


def as_numpy(tensor):
    """As Circle holds it: bfloat16 and float64 are float32."""
    array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return array.astype(np.float32) if array.dtype == np.float64 else array


def sane(tensors):
    """Results that say something: there are some, none is huge, and integers stand for themselves."""
    if not tensors or any(t.dtype not in SHORT or t.numel() > 20000 for t in tensors):
        return False
    return all(not t.is_floating_point() or t.numel() == 0 or t.nan_to_num(0, 0, 0).abs().max() < 1e4 for t in tensors)


def programs(name, count, seed):
    """Up to `count` programs that PyTorch runs; the draws depend on the name and the seed only."""
    generator = random.Random(zlib.crc32(name.encode()) + seed)
    made = []
    for number in range(count * TRIES):
        if len(made) == count:
            break
        own = random.Random(generator.getrandbits(32))
        try:
            args, kwargs = draw(name, own)
            program = Program(name, number, args, kwargs, own.random() < 0.1, own.random() < 0.5)
            with torch.no_grad():
                program.expected = [t.clone() for t in program(*program.inputs)]
        except Exception:  # PyTorch refuses these arguments
            continue
        if sane(program.expected) and all(x.dtype in SHORT for x in program.tensors):
            made.append(program)
    return made


class Pack(nn.Module):
    """Many programs in one module; the inputs of each follow those of the one before it."""

    def __init__(self, members):
        super().__init__()
        for i, member in enumerate(members):
            setattr(self, f"p{i}", member)
        self.members = members

    def forward(self, *inputs):
        out, at = [], 0
        for i in range(len(self.members)):
            member = getattr(self, f"p{i}")
            out += member(*inputs[at:at + len(member.inputs)])
            at += len(member.inputs)
        return tuple(out)


def blamed(stderr, members):
    """{position of a member: why} from the module paths of the diagnostics."""
    out = {}
    for line in stderr.splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        if said.get("severity") != "error":
            continue
        message, _, others = re.sub(r" \(\d+ places; the first is named(?:; also in (.*))?\)$", r"|\1", said["message"]).partition("|")
        for path in [said["module_path"], *filter(None, others.split(", "))]:
            where = re.match(r"p(\d+)(?:\.|$)", path)
            if where and int(where[1]) < len(members):
                out.setdefault(int(where[1]), f"{said['code']}: {message}")
    return out
