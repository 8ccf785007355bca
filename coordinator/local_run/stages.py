"""The stages of a local run, one after the other: agents, deployment, feeds, traces, verdict.

In any case the agents are ended, and what was recorded until then is collected where agents still answer.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from coordinator import signals
from coordinator.fleet.addresses import Addresses, AgentAddress, host_of
from coordinator.fleet.agents import Agents, AgentsError
from coordinator.fleet.collection import collect as collection
from coordinator.fleet.deployment import deploy as deployment
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LOG, LocalAgent, Wanted
from coordinator.fleet.profile import profiling
from coordinator.fleet.profile.profiling import Profiled
from coordinator.local_run import agent_logs
from coordinator.local_run.agent_logs import Said
from coordinator.local_run.files import Feed
from coordinator.local_run.input_feeder import FeedProcess, InputFeeder
from coordinator.local_run.listening import Listening
from coordinator.local_run.lost_tuples import Lost, lost
from coordinator.plan import plan_file
from coordinator.report.report_document import Report
from coordinator.report.spark.spark_choice import SparkChoice
from coordinator.spec.costs import waiting
from coordinator.units import counted
from protos import agent_pb2
from protos.plan_document import Plan

DRAIN_S, PROFILE_S = 30.0, 5.0
OWN_S = 10.0  # of a run in which nothing is fed, unless told
ANY_PORT = "127.0.0.1:0"


class Tell(Protocol):
    """Observer of the stages."""

    def say(self, text: str) -> None:
        """A detail of a stage."""

    def begin(self, stage: str) -> None:
        """A stage begins."""

    def now(self, text: str) -> None:
        """What goes on in it."""

    def done(self, text: str) -> None:
        """It has ended, with this."""


@dataclass
class Ran:
    """What came of it. run: the directory; missing: what is not as it should be, a line each; said: warnings of the
    agents until the traces were collected; agents_left: where the agents that still run are; waits: by operator and
    node, of those that take longer by the clock than on the CPU, a sentence; worst_cpu_ns: by operator and node, CPU
    time of the dearest measured call."""

    run: Path
    fed: list[FeedProcess] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    interrupted: bool = False
    real_time: bool = True
    checked: bool = False
    waits: dict[tuple[str, str], str] = field(default_factory=dict)
    worst_cpu_ns: dict[tuple[str, str], int] = field(default_factory=dict)
    page: Path | None = None
    lost: list[Lost] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    agents_left: Path | None = None
    report: Report = field(init=False)  # there once all stages have ended

    def log(self, place: str) -> Path:
        """Where what the agent of a place said is kept."""
        return self.run / "logs" / f"{host_of(place)}.log"


@dataclass(frozen=True)
class Wish:
    """A local run. seconds: of feeding, None: until the files end; keep: addresses.json for agents that stay where all
    has gone well, None: they are ended; checks: of what operators give and do to their inputs."""

    plan: Plan
    feeds: Sequence[Feed]
    operators: Sequence[Path]
    seconds: float | None
    out: Path
    engine: str
    keep: Path | None
    checks: bool = True


def run(wish: Wish, tell: Tell) -> Ran:
    """All stages. Raises CoordinatorError where there is nothing to report, KeyboardInterrupt where it was called off
    before anything was fed."""
    work = Path(tempfile.mkdtemp(prefix="shimekiri-"))
    state = work / "state"
    if wish.keep is not None:  # what stays needs a place that stays
        (wish.keep.parent / "state").mkdir(parents=True, exist_ok=True)
        state = Path(tempfile.mkdtemp(prefix="run-", dir=wish.keep.parent / "state"))
    kept = False
    try:
        with _agents(wish, work, state, tell) as (agents, ran):
            found = {place.name: place for agent in agents for place in agent.places}
            file = Addresses(work / "addresses.json", found, "coordinator run --local")
            file.write()
            plan_file.write(wish.plan, work / "plan.json")
            with Agents(file.of_plan(wish.plan)) as called:
                _deploy(wish.plan, called, tell)
                outputs = {name: found[each.at] for name, each in wish.plan.graph.outputs.items()}
                with Listening(outputs, wish.operators, work / "results") as listening:
                    listening.await_ready()
                    _feed(wish, agents, found, work, ran, tell)
                    _collect(wish, called, work, state, ran, tell)
                for name in outputs:
                    _moved(listening.results(name), ran.run / "results")
                _report(wish, ran, tell)
                if wish.keep is not None and not (ran.missing or ran.left or ran.interrupted):
                    _keep(wish, called, file, ran, tell)
                    kept = True
        return ran
    finally:
        for folder in (work, *(() if kept else (state,))):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _agents(wish: Wish, work: Path, state: Path, tell: Tell) -> Iterator[tuple[list[LocalAgent], Ran]]:
    """One per node of the plan, on free ports of this machine, wherever the real nodes are."""
    cores: dict[str, int] = {}
    for place in wish.plan.cluster.nodes:
        cores[host_of(place)] = cores.get(host_of(place), 0) + 1
    tell.begin("agents")
    tell.now(f"starting {', '.join(cores)}")
    wanted = [Wanted(name, ANY_PORT, ANY_PORT, state.resolve() / name, number) for name, number in cores.items()]
    agents = local_agents.start(wanted, list(wish.operators), log_json=True, checks=wish.checks)
    ran = Ran(work, checked=wish.checks)
    try:
        ran.real_time = all(place.rt for agent in agents for place in agent.places)
        tell.done(f"{', '.join(cores)} on this machine")
        yield agents, ran
    finally:
        if ran.agents_left is None:
            with _undisturbed():
                local_agents.stop(agents)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not leave half of the agents running."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in signals.ending()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _deploy(plan: Plan, called: Agents, tell: Tell) -> None:
    tell.begin("deploy")
    done = deployment.deploy(plan, called, tell.now)
    tell.say(f"plan {done.plan_hash[:8]} on {', '.join(done.nodes)}")


def _feed(
    wish: Wish, agents: Sequence[LocalAgent], found: Mapping[str, AgentAddress], work: Path, ran: Ran, tell: Tell
) -> None:
    """Ctrl-C ends feeding only; what was fed until then is collected."""

    def dead() -> str:
        ended = [agent for agent in agents if agent.process.poll() is not None]
        return f"node {ended[0].wanted.name}: the agent has ended: {ended[0].last_words()}" if ended else ""

    tell.begin("feed")
    at = {name: source.at for name, source in wish.plan.graph.sources.items()}
    repeat = wish.seconds is not None
    alive: set[str] = set()
    try:
        with InputFeeder(wish.feeds, dict(found), at, wish.operators, work, repeat) as feeding:
            ran.fed = feeding.feeds
            try:
                if why := feeding.wait(wish.seconds if wish.feeds else wish.seconds or OWN_S, dead, tell.now):
                    ran.missing.append(why)
            except KeyboardInterrupt:
                ran.interrupted = True
            alive = {fed.feed.source for fed in feeding.feeds if fed.process.poll() is None}
            feeding.end()
    except KeyboardInterrupt:  # as they were started, or a second one
        ran.interrupted = True
    for fed in ran.fed:
        if fed.code and fed.feed.source not in alive:
            ran.missing.append(f"source {fed.feed.source}: {' | '.join(fed.said) or f'exit code {fed.code}'}")
    sent, admitted = sum(fed.sent for fed in ran.fed), sum(fed.admitted for fed in ran.fed)
    own = ", ".join(name for name, source in wish.plan.graph.sources.items() if source.pull is not None)
    done = [f"{counted(sent, 'tuple')} sent, {admitted} admitted"] if ran.fed else []
    done += [f"made by their nodes: {own}"] if own else []
    outside = ", ".join(name for name, source in wish.plan.graph.sources.items() if source.connector is not None)
    done += [f"from other systems: {outside}"] if outside else []
    tell.done("; ".join(done) + (", interrupted" if ran.interrupted else ""))


def _collect(wish: Wish, called: Agents, work: Path, state: Path, ran: Ran, tell: Tell) -> None:
    tell.begin("collect")
    measured = _measured(wish.plan, called)
    ran.worst_cpu_ns = {key: one.worst_ns for key, one in measured.items()}
    ran.waits = {
        (name, node): profiling.waits(name, node, one, ran.real_time)
        for (name, node), one in measured.items()
        if waiting(one.mean_ns, one.elapsed_ns)
    }
    try:
        ran.left = deployment.stop({bytes.fromhex(wish.plan.hash)}, called, DRAIN_S, tell.now)
    except AgentsError as error:
        ran.missing += [line for line in error.lines() if line not in ran.missing]
    ran.run = collection.new_run(wish.out, wish.plan, work / "plan.json", work / "addresses.json")
    done = collection.collect(ran.run, wish.plan, called, tell.now, over=not ran.left)
    ran.missing += [line for line in done.problems if line not in ran.missing]
    logs = ran.run / "logs"
    logs.mkdir(exist_ok=True)
    for name in called.addresses:
        ran.said += agent_logs.keep(state / name / LOG, ran.log(name))
    for fed in ran.fed:
        fed.log = Path(shutil.copyfile(fed.log, logs / fed.log.name))
    tell.done(f"{counted(done.records, 'record')} of {counted(len(called.addresses), 'node')}")


def _measured(plan: Plan, called: Agents) -> dict[tuple[str, str], Profiled]:
    """Calls by operator and node, while the plan is there; agents that do not answer are left out."""
    request = agent_pb2.ProfileRequest(hash=bytes.fromhex(plan.hash))
    replies = called.try_all("Profile", dict.fromkeys(called.addresses, request), PROFILE_S)
    profiles = {node: reply for node, reply in replies.items() if isinstance(reply, agent_pb2.ProfileReply)}
    return profiling.since({}, profiling.counts(plan, profiles))


def _moved(file: Path, folder: Path) -> None:
    if file.stat().st_size:
        folder.mkdir(exist_ok=True)
        shutil.copyfile(file, folder / file.name)


def _keep(wish: Wish, called: Agents, file: Addresses, ran: Ran, tell: Tell) -> None:
    """The plan runs again, on agents that are left to themselves."""
    assert wish.keep is not None
    tell.begin("keep")
    deployment.deploy(wish.plan, called, tell.now)
    Addresses(wish.keep, file.nodes, file.started_by).write()
    ran.agents_left = wish.keep
    tell.done(f"the plan runs again; the agents stay up, {wish.keep} says where")


def _report(wish: Wish, ran: Ran, tell: Tell) -> None:
    from coordinator.report.command import publish
    from coordinator.report.facts.reader import read_run

    tell.begin("report")
    read = [read_run(ran.run)]
    published = publish(read, wish.engine, SparkChoice(), tell.now)
    (ran.report,), ran.page = published.reports, published.page
    ran.lost = lost(read[0])
