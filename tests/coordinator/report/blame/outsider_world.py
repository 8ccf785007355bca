"""How a run of an outsider is made: a plan, and what really happens in virtual time, which the plan does not say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from random import Random
from typing import Any

from coordinator.model.choices import Choices
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from node_agent.sdk import Many, operator
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan.arrivals import BurstArrival
from protos.plan_document import Plan
from tests.coordinator.report.blame.outsider_queries import texts

MS = 1_000_000
LONG_MS = 1200


@operator("outsider.beside", inputs={"value": "json"}, side={"other": "json"}, output="json")
def _beside(value: Any, *, other: Any) -> Any:
    return value


@operator("outsider.thrice", inputs={"value": "json"}, output="json")
def _thrice(value: Any) -> Any:
    return Many(value, value, value)


@operator("outsider.fails", inputs={"value": "json"}, output="json")
class _Fails:
    """Raises on every third tuple."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, value: Any) -> Any:
        self.seen += 1
        if not self.seen % 3:
            raise ValueError("the third one")
        return value


@dataclass(frozen=True)
class Strike:
    """What happens that the plan does not say, and under which conditions.

    dear: what operators cost, as a factor; slow: ms that a way takes beyond its link's latency; thin: bit/s of a way;
    more: tuples of a source at an instant in ms; old: how old in ms every so-manieth tuple of a source is.
    """

    dear: Mapping[str, float] = field(default_factory=dict)
    slow: Mapping[tuple[str, str], float] = field(default_factory=dict)
    thin: Mapping[tuple[str, str], int] = field(default_factory=dict)
    more: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    old: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    loss: float = 0.0
    policy: str | None = None
    batch: str | None = None
    decision_us: int = 0

    def with_(self, other: Strike) -> Strike:
        """Both."""
        plain = Strike()
        changed = {
            each.name: getattr(other, each.name)
            for each in fields(Strike)
            if getattr(other, each.name) != getattr(plain, each.name)
        }
        return replace(self, **changed)


@dataclass(frozen=True)
class Setting:
    """Queries, figures of theirs, the model that plans them, and what is no cause: ages of all tuples, phases in ms."""

    queries: tuple[str, ...]
    figures: Mapping[str, object] = field(default_factory=dict)
    model: str = "paper"
    ages: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    jitter: str = "uniform:0.85,1.05"
    trials: int = 1


def registry() -> Registry:
    """With the operators above."""
    return Registry(operators=[_beside, _thrice, _Fails])


def plan_of(folder: Path, setting: Setting) -> Plan:
    """The plan of all its queries."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts(setting.queries, setting.figures).items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "operators.json").write_text(json.dumps(registry().describe()))
    choices = Choices(best_effort=True, quick=True)
    if setting.model == "paper":
        choices = replace(choices, allocator="sqpr", sub_deadlines="proportional")
    elif setting.model == "operator":
        choices = replace(choices, allocator="sqpr", sub_deadlines="proportional", units="operator")
    files = [folder / f"{name}.yaml" for name in setting.queries]
    return planner.make_plan(files, folder / "cluster.yaml", choices)


def really(plan: Plan, strike: Strike) -> Plan:
    """The same plan, hash included, with costs and links as they are."""
    nodes = {}
    for name, local in plan.nodes.items():
        made = nodes[name] = type(local)()
        made.CopyFrom(local)
        for each in made.operators:
            each.cost_ns = round(each.cost_ns * strike.dear.get(each.name, 1))
        for peer in made.peers:
            peer.latency_ns += round(strike.slow.get((name, peer.name), 0) * MS)
            peer.bandwidth_bps = strike.thin.get((name, peer.name), peer.bandwidth_bps)
    return replace(plan, nodes=nodes)


class _Fed:
    """Admits what sources declare, and what else is to come."""

    def __init__(self, plan: Plan, setting: Setting, strike: Strike) -> None:
        found = []
        for name, source in plan.graph.sources.items():
            arrival = source.arrival
            if not isinstance(arrival, BurstArrival) or name not in setting.phases:
                continue
            period_ms, phase_ms = arrival.period_ns / MS, setting.phases[name]
            old_ms, every = strike.old.get(name, (0.0, 1))
            for number in range(round(LONG_MS / period_ms)):
                age_ms = old_ms if old_ms and number % every == every - 1 else setting.ages.get(name, 0.0)
                found.append(self._admission(name, phase_ms + number * period_ms, arrival.burst, age_ms))
            for at_ms, count in strike.more.get(name, ()):
                found.append(self._admission(name, at_ms, count, setting.ages.get(name, 0.0)))
        self._all = sorted(found, key=lambda each: each.at_ns)

    @staticmethod
    def _admission(name: str, at_ms: float, count: int, age_ms: float) -> Admission:
        offers = tuple(Offer({"n": number}, round(age_ms * MS)) for number in range(count))
        return Admission(round(at_ms * MS), name, offers)

    def begin(self, trial: int) -> Sequence[Admission]:
        return self._all

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        raise AssertionError("all is planned")

    def deliver(self, delivery: Delivery) -> None:
        pass


def drawn_phases(setting: Setting, random: Random) -> Setting:
    """With each source at a phase of its own."""
    names = "snpukmvgef"
    return replace(setting, phases={name: round(random.uniform(0, 20), 3) for name in names} | dict(setting.phases))


def play(setting: Setting, strike: Strike, folder: Path, seed: int = 1) -> Path:
    """The run directory."""
    plan = plan_of(folder, setting)
    scenario = Scenario(
        trials=setting.trials, seed=seed, policy=strike.policy, batch=strike.batch, loss=strike.loss,
        decision_ns=strike.decision_us * 1000, jitter=parse_jitter(setting.jitter),
    )  # fmt: skip
    made = simulate(really(plan, strike), scenario, registry(), world=_Fed(plan, setting, strike))
    write_run(made, folder / "run")
    (folder / "run" / "plan.json").write_text(json.dumps(plan.to_json()))
    return folder / "run"
