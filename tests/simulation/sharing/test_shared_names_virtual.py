"""Operators that are called differently among several queries still tell their readers the names of their own file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from node_agent.wire.plan_message import core_plan
from protos.plan_document import Plan
from tests.sentences import Wording

SAID = Wording("deploy", "names of inputs")

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
"""
QUERY = """
shimekiri: 1
query: NAME
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 1 ms}
operators:
"""
FIRST = (
    QUERY.replace("NAME", "first")
    + """
  left:  {run: pass, in: s, cost: 1 ms}
  right: {run: filter, in: left, cost: 1 ms}
  both:  {run: join, in: [left, right], cost: 1 ms, nodes: [b]}
outputs:
  one: {from: both, at: b, deadline: 80 ms}
"""
)
SECOND = (
    QUERY.replace("NAME", "second")
    + """
  in_:   {run: pass, in: s, cost: 1 ms}
  left:  {run: filter, in: in_, cost: 1 ms, with: {keep: 2, of: 3}}
  both:  {run: join, in: [in_, left], cost: 1 ms, nodes: [a]}
  again: {run: join, in: [left, both], cost: 1 ms}
outputs:
  two:   {from: both, at: a, deadline: 60 ms}
  three: {from: again, at: b, deadline: 90 ms}
"""
)


class World:
    """Admits four numbers; keeps what is delivered."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, int], Any] = {}

    def begin(self, trial: int) -> Sequence[Admission]:
        return [Admission(0, "s", tuple(Offer({"n": n}, 0) for n in range(4)))]

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        raise AssertionError("never asked")

    def deliver(self, delivery: Delivery) -> Sequence[Admission] | None:
        self.told[delivery.output, delivery.seq] = delivery.payload
        return None


def results(folder: Path, *texts: str, share: bool = True) -> tuple[Plan, dict[tuple[str, int], Any]]:
    """The plan, and what each output delivers for each tuple."""
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"query{number}.yaml")
        paths[-1].write_text(text)
    (folder / "cluster.yaml").write_text(CLUSTER)
    choices = Choices(charges=NOTHING, quick=True)
    plan = planner.make_plan(paths, folder / "cluster.yaml", choices, share=share)
    world = World()
    assert simulate(plan, Scenario(), world=world).failures == ()
    return plan, world.told


def test_joins_beside_each_other_say_what_they_say_alone(tmp_path: Path) -> None:
    plan, together = results(tmp_path, FIRST, SECOND)
    assert list(plan.graph.operators) == ["left", "right", "both", "second/left", "second/both", "again"]
    assert plan.graph.operators["second/both"].called == ("in_", "left")
    alone = results(tmp_path, FIRST)[1] | results(tmp_path, SECOND)[1]
    assert together == alone == results(tmp_path, FIRST, SECOND, share=False)[1]
    assert set(together["two", 2]) == {"in_", "left"}


def test_as_many_names_as_inputs(tmp_path: Path) -> None:
    plan, _ = results(tmp_path, FIRST)
    message = plan.nodes["b"]
    message.operators[-1].called.append("left")
    with SAID.refuses("wrong_number_of_inputs operator both"):
        core_plan(message, plan_hash=1, epoch=1)
