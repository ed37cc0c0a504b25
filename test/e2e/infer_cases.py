"""Writes test/data/infer_cases.txt: result types of ATen operators as PyTorch's export sees them.

    python test/e2e/infer_cases.py [--out FILE] [--per-op N] [--missing]

Every row of src/aten/table/*.def that this PyTorch (or TICO) has is called with arguments drawn from a
fixed seed, on fake tensors as torch.export does; calls that PyTorch refuses are dropped. One line per call:

    aten.add.Tensor | f32[2,3] i64[] | alpha=2 | f32[2,3]
    aten.cat.default | (f32[2] f32[3]) | dim=0 | f32[5]

operands (`-` absent, parentheses a list), attributes that differ from the schema's defaults, results.
src/aten/infer_test.cpp infers the same and compares. `--missing` names the rows without a case.
"""

import argparse
import logging
import pathlib
import re
import warnings

import tico.utils.register_custom_op  # noqa: F401 - registers circle_custom
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 - registers quantized_decomposed
from infer_arguments import COMPILED
from infer_arguments.draw import NAMES, Draw, T, default_argument
from infer_arguments.quantized import channels_last, quantization_of
from torch._subclasses.fake_tensor import FakeTensorMode

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)  # a refused call is logged with its stack
ROOT = pathlib.Path(__file__).resolve().parents[2]

# Where the fake result is PyTorch's mistake: eager mode gives another one, or refuses. And qint8, a type
# that no exported program holds.
EXCLUDED = [
    ("aten.quantize_per_tensor.default", ""), ("aten.logsumexp.default", "dim=[]"), ("aten.hardshrink.default", "bool["),
    ("aten.index.Tensor", "[0,"), ("aten.pow.Scalar", "self=true"), ("aten.to.prim_dtype", "copy=true"),
]

# Placeholders of a converter: they have no fake implementation.
LOGICAL = {"circle_custom.quantize_mx.default", "circle_custom.dequantize_mx.default"}


SKIP_TYPES = ("Device", "Layout", "MemoryFormat", "Generator")


def draw(r, name, schema):
    given = {}
    if schema.name.startswith("quantized_decomposed"):
        given = quantization_of(r, name)
    elif schema.name.startswith("circle_custom"):
        given = channels_last(r, name)
    for pattern, maker in [] if given else COMPILED:
        if m := pattern.match(name):
            given = maker(r, m) if maker.__code__.co_argcount == 2 else maker(r)
            break
    values, first, rank = {}, None, 0
    for arg in schema.arguments:
        if any(s in str(arg.type) for s in SKIP_TYPES) or arg.name in ("pin_memory", "non_blocking", "layout", "device", "memory_format"):
            continue
        if arg.name in given and str(arg.type) in ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]"):
            v = given[arg.name]
        elif arg.name in given and not isinstance(given[arg.name], T):
            v = given[arg.name]
        elif arg.has_default_value() and r.random() < 0.4:
            v = arg.default_value
        else:
            v = default_argument(r, arg, rank, first)
        values[arg.name] = v
        if first is None and isinstance(v, T):
            first, rank = v.shape, len(v.shape)
    return values


def value_text(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return repr(v) if "." in repr(v) or "e" in repr(v) else repr(v) + ".0"
    if isinstance(v, str):
        return '"' + v + '"'
    if isinstance(v, torch.dtype):
        return "@" + NAMES[v]
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(value_text(x) for x in v) + "]"
    raise LookupError(repr(v))


def operand_text(v):
    if v is None:
        return "-"
    if isinstance(v, list):
        return "(" + " ".join(operand_text(x) for x in v) + ")"
    return v.text()


def result_text(out):
    if out is None:
        return ""
    if isinstance(out, torch.Tensor):
        return T(NAMES[out.dtype], out.shape).text()
    if isinstance(out, (list, tuple)):
        return " ".join(result_text(o) for o in out)
    return {bool: "bool", float: "float"}.get(type(out), "int")


def made(v):
    if isinstance(v, T):
        return v.make()
    if isinstance(v, list) and any(isinstance(x, T) for x in v):
        return [made(x) for x in v]
    return v


def case(name, schema, op, values):
    operands, attrs = [], []
    for arg in schema.arguments:
        if arg.name not in values:
            continue
        v = values[arg.name]
        if "Tensor" in str(arg.type):
            operands.append(operand_text(v))
        else:
            default = arg.default_value if arg.has_default_value() else ...
            if v is None and default not in (None, ...):
                raise LookupError("an explicit None has no form in the file")
            # bool and int compare equal; the element type that they stand for does not
            if v is not None and not (default is not ... and type(v) is type(default) and v == default):
                if "ScalarType" in str(arg.real_type) and v == 4:  # torch.int64's number, a default
                    v = torch.int64
                attrs.append(f"{arg.name}={value_text(v)}")
    with FakeTensorMode(allow_non_fake_inputs=True):
        out = op(**{k: made(v) for k, v in values.items()})
    return f"{name} | {' '.join(operands)} | {' '.join(attrs)} | {result_text(out)}"


def overload(name):
    namespace, packet, which = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), which)


def table_rows():
    for path in sorted((ROOT / "src/aten/table").glob("*.def")):
        yield from re.findall(r'"((?:aten|quantized_decomposed|circle_custom)\.[^"]+)"', path.read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "test/data/infer_cases.txt")
    parser.add_argument("--per-op", type=int, default=9)
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    lines, missing = [], []
    for name in table_rows():
        op = overload(name)
        schema = op._schema
        if name in LOGICAL:
            continue
        short = name.partition(".")[2].removesuffix(".default")
        r = Draw(name)
        found, error = [], None
        for _ in range(options.per_op * 12):
            if len(found) >= options.per_op:
                break
            try:
                line = case(name, schema, op, draw(r, short, schema))
                if any(name == n and part in line for n, part in EXCLUDED):
                    continue
            except Exception as e:  # noqa: BLE001 - a refusal by PyTorch is not a case
                error = e
                continue
            if line not in found:
                found.append(line)
        lines += found
        if not found:
            missing.append((name, repr(error)[:150]))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} cases for {len({x.split(' ')[0] for x in lines})} operators, {options.out.stat().st_size} bytes")
    if options.missing:
        for row in missing:
            print(*row)


if __name__ == "__main__":
    main()
