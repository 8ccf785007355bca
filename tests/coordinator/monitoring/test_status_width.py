"""`coordinator status` in 80 columns: while plans change, too, no figure is cut."""

from __future__ import annotations

import re

import pytest

from coordinator.cli.commands import status as command
from coordinator.monitoring.metrics import Look, between
from coordinator.monitoring.query_status import ClaimStatus, DeliveredStatus, QueryStatus
from coordinator.report.report_document import Share


def claim(bound_ns: int, missed: Share) -> ClaimStatus:
    """Of an output that delivered a thousand results."""
    came = DeliveredStatus(1000, 0, 0, 0.0, missed, {}, 0, 10**6, 13_800_000, 10**6, 0)
    return ClaimStatus(150_000_000, bound_ns, bound_ns, True, "guaranteed", came)


@pytest.mark.parametrize("missed", [(0.0, 0.0), (0.0123, 0.0234)])
def test_no_figure_is_cut(missed: Share, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    plans = {
        state: QueryStatus({"car": state, "desk": state}, {"alarm": claim(bound_ns, missed)})
        for state, bound_ns in (("committed", 56_120_500), ("draining", 108_510_700))
    }
    command._show({}, {}, between(None, Look(0.0, {}), {}), {"closing": plans}, {})
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    for word in ("closing", "committed", "draining", "alarm", "150 ms", "56.1205 ms", "108.5107 ms", "13.8 ms"):
        assert re.search(rf"(?<!\S){re.escape(word)}(?!\S)", said), said
    assert "guaranteed" in said and "longest" in said
