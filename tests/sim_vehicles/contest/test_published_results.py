"""Published results of the contest: read as they were written, whole, and no part of what a journal is kept for."""

from pathlib import Path

import pytest

from infra.contest.encounter_journal import code
from infra.contest.outcomes import paired, summed, wilson
from sim_vehicles.contest.contest_results import PUBLISHED, ContestResults, WayAtLoad, read_results, write_results
from sim_vehicles.errors import BadInputError

HITS = {"ours": [None, 30.5, None], "theirs": [20.0, 41.0, None]}


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = tuple(
        WayAtLoad(load, way, summed(hits), paired(HITS["ours"], hits) if way != "ours" else None)
        for load in (0.5, 1.0)
        for way, hits in HITS.items()
    )
    results = ContestResults("2026-01-02", "abc1234", 7, 6, "ours", rows)
    write_results(results, tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == results
    assert results.ways == ("ours", "theirs") and results.loads == (0.5, 1.0)


def test_a_file_that_is_not_there_or_not_whole_is_refused(tmp_path: Path) -> None:
    for text in (None, "{", '{"date": "2026-01-02"}'):
        if text is not None:
            (tmp_path / "results.json").write_text(text)
        with pytest.raises(BadInputError):
            read_results(tmp_path / "results.json")


def test_the_published_results_add_up() -> None:
    results = read_results()
    assert len(results.rows) == len(results.ways) * len(results.loads) and results.compared_with in results.ways
    assert sum(row.crashes.encounters for row in results.rows if row.way == results.ways[0]) == results.encounters
    for row in results.rows:
        assert row.crashes.share == wilson(row.crashes.crashes, row.crashes.encounters)


def test_publishing_leaves_a_journal_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named by the code, and what is published is not part of that."""
    before, real = code(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other" if path == PUBLISHED else real(path))
    assert code() == before
