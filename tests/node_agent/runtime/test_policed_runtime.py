"""What is policed on its way into the runtime, and how it is told of what was shed."""

from pathlib import Path

import pytest

from node_agent.core import plan as core
from node_agent.runtime.in_process import in_process
from node_agent.wire.plan_message import core_plan
from protos import plan_pb2
from protos.records import STATE_ENDED
from tests.node_agent.live import chain_plan
from tests.sentences import Wording

SAID = Wording("deploy", "policed results")

PACE = plan_pb2.Pace(tuples=2, interval=100, slack=5, parts=1, most=7)


def with_source(**changes: object) -> plan_pb2.LocalPlan:
    return chain_plan(sources=[{"id": 1, "name": "in", "stream": 1, **changes}])


def with_pairs(*pairs: tuple[int, int]) -> plan_pb2.LocalPlan:
    plan = chain_plan()
    plan.operators[0].at_most.extend(plan_pb2.Most(inputs=inputs, results=results) for inputs, results in pairs)
    return plan


def test_what_a_plan_polices_is_read() -> None:
    spans = [plan_pb2.Span(tuples=3, span_ns=70)]
    source = core_plan(with_source(paces=[PACE], spans=spans), 1, 1).sources[0]
    assert source.paces == (core.Pace(2, 100, 5, 1, 7),) and source.spans == ((3, 70),)
    assert core_plan(with_pairs((1, 1), (4, 2)), 1, 1).operators[0].at_most == ((1, 1), (4, 2))
    assert core_plan(chain_plan(), 1, 1).sources[0].paces == ()


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (with_source(paces=[PACE] * 17), "too_many source in"),
        (with_source(spans=[{"tuples": 2, "span_ns": 1}] * 513), "too_many source in"),
        (with_source(paces=[{"tuples": 0, "interval": 1, "parts": 1}]), "out_of_range source in"),
        (with_source(paces=[{"tuples": 1 << 31, "interval": 1, "parts": 1}]), "out_of_range source in"),
        (with_source(paces=[{"tuples": 1, "interval": 0, "parts": 1}]), "out_of_range source in"),
        (with_source(paces=[{"tuples": 1, "interval": 1, "parts": 0}]), "out_of_range source in"),
        (with_source(paces=[{"tuples": 1, "interval": 1, "slack": -1, "parts": 1}]), "out_of_range source in"),
        (with_source(spans=[{"tuples": 1, "span_ns": 1}]), "out_of_range source in"),
        (with_source(spans=[{"tuples": 1 << 17, "span_ns": 1}]), "out_of_range source in"),
        (with_source(spans=[{"tuples": 2, "span_ns": -1}]), "out_of_range source in"),
        (with_pairs((0, 1)), "out_of_range operator O1"),
        (with_pairs((1 << 31, 1)), "out_of_range operator O1"),
        (with_pairs(*[(1, 1)] * 65), "too_many operator O1"),
    ],
)
def test_what_cannot_be_policed_is_refused_with_the_reason(plan: plan_pb2.LocalPlan, why: str) -> None:
    with SAID.refuses(why):
        core_plan(plan, 1, 1)


def test_what_was_shed_is_counted_and_said_once_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with in_process(core_plan(with_source(paces=[PACE]), 1, 1), tmp_path) as runtime:
        (deployed,) = runtime.plans.by_hash.values()

        def send(at_ns: int, seq: int) -> None:
            deployed.engine_slot.engine.admit(
                at_ns, deployed.loaded.source_routes[1], (1, 0, seq, 0, at_ns, at_ns), {}, 0
            )

        for seq in range(5):
            send(0, seq)
        minute_ns, counters = 60_000_000_000, runtime.shared.counters
        runtime.plans.count_policed(10)
        assert counters["policed_arrivals.in"] == 3
        send(0, 5)
        runtime.plans.count_policed(minute_ns)
        assert counters["policed_arrivals.in"] == 4, "counted at once"
        send(0, 6)
        runtime.plans.count_policed(minute_ns + 10)
        assert counters["policed_arrivals.in"] == 5
    told = [line for line in capsys.readouterr().err.splitlines() if "declared" in line]
    assert [line.partition(": ")[2] for line in told] == [
        f"beyond what was declared, and shed: {n} tuples of source in" for n in (3, 5)
    ]


@pytest.mark.parametrize("drained", [False, True], ids=["while the one before drains", "when it has drained"])
def test_a_source_is_held_to_its_curve_across_a_stop(drained: bool, tmp_path: Path) -> None:
    """What a stopped plan has admitted is still under way, so that the next plan counts it; not when it is gone."""
    plan, later = (core_plan(with_source(paces=[PACE]), number, number) for number in (1, 2))
    with in_process(plan, tmp_path) as runtime:
        plans = runtime.plans
        (deployed,) = plans.by_hash.values()

        def send(at_ns: int, seq: int) -> None:
            engine = deployed.engine_slot.engine
            engine.admit(at_ns, deployed.loaded.source_routes[1], (1, 0, seq, 0, at_ns, at_ns), {}, 0)

        for seq in range(2):
            send(0, seq)
        plans.drain(deployed.hash)
        if drained:
            plans.unload(deployed, 1, STATE_ENDED)
        deployed = plans.load(later, f"{later.hash:016x}".ljust(64, "0"))
        runtime.add_plan(deployed, ())
        plans.commit(deployed.hash)
        for seq in range(2, 4):
            send(1, seq)
        assert deployed.loaded.policed() == ({} if drained else {"arrivals.in": 2})
