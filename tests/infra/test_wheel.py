"""The product's wheel: what is in it, and what an environment with nothing else can do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import grpc
import pytest

import coordinator.__main__
import sim_vehicles.__main__
from protos import agent_pb2, agent_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {"protos", "node_agent", "coordinator", "sim_vehicles"}
DATA = {".proto", ".pyi", ".yaml", ".json", ".jsonl", ".service", ".typed", ".txt"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _run(environment: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of that environment, which sees no other."""
    seen = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    command = [str(environment / "bin" / words[0]), *words[1:]]
    return subprocess.run(
        command, cwd=cwd or environment, env=seen, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_wheel_has_the_rooms_and_their_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == ROOMS
    assert not [name for name in names if {"infra", "tests", "runs", "__pycache__"} & set(Path(name).parts)]
    assert {f"{room}/py.typed" for room in ROOMS} <= names
    listed = subprocess.run(["git", "ls-files", "-z", *ROOMS], cwd=ROOT, capture_output=True, check=False).stdout
    for name in filter(None, os.fsdecode(listed).split("\0")):
        if Path(name).suffix in DATA and (ROOT / name).is_file():
            assert name in names, f"{name} is not in the wheel: see package-data in pyproject.toml"


def test_an_agent_demands_few_packages_and_any_python_from_3_11(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        told = packed.read(name).decode().split("\n\n")[0].splitlines()
    demanded = [line.partition(": ")[2] for line in told if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert sorted(re.match(r"[a-z0-9]+", each)[0] for each in demanded) == [  # type: ignore[index]
        "grpcio", "h2", "hpack", "hyperframe", "protobuf", "psutil",
    ]  # fmt: skip
    assert "Requires-Python: >=3.11" in told
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ("coordinator", coordinator.__main__.EXTRA), ("report", coordinator.__main__.REPORT),
        ("vehicles", sim_vehicles.__main__.EXTRA),
    ],
)  # fmt: skip
def test_what_an_extra_brings_is_known_by_its_import_names(extra: str, named: set[str]) -> None:
    wanted = {re.match(r"[\w.-]+", each)[0].lower() for each in PROJECT["optional-dependencies"][extra]} - {"shimekiri"}  # type: ignore[index]
    brought = packages_distributions()
    assert wanted == {dist.lower() for module in named for dist in brought[module]} & wanted
    assert {module for module in named if not {each.lower() for each in brought[module]} & wanted} == set()


def test_the_agents_commands_need_no_extra(environment: Path) -> None:
    shown = _run(environment, "node-agent", "--help")
    assert shown.returncode == 0 and "usage: node-agent" in shown.stdout
    fit = _run(environment, "node-agent", "doctor", "--json", "--no-rt")
    found = {each["subject"]: each for each in json.loads(fit.stdout)["findings"]}
    assert {found[name]["state"] for name in ("Python", "grpcio", "h2", "protobuf", "psutil")} == {"ok"}
    listed = _run(environment, "node-agent", "operators", "--json")
    assert listed.returncode == 0 and not listed.stderr
    operators = json.loads(listed.stdout)
    assert {"pass", "filter"} <= set(operators["operators"])
    numpy = [why for why in operators["unavailable"].values() if "numpy" in why]
    assert numpy and len(numpy) == len(operators["unavailable"])  # what needs an extra is listed, with the reason


def test_a_project_for_nodes_is_written_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    done = _run(environment, "python", "-m", "coordinator.nodes", "two", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"operators.py", "feed.jsonl", "agents.yaml", "shimekiri-agent@.service"} < set(os.listdir(tmp_path / "two"))


def test_an_agent_starts_and_answers(environment: Path, tmp_path: Path) -> None:
    command = [str(environment / "bin/node-agent"), "run", "--name", "a", "--state", "state", "--no-rt"]
    with (tmp_path / "log").open("w") as log:
        agent = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert agent.stdout is not None
        line = agent.stdout.readline()
        assert line, (tmp_path / "log").read_text()
        with grpc.insecure_channel(f"127.0.0.1:{json.loads(line)['control']}") as channel:
            told = agent_pb2_grpc.AgentStub(channel).Describe(agent_pb2.DescribeRequest(), timeout=30)  # type: ignore[no-untyped-call]
    finally:
        agent.send_signal(signal.SIGTERM)
        code = agent.wait(30)
    assert (told.node, code) == ("a", 0)


@pytest.mark.parametrize(
    "words", [["--help"], ["validate", "q.yaml", "c.yaml"], ["plan", "q.yaml", "c.yaml"], ["report", "runs/1"]]
)
def test_the_coordinator_says_which_extra_to_install(environment: Path, words: list[str]) -> None:
    done = _run(environment, "coordinator", *words)
    assert done.returncode == 1 and not done.stdout
    assert re.fullmatch(
        r"coordinator needs \w+, which is not installed: pip install 'shimekiri\[coordinator\]'"
        r" \(from a file: 'shimekiri-VERSION-py3-none-any\.whl\[coordinator\]'\)\n",
        done.stderr,
    )


def test_the_vehicles_say_which_extra_to_install(environment: Path) -> None:
    done = _run(environment, "sim-vehicles", "--help")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "sim-vehicles needs typer, which is not installed: pip install 'shimekiri[vehicles]'"
        " (from a file: 'shimekiri-VERSION-py3-none-any.whl[vehicles]')\n"
    )


@pytest.mark.parametrize(
    ("module", "gone", "words", "said"),
    [
        ("coordinator", "ortools", ["plan", "query.yaml", "cluster.yaml"], "OR-Tools is not installed"),
        ("coordinator", "ruamel.yaml", ["validate", "query.yaml", "cluster.yaml"], "coordinator needs ruamel.yaml"),
        ("sim_vehicles", "rich", ["--help"], "sim-vehicles needs rich"),
    ],
)
def test_a_part_of_an_extra_that_is_missing_is_named(
    module: str, gone: str, words: list[str], said: str, tmp_path: Path
) -> None:
    """Here everything is installed: the import of one module is refused."""
    example = ROOT / "coordinator/examples/sorting_line"
    listing = subprocess.run(
        [sys.executable, "-m", "node_agent", "operators", "--operators", example / "operators.py", "--json"],
        capture_output=True, check=True, cwd=ROOT,
    ).stdout  # fmt: skip
    for name in ("query.yaml", "cluster.yaml"):
        (tmp_path / name).write_bytes((example / name).read_bytes())
    (tmp_path / "operators.json").write_bytes(listing)
    code = (
        f"import sys; sys.modules[{gone!r}] = None; sys.argv[1:] = {words!r}; import {module}.__main__ as m; m.main()"
    )
    seen = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=seen, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(said)
    assert "pip install 'shimekiri[" in done.stderr
