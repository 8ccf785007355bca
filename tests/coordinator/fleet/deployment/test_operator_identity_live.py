"""What runs is what was planned: an agent refuses a plan for other code, and says what has been edited since."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.fleet.addresses import Addresses
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgent, Wanted
from tests import command_line
from tests.command_line import Said

QUERY = """
shimekiri: 1
query: doubling
sources: {s: {at: a, type: json, arrival: {burst: 2, period: 100 ms}}}
operators: {by: {run: my.by, in: s, cost: 10 us}}
outputs: {out: {from: by, at: a, deadline: 2 s}}
"""
CLUSTER = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700"}}\noperators: operators.json\n'
OPERATORS = """
from helper import FACTOR
from node_agent.sdk import operator

@operator("my.by", version="%s")
def by(value):
    return {"v": value["v"] * FACTOR}
"""


class Desk:
    """One node, its operators with a module beside them, and the commands of a user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "query.yaml").write_text(QUERY)
        (folder / "cluster.yaml").write_text(CLUSTER)
        self.edit("1", 2)
        self.agent: LocalAgent | None = None
        self.start()

    def edit(self, version: str, factor: int) -> None:
        (self.folder / "operators.py").write_text(OPERATORS % version)
        (self.folder / "helper.py").write_text(
            f"FACTOR = {factor}{' ' * factor}\n"
        )  # bytecode goes by the size as well

    def start(self) -> None:
        """Again, where it runs: with the operators that are there now."""
        if self.agent is not None:
            local_agents.stop([self.agent])
        wanted = Wanted("a", "127.0.0.1:0", "127.0.0.1:0", self.folder / "state")
        (self.agent,) = local_agents.start([wanted], [self.folder / "operators.py"])
        assert self.agent.address is not None
        Addresses(self.folder / "addresses.json", {"a": self.agent.address}).write()

    def plan(self) -> str:
        """As the operators are now; its hash."""
        (self.folder / "operators.json").write_text(self.listed())
        self.call("plan", "query.yaml", "cluster.yaml", "--model", "paper", "-o", "plan.json")
        return str(json.loads((self.folder / "plan.json").read_text())["hash"])

    def call(self, *words: str, code: int = 0) -> Said:
        """A command of the coordinator."""
        done = command_line.run(self.folder, shlex.join(["coordinator", *words]))
        assert done.code == code, done.err + done.out
        return done

    def listed(self) -> str:
        """The operators as they are now, as a process says that has not loaded them before."""
        return subprocess.run(
            [sys.executable, "-m", "node_agent", "operators", "--operators", "operators.py", "--json"],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        ).stdout  # fmt: skip

    def deploy(self, code: int = 0) -> str:
        done = self.call("deploy", "plan.json", code=code)
        return " ".join((done.out + done.err).split())

    def status(self, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.call("status", "--json", code=code).out)["nodes"]["a"]
        return found

    def code(self) -> str:
        listed = json.loads((self.folder / "operators.json").read_text())
        return str(listed["operators"]["my.by"]["code"])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    if desk.agent is not None:
        local_agents.stop([desk.agent])


def test_a_plan_runs_with_the_code_that_it_was_made_for_or_not_at_all(desk: Desk) -> None:
    first = desk.plan()
    assert "is deployed on a" in desk.deploy()
    assert "nothing has changed" in desk.deploy()
    old = desk.code()
    assert desk.status()["operators"] == {"my.by": {"version": "1", "code": old, "edited": False}}

    desk.edit("1", 3)  # a module beside it, under the same version
    said = desk.deploy()
    assert "nothing has changed" not in said and "node a: my.by: edited since the agent loaded it" in said
    assert desk.status()["operators"]["my.by"] == {"version": "1", "code": old, "edited": True}
    assert "edited since the agent loaded it" in desk.call("status").out

    assert desk.plan() != first
    new = desk.code()
    assert new != old
    said = desk.deploy(code=1)
    assert f"my.by is planned as version 1, code {new[:12]}, and loaded here is version 1, code {old[:12]}" in said

    desk.start()  # the plan that is committed is for the code before
    found = desk.status(code=1)
    assert f"plan {first[:8]} does not run" in found["why"] and f"code {new[:12]}" in found["why"]
    assert "is deployed on a" in desk.deploy()
    found = desk.status()
    assert found["operators"]["my.by"] == {"version": "1", "code": new, "edited": False}
    assert [plan["state"] for plan in found["plans"]] == ["committed"], "what could not be loaded has nothing to drain"

    desk.edit("2", 3)
    desk.plan()
    said = desk.deploy(code=1)
    assert (
        f"my.by is planned as version 2, code {desk.code()[:12]}, and loaded here is version 1, code {new[:12]}" in said
    )
