"""[P] figure 6: three operators of cost 1 in two task units, by EDF and by FIFO."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.model.choices import Choices
from coordinator.solve import planner
from infra.papers.claims import always
from infra.papers.placement.collision_plans import MS, with_sub_deadlines
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell
from node_agent.operators.registry import Registry
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan.arrivals import BurstArrival
from protos.plan_document import Plan
from protos.records import Admitted, Ran

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 64 MiB}
links: []
operators: operators.json
security: insecure-loopback
"""

QUERY = """
shimekiri: 1
query: figure6
sources:
  p: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}
operators:
  O1: {run: pass, in: p, cost: 1 ms}
  O2: {run: pass, in: O1, cost: 1 ms}
  O3: {run: pass, in: O1, cost: 1 ms}
outputs:
  out1: {from: O2, at: a, deadline: 50 ms}
  out2: {from: O3, at: a, deadline: 100 ms}
"""

Instance = tuple[int, str, float, float]  # tuple, the unit's first operator, completion, sub-deadline's instant
UNITS = {"O1": "T1", "O3": "T2"}
WORK = {"T1": 2, "T2": 1}  # of an instance


def planned() -> Plan:
    """The query on one node, T1 = (O1, O2) with sub-deadline 2 and T2 = (O3) with 5."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(QUERY)
        (folder / "cluster.yaml").write_text(CLUSTER)
        (folder / "operators.json").write_text(json.dumps(Registry().describe()))
        choices = Choices(allocator="sqpr", sub_deadlines="proportional")
        made = planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)
    made = with_sub_deadlines(made, O1=2 * MS, O3=5 * MS)
    often = BurstArrival(burst=1, period_ns=2 * MS)  # p2 is 2 after p1; no plan allows that for long
    sources = {"p": replace(made.graph.sources["p"], arrival=often)}
    return replace(made, graph=replace(made.graph, sources=sources))


def instances(policy: str) -> list[Instance]:
    """What ran, by completion, in the paper's time (1 is a millisecond)."""
    made = planned()
    if [task.operators for task in made.tasks["a"]] != [("O1", "O2"), ("O3",)]:
        raise AssertionError("the units are not those of figure 6")
    done = simulate(made, Scenario(policy=policy, bursts=2, phase_ns={"p": 1 * MS}))
    facts = list(records.unpack_records(done.traces[0].records))
    began_ns = next(fact.at_ns for fact in facts if isinstance(fact, Admitted)) - 1 * MS
    names = {task.id: task.operators[0] for task in made.tasks["a"]}
    ran = [fact for fact in facts if isinstance(fact, Ran) and not fact.unfinished]
    if policy == "edf-op":  # an instance leaves one record per operator; its last one tells the completion
        last = {(fact.seq, fact.unit): fact for fact in facts if isinstance(fact, Ran)}
        ran = sorted(last.values(), key=lambda fact: fact.end_ns)
    return [(fact.seq, names[fact.unit], (fact.end_ns - began_ns) / MS, (fact.due_ns - began_ns) / MS) for fact in ran]


def _timeline(by_policy: dict[str, list[Instance]]) -> Plot:
    """When each instance ran, a line per unit and policy; a unit is never interrupted."""
    rows = [f"{policy} {unit}" for policy in by_policy for unit in WORK]
    curves = [
        Curve(f"{policy}: (p{seq},{UNITS[unit]})", [end - WORK[UNITS[unit]], end], [row, row])
        for policy, ran in by_policy.items()
        for seq, unit, end, _ in ran
        for row in [float(rows.index(f"{policy} {UNITS[unit]}") + 1)]
    ]
    printed = [
        Curve("EDF, printed", list(map(float, (3, 5, 6, 7))), [1.0, 1.0, 2.0, 2.0], printed=True),
    ]
    told = ", ".join(f"{number}: {row}" for number, row in enumerate(rows, start=1))
    return Plot("figure 6: instances, and the printed completions", "time", told, curves + printed)


def _values(ran: list[Instance]) -> dict[str, float]:
    return {f"(p{seq},{UNITS[unit]})": end for seq, unit, end, _ in ran}


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Completions by EDF, and what FIFO misses."""
    tell("edf, fifo")
    edf, fifo, between = (instances(policy) for policy in ("edf", "fifo", "edf-op"))
    yield by_edf(edf, between, fifo)
    yield by_fifo(fifo)


def by_edf(edf: list[Instance], between: list[Instance], fifo: list[Instance]) -> Figure:
    """between: under `edf-op`, which may switch between operators."""
    printed = {"(p1,T1)": 3, "(p2,T1)": 5, "(p1,T2)": 6, "(p2,T2)": 7}
    found = _values(edf)
    return Figure(
        "figure 6: EDF",
        [
            *(always(f"{name} ends at {at}", [found.get(name) == at], "runs") for name, at in printed.items()),
            always("every sub-deadline is met", [end <= due for _, _, end, due in edf], "instances"),
        ],
        found,
        [always("`edf-op`, which may switch between operators, completes them at the same instants",
                [_values(between) == found], "runs")],
        "A unit is never interrupted.",
        plots=[_timeline({"EDF": edf, "FIFO": fifo})],
    )  # fmt: skip


def by_fifo(fifo: list[Instance]) -> Figure:
    """What is late."""
    late = {f"(p{seq},{UNITS[unit]})": f"{end:g} > {due:g}" for seq, unit, end, due in fifo if end > due}
    order = list(_values(fifo))
    return Figure(
        "figure 6: FIFO",
        [always("p2 misses T1's sub-deadline, and nothing else is late", [list(late) == ["(p2,T1)"]], "runs")],
        {"late": ", ".join(late) or "nothing", "completion > sub-deadline": ", ".join(late.values())},
        [always("FIFO runs (p1,T2), created at 2, before (p2,T1), created at 3",
                [order.index("(p1,T2)") < order.index("(p2,T1)")], "runs")],
    )  # fmt: skip
