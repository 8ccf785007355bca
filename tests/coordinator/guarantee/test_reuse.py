"""What an analysis makes use of again changes nothing that it says."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.guarantee.analysis import Analysis, analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.streams import Reuse
from coordinator.guarantee.system import System, read
from coordinator.spec.runtime_charges import MEASURED
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import cluster, written
from tests.coordinator.solve.guaranteed.sound_graphs import finder, placements
from tests.sampling import examples, sample
from tests.simulation.random_plans import documents

T = TypeVar("T")
QUERY = """\
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, max_age: 20 ms, arrival: {burst: 3, period: 40 ms}, max_rate: 90}
  t: {at: b, type: json, max_age: 5 ms, arrival: {burst: 1, period: 20 ms}}
operators:
  first: {run: pass, in: s, cost: 1 ms, nodes: [a]}
  other: {run: pass, in: t, cost: 1 ms, nodes: [b]}
  both: {run: join, in: [first, other], sync: SYNC, cost: 1 ms, nodes: [a]}
  W: {run: aggregate, in: other, cost: 1 ms, with: {n: count}, window: {time: 40 ms, close: 2 ms}, nodes: [a]}
  after: {run: pass, in: W, cost: 1 ms, nodes: [b]}
outputs:
  fused: {from: both, at: b, deadline: 400 ms}
  counted: {from: after, at: a, deadline: 400 ms}
"""
CLUSTER = cluster("ab", "{between: [a, b], latency: 1 ms, bandwidth: 10 Mbit/s}", policy="edf")


class Forgetful(Reuse):
    """Makes everything anew."""

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Made now."""
        return make()


def said(analysis: Analysis) -> tuple[object, ...]:
    """All that an analysis says."""
    delays, streams = analysis.delays, analysis.streams
    late = {at: dict(flow.late) for at, flow in streams.flows.items()}
    steps = {
        node: [(each.task.name, each.task.deadline, each.times, each.works) for each in load.steps]
        for node, load in analysis.loads.items()
    }
    known = (delays.units, delays.links, delays.large_links, delays.drains, delays.broken, delays.cut, delays.looks)
    return (*known, delays.paths, late, streams.why, streams.unreleased, analysis.verdicts, steps, claims(analysis))


def others(system: System, draw: Random) -> System:
    """With other sub-deadlines."""
    longest = max(output.deadline_ns for output in system.outputs.values())
    units = {number: replace(unit, sub_deadline_ns=draw.randint(1, longest)) for number, unit in system.units.items()}
    return replace(system, units=units)


def alike(system: System, draw: Random) -> None:
    """With one memory for several choices of sub-deadlines, and with none."""
    shared = Reuse()
    for _ in range(3):
        assert said(analyse(system, MEASURED, shared)) == said(analyse(system, MEASURED, Forgetful()))
        system = others(system, draw)


@pytest.mark.parametrize("number", sample(range(60), 6))
def test_of_random_placements(number: int, seed: int) -> None:
    draw = Random(f"{seed} {number}")
    every = [draft.system for _, draft in placements(finder(draw.randrange(10**6)))]
    if every:
        alike(others(draw.choice(every), draw), draw)


@given(documents(), st.integers(0, 10**6))
@settings(max_examples=examples(60, 6))
def test_of_random_plans(plan: Plan, number: int) -> None:
    alike(read(plan), Random(number))


@pytest.mark.parametrize(
    "sync", ["all", "{on: all, timeout: 12 ms}", "{within: 9 ms}", "{within: 9 ms, timeout: 20 ms}"]
)
def test_of_windows_fusions_and_links(sync: str, seed: int) -> None:
    alike(read(written(QUERY.replace("SYNC", sync), CLUSTER)), Random(seed))
