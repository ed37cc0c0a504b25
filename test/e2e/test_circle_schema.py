"""schema/circle.fbs against the independent Python package circle_schema: slots, wire types, defaults, enumerators."""
import pathlib
import re
import shutil
import subprocess

import circle_schema.v0_10.circle as package
import pytest
from conftest import ROOT

SLOT = re.compile(r"builder\.(Prepend\w+Slot)\((\d+), .*, ([-\w.]+)\)\s*$", re.M)
SIZE = re.compile(r"builder\.(StartObject)\((\d+)\)")
MEMBER = re.compile(r"^    (\w+) = (-?\d+)", re.M)


def facts(folder):
    """{module: slots as (wire call, slot, default), number of slots, enumerators} of generated Python."""
    return {path.stem: {(call, int(slot), float({"True": 1, "False": 0}.get(default, default)))
                        for call, slot, default in SLOT.findall(text)}.union(SIZE.findall(text), MEMBER.findall(text))
            for path in pathlib.Path(folder).glob("[A-Z]*.py") for text in [path.read_text()]}


def test_the_schema_is_the_packages(tmp_path):
    flatc = shutil.which("flatc")
    if not flatc:
        pytest.skip("flatc is not installed")
    subprocess.run([flatc, "--python", "-o", tmp_path, ROOT / "schema" / "circle.fbs"], check=True)
    ours = facts(tmp_path / "circle")
    theirs = facts(pathlib.Path(package.__file__).parent)
    assert len(theirs) >= 199  # 176 tables, 19 enumerations, 4 unions
    assert sum(map(len, theirs.values())) > 900
    assert {name: found ^ ours.get(name, set()) for name, found in theirs.items() if found != ours.get(name)} == {}
