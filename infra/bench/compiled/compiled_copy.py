"""`make check-both`: tests in a copy of the repository whose hot path is compiled.

`python -m infra.bench.compiled.compiled_copy TESTS...` runs these there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra", "tests")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
BOTH_WAYS = (
    "tests/node_agent/core", "tests/node_agent/runtime", "tests/node_agent/host", "tests/node_agent/link",
    "tests/node_agent/wire", "tests/node_agent/virtual", "tests/simulation", "tests/golden",
)  # fmt: skip
QUICK = {"CFLAGS": "-O0 -pipe -w"}  # a third of the compiler's time; what it computes is the same


def why_not() -> str:
    """Why nothing can be compiled here; empty where it can."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"the compiler {compiler} is not installed"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python's headers are not installed (Debian: python3-dev)"
    return ""


def compiled_copy(folder: Path, more: dict[str, str] | None = None) -> Path:
    """A copy of the repository in that new folder, compiled. more: environment of the compiler. Raises
    CalledProcessError."""
    folder.mkdir()
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("*.so", "*.c"))
    for name in FILES:
        shutil.copy2(ROOT / name, folder / name)
    words = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--parallel", "2"]
    environment = {**os.environ, "SHIMEKIRI_COMPILED": "1", **(more or {})}
    subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return folder


def run(copy: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """This Python with those arguments, on the modules of a compiled copy."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


def main(tests: Sequence[str]) -> int:
    """Exit code of pytest; 2 where nothing can be compiled."""
    if reason := why_not():
        sys.stderr.write(f"compiled: {reason}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="shimekiri-compiled-") as name:
        print("compiling a copy", flush=True)
        copy = compiled_copy(Path(name) / "copy")
        words = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *(tests or BOTH_WAYS)]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        return subprocess.run(words, cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
