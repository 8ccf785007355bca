"""Windows that go on under a plan which allows its sources to be older: what was promised before still holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from node_agent.operators.registry import Registry
from node_agent.virtual.change_schedule import Change
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from protos import records
from tests.simulation.planned_queries import MS, planned

CLUSTER = """shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7710", memory: 64 MiB, cap: 1}
links: []
operators: operators.json
security: insecure-loopback
"""
QUERY = """shimekiri: 1
query: q
sources:
  s: {at: a, type: json, max_age: AGE, arrival: {burst: 1, period: 5 ms}}
operators:
  W: {run: aggregate, in: s, with: {n: count}, cost: 100 us, window: {time: 50 ms, lateness: 500 ms, shed: none}}
outputs:
  out: {from: W, at: a, deadline: 2 s}
"""


@dataclass
class World:
    """A tuple every 10 ms, young ones; from 300 ms on every fifth is 150 ms old."""

    given: dict[int, int] = field(default_factory=dict)

    def begin(self, trial: int) -> Sequence[Admission]:
        """Everything at once."""
        return [
            Admission(at_ms * MS, "s", (Offer({}, (150 if at_ms > 300 and at_ms % 50 == 0 else 0) * MS),))
            for at_ms in range(0, 800, 10)
        ]

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        """Never asked."""

    def deliver(self, delivery: Delivery) -> None:
        """Kept."""
        self.given[delivery.payload["start_ns"]] = delivery.payload["count"]


def admitted(done: Simulation) -> list[int]:
    """Origins of the tuples of the source."""
    facts = records.unpack_records(done.traces[0].records)
    return [each.origin_lo_ns for each in facts if isinstance(each, records.Admitted) and each.source_id == 1]


def test_what_was_promised_under_the_plan_before_holds() -> None:
    young, old = (planned(QUERY.replace("AGE", age), CLUSTER) for age in ("10 ms", "200 ms"))
    world = World()
    done = simulate(young, Scenario(), Registry(), world, then=[Change(old, 300 * MS)])
    counts = sorted(world.given.items())
    assert len(counts) > 8
    by_window: dict[int, int] = {}
    for origin_ns in admitted(done):
        start_ns = origin_ns // (50 * MS) * 50 * MS
        by_window[start_ns] = by_window.get(start_ns, 0) + 1
    assert all(count == by_window.get(start_ns, 0) for start_ns, count in counts)
