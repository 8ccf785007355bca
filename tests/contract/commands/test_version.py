"""Each command says its release: what a bug report begins with."""

import subprocess
import sys
from importlib.metadata import version

import pytest


@pytest.mark.parametrize(("module", "name"), [
    ("coordinator", "coordinator"), ("node_agent", "node-agent"), ("sim_vehicles", "sim-vehicles"),
])  # fmt: skip
def test_a_command_says_its_release(module: str, name: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=False)
    python = sys.version.split()[0]
    assert done.stdout == f"{name} {version('shimekiri')} (Shimekiri, Python {python})\n" and done.returncode == 0
