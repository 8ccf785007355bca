"""[P] figure 2's question: where O3 goes. NLR of both placements by n under the corrected model, and the "
"baseline."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.errors import InfeasibleError
from coordinator.model.choices import Allocator
from infra.papers.placement.collision_plans import MS, plan
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell
from protos.plan_document import Plan


def nlr(n: int, node: str | None) -> float | None:
    """The optimum with O3 held to that node (None: free); None: no placement holds."""
    found = _plan(n, "deadline", node)
    return None if found is None else found.objective.nlr


def chosen(n: int, allocator: Allocator) -> str | None:
    """Node of O3, as the paper counts them."""
    found = _plan(n, allocator, None)
    return None if found is None else {"a": "1", "b": "2"}[found.placement["O3"]]


def sub_deadlines_ms(n: int) -> dict[str, float]:
    """Sub-deadline of every task unit, by its operators."""
    units = [task for tasks in plan(n).tasks.values() for task in tasks]
    return {
        "..".join(dict.fromkeys((each.operators[0], each.operators[-1]))): each.sub_deadline_ns / MS for each in units
    }


def _plan(n: int, allocator: Allocator, node: str | None) -> Plan | None:
    try:
        return plan(n, allocator, o3=node, policy="fifo")
    except InfeasibleError:
        return None


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """O3 at n = 15, the optimum over n, the sub-deadlines."""
    sweep = list(range(1, 31)) if effort == "full" else [10, 15, 20, 26, 27]
    both: dict[str, list[float | None]] = {"a": [], "b": []}
    for n in sweep:
        tell(f"n = {n}")
        for node, found in both.items():
            found.append(nlr(n, node))
    at = {n: {node: both[node][sweep.index(n)] for node in both} for n in (15, 20)}
    ours, baseline = chosen(15, "deadline"), chosen(15, "sqpr")
    first = next(n for n in range(26, 31) if nlr(n, None) is None)
    measured = {"proposal": f"node {ours}", "existing": f"node {baseline}"}
    for n, optimum in at.items():
        measured |= {f"NLR n = {n}, node 1": f"{optimum['a']:g}", f"NLR n = {n}, node 2": f"{optimum['b']:g}"}
    measured |= {"n without any placement": f">= {first}"}
    yield Figure(
        "figure 2: where O3 goes",
        {"proposal": "node 2", "existing": "node 1"},
        measured,
        (ours, baseline) == ("2", "1"),
        "At n = 15, for which [P] 6.1 plans, the deadline model puts O3 on node 2 and the SQPR-like baseline on "
        "node 1. Up to n = 10 "
        "both placements have NLR 0 and traffic decides for node 1. From n = 27 on "
        "(6) has no solution.",
        "Equations (3)-(11) corrected: placement forced, (4) with h+ - h-, chains contracted before (6), costs "
        "per burst. As "
        "printed the optimum is 0 with operators unplaced, and with 21 separate operators there is no solution.",
        plots=[
            Plot(
                "NLR of both placements of O3",
                "V2V tuples per burst",
                "NLR (missing: infeasible)",
                [
                    Curve("O3 on node 1", [float(n) for n in sweep], both["a"]),
                    Curve("O3 on node 2", [float(n) for n in sweep], both["b"]),
                ],
            )
        ],
    )
    yield Figure(
        "section 5.2: sub-deadlines at n = 15 (ms)",
        {},
        sub_deadlines_ms(15),
        None,
        "The paper prints none. They are what figure 7's runs use.",
        "Task units by the merge rule of 5.3.",
    )
