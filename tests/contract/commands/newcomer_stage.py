"""Where a newcomer's mistakes are made: a directory with files that are right, and the real commands in it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tests.command_line import MAINS, Said, run
from tests.node_agent import live

QUERY = """\
shimekiri: 1
query: sorting
sources:
  belt: {at: a, type: json, arrival: {burst: 2, period: 500 ms}, max_age: 50 ms}
  scale: {at: a, type: json, arrival: {burst: 1, period: 500 ms}}
operators:
  weigh: {run: my.weigh, in: belt, side: {scale: scale}, cost: 1 ms, with: {grams: 5}}
  count: {run: aggregate, in: weigh, cost: 100 us, with: {n: count}, window: {time: 2 s, hop: 1 s}, nodes: [b]}
outputs:
  arm: {from: weigh, at: b, deadline: 200 ms}
  counted: {from: count, at: b, deadline: 1 s}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
  b: {address: "127.0.0.1:7710", policy: edf}
links: [{between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}]
operators: operators.json
"""
OPERATORS = """\
from node_agent.sdk import operator


@operator("my.weigh", inputs={"parcel": "json"}, side={"scale": "json"}, output="json")
class Weigh:
    def __init__(self, grams: int) -> None:
        self.grams = grams

    def __call__(self, parcel, *, scale):
        return {**parcel, "heavy": parcel["g"] > self.grams}
"""
SOURCES = """\
from node_agent.sdk import source


@source("my.scale")
def read_scale():
    return {"g": 5}


@source("my.scan")
def scan():
    yield {"g": 5}
"""
FULL_BYTES = 2000
FEED = '{"g": 3}\n{"g": 7}\n'


@dataclass
class Stage:
    """A directory with query.yaml, cluster.yaml, operators.py, sources.py, operators.json, plan.json and feed.jsonl;
    `words` are put into commands and files where `{word}` stands."""

    folder: Path
    words: Mapping[str, str] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Of a file in the directory."""
        return self.folder / name

    def write(self, name: str, text: str | bytes) -> None:
        """A file, with what is between."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def worded(self, text: str) -> str:
        """With the stage's words where `{word}` stands."""
        for word, value in self.words.items():
            text = text.replace(f"{{{word}}}", value)
        return text

    def change(self, name: str, old: str, new: str) -> None:
        """Exactly one place of a file."""
        text = self.path(name).read_text()
        assert text.count(old) == 1, (name, old)
        self.write(name, text.replace(old, self.worded(new)))

    def run(self, case: Case) -> Said:
        """Its command as it would be typed in the directory: within this process, which is quick, or in its own."""
        command = self.worded(case.command)
        if command.startswith(("node-agent feed", "node-agent listen")) and "--patience" not in command:
            command += " --patience 60"  # a machine may be busy
        if case.alone or command.startswith(("python ", "node-agent run")):
            return alone(self.folder, command, case.alone, case.lowly)
        with mock.patch.dict(os.environ, case.environment), _no_room() if case.full else contextlib.nullcontext():
            return run(self.folder, command)


@contextlib.contextmanager
def _no_room() -> Iterator[None]:
    """Modules that are imported meanwhile are not kept compiled: half of one would stay."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, before[1]))
    try:
        with mock.patch.object(sys, "dont_write_bytecode", True):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def alone(folder: Path, command: str, before: str = "", lowly: bool = False) -> Said:
    """The same in a process of its own, which runs `before` first; `lowly`: without capabilities, also for root."""
    program, *arguments = shlex.split(command)
    start = f"from {MAINS[program].__module__} import main" if program in MAINS else "main = lambda: None"
    words = [sys.executable, *(("-c", f"{before}\n{start}\nmain()") if program in MAINS else ()), *arguments]
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if lowly and os.geteuid() == 0 else []
    done = subprocess.run(
        [*drop, *words], cwd=folder, env={**os.environ, "PYTHONPATH": str(live.ROOT)}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def prepare(folder: Path) -> None:
    """The files that are right, planned."""
    stage = Stage(folder)
    for name, text in (
        ("query.yaml", QUERY), ("cluster.yaml", CLUSTER), ("operators.py", OPERATORS), ("sources.py", SOURCES),
        ("feed.jsonl", FEED),
    ):  # fmt: skip
        stage.write(name, text)
    listed = run(folder, "node-agent operators --operators operators.py --operators sources.py --json")
    assert listed.code == 0, listed
    stage.write("operators.json", listed.out)
    planned = run(folder, "coordinator plan query.yaml cluster.yaml")
    assert planned.code == 0, planned


def addresses(words: Mapping[str, str], agents: Mapping[str, str]) -> str:
    """addresses.json: by node the agent that is said to be there."""
    nodes = {
        node: {"control": words[f"{agent}_control"], "data": words[f"{agent}_data"]} for node, agent in agents.items()
    }
    return json.dumps({"nodes": nodes})


Step = Callable[[Stage], None]


@dataclass(frozen=True)
class Case:
    """A mistake: what was done, the command that then was given, how that ends, and what is said: what is wrong, and
    what to do about it. steps: the mistake itself."""

    did: str
    command: str
    code: int
    what: str
    mend: str
    steps: tuple[Step, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    alone: str = ""  # in a process of its own, which runs this Python before the command
    lowly: bool = False  # without the rights of root
    full: bool = False  # where no file may have more than FULL_BYTES
    fault: str = ""  # one of what `Said.faults` has


def change(name: str, old: str, new: str) -> Step:
    """In a file."""
    return lambda stage: stage.change(name, old, new)


def write(name: str, text: str | bytes) -> Step:
    """A file."""
    return lambda stage: stage.write(name, text)


def remove(name: str) -> Step:
    """A file."""
    return lambda stage: stage.path(name).unlink()


def directory(name: str) -> Step:
    """In the place of a file."""

    def step(stage: Stage) -> None:
        stage.path(name).unlink()
        stage.path(name).mkdir()

    return step


def does(command: str) -> Step:
    """A command that is right."""

    def step(stage: Stage) -> None:
        said = stage.run(Case("", command, 0, "", ""))
        assert said.code == 0, said

    return step


def cut(name: str) -> Step:
    """The end of a file."""
    return lambda stage: stage.write(name, stage.path(name).read_bytes()[: FULL_BYTES // 2])


def at(**agents: str) -> Step:
    """addresses.json, with nodes where agents of the stage are: node=agent."""

    def step(stage: Stage) -> None:
        stage.write("addresses.json", addresses(stage.words, agents))

    return step
