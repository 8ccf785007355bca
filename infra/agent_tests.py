"""`python -m infra.agent_tests pythons|ranges`: the agent's tests under other Pythons than the project's own, and with
the lowest and the highest packages that the project allows.

Each environment is made for the run, has what an agent needs and what its tests need, and is removed afterwards. Two
of them run at a time, since these tests wait for sockets and processes more than they compute.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The tests that need neither the coordinator nor the vehicles.
AGENT = (
    "tests/node_agent",
    "tests/contract/house/test_requirements.py",
    "tests/contract/formats/test_trace_records.py",
)
# Of these the ones that meet the interpreter and its OpenSSL most: sockets, TLS, the wire, processes.
QUICK = (
    "tests/node_agent/agents/test_agent_live.py", "tests/node_agent/client/test_client.py",
    "tests/node_agent/operators/test_codecs.py", "tests/node_agent/wire/test_frames.py",
    "tests/node_agent/host/test_ipc.py", "tests/node_agent/runtime/links/test_read_stamp.py",
    "tests/node_agent/operators/test_registry.py", "tests/node_agent/host/test_trace_ring.py",
    "tests/node_agent/runtime/test_runtime_process.py", "tests/node_agent/runtime/links/test_tls_connection.py",
    "tests/node_agent/agents/test_tls_live.py", "tests/node_agent/tls/test_tls_openssl.py",
    "tests/node_agent/runtime/links/test_tls_records.py", "tests/node_agent/wire/test_plan_message.py",
    "tests/node_agent/control", "tests/node_agent/link", "tests/node_agent/core/engine/test_engine_stories.py",
    "tests/contract/house/test_requirements.py", "tests/contract/formats/test_trace_records.py",
)  # fmt: skip
TESTS_NEED = (
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "cryptography",
    "prometheus-client",
    "mcap",
    "greenlet",
    "numpy",
    "setuptools>=77",
)
SIDE_BY_SIDE = 2
PYTHONS = tuple(f"python3.{minor}" for minor in range(11, 20))
ELSEWHERE = ("/usr/bin", "/usr/local/bin", "/opt/*/bin", "~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin")


class EnvironmentFailedError(Exception):
    """An environment cannot be made; the text is the last line of what said so."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter and the packages it gets. pins: as pip takes them."""

    name: str
    python: str
    pins: tuple[str, ...]


def dependencies() -> tuple[str, ...]:
    """What pyproject.toml says that an agent needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return tuple(project["dependencies"])


def ends(needed: Sequence[str] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lowest and the highest pins of the requirements: each `>=` as `==`, and the ranges as they are."""
    needed = dependencies() if needed is None else needed
    lowest = tuple(re.sub(r">=([\d.]+).*", r"==\1", each) for each in needed)
    return lowest, tuple(needed)


def pythons() -> Iterator[tuple[str, str]]:
    """Version and path of an interpreter of each version from 3.11 on that is found here, but for this one's."""
    seen: set[tuple[int, ...]] = {sys.version_info[:2]}
    folders = [os.environ.get("PATH", "").split(os.pathsep)]
    folders.append([str(found) for each in ELSEWHERE for found in _glob(each)])
    for name in PYTHONS:
        for folder in (folder for group in folders for folder in group):
            version = _version(Path(folder) / name)
            if version is not None and version[:2] not in seen:
                seen.add(version[:2])
                yield ".".join(map(str, version)), str(Path(folder) / name)


def _glob(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    try:
        return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))), reverse=True)
    except OSError:
        return []


def _version(python: Path) -> tuple[int, ...] | None:
    """None: it does not run, or has no venv."""
    code = "import ensurepip, sys; print(*sys.version_info[:3])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=20, check=True)
        return tuple(map(int, done.stdout.split()))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def make(environment: Environment, folder: Path) -> Path:
    """Its interpreter. Raises EnvironmentFailedError."""
    python = folder / "bin/python"
    _run([environment.python, "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-q", "--no-compile"]
    _run([*pip, "--only-binary=:all:", *environment.pins, *TESTS_NEED])
    copy = folder / "project"  # building leaves traces in the tree it builds
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "tests", "runs", "build", "dist", "*.egg-info"))
    _run([*pip, "--no-deps", "--no-build-isolation", str(copy)])  # its entry points
    return python


def _run(words: Sequence[str]) -> None:
    environment = {**os.environ, "SHIMEKIRI_COMPILED": "0"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise EnvironmentFailedError(lines[-1] if lines else f"{words[0]} ended with {done.returncode}")


def test(environment: Environment, tests: Sequence[str]) -> bool:
    """Make it and run the tests; says how it went, what the tests say at their end. False where a test failed or the
    environment could not be made."""
    began = time.monotonic()
    print(f"{environment.name}: making an environment with {', '.join(environment.pins)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="shimekiri-environment-") as name:
        try:
            python = make(environment, Path(name) / "venv")
        except EnvironmentFailedError as error:
            print(f"{environment.name}: cannot be made: {error}", flush=True)
            return False
        words = [str(python), "-m", "pytest", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", *tests]
        # Every process of a test would compile it all again; the tree itself stays as it is.
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(name) / "compiled")}
        done = subprocess.run(
            words, cwd=ROOT, env={**os.environ, **compiled}, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    told = "passed" if done.returncode == 0 else f"FAILED ({done.returncode})"
    print(f"{done.stdout}{environment.name}: {told} in {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


def main() -> int:
    """1 where anything failed; 0 also where there is no other Python, which it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pythons", "ranges"))
    parser.add_argument("--quick", action="store_true", help="the tests of sockets, TLS, wire and processes only")
    given = parser.parse_args()
    lowest, highest = ends()
    if given.what == "ranges":
        all_of_them = [Environment("lowest", sys.executable, lowest), Environment("highest", sys.executable, highest)]
    else:
        all_of_them = [Environment(f"Python {version}", path, highest) for version, path in pythons()]
    if not all_of_them:
        print(f"no Python from 3.11 on but {sys.version_info[0]}.{sys.version_info[1]} was found: nothing was run")
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        passed = list(pool.map(lambda each: test(each, QUICK if given.quick else AGENT), all_of_them))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
