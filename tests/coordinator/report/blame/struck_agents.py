"""Runs of real agents on this machine that something happens to; the queries are those of the simulated runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil

from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgent, Wanted
from coordinator.plan import plan_file
from node_agent.sdk import Source
from protos.plan_document import Plan
from tests.coordinator.report.blame.constructed import Constructed, Expected, plan_of

SECONDS = 4.0
SHORTLY = 0.03  # behind the instant at which both sources send
CALM = {
    "deadline": 150,
    "done": 900,
    "s_period": 100,
    "n_period": 200,
    "s_more": ", tolerance: 100 ms",
    "n_more": ", tolerance: 100 ms",
}


Strike = Callable[[LocalAgent], None]


@dataclass
class Live:
    """What happens. busy_us: CPU time that operators really take; feeds: how often and how many at once, and how old;
    strike: what happens in the middle, to the node of that name."""

    figures: dict[str, Any] = field(default_factory=dict)
    busy_us: Mapping[str, int] = field(default_factory=dict)
    n_burst: int = 2
    s_age_ms: float = 0.0
    s_burst: int = 1
    model: str = "paper"
    strike: Strike | None = None
    said: str = ""
    expected: Expected | None = None


@dataclass(frozen=True)
class Feed:
    """How a source is fed: at which node, how often, how many at once, and how old."""

    source: str
    node: str
    period_s: float
    n: int = 1
    age_ms: float = 0.0


def runtime_of(agent: LocalAgent) -> int:
    """Process id of the child of that name."""
    children = psutil.Process(agent.process.pid).children()
    return next(each.pid for each in children if Path(f"/proc/{each.pid}/comm").read_text().startswith("runtime"))


def _pause(random: Random) -> Live:
    seconds = random.uniform(0.4, 0.8)

    def strike(agent: LocalAgent) -> None:
        runtime = runtime_of(agent)
        os.kill(runtime, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(runtime, signal.SIGCONT)

    expected = Expected(("pause",), ("",))
    return Live(strike=strike, said=f"a stands still for {seconds * 1000:.0f} ms", expected=expected)


def _restart(random: Random) -> Live:
    def strike(agent: LocalAgent) -> None:
        os.kill(runtime_of(agent), signal.SIGKILL)

    figures = {
        "near": 20_000, "near_run": "busy", "near_more": ", with: {cpu_us: 18000}", "s_burst": 4, "s_period": 200,
    }  # fmt: skip
    expected = Expected(("restart",), ("",))
    return Live(figures, s_burst=4, strike=strike, said="the runtime of a is killed", expected=expected)


def _cost(random: Random) -> Live:
    ms = random.randint(180, 400)
    figures = {"near_run": "busy", "near_more": f", with: {{cpu_us: {ms * 1000}}}, hang: 5 s", "s_period": 500}
    expected = Expected(("cost_above_plan",), ("near",), "watch")
    return Live(figures, said=f"near takes {ms} ms in place of 0.3 ms", expected=expected)


def _burst(random: Random) -> Live:
    n = random.randint(40, 80)
    figures = {
        "heavy": 10_000,
        "heavy_run": "busy",
        "heavy_more": ", with: {cpu_us: 9000}",
        "done": 100,
        "n_period": 1500,
    }
    expected = Expected(("burst",), ("n",), "other")
    return Live(figures, n_burst=n, said=f"{n} tuples of n in place of 2", expected=expected)


def _age(random: Random) -> Live:
    ms = random.randint(200, 500)
    return Live(s_age_ms=ms, said=f"tuples are {ms} ms old", expected=Expected(("admission_age",), ("s",), "watch"))


def _policed(random: Random) -> Live:
    n = random.randint(6, 12)
    figures = {
        "s_more": ", max_age: 100 ms, tolerance: 20 ms",
        "s_period": 1000,
        "deadline": 900,
        "done": 2000,
        "n_burst": 6,
    }
    expected = Expected(("policed",), ("s",), "watch")
    return Live(figures, s_burst=n, model="sound", said=f"{n} tuples in place of 1", expected=expected)


LIVE: Mapping[str, Callable[[Random], Live]] = {
    "live pause": _pause, "live restart": _restart, "live cost": _cost, "live burst": _burst, "live age": _age,
    "live policed": _policed,
}  # fmt: skip


def construct(cause: str, seed: int, folder: Path) -> Constructed:
    """A run in which that happens."""
    live = LIVE[cause](Random(f"{cause} {seed}"))
    plan = plan_of(folder, {**CALM, **live.figures}, live.model)
    periods_s = {name: plan.graph.sources[name].arrival.period_ns / 1e9 for name in "sn"}
    feeds = [Feed("s", "a", periods_s["s"], live.s_burst, live.s_age_ms), Feed("n", "a", periods_s["n"], live.n_burst)]
    strike = None if live.strike is None else ("a", live.strike)
    return Constructed(cause, live.said, live.expected, run_of(plan, feeds, strike, folder), "live")


def run_of(plan: Plan, feeds: list[Feed], strike: tuple[str, Strike] | None, folder: Path) -> Path:
    """The plan on agents of this machine, fed for a while; in the middle something happens to one of its nodes."""
    plan_file.write(plan, folder / "plan.json")
    wanted = [Wanted(name, "127.0.0.1:0", "127.0.0.1:0", folder / "state" / name) for name in plan.nodes]
    agents = local_agents.start(wanted)
    try:
        return _play(plan, feeds, strike, agents, folder)
    finally:
        local_agents.stop(agents)


def _play(
    plan: Plan, feeds: list[Feed], strike: tuple[str, Strike] | None, agents: list[LocalAgent], folder: Path
) -> Path:
    places = {agent.wanted.name: agent.address for agent in agents if agent.address is not None}
    addresses = Addresses(folder / "addresses.json", places)
    addresses.write()
    with Agents(addresses.of_plan(plan)) as connected:
        deploy.deploy(plan, connected)
        until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=_feed, args=(places[each.node].data, each, until)) for each in feeds]
        for thread in threads:
            thread.start()
        if strike is not None:
            time.sleep(SECONDS / 2 + SHORTLY)
            node, happens = strike
            happens(next(each for each in agents if each.wanted.name == node))
        for thread in threads:
            thread.join()
        time.sleep(0.5)
        deploy.stop(None, connected, 60)
        run = collect.new_run(folder / "runs", plan, folder / "plan.json", folder / "addresses.json")
        collect.collect(run, plan, connected)
    return run


def _feed(address: str, feed: Feed, until: float) -> None:
    with suppress(Exception), Source(address, feed.source, timeout=20, outage=20) as source:
        due = time.monotonic()
        while due < until:
            source.send_many([{"n": i} for i in range(feed.n)], age_ms=feed.age_ms)
            due = max(due + feed.period_s, time.monotonic())
            time.sleep(due - min(due, time.monotonic()))
