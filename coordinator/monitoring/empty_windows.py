"""Results of windows that nothing was fed into: no part of what was offered.

Windows by time close as long as their plan runs, also before a feed begins and when it has ended. Agents count those
that close without tuples, and which of them turn out to be gaps within a feed. Filters and failures behind a window are
not known, so what is told of results here is the most that there can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.monitoring import paths

if TYPE_CHECKING:
    from coordinator.monitoring.status_response import PlaceStatus
    from protos.plan_document import Plan

WINDOWS, CLOSED, EMPTY, WITHIN = "windows.", ".closed", ".empty", ".empty_within"


@dataclass(frozen=True)
class Leading:
    """Which window operators have results at an output. most: of one window there; of such that no known plan has it
    may be one. elsewhere: those that only lead to others. alone: whether all results there are of windows. places:
    where the windows are; None: not known."""

    most: Mapping[str, int] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    alone: bool = False
    places: frozenset[str] | None = None


def leading(plans: Iterable[Plan], output: str) -> Leading:
    """To an output of any of the plans that run."""
    most, every, places, known, direct = dict[str, int](), set[str](), set[str](), False, False
    for plan in plans:
        every.update(plan.graph.windows)
        if output in plan.graph.outputs:
            path = paths.to(plan, output)
            known, direct = True, direct or bool(path.sources & path.direct)
            places.update(stage.place for stage in path.stages if stage.operator in path.windows & path.direct)
            for name in path.windows & path.direct:
                most[name] = max(most.get(name, 1), path.most[name])
    alone = bool(most) and not direct
    return Leading(most, frozenset(every - most.keys()), alone, frozenset(places) if known else None)


def idle(of: Leading, now: PlaceStatus, before: PlaceStatus | None) -> int:
    """The most results of a place's windows that came between two looks; before: None where its runtime began since."""
    then: Mapping[str, int] = before.counters if before is not None else {}
    found = 0
    for operator, empty in _counted(of, now.counters, EMPTY):
        outside = empty - now.counters.get(f"{WINDOWS}{operator}{WITHIN}", 0)  # of a feed, as far as is known
        came = empty - then.get(f"{WINDOWS}{operator}{EMPTY}", 0)
        found += of.most.get(operator, 1) * min(outside, came)
    return found


def given(of: Leading, now: PlaceStatus) -> int:
    """The most results of windows that a place's runtime has closed since it began."""
    return sum(of.most.get(operator, 1) * closed for operator, closed in _counted(of, now.counters, CLOSED))


def _counted(of: Leading, counters: Mapping[str, int], what: str) -> Iterator[tuple[str, int]]:
    """By window operator that may lead to the output."""
    for name, n in counters.items():
        operator = name.removeprefix(WINDOWS).removesuffix(what)
        if name == f"{WINDOWS}{operator}{what}" and operator not in of.elsewhere:
            yield operator, n


__all__ = ["Leading", "given", "idle", "leading"]
