"""Arguments of ATen operators by family: each file's MAKERS maps a pattern of names to a function of a draw.

The first pattern that matches an operator's name is taken, in the order of the files below.
"""
import re

from . import contraction, indexing, norm, other, views, windows

COMPILED = [(re.compile(k), v) for family in (windows, views, indexing, norm, contraction, other) for k, v in family.MAKERS.items()]
