"""A short run of `make endurance`: ten times the load on two real agents, everything judged from outside.

What a busy machine may make worse (how long control takes, how soon it recovers, how late a choice is carried out) is
for the long run to say.
"""

from pathlib import Path

import pytest
from rich.console import Console

from infra.endurance.__main__ import Phases, go
from infra.endurance.measurements import table

pytestmark = pytest.mark.long


def test_ten_times_the_load_stays_bounded_and_exact(tmp_path: Path) -> None:
    figures = go(tmp_path, Phases(before_s=1, overload_s=2, after_s=1, load=10.0), Console())
    Console().print(table(figures))
    assert figures.windows.wrong == 0 and figures.repeated == 0
    for node, cap in figures.caps.items():
        first, most = figures.growth(node)
        assert most - first <= cap
        assert figures.queued(node) <= cap
    books = figures.report.conservation
    assert books.balanced and books.admitted == books.accounted
    causes = books.by_cause
    assert causes["shed(window-aware)"] and causes["shed(rate)"] and causes["shed(late)"]
    assert figures.report.outputs["order"].met and figures.report.outputs["alarm"].met
