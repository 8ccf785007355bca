"""Which units of a local run are told of as longer than planned: those whose operators are, not those whose node was
busy with something else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coordinator.local_run.run_outcome import by_clock_only
from coordinator.local_run.stages import Ran
from coordinator.report.report_document import CostOverrun

OVER = CostOverrun("a.1", 1, ("first", "second.add"), counted_ns=100, instances=10, longer=5, longest_ns=900)
CHEAP = {("first", "a"): 40, ("second.add", "a"): 60}


@pytest.mark.parametrize(
    ("worst_cpu_ns", "waits", "found"),
    [
        (CHEAP, {}, True),
        ({**CHEAP, ("first", "a"): 41}, {}, False),
        ({("first", "a"): 40}, {}, False),
        ({("first", "a"): 40, ("second.add", "b"): 60}, {}, False),
        (CHEAP, {("first", "a"): "it waits"}, False),
        (CHEAP, {("first", "b"): "it waits"}, True),
    ],
)
def test_the_dearest_calls_decide(worst_cpu_ns: Any, waits: Any, found: bool) -> None:
    ran = Ran(Path("run"), waits=waits, worst_cpu_ns=worst_cpu_ns)
    ran.report = cast(Any, SimpleNamespace(cost_overruns=(OVER,)))
    assert by_clock_only(ran) == [OVER] * found
