"""Summary of a change, as sentences and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.change.admission import Row, bound_ns, promised
from coordinator.change.next_plan import Change
from coordinator.explain.sharing_lines import almost
from coordinator.plan.deadline_breakdown import GUARANTEED, MISSED, guarantee_status
from coordinator.units import counted, show_ns

MOST_NAMES = 8
MOST_ALMOST = 3


def lines(change: Change) -> list[str]:
    """What the next plan has and has not, output by output; nothing of the agents."""
    assert change.after is not None  # there is a next plan
    found = _added(change) if change.added else _removed(change)
    found += [_row(row) for row in change.verdict.rows]
    if change.verdict.loading_ns:
        found.append(
            f"during the change a stretch of loading the plan is assumed to take up to "
            f"{show_ns(change.verdict.loading_ns)} of a node at once"
        )
    stays = [name for name in change.before.placement if name in change.after.placement]
    fresh = [name for name in stays if change.after.graph.operators[name].state == "fresh"]
    found.append(
        f"nothing that runs is moved: {_named(stays, 'operator')} {'keeps' if len(stays) == 1 else 'keep'} place, "
        "sub-deadline, task unit and routes"
        + (
            f"; {', '.join(fresh)} {'begins' if len(fresh) == 1 else 'begin'} with fresh state, as declared"
            if fresh
            else ""
        )
    )
    return found


def held(change: Change, held_ns: Mapping[str, int]) -> list[str]:
    """Nodes where work on plans took longer at once than the change was charged for."""
    assumed_ns = change.verdict.loading_ns
    return [
        f"node {name}: work on plans has kept its thread for {show_ns(ns)} at once, more than the "
        f"{show_ns(assumed_ns)} assumed: outputs may have been late by the difference"
        for name, ns in held_ns.items()
        if assumed_ns and ns > assumed_ns
    ]


def _added(change: Change) -> list[str]:
    assert change.after is not None
    new = [name for name in change.after.placement if name not in change.before.placement]
    found = [f"{', '.join(change.added)} beside {', '.join(change.before.queries)}"]
    where: dict[str, list[str]] = {}
    for name in new:
        where.setdefault(change.after.placement[name], []).append(name)
    found += [f"  new on {node}: {_list(names)}" for node, names in where.items()]
    if change.shared:
        found.append(f"  shared with what runs: {_list(change.shared)}")
    sources = [name for name in change.after.graph.sources if name not in change.before.graph.sources]
    if sources:
        found.append(f"  new sources: {_list(sources)}")
    return found + [f"  {text}" for text in almost(change.query, change.cluster)[:MOST_ALMOST]]


def _removed(change: Change) -> list[str]:
    assert change.after is not None
    gone = [name for name in change.before.placement if name not in change.after.placement]
    outputs = [name for name in change.before.graph.outputs if name not in change.after.graph.outputs]
    sources = [name for name in change.before.graph.sources if name not in change.after.graph.sources]
    left = list(change.after.queries)
    found = [f"without {', '.join(change.removed)}; {', '.join(left)} {'stays' if len(left) == 1 else 'stay'}"]
    found += [f"  no longer there: {_named(gone, 'operator')}"] if gone else ["  all its operators are others' as well"]
    found.append(f"  outputs that end: {_list(outputs)}")
    if sources:
        found.append(f"  sources that nobody reads any more: {_list(sources)}")
    return found


def _row(row: Row) -> str:
    """One output: whose, what is promised, and its bounds."""
    claims = [claim for claim in (row.after, row.during) if claim is not None]
    said = MISSED
    if promised(row.after) and promised(row.during):
        said = next((how for claim in claims if (how := guarantee_status(claim)) != GUARANTEED), GUARANTEED)
    if row.before is not None and not promised(row.before):
        said += ", as before" if not promised(row.after) else ", which it was not"
    now, then, meanwhile = (bound_ns(claim) for claim in (row.before, row.after, row.during))
    text = "no bound" if then is None else f"bound {show_ns(then)}"
    if row.before is not None:
        text = f"bound {'none' if now is None else show_ns(now)} -> {'none' if then is None else show_ns(then)}"
    if meanwhile is not None and then is not None and meanwhile > then:
        text += f" (up to {show_ns(meanwhile)} during the change)"
    return f"output {row.output} of {row.query}: {said}, {text}, deadline {show_ns(row.deadline_ns)}"


def _named(names: Sequence[str], what: str) -> str:
    return f"{counted(len(names), what)} ({_list(names)})" if names else f"no {what}"


def _list(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"


def document(change: Change) -> dict[str, Any]:
    """For --json."""
    after = change.after
    new = {} if after is None else {
        name: at for name, at in after.placement.items() if name not in change.before.placement
    }  # fmt: skip
    return {
        "admitted": change.verdict.admitted,
        "reasons": list(map(str, change.verdict.reasons)),
        "before": change.before.hash,
        "after": None if after is None else after.hash,
        "added": list(change.added),
        "removed": list(change.removed),
        "queries": {} if after is None else {name: list(one.outputs) for name, one in after.queries.items()},
        "new_operators": new,
        "shared_operators": list(change.shared),
        "loading_ns": change.verdict.loading_ns,
        "outputs": [row.document() for row in change.verdict.rows],
    }
