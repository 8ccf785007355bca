"""Runs whose misses have one cause, drawn with its intensity from a seed: what blame is scored on.

Two queries on two nodes. `watch` asks for results soon, `other` has heavier work on the same core:

    watch   s -> near (a) -> far (b) -> out (b)          other   n -> heavy (a) -> sum (a) -> done (a)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from coordinator.model.choices import Choices
from coordinator.model.task_units import Units
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from node_agent.sdk import Many, operator
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan

MS = 1_000_000
POLICIES = (None, "fifo", "edf-e2e", "slack")
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
  b: {address: "127.0.0.1:7710", policy: edf}
links:
  - {between: [a, b], latency: 1 ms, bandwidth: 1 Gbit/s}
operators: operators.json
"""
WATCH = """
shimekiri: 1
query: watch
sources:
  s: {{at: a, type: json, arrival: {{burst: {s_burst}, period: {s_period} ms}}{s_more}}}
operators:
  near: {{run: {near_run}, in: s, cost: {near} us, nodes: [a]{near_more}}}
  far: {{run: pass, in: near, cost: {far} us, nodes: [b]}}
outputs:
  out: {{from: far, at: b, deadline: {deadline} ms}}
"""
OTHER = """
shimekiri: 1
query: other
sources:
  n: {{at: a, type: json, arrival: {{burst: {n_burst}, period: {n_period} ms}}{n_more}}}
operators:
  {split}heavy: {{run: {heavy_run}, in: {heavy_in}, cost: {heavy} us, nodes: [a]{heavy_more}}}
  sum: {{run: pass, in: heavy, cost: 50 us, nodes: [a]}}
outputs:
  done: {{from: sum, at: a, deadline: {done} ms}}
"""
CALM = {
    "s_burst": 1, "s_period": 50, "s_more": "", "near": 300, "near_run": "pass", "near_more": "", "far": 300,
    "deadline": 20, "n_burst": 2, "n_period": 100, "heavy": 1000, "done": 90, "split": "", "heavy_in": "n",
    "heavy_run": "pass", "heavy_more": "", "n_more": "",
}  # fmt: skip


@operator("blame.many", inputs={"value": "json"}, output="json")
class _Several:
    """More results than a plan expects that knows of no selectivity."""

    def __init__(self, n: int = 2) -> None:
        self.n = n

    def __call__(self, value: Any) -> Any:
        return Many(*[value] * self.n)


@operator("blame.fails", inputs={"value": "json"}, output="json")
class _Fails:
    """Raises on every so-manieth tuple."""

    def __init__(self, every: int = 3) -> None:
        self.every, self.seen = every, 0

    def __call__(self, value: Any) -> Any:
        self.seen += 1
        if self.seen % self.every == 0:
            raise ValueError("not this one")
        return value


def _registry() -> Registry:
    return Registry(operators=[_Several, _Fails])


@dataclass(frozen=True)
class Expected:
    """What has to be named as the main cause: one of the kinds and of the subjects; query: of the subject; nodes: that
    it may be on; outputs: those that are struck; parts: who else has a part. Empty: any query, any node, all outputs,
    nobody. Nobody else may be named as a main cause, of whichever output."""

    kinds: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    query: str = ""
    outputs: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Constructed:
    """A run. cause: what was drawn; intensity: in words; where: how it ran."""

    cause: str
    intensity: str
    expected: Expected | None
    path: Path
    where: str = "virtual"


@dataclass
class Setting:
    """What a cause changes of the calm run: figures of the queries, the scenario, what operators really cost."""

    figures: dict[str, Any] = field(default_factory=dict)
    scenario: Scenario = field(default_factory=lambda: Scenario(bursts=12))
    dear: Mapping[str, float] = field(default_factory=dict)
    model: str = "paper"
    units: Units = "path"
    said: str = ""
    expected: Expected | None = None


def plan_of(folder: Path, figures: Mapping[str, Any], model: str = "paper", units: Units = "path") -> Plan:
    """The plan of both queries."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("watch", WATCH), ("other", OTHER)):
        (folder / f"{name}.yaml").write_text(text.format(**{**CALM, **figures}))
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "operators.json").write_text(json.dumps(_registry().describe()))
    choices = Choices(units=units, allocator="sqpr", sub_deadlines="proportional", best_effort=True, quick=True)
    if model == "sound":
        choices = Choices(best_effort=True, quick=True)
    return planner.make_plan([folder / "watch.yaml", folder / "other.yaml"], folder / "cluster.yaml", choices)


def dearer(plan: Plan, factors: Mapping[str, float]) -> Plan:
    """The same plan, hash included, with operators that cost more than it says."""
    nodes = {}
    for name, local in plan.nodes.items():
        nodes[name] = type(local)()
        nodes[name].CopyFrom(local)
        for each in nodes[name].operators:
            each.cost_ns = round(each.cost_ns * factors.get(each.name, 1))
    return replace(plan, nodes=nodes)


def run_of(folder: Path, setting: Setting) -> Path:
    """Simulate it; returns the run directory."""
    plan = plan_of(folder, setting.figures, setting.model, setting.units)
    made = simulate(dearer(plan, setting.dear), setting.scenario, _registry())
    write_run(made, folder / "run")
    (folder / "run" / "plan.json").write_text(json.dumps(plan.to_json()))
    return folder / "run"


def _calm(random: Random) -> Setting:
    return Setting(said="nothing", expected=None)


def _blocked(random: Random) -> Setting:
    times = random.uniform(1.2, 3)
    heavy = round(20_000 * times)
    figures = {"heavy": heavy, "n_burst": 1, "n_period": 300, "done": 400}
    scenario = Scenario(bursts=4, policy=random.choice(POLICIES), phase_ns={"s": random.randint(1, 3) * MS})
    expected = Expected(("blocked",), ("heavy..sum", "heavy"), "other")
    return Setting(figures, scenario, said=f"an instance of {times:.1f} deadlines, as planned", expected=expected)


def _burst(random: Random) -> Setting:
    times = random.randint(8, 40)
    figures = {"heavy": 2000, "n_burst": 2, "n_period": 400, "done": 18, "deadline": 22}
    scenario = Scenario(
        bursts=4, burst={"n": 2 * times}, policy=random.choice(POLICIES), phase_ns={"s": random.randint(1, 5) * MS}
    )
    return Setting(figures, scenario, said=f"{times} times n's burst", expected=Expected(("burst",), ("n",), "other"))


def _cost(random: Random) -> Setting:
    who, times = random.choice([("near", 80), ("far", 80), ("heavy", 30)]), random.uniform(1, 3)
    scenario = Scenario(bursts=8, policy=random.choice(POLICIES[:3]), phase_ns={"s": random.randint(1, 5) * MS})
    name = {"near": ("near",), "far": ("far",), "heavy": ("heavy..sum", "heavy")}[who[0]]
    figures = {"s_period": 200, "n_period": 400, "done": 390, "n_burst": 1}
    query = "other" if who[0] == "heavy" else "watch"
    dear = {who[0]: who[1] * times}
    expected = Expected(("cost_above_plan",), name, query)
    return Setting(
        figures, scenario, dear, said=f"{who[0]} costs {who[1] * times:.0f} times as much", expected=expected
    )


def _batch(random: Random) -> Setting:
    n = random.randint(12, 30)
    figures = {"heavy": 2000, "n_burst": n, "n_period": 400, "done": 390}
    scenario = Scenario(bursts=4, batch="burst", phase_ns={"s": random.randint(1, 4) * MS})
    if random.random() < 0.5:
        scenario = replace(scenario, batch=None, policy="bts:phi=200ms")
    expected = Expected(("batch",), ("",))
    return Setting(
        figures, scenario, said=f"bursts of {n} at once ({scenario.policy or 'edf, whole bursts'})", expected=expected
    )


def _link(random: Random) -> Setting:
    ms = random.randint(22, 120)
    return Setting(
        {},
        Scenario(bursts=8, latency_ns=ms * MS),
        said=f"links take {ms} ms, 1 ms is planned",
        expected=Expected(("link",), ("a -> b",)),
    )


def _loss(random: Random) -> Setting:
    loss = random.uniform(0.1, 0.5)
    return Setting(
        {},
        Scenario(bursts=30, loss=loss),
        said=f"{loss:.0%} lost on links",
        expected=Expected(("link",), ("a -> b",)),
    )


def _age(random: Random) -> Setting:
    ms = random.randint(21, 200)
    return Setting(
        {},
        Scenario(bursts=8, ages_ns={"s": ms * MS}),
        said=f"tuples are {ms} ms old",
        expected=Expected(("admission_age",), ("s",), "watch"),
    )


def _overload(random: Random) -> Setting:
    n, use = random.randint(3, 5), random.uniform(1.1, 1.9)
    split = f"split: {{run: blame.many, in: n, cost: 50 us, nodes: [a], with: {{n: {n}}}}}\n  "
    figures = {
        "heavy": round(use * 10_000 / n), "heavy_in": "split", "split": split, "n_burst": 1, "n_period": 10,
        "done": 19, "deadline": 40,
    }  # fmt: skip
    expected = Expected(("overloaded_core",), ("heavy..sum", "heavy"), "other")
    return Setting(
        figures,
        Scenario(bursts=20, policy=random.choice(POLICIES)),
        units="operator",
        said=f"{use:.0%} of a core asked by heavy",
        expected=expected,
    )


def _failed(random: Random) -> Setting:
    every = random.randint(1, 4)
    figures = {"near_run": "blame.fails", "near_more": f", with: {{every: {every}}}"}
    expected = Expected(("operator_failed",), ("near",), "watch")
    return Setting(figures, Scenario(bursts=8), said=f"near raises on every {every}th tuple", expected=expected)


def _policed(random: Random) -> Setting:
    n = random.randint(3, 12)
    figures = {"s_more": ", max_age: 5 ms", "deadline": 60}
    expected = Expected(("policed",), ("s",), "watch")
    return Setting(
        figures, Scenario(bursts=6, burst={"s": n}), model="sound", said=f"{n} tuples in place of 1", expected=expected
    )


def _full(random: Random) -> Setting:
    n = random.randint(20, 60)
    figures = {
        "near": 1000,
        "near_more": ", queue: {most: 400 B, on_full: drop-tail}",
        "s_burst": n,
        "s_period": 400,
        "deadline": 300,
    }
    expected = Expected(("queue_full",), ("near", ""), "watch")
    return Setting(figures, Scenario(bursts=4), said=f"bursts of {n} into 400 bytes", expected=expected)


def _rate(random: Random) -> Setting:
    n = random.randint(8, 30)
    figures = {"s_more": ", max_rate: {tuples: 4, per: 1 s}", "s_burst": n, "s_period": 400, "deadline": 300}
    expected = Expected(("rate",), ("s",), "watch")
    return Setting(figures, Scenario(bursts=4), said=f"bursts of {n} at 4 a second", expected=expected)


def _deadline(random: Random) -> Setting:
    us = random.randint(11_000, 30_000)
    figures = {"near": us, "far": us, "s_period": 200}
    return Setting(
        figures,
        Scenario(bursts=6),
        said=f"{2 * us / 1000:.0f} ms of planned work",
        expected=Expected(("running",), ("near", "far"), "watch"),
    )


VIRTUAL: Mapping[str, Callable[[Random], Setting]] = {
    "nothing": _calm, "blocked": _blocked, "burst": _burst, "cost": _cost, "batch": _batch, "link": _link,
    "loss": _loss, "age": _age, "overload": _overload, "policed": _policed, "full": _full, "rate": _rate,
    "deadline": _deadline, "failed": _failed,
}  # fmt: skip


def _noisy(random: Random, scenario: Scenario) -> Scenario:
    """With what is no cause: tuples of some age, costs that vary, links that take a little longer."""
    ages = {name: random.randrange(4 * MS) for name in ("s", "n")} | dict(scenario.ages_ns)
    latency_ns = random.choice([None, 2 * MS]) if scenario.latency_ns is None else scenario.latency_ns
    return replace(scenario, ages_ns=ages, jitter=parse_jitter("uniform:0.8,1.05"), latency_ns=latency_ns)


def construct(cause: str, seed: int, folder: Path) -> Constructed:
    """A run of that cause, its intensity drawn from the seed."""
    random = Random(f"{cause} {seed}")
    setting = VIRTUAL[cause](random)
    setting.scenario = _noisy(random, setting.scenario)
    return Constructed(cause, setting.said, setting.expected, run_of(folder, setting))
