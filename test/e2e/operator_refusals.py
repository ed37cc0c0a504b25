"""Refusals that are right: what Circle can not say, and limits that docs/operators.md names.

Each entry: the operators (a pattern of the whole name), what the diagnostic says (a pattern found in it), and the reason.
"""
import re

REFUSALS = [
    (r"aten\._?conv.*", "of integers", "Circle convolves reals and quantized numbers"),
    (r"aten\._?embedding_bag.*", "no lowering to the core operators", "results behind the first are kept for a backward pass"),
    (r"aten\.(nonzero|argwhere)\.default", "of a single number", "positions without coordinates are a tensor of no elements"),
    (r"aten\.repeat_interleave\.Tensor", "repeats that is not known or large", "repeats of nothing"),
    (r"aten\.bincount\.default", "of nothing", "bins of no numbers"),
    (r"aten\.view\.dtype", "no lowering to the core operators", "the bits of a number known only at run time"),
    (r"aten\.linalg_(matrix_)?norm\..*", "no lowering to the core operators", "orders that need singular values"),
]
COMPILED = [(re.compile(operators), re.compile(words), why) for operators, words, why in REFUSALS]


def reason(verdict):
    """Why this refusal is right, or None."""
    return next((why for operators, words, why in COMPILED if operators.fullmatch(verdict.operator) and words.search(verdict.why)), None)
