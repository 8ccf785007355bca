"""A case: what is struck, by what, and whom the report is expected to name."""

from __future__ import annotations

from dataclasses import dataclass

from tests.coordinator.report.blame.constructed import Expected
from tests.coordinator.report.blame.outsider_world import Setting, Strike

ALL = ("line", "busy", "fan", "joined", "sided", "windowed", "merged", "tight")
TUPLE_POLICIES = (None, "fifo", "edf-e2e", "slack")


@dataclass(frozen=True)
class Case:
    """said: the strikes in words; planned: the plan itself cannot hold, so without strikes it misses too."""

    said: str
    expected: Expected | None
    setting: Setting
    strikes: tuple[Strike, ...] = ()
    planned: bool = False

    @property
    def strike(self) -> Strike:
        """All that happens."""
        made = Strike()
        for each in reversed(self.strikes):
            made = made.with_(each)
        return made


def cost_of(who: str, query: str, *outputs: str) -> Expected:
    return Expected(("cost_above_plan",), (who,), query, outputs)


def link_of(way: str, *outputs: str) -> Expected:
    return Expected(("link",), (way,), "", outputs)
