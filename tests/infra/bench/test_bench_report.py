"""Runs that reports are measured with are balanced, and three implementations count the same in them."""

import random
from pathlib import Path

import pytest

from coordinator.report.facts.reader import Run, read_run
from coordinator.report.report_document import Report
from coordinator.report.verdict import verdict
from infra.bench.report.duckdb_recount import Recount, recount
from infra.bench.report.pairs_query import template
from infra.bench.report.tiled_run import tiled
from tests.coordinator.report.synthetic import everything, play, random_document
from tests.sampling import sample

ENDS = ("met", "late", "shed", "lost", "undecidable", "shed_unsure", "lost_unsure")


def told(report: Report) -> Recount:
    """What a report says of all that the recount counts."""
    books = report.conservation
    return Recount(
        books.admitted,
        books.accounted,
        books.obligations,
        {end: n for end, n in books.by_outcome.items() if n},
        {
            name: ends
            for name, each in report.outputs.items()
            if (ends := {end: getattr(each, end) for end in ENDS if getattr(each, end)})
        },
        {name: list(each.quantiles_ns) for name, each in report.outputs.items() if each.quantiles_ns},
    )


def counted(run: Run) -> Recount:
    """The recount, as far as something was counted."""
    found = recount(run.path)
    found.by_outcome = {end: n for end, n in found.by_outcome.items() if n}
    return found


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template(2, tmp_path_factory.mktemp("template"))


def test_a_run_that_is_made_longer_is_balanced(short: Path, tmp_path: Path) -> None:
    records = tiled(short, tmp_path / "run", 12_000)
    run = read_run(tmp_path / "run")
    report = verdict(run)
    assert 12_000 <= records == sum(each.found for each in report.completeness.incarnations)
    assert report.conservation.balanced and report.completeness.complete
    assert all(report.conservation.by_outcome[end] for end in ("filtered", "merged", "shed", "lost", "sent"))
    assert counted(run) == told(report)


@pytest.mark.parametrize("seeds", sample([range(6), range(6, 24)], of=2))
def test_the_recount_agrees_on_random_runs(seeds: range, tmp_path: Path) -> None:
    agreed = 0
    for seed in seeds:
        dice = random.Random(seed)
        document = everything() if seed % 4 == 0 else random_document(seed)
        cluster = play(document, seed, 12, dice.choice((0.0, 0.05, 0.1)), policed=dice.choice((0.0, 0.2)))
        run = read_run(cluster.save(tmp_path / str(seed)))
        report = verdict(run)
        if report.conservation.balanced and not any(node.crashed for node in cluster.all):
            assert counted(run) == told(report), f"seed {seed}"
            agreed += 1
    assert agreed > len(seeds) // 3
