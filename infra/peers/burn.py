"""The operator of every contestant. Standard library only."""

from __future__ import annotations

from time import thread_time_ns
from typing import Any


def burn(cost_ns: int) -> None:
    """Use so much CPU time of this thread, however often it is interrupted meanwhile."""
    end_ns = thread_time_ns() + cost_ns
    while thread_time_ns() < end_ns:
        pass


def work(item: dict[str, Any]) -> dict[str, Any]:
    """Use what the tuple costs, and pass it on."""
    if item["cost_ns"]:
        burn(item["cost_ns"])
    return item
