"""The line whose user adds and removes a query, and goes on without a node that has failed.

Its user has a desk: `plan.json`, which `add` and `remove` change, `spare.json`, a plan that survives the failure of a
node, and the addresses. Every command is the coordinator's own, in virtual time; the plans were made before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from greenlet import GreenletExit

from coordinator.change import apply_change, intention, unfinished
from coordinator.change.deploy_file import deploy_file
from coordinator.errors import CoordinatorError
from coordinator.fleet.addresses import Addresses, AgentAddress
from coordinator.fleet.agents import Agents
from coordinator.fleet.deployment import deploy, deployed_plans
from coordinator.plan import plan_file
from node_agent.core.lineage import Lineage
from node_agent.virtual.simulated.simulated_disk import Speed
from tests.simulation.agents.agents_line import (
    DEADLINES,
    DELIVERED,
    FED,
    MS,
    PLANS,
    SECOND,
    AgentsLine,
    Deployment,
    Seen,
    Shape,
)
from tests.simulation.agents.changing.plan_chain import BASE, CHAIN, WITH_MORE, following, plan
from tests.simulation.agents.coordinator_process import CoordinatorProcess
from tests.simulation.agents.desk import Desk

SPARE, SURVIVORS = "changes_spare", "changes_survivors"
IN_BASE: dict[str, tuple[int, tuple[tuple[str, int], ...]]] = {
    "out": (1, (("a", 1), ("b", 2), ("c", 4))), "mid": (1, (("a", 1), ("b", 2))),
    "side": (2, (("b", 3), ("c", 5), ("b", DELIVERED))),
}  # fmt: skip
CHANGING = Shape(
    (*CHAIN, SPARE, SURVIVORS),
    {
        **dict.fromkeys(CHAIN, IN_BASE),
        **{name: {**IN_BASE, "more": (1, (("a", 1), ("c", 6), ("a", DELIVERED)))} for name in WITH_MORE},
        SPARE: {
            "out": (1, (("a", 1), ("c", 3), ("c", 4))), "mid": (1, (("a", 1), ("c", 3), ("b", DELIVERED))),
            "side": (2, (("b", 2), ("c", 5), ("b", DELIVERED))),
        },
        SURVIVORS: {"mid": (1, (("a", 1), ("b", 2))), "side": (2, (("b", 3),))},
    },
    {**DEADLINES, "more": 250 * MS},
    plan,
)  # fmt: skip
PLAN, ASIDE = "plan.json", "spare.json"
FILES = dict(zip(PLANS, (PLAN, ASIDE), strict=True))
FAILS = "c"  # no client feeds it
LOOK_NS = 14 * SECOND  # after it was mended


@dataclass
class Command(Deployment):
    """kind: deploy, fail_over, add or remove; file: of the plan; ended_ns: 0 while it is at it; other_plan: refused,
    since the nodes run another one."""

    kind: str = "deploy"
    file: str = PLAN
    ended_ns: int = 0
    other_plan: bool = False


class Counted(NamedTuple):
    """What the operator with state said of a tuple. epoch: of the incarnation that gave the result."""

    lineage: Lineage
    epoch: int
    count: int


class _Killable(CoordinatorProcess):
    """Does nothing more on the desk when it is killed."""

    desk: Desk

    def kill(self) -> bool:
        before = self.desk.files()
        alive = super().kill()
        self.desk.put_back(before)
        return alive


class ChangingLine(AgentsLine):
    """away: spans in which a node could not be reached, by design of a fault; within_ns: a change with nothing in its
    way has mostly ended by then; runs: what each node admitted tuples under at the end."""

    shape = CHANGING

    def __init__(self, seed: int, run: Path, ring_records: int = 4096) -> None:
        self.commands: list[Command] = []
        self.counted: list[Counted] = []
        self.away: list[tuple[str, int, int]] = []
        self.runs: dict[str, str] = {}
        super().__init__(seed, run, ring_records)
        self.within_ns = 5 * MS
        if self.random.random() < 0.5:  # slow disks: other processes go on while one writes
            speed = Speed(0, self.random.randint(1, 20) * MS)
            self.within_ns += 12 * speed.sync_ns
            for machine in self.machines.values():
                machine.disk.speed, machine.disk.spend = speed, machine.spend
        self.desk = Desk(run / "desk")
        plan_file.write(plan(BASE), self.file(PLAN))
        plan_file.write(plan(SPARE), self.file(ASIDE))

    def file(self, name: str) -> Path:
        """On the desk."""
        return self.desk.folder / name

    def on_result(self, node: str, epoch: int, at_ns: int, lineage: Lineage, payload: Any) -> None:
        """A result was delivered."""
        super().on_result(node, epoch, at_ns, lineage, payload)
        if node == "b" and "count" in payload:
            self.counted.append(Counted(lineage, epoch, payload["count"]))

    @staticmethod
    def output_of(seen: Seen) -> str:
        """Which output gave that result."""
        from_s = seen.lineage[0] == FED["s"][0]
        return {"a": "more", "b": "mid" if from_s else "side", "c": "out"}[seen.output_node]

    # -- commands

    def coordinate(self, body: Callable[[Agents, CoordinatorProcess], None]) -> CoordinatorProcess:
        """A coordinator that does this, and leaves the desk as it is when it is killed."""

        def at_the_desk(agents: Agents, process: CoordinatorProcess) -> None:
            try:
                body(agents, process)
            except GreenletExit:
                if self.desk.after_kill():
                    self.happened["killed at a step"] += 1
                    self.time.after(0, process.network.end)
                raise

        clock = self.new_clock("coordinator")
        made = _Killable(self.time, self._coordinator_host, clock, self.machines, at_the_desk, self.ledger)
        made.desk = self.desk
        self.coordinators.append(made)
        return made

    def _deploy(self, name: str, agents: Agents, process: CoordinatorProcess, tries: int) -> None:
        self.deploy_file(FILES[name], process, tries)

    def deploy_file(self, file: str, process: CoordinatorProcess, tries: int, without: str | None = None) -> None:
        """`coordinator deploy FILE --replace`, or --without."""
        kind = "fail_over" if without else "deploy"

        def once(command: Command) -> None:
            done = deploy_file(
                self.file(file), self._addresses().path, without, True, self._told, self._told, process.reach
            )
            command.plan = _named(done.plan_hash)

        self._try(kind, file, SURVIVORS if without else self.on_file(file), once, tries, process)

    def change(self, kind: str, tries: int = 1, plans_ns: int = 0) -> CoordinatorProcess:
        """A coordinator that adds the query, or removes it. Where another plan file runs, that of changes is deployed
        before. plans_ns: how long it plans, between what it reads and what it asks nodes to do."""

        def body(_: Agents, process: CoordinatorProcess) -> None:
            if next((each.file for each in reversed(self.commands) if each.result == "committed"), PLAN) != PLAN:
                self.deploy_file(PLAN, process, 3)
            after = following(self.on_file(PLAN), kind)
            self._try(kind, PLAN, after, lambda command: self._change(command, process, plans_ns), tries, process)

        return self.coordinate(body)

    def _change(self, command: Command, process: CoordinatorProcess, plans_ns: int = 0) -> None:
        path, addresses = self.file(PLAN), self._addresses()
        unfinished.finish(path, addresses.path, self._told, self._told, process.reach)
        made = plan_file.read(path)
        before = _named(made.hash)
        after_name = following(before, command.kind)
        if after_name == before:
            command.plan = ""  # it is there already, or not there any more
            return
        command.plan = after_name
        with process.reach(addresses.of_plan(made)) as agents:
            deployed_plans.expect(made, path, agents.status())
        after = plan(command.plan)
        if plans_ns:
            process.sleep(plans_ns)
        left = left_of_change(self) is not None
        with process.reach(addresses.of(dict.fromkeys([*made.nodes, *after.nodes]))) as agents:
            try:
                apply_change.apply(made, after, path, agents, None, self._told)
            except deployed_plans.OtherPlanError:
                self.happened["decided change left"] += left_of_change(self) is not None
                raise
        self.happened["undecided change made"] += left

    def on_file(self, name: str) -> str:
        """The name of the plan that a file on the desk holds."""
        return _named(plan_file.read(self.file(name)).hash)

    def _try(
        self, kind: str, file: str, name: str, once: Callable[[Command], None], tries: int, process: CoordinatorProcess
    ) -> None:  # fmt: skip
        for _ in range(tries):
            command = Command(name, self.time.now_ns, kind=kind, file=file)
            self.commands.append(command)
            self.deployments.append(command)
            try:
                once(command)
                command.result = "committed"
                if not command.plan:  # there was nothing to do
                    self.commands[:] = [each for each in self.commands if each is not command]
                    self.deployments[:] = [each for each in self.deployments if each is not command]
                return
            except CoordinatorError as error:
                command.result, command.why = "failed", str(error)
                command.other_plan = isinstance(error, deployed_plans.OtherPlanError)
                self.happened["change refused"] += command.other_plan
            finally:
                command.ended_ns = self.time.now_ns
            process.sleep(SECOND)

    def _addresses(self) -> Addresses:
        """As they are now: somebody has found them out."""
        nodes = {name: AgentAddress(name, each.control, each.data) for name, each in self.machines.items()}
        addresses = Addresses(self.file("addresses.json"), nodes)
        addresses.write()
        return addresses

    def _told(self, text: str) -> None:
        """By a command."""
        self.happened["undecided change undone"] += "broken off before" in text
        self.happened["decided change finished"] += "broken off when" in text
        self.happened["change waited"] += text.startswith("waiting until")

    def expect_on_desk(self) -> None:
        """A plan that all nodes run is in a file, also where a change was broken off."""
        runs = {committed_on(self, name) for name in self.machines}
        files = {self.on_file(path.name) for path in self.desk.folder.glob("[ps]*.json")}
        if len(runs) == 1 and (lost := runs - {*files, ""}):
            self.problems.append(f"all nodes run {lost.pop()}, and no file on the desk holds it")

    # -- what holds at the end

    def mend(self, damaged: bool) -> None:
        """The last command is given again where it has not told that it is done, or where others have crossed it, or
        would."""
        last = self.commands[-1]
        crossed = any(not 0 < each.ended_ns <= last.began_ns for each in self.commands[:-1])
        if damaged or crossed or self.more_to_come or last.result != "committed":
            for process in self.coordinators:
                process.kill()
            if last.kind in {"add", "remove"}:
                self.coordinate(lambda agents, process: self._again(last.kind, agents, process))
            else:
                file = last.file
                self.coordinate(lambda _, process: self.deploy_file(file, process, 5))
        self.time.after(LOOK_NS, self._look)

    def _again(self, kind: str, agents: Agents, process: CoordinatorProcess) -> None:
        """A change, from wherever things are; nobody else is at it."""
        self.deploy_file(PLAN, process, 5)
        after = following(self.on_file(PLAN), kind)
        if begun := deployed_plans.begun(plan(after), agents.status()):
            deploy.give_up(set(begun), agents)  # a change does it too, when it has waited for long
        self._try(kind, PLAN, after, lambda command: self._change(command, process), 5, process)

    def _look(self) -> None:
        for name in self.machines:
            self.runs[name] = committed_on(self, name)

    def steady(self) -> Iterator[tuple[Command, int]]:
        """Commands that have ended well with no other one under way, each with the instant at which the next began."""
        for index, command in enumerate(self.commands):
            ended = all(each.ended_ns and each.ended_ns <= command.began_ns for each in self.commands[:index])
            following = min((each.began_ns for each in self.commands[index + 1 :]), default=1 << 62)
            if ended and command.result == "committed" and following > command.ended_ns:
                yield command, following


def committed_on(line: AgentsLine, name: str) -> str:
    """The name of the plan that a node admits tuples under; empty: none that is known."""
    agent = line.machines[name].agent
    runtime = agent.runtime.runtime if agent is not None and agent.runtime is not None else None
    committed = runtime.plans.committed if runtime is not None else None
    return _named(committed.hash) if committed is not None else ""


@cache
def _names() -> dict[str, str]:
    return {plan(name).hash: name for name in CHANGING.plans}


def _named(hash_: str) -> str:
    return _names().get(hash_, "")


def left_of_change(line: ChangingLine) -> Path | None:
    """The file of a change that is not finished, if there is one."""
    path = intention.file_of(line.file(PLAN))
    return path if path.exists() else None


__all__ = ["CHANGING", "ChangingLine", "Command", "Counted", "committed_on", "left_of_change"]
