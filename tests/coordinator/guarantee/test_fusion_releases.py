"""How densely the sets of a fusion run."""

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import NOTHING
from tests.coordinator.guarantee.written_plans import MS, written

CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700", memory: 64 MiB, cap: 1}}
links: []
operators: operators.json
security: insecure-loopback
"""
QUERY = """
shimekiri: 1
query: fused
sources: {front: {at: a, every: 100 ms}, rear: {at: a, every: 70 ms}}
operators:
  F: {run: join, in: [front, rear], cost: 1 ms, sync: all}
outputs: {out: {from: F, at: a, deadline: 300 ms}}
"""


def test_waiting_for_an_input_makes_no_burst_of_sets() -> None:
    analysis = analyse(read(written(QUERY, CLUSTER)), NOTHING)
    (trigger,) = analysis.streams.triggers.values()
    assert [trigger.curve.count(ms * MS) for ms in (0, 69, 70, 99)] == [1, 1, 2, 2]
    assert trigger.curve.count(1000 * MS) <= 12  # as the slower input, and what may have waited
