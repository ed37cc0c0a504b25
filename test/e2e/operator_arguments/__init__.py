"""Random arguments for any ATen operator: shapes, dtypes, strides, dims, scalars, defaults given or left out.

`draw(name, random)` gives one candidate call; whoever asks tries it in PyTorch and draws again when PyTorch refuses it.
Arguments come from the operator's signature (draw.py), or from a maker where they depend on each other, by family.
"""
from . import contraction, indexing, loss, norm, other, sampling, views, windows  # noqa: F401
from .draw import MAKERS, Draw, another_form, from_signature, resolve


def draw(name, random):
    """(positional arguments, keyword arguments) of one candidate call."""
    d, schema = Draw(random), resolve(name)._schema
    make = MAKERS.get(name) or MAKERS.get(name.replace("_.", "."))  # an in-place form takes what its functional form takes
    if make:
        made = make(d)
        positional, keywords = made if isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], dict) else (made, {})
    else:
        positional, keywords = from_signature(d, schema)
    return another_form(d, schema, positional, keywords)
