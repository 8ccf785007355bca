"""[P] figure 2's question: where O3 goes. NLR of both placements by n under the corrected model, and the baseline."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.errors import InfeasibleError
from coordinator.model.choices import Allocator
from infra.papers.claims import always
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


def traffic(n: int, node: str) -> float:
    """Tuples per second on links, O3 on that node."""
    found = _plan(n, "deadline", node)
    if found is None:
        raise AssertionError(f"no plan at n = {n}")
    return found.objective.traffic


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """O3 at n = 15, the optimum over n, the sub-deadlines."""
    sweep = list(range(1, 31)) if effort == "full" else [10, 15, 20, 26, 27]
    both: dict[str, list[float | None]] = {"a": [], "b": []}
    for n in sweep:
        tell(f"n = {n}")
        for node, found in both.items():
            found.append(nlr(n, node))
    here = {chosen(n, "deadline") for n in sweep if n <= 10}
    less = traffic(15, "a") < traffic(15, "b")
    yield where(sweep, both, (chosen(15, "deadline"), chosen(15, "sqpr")), here, less)
    yield sub_deadlines(sub_deadlines_ms(15))


def where(
    sweep: list[int], both: dict[str, list[float | None]], at_15: tuple[str | None, str | None],
    upto_10: set[str | None], less_traffic: bool,
) -> Figure:  # fmt: skip
    """both: NLR by node of O3 and n; at_15: the proposal's node and the baseline's; upto_10: the proposal's nodes."""
    measured = {"proposal": f"node {at_15[0]}", "existing": f"node {at_15[1]}"}
    for n in (15, 20):
        for node, values in both.items():
            measured[f"NLR n = {n}, node {'1' if node == 'a' else '2'}"] = _optimum(values[sweep.index(n)])
    few = [value for values in both.values() for n, value in zip(sweep, values, strict=True) if n <= 10]
    many = [value for values in both.values() for n, value in zip(sweep, values, strict=True) if n >= 27]
    last = [values[sweep.index(26)] for values in both.values()]
    return Figure(
        "figure 2: where O3 goes, n = 15",
        [
            always("the proposal puts O3 on node 2", [at_15[0] == "2"], "plans"),
            always("existing methods put it on node 1", [at_15[1] == "1"], "plans"),
            always("O3 on node 1 makes less traffic", [less_traffic], "plans"),
        ],
        measured,
        [
            always("up to n = 10 both placements have NLR 0", [value == 0 for value in few], "plans"),
            always("and traffic decides for node 1", [upto_10 == {"1"}], "sweeps"),
            always("there is a plan at n = 26, and none from 27 on",
                   [any(value is not None for value in last), *(value is None for value in many)], "plans"),
        ],
        "Equations (3)-(11) corrected ([placement](placement.md)): placement forced, (4) with h+ - h-, chains "
        "contracted before (6), costs per burst. n = 15 is what [P] 6.1 plans for.",
        plots=[Plot("NLR of both placements of O3", "V2V tuples per burst", "NLR (missing: infeasible)", [
            Curve("O3 on node 1", [float(n) for n in sweep], both["a"]),
            Curve("O3 on node 2", [float(n) for n in sweep], both["b"]),
        ])],
    )  # fmt: skip


def sub_deadlines(found: dict[str, float]) -> Figure:
    """Of the task units."""
    ends = {"O1": 30, "O6..O5": 3000}
    return Figure(
        "section 5.2: sub-deadlines at n = 15 (ms)",
        [],
        found,
        [always("on every path they add up to the output's deadline: 30, 300, 3000",
                [found.get("O2", 0) + found.get("O3..O21", 0) == 300,
                 *(found.get(name) == ms for name, ms in ends.items())], "paths")],
        "Task units by the merge rule of 5.3. Figure 7's runs use them.",
    )  # fmt: skip


def _optimum(value: float | None) -> str:
    return "no plan" if value is None else f"{value:g}"
