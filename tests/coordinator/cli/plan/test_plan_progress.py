"""How a long search is told where stderr is no terminal."""

from __future__ import annotations

import pytest

from coordinator.cli import planning
from coordinator.model.progress import Progress


def steps(quiet: bool) -> None:
    """A search that looks at a placement every four seconds."""
    with planning.search_progress(quiet) as watch:
        for seconds in range(0, 26, 4):
            watch(Progress(seconds, False, 0.0, 0.0, None, None, "no guaranteed plan yet"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 100, 4))
    monkeypatch.setattr(planning.time, "monotonic", lambda: float(next(ticks)) / 1.5)


@pytest.mark.usefixtures("clock")
def test_a_line_now_and_then_and_none_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    steps(quiet=False)
    said = capsys.readouterr().err.splitlines()
    assert said and all(line.startswith("planning ") and "no guaranteed plan yet" in line for line in said)
    assert len(said) < 7
    steps(quiet=True)
    assert capsys.readouterr() == ("", "")
