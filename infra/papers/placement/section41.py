"""[P] section 4.1: the worked example with n = 20, batch by batch and tuple by tuple."""

from __future__ import annotations

from collections.abc import Iterator

from infra.papers.claims import Band, always, value
from infra.papers.placement.collision_plans import MS, plan, with_sub_deadlines
from infra.papers.reproduction import Effort, Figure, Tell
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan

AGES = {"v2v": 100 * MS, "centre": 200 * MS}  # p2 and p3


def largest_ms(done: Simulation) -> dict[str, float]:
    """The largest latency of every output."""
    return {name: max(output.latencies_ns) / MS for name, output in done.outputs.items()}


def latencies(made: Plan, policy: str, batch: str = "tuple") -> dict[str, float]:
    """Largest latencies of the example's tuples, no link delay."""
    return largest_ms(simulate(made, Scenario(policy=policy, batch=batch, ages_ns=AGES, latency_ns=0)))


def batch_by_batch() -> dict[str, float]:
    """An operator waits for the whole batch of the one before; between two tuples the node chooses anew."""
    existing = plan(20, "sqpr", "operator", policy="fifo")
    proposal = plan(20, units="operator", policy="fifo")
    p1_first = latencies(with_sub_deadlines(existing, O1=1), "edf", "barrier")
    edf = latencies(proposal, "edf", "barrier")
    return {
        "existing, p2 first: p1": latencies(with_sub_deadlines(existing, O2=1, O3=1), "edf", "barrier")["control"],
        "existing, p1 first: p1": p1_first["control"],
        "existing, p1 first: p2": p1_first["warning"],
        "proposal, EDF: p1": edf["control"],
        "proposal, EDF: p2": edf["warning"],
        "proposal, FIFO: p2": latencies(proposal, "fifo", "barrier")["warning"],
    }


def tuple_by_tuple() -> dict[str, float]:
    """Every tuple goes on as soon as its operator has ended."""
    proposal, existing = latencies(plan(20), "edf"), latencies(plan(20, "sqpr"), "edf")
    return {
        "existing: p1": existing["control"],
        "existing: p2": existing["warning"],
        "proposal: p1": proposal["control"],
        "proposal: p2": proposal["warning"],
    }


PRINTED = {
    "existing, p2 first: p1": 50,
    "existing, p1 first: p1": 10,
    "existing, p1 first: p2": 310,
    "proposal, EDF: p1": 30,
    "proposal, EDF: p2": 300,
    "proposal, FIFO: p2": 480,
}
CONTROL_MS, WARNING_MS = 30, 300  # the deadlines of p1 and p2


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """The paper's arithmetic, then its sentence about scheduling by tuple."""
    tell("batch by batch")
    yield by_batch(batch_by_batch(), latencies(plan(20), "edf", "burst")["warning"])
    tell("tuple by tuple")
    yield by_tuple(tuple_by_tuple())


def by_batch(found: dict[str, float], whole_ms: float) -> Figure:
    """whole_ms: of p2 where a burst runs as one instance."""
    p2_first, p1_first = found["existing, p2 first: p1"], found["existing, p1 first: p2"]
    return Figure(
        "section 4.1: batch by batch (ms)",
        [
            *(value(f"{name} {ms}", Band.of([found[name]]), ms) for name, ms in PRINTED.items()),
            always("the existing placement misses a deadline in either order",
                   [p2_first > CONTROL_MS, p1_first > WARNING_MS], "orders"),
            always("the proposal meets both by EDF",
                   [found["proposal, EDF: p1"] <= CONTROL_MS, found["proposal, EDF: p2"] <= WARNING_MS], "deadlines"),
            always("by FIFO it misses", [found["proposal, FIFO: p2"] > WARNING_MS], "deadlines"),
        ],
        {"a burst as one instance, EDF: p2": whole_ms},
        [always("bursts that run as one instance miss under EDF too: p3's batch has begun when p2 arrives",
                [whole_ms > WARNING_MS], "runs")],
        "`--batch barrier`: an operator's outputs are held back until it has run on the whole burst. 50 = 10 + 40 and "
        "480 follow from the text's terms (p2 waits 200 - 20 ms for p3); the others are printed.",
    )  # fmt: skip


def by_tuple(found: dict[str, float]) -> Figure:
    """One order in which the existing placement meets both deadlines is enough against the sentence."""
    return Figure(
        "section 4.1: tuple by tuple (ms)",
        [always("the existing placement misses 30 or 300 in any order, here with p1 first",
                [found["existing: p1"] > CONTROL_MS or found["existing: p2"] > WARNING_MS], "runs")],
        found,
        [always("it meets both, and p2 ends before the proposal's: O4 to O21 start on p2's first tuples while node 1 "
                "still works on the last ones, and the paper adds the nodes' times up",
                [found["existing: p1"] <= CONTROL_MS and found["existing: p2"] <= WARNING_MS
                 and found["existing: p2"] < found["proposal: p2"]], "runs")],
        "[P] 5.4's own rule: an instance per tuple, created when its input arrives.",
    )  # fmt: skip
