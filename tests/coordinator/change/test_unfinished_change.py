"""What is left of a change whose command was killed, while other commands are at it and nodes cannot be reached."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from coordinator.change import apply_change, intention, unfinished
from coordinator.change.deploy_file import deploy_file
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses, AgentAddress
from coordinator.fleet.agents import Agents, AgentsError
from coordinator.fleet.calls import CallError
from coordinator.fleet.deployment import deployed_plans
from coordinator.fleet.deployment.deployed_plans import OtherPlanError
from coordinator.plan import plan_file
from protos import agent_pb2
from tests.simulation.agents.changing.plan_chain import BASE, GROWN, REDUCED, plan

SPARE, SURVIVORS = "changes_spare", "changes_survivors"
PLANS = (BASE, GROWN, REDUCED, SPARE, SURVIVORS)


@dataclass
class Cluster:
    """Agents that agree to all that they are asked. runs: the name of each node's plan; silent: nodes that do not
    answer; asked: methods, with the nodes that were asked; on_ask: called before each."""

    runs: dict[str, str]
    silent: set[str] = field(default_factory=set)
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    on_ask: Callable[[str], None] = lambda _: None

    def reach(self, places: Mapping[str, AgentAddress]) -> Agents:
        return Agents(places, self)

    def all(self, requests: Mapping[str, Mapping[str, Any]], _seconds: float) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for method, of in requests.items():
            self.asked.append((method, tuple(of)))
            self.on_ask(method)
            found[method] = {
                name: CallError("unavailable") if name in self.silent else self._reply(method, name, request)
                for name, request in of.items()
            }
        return found

    def _reply(self, method: str, name: str, request: Any) -> Any:
        if method == "Status":
            made = plan(self.runs[name])
            epoch = 1 + PLANS.index(self.runs[name])
            status = agent_pb2.PlanStatus(
                hash=bytes.fromhex(made.hash), epoch=epoch, state=agent_pb2.COMMITTED, query="line"
            )
            return agent_pb2.StatusReply(node=name, plans=[status])
        if method == "Commit":
            self.runs[name] = next(each for each in PLANS if plan(each).hash == request.hash.hex())
        return agent_pb2.PlanReply(accepted=True)

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, _seconds: float) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Desk:
    folder: Path

    @property
    def plan(self) -> Path:
        return self.folder / "plan.json"

    @property
    def addresses(self) -> Path:
        return self.folder / "addresses.json"

    def lay_out(self, name: str) -> None:
        plan_file.write(plan(name), self.plan)
        nodes = {each: AgentAddress(each, f"127.0.0.1:77{n}0", f"127.0.0.1:77{n}1") for n, each in enumerate("abc")}
        Addresses(self.addresses, nodes).write()

    def leave(self, before: str, after: str) -> intention.Intention:
        """As a command does that is killed when its change is decided."""
        meant = intention.Intention(str(self.plan), str(self.plan), plan(before).hash, plan(after).hash)
        plan_file.write(plan(after), meant.waiting)
        intention.file_of(self.plan).write_text(json.dumps(asdict(meant)))
        return meant


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.lay_out(BASE)
    return made


def _ignore(_: str) -> None:
    pass


def test_a_command_that_is_killed_while_it_finishes_a_change_leaves_the_rest_to_the_next_one(desk: Desk) -> None:
    cluster = Cluster({"a": BASE, "b": GROWN, "c": GROWN})
    desk.leave(BASE, GROWN)

    def kill(method: str) -> None:
        if method == "Prepare":
            raise GeneratorExit

    cluster.on_ask = kill
    with pytest.raises(GeneratorExit):
        unfinished.finish(desk.plan, desk.addresses, _ignore, _ignore, cluster.reach)
    assert plan_file.read(desk.plan).hash == plan(GROWN).hash and cluster.runs["a"] == BASE
    cluster.on_ask = _ignore
    unfinished.finish(desk.plan, desk.addresses, _ignore, _ignore, cluster.reach)
    assert set(cluster.runs.values()) == {GROWN} and not intention.file_of(desk.plan).exists()


def test_a_node_that_cannot_be_told_is_told_by_a_later_command(desk: Desk) -> None:
    cluster = Cluster({"a": BASE, "b": GROWN, "c": GROWN}, {"a"})
    desk.leave(BASE, GROWN)
    for _ in range(2):
        with pytest.raises(AgentsError):
            unfinished.finish(desk.plan, desk.addresses, _ignore, _ignore, cluster.reach)
    cluster.silent.clear()
    unfinished.finish(desk.plan, desk.addresses, _ignore, _ignore, cluster.reach)
    assert set(cluster.runs.values()) == {GROWN} and not intention.file_of(desk.plan).exists()


def test_a_change_that_another_deployment_has_followed_is_not_deployed_again(desk: Desk) -> None:
    cluster = Cluster({"a": SPARE, "b": SPARE, "c": GROWN})
    desk.leave(BASE, GROWN)
    unfinished.finish(desk.plan, desk.addresses, _ignore, _ignore, cluster.reach)
    assert plan_file.read(desk.plan).hash == plan(GROWN).hash
    assert {method for method, _ in cluster.asked} == {"Status"}


def test_without_a_failed_node_what_is_left_of_a_change_does_not_keep_the_others_from_going_on(desk: Desk) -> None:
    cluster = Cluster({"a": SPARE, "b": SPARE, "c": SPARE}, {"c"})
    desk.lay_out(SPARE)
    meant = desk.leave(SPARE, GROWN)
    deploy_file(desk.plan, desk.addresses, "c", True, _ignore, _ignore, cluster.reach)
    assert cluster.runs == {"a": SURVIVORS, "b": SURVIVORS, "c": SPARE}
    assert not meant.waiting.exists()


def test_a_command_that_finds_another_ones_change_decided_leaves_it_to_be_finished(desk: Desk) -> None:
    """The other command was killed after this one had begun."""
    cluster = Cluster({"a": GROWN, "b": GROWN, "c": GROWN})
    meant = desk.leave(BASE, GROWN)
    with cluster.reach(address_file.load(desk.addresses).nodes) as agents, pytest.raises(OtherPlanError):
        apply_change.apply(plan(BASE), plan(GROWN), desk.plan, agents)
    assert intention.left(desk.plan) == meant and meant.waiting.exists()
    unfinished.finish(desk.plan, desk.addresses, _ignore, _ignore, cluster.reach)
    assert plan_file.read(desk.plan).hash == plan(GROWN).hash and not intention.file_of(desk.plan).exists()


def test_the_file_of_a_change_that_is_being_made_is_no_plan_to_give(desk: Desk) -> None:
    meant = desk.leave(BASE, GROWN)
    assert deployed_plans.file_of(desk.plan, meant.after) is None
    kept = deployed_plans.beside(desk.plan, meant.after)
    plan_file.write(plan(GROWN), kept)
    assert deployed_plans.file_of(desk.plan, meant.after) == kept
