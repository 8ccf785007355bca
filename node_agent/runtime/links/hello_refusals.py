"""Refusals of a Hello that asks for a source or an output that is not here."""

from collections.abc import Iterable

from node_agent.runtime.deployments.deployed_plan import COMMITTED, Deployed

MOST_NAMED = 8


def source(name: str, node: str, deployed: Iterable[Deployed]) -> str:
    """For a source."""
    committed = [each.plan.sources for each in deployed if each.state == COMMITTED]
    if any(each.name == name and each.pull is not None for sources in committed for each in sources):
        return f"source {name!r} is made on {node} itself, as its query says: nobody feeds it"
    known = _names([each for each in sources if each.pull is None] for sources in committed)
    return f"no committed plan on {node} has a source {name!r}{_remedy(known, 'sources', 'enter')}"


def output(name: str, node: str, deployed: Iterable[Deployed]) -> str:
    """For an output."""
    known = _names(each.plan.outputs for each in deployed)
    return f"no plan on {node} delivers an output {name!r}{_remedy(known, 'outputs', 'leave')}"


def _remedy(known: list[str] | None, what: str, how: str) -> str:
    if known is None:
        return "; none is deployed here: 'coordinator deploy plan.json'"
    if not known:
        return f"; it has no {what} here: they {how} where the query says 'at:'"
    return f"; there are: {', '.join(known[:MOST_NAMED])}{', ...' if len(known) > MOST_NAMED else ''}"


def _names(parts: Iterable[Iterable[object]]) -> list[str] | None:
    """Of all plans; None: there is no plan."""
    found = [[str(getattr(part, "name", "")) for part in each] for each in parts]
    if not found:
        return None
    return sorted({name for names in found for name in names if "." not in name})  # with a dot: within a window
