"""Side inputs that may be too old, on the virtual cluster, against what the trace says of values and of instances."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import Simulation, simulate, write_run
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from protos import records
from protos.plan_document import Plan
from tests.sampling import sample
from tests.simulation.planned_queries import planned
from tests.simulation.random_plans import registry
from tests.traces import Kind, of

MS = 1_000_000
QUERY = """
shimekiri: 1
query: beside
sources:
  car: {at: a, type: json, max_age: 20 ms, arrival: {burst: 1, period: 7 ms}}
  ego: {at: b, type: json, max_age: 40 ms, arrival: {burst: 1, period: 30 ms}}
operators:
  seen: {run: pass, in: car, cost: 1 ms, nodes: [a]}
  both: {run: test.attach, in: seen, side: {ref: SIDE}, cost: 1 ms, nodes: [a]}
outputs:
  out: {from: both, at: a, deadline: 100 ms}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 2 ms}]
operators: operators.json
security: insecure-loopback
"""
AGE_NS = 25 * MS


def plan(side: str) -> Plan:
    return planned(QUERY.replace("SIDE", side), CLUSTER, registry=registry())


class Drawn:
    """Both sources for half a second, ego with gaps."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.known: list[bool] = []

    def begin(self, trial: int) -> Sequence[Admission]:
        draw = Random(f"{self._seed} {trial}")
        found = [
            Admission(at, "car", (Offer({"n": at}, draw.randint(0, 20 * MS)),)) for at in range(0, 500 * MS, 7 * MS)
        ]
        for at in range(draw.randint(0, 60) * MS, 500 * MS, 30 * MS):
            if draw.random() < 0.7:
                found.append(Admission(at, "ego", (Offer({"v": at}, draw.randint(0, 40 * MS)),)))
        return sorted(found, key=lambda each: each.at_ns)

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        raise AssertionError("never asked")

    def deliver(self, delivery: Delivery) -> None:
        self.known.append(delivery.payload["known"])


def facts(done: Simulation, kind: type[Kind]) -> list[Kind]:
    return [each for trace in done.traces for each in of(kind, records.unpack_records(trace.records))]


def fresh(done: Simulation) -> list[bool]:
    """Of each instance of `both`, whether the last value that had come before it was young enough as it began."""
    origins = {(f.source, f.epoch, f.seq): f.origin_lo_ns for f in facts(done, records.Admitted)}
    came = [(f.at_ns, origins[f.source, f.epoch, f.seq]) for f in facts(done, records.Absorbed)]
    found = []
    for ran in sorted(facts(done, records.Ran), key=lambda each: each.start_ns):
        before = [origin_ns for at_ns, origin_ns in came if at_ns <= ran.start_ns]
        found.append(bool(before) and ran.start_ns - before[-1] <= AGE_NS)
    return found


@pytest.mark.parametrize("seed", sample(range(4), 2))
@pytest.mark.parametrize("absent", ["none", "shed"])
def test_an_operator_sees_no_value_that_may_be_too_old(absent: str, seed: int, tmp_path: Path) -> None:
    world = Drawn(seed)
    made = plan(f"{{from: ego, max_age: 25 ms, absent: {absent}}}")
    done = simulate(made, Scenario(seed=seed), registry(), world)
    expected = fresh(done)
    shed = [each.policy for each in facts(done, records.Shed)]
    assert 0 < expected.count(True) < len(expected)
    if absent == "none":
        assert world.known == expected and not shed
    else:
        assert all(world.known) and len(world.known) == expected.count(True)
        assert shed == [records.POLICY_STALE] * expected.count(False)
    write_run(done, tmp_path / "run")
    found = verdict(read_run(tmp_path / "run")).document()
    assert found["conservation"]["problems"] == [] and found["conservation"]["by_outcome"]["open"] == 0
    assert found["outputs"]["out"]["shed"] == len(shed)


def test_a_plan_says_that_tuples_may_go_without_a_result() -> None:
    told = claims(analyse(read(plan("{from: ego, max_age: 25 ms, absent: shed}")), NOTHING))
    assert told["out"].missing == ("both sheds a tuple while its side input ref has no value of at most 25 ms",)
    assert claims(analyse(read(plan("ego")), NOTHING))["out"].missing == ()
