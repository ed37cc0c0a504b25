"""What the end-to-end tests share: the executable ($CHUTE) and the exported models (build/e2e/models)."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import make_models  # noqa: E402

CHUTE = os.environ.get("CHUTE", str(ROOT / "build" / "dev" / "chute"))


@pytest.fixture(scope="session")
def models():
    problems = make_models.make_all(ROOT / "build" / "e2e" / "models")
    assert not problems, problems
    return ROOT / "build" / "e2e" / "models"


def chute(*arguments, expect=0, timeout=60, **more):
    """Run the executable; its exit code must be `expect`."""
    done = subprocess.run([CHUTE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **more)
    assert done.returncode == expect, f"chute {arguments[0]}: exit code {done.returncode}\n{done.stderr[-2000:]}"
    return done
