"""How densely the sets of a fusion run, and how long a tuple waits for its set."""

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import NOTHING
from protos.plan_document import Plan
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


DROPPED = """
shimekiri: 1
query: fused
sources:
  front: {at: a, type: json, arrival: {burst: 1, period: 100 ms}%s}
  rear: {at: a, type: json, arrival: {burst: 1, period: 70 ms}%s}
operators:
  P: {run: pass, in: rear, cost: 1 ms, on_late: drop}
  Q: {run: pass, in: front, cost: 1 ms, on_late: drop}
  F: {run: join, in: [Q, P], cost: 1 ms, sync: all}
outputs: {out: {from: F, at: a, deadline: %s ms}}
"""


def test_dropping_what_is_late_leaves_the_wait_bounded_where_nothing_is_late() -> None:
    def planned(age: str, deadline: int) -> Plan:
        return written(DROPPED % (age, age, deadline), CLUSTER, model="sound", best_effort=True)

    unbounded = (
        "nothing says how soon the inputs of F come again, of which P, Q may drop what is late: give its 'sync:'"
    )
    assert planned(", max_age: 5 ms", 300).guarantee["out"].why.startswith("holds")
    assert unbounded in planned(", max_age: 140 ms", 140).guarantee["out"].why
    ageless = planned("", 300)
    assert ageless.guarantee["out"].why.startswith(unbounded) and ageless.cluster.nodes["a"].policy == "edf"
    assert ageless.analysis.ages is not None and ageless.analysis.ages.outputs == ("out",)


def test_a_timer_has_an_age_that_is_known() -> None:
    near = QUERY.replace("sync: all", "sync: {within: 40 ms}")
    assert written(near, CLUSTER).guarantee["out"].guaranteed
