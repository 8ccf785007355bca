"""What a page draws over time says the same as the records, one by one; incidents are found, with what they cost."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from coordinator.report.facts.merged_plans import own
from coordinator.report.facts.reader import Run, read_run, records_of
from coordinator.report.landing.landed_run import land
from coordinator.report.series import record_rows
from coordinator.report.series.durations import COUNTERS, counter, quantile_ns
from coordinator.report.series.incidents import Costs, Incident, of_refusals
from coordinator.report.series.instances_around import Focus, instances_around
from coordinator.report.series.run_clock import Refusal
from coordinator.report.series.run_series import RunSeries, run_series
from coordinator.report.verdict import scan_trace
from protos import records as rec
from tests.coordinator.report.synthetic import MS, everything, play

DRAWN = ("length_ns", "latencies", "uses", "nodes", "late", "incidents", "slowest")


def played(path: Path, seed: int = 3, mishaps: float = 0.05) -> tuple[Run, RunSeries]:
    run = read_run(play(everything(), seed, tuples=60, mishaps=mishaps).save(path / "run"))
    return run, run_series(run)


def records(run: Run) -> Iterator[rec.Record]:
    for incarnation in run.incarnations:
        every = list(records_of(incarnation))
        yield from own((each for _, each in every), scan_trace(incarnation, every, run.plan).epochs, run.plan)


def bounded(each: rec.Output) -> bool:
    took_ns = each.latency.most_ns
    return took_ns is not None and 0 <= took_ns < 1 << 50


def test_latencies_over_time_are_those_of_the_records(tmp_path: Path) -> None:
    run, series = played(tmp_path)
    outputs = [each for each in records(run) if isinstance(each, rec.Output) and bounded(each)]
    for view in run.plan.outputs.values():
        mine = [each for each in outputs if each.output == view.id]
        bins = series.latencies[view.name]
        assert sum(one.results for one in bins) == len(mine)
        assert max(one.most_ns for one in bins) == max(each.at_ns - each.origin_lo_ns for each in mine)
        assert sum(one.late for one in bins) == sum(each.at_ns - each.origin_hi_ns > view.deadline_ns for each in mine)
        assert all(0 <= one.p50_ns <= one.p99_ns <= one.most_ns for one in bins)
    assert sum(series.late) == sum(one.late for bins in series.latencies.values() for one in bins)


def test_use_is_how_long_instances_ran(tmp_path: Path) -> None:
    run, series = played(tmp_path)
    ran = [each for each in records(run) if isinstance(each, rec.Ran)]
    for id_, use in series.uses.items():
        mine = {(each.start_ns, each.end_ns) for each in ran if each.unit == id_}
        whole_ns = sum(end - start for start, end in mine)
        assert use.run_ns == pytest.approx(whole_ns, rel=1e-6)
        assert sum(use.shares) * series.use_bin_ns == pytest.approx(whole_ns, rel=1e-6)
        assert max(use.shares) <= 1.000001
        whole = [each for each in ran if each.unit == id_ and not each.unfinished]
        assert use.tuples == len(whole)
        assert use.response_most_ns == max(each.end_ns - each.release_ns for each in whole)
    assert set(series.uses) == {each.unit for each in ran}


def test_those_that_took_most_of_their_deadline_are_kept(tmp_path: Path) -> None:
    run, series = played(tmp_path)
    shares = sorted(
        ((each.at_ns - each.origin_lo_ns) / run.plan.outputs[each.output].deadline_ns
         for each in records(run) if isinstance(each, rec.Output) and bounded(each)),
        reverse=True,
    )  # fmt: skip
    found = [slow.share for slow in series.slowest]
    assert found == pytest.approx(shares[: len(found)])
    assert len(found) == 20


def test_a_crash_is_an_incident_from_the_last_record_to_the_first(tmp_path: Path) -> None:
    cluster = play(everything(), 3, tuples=30, mishaps=0, many=0)
    cluster.nodes[1].now += MS
    cluster.crash(cluster.nodes[1])
    cluster.nodes[1].now += 5 * MS
    cluster.finish()
    run = read_run(cluster.save(tmp_path / "run"))
    (away,) = (one for one in run_series(run).incidents if one.kind == "away")
    assert (away.node, away.what) == ("b", "its runtime crashed and was started again")


def test_a_node_of_which_there_is_nothing_is_said(tmp_path: Path) -> None:
    path = play(everything(), 3, tuples=30, mishaps=0).save(tmp_path / "run")
    for file in (path / "trace" / "raw" / "b").rglob("*.trace"):
        file.unlink()
    (gone,) = (one for one in run_series(read_run(path)).incidents if one.node == "b")
    assert (gone.kind, gone.until_ns) == ("no_trace", None)


def test_refusals_that_follow_one_another_are_one_incident(tmp_path: Path) -> None:
    run, _ = played(tmp_path)
    names = {source.name: source.id for local in run.plan.made.nodes.values() for source in local.sources}
    car, ego = names["car"], names["ego"]
    each = [Refusal(car, rec.REASON_FULL, at, at + 1, 2) for at in (0, 10, 20, 500)]
    others = [Refusal(ego, rec.REASON_TOO_OLD, 5, 6, 1), Refusal(ego, rec.REASON_STOPPED, 5, 6, 1)]
    found = sorted(of_refusals(run, 0, [*each, *others], apart_ns=50), key=lambda one: (one.what, one.from_ns))
    assert [(one.from_ns, one.until_ns, one.what) for one in found] == [
        (500, 501, "source car refused 2 tuples: full"),
        (0, 21, "source car refused 6 tuples: full"),
        (5, 6, "source ego refused 1 tuple: too old"),
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_landed_parquet_says_the_same_as_segments(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = play(everything(), seed, tuples=60, mishaps=0.2, policed=0.2).save(tmp_path / "run")
    run = read_run(path)
    segments = run_series(run)
    land(path, run.firsts)
    monkeypatch.setattr(record_rows, "LARGE", 1)
    parquet = run_series(run)
    assert all(getattr(segments, name) == getattr(parquet, name) for name in DRAWN)
    slow = segments.slowest[0]
    at_ns = segments.clock.at(run.incarnations[slow.trace], slow.at_ns)
    focus = Focus(slow.source, slow.epoch, slow.seq, at_ns - slow.took_ns, at_ns)
    around = [instances_around(run, each.records, each.clock, [focus], 1000) for each in (segments, parquet)]
    assert around[0] == around[1] and around[0][0]


def test_a_cost_counts_from_the_beginning_until_a_while_after_the_end() -> None:
    costs = Costs(
        [Incident("away", "a", 100, 200, "away"), Incident("away", "b", 900, None, "gone")], 1000, after_ns=50
    )
    costs.add("late", np.array([99, 100, 250, 251, 950]))
    costs.add("refused", np.array([150, 999]), np.array([7, 3]))
    first, second = costs.with_costs()
    assert (first.cost.late, first.cost.refused, second.cost.late, second.cost.refused) == (2, 7, 1, 3)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99, 1.0])
def test_quantiles_of_counted_durations_are_within_a_counter(share: float) -> None:
    took = np.random.default_rng(1).lognormal(15, 2, 5000).astype(np.int64)
    counts = np.bincount(counter(took), minlength=COUNTERS)
    exact = float(np.sort(took)[max(1, int(np.ceil(share * len(took)))) - 1])
    found = quantile_ns(counts, share, int(took.max()))
    assert found is not None and found == pytest.approx(exact, rel=0.023)


def test_a_run_without_a_record_has_series_that_are_empty(tmp_path: Path) -> None:
    path = play(everything(), 3, tuples=0, mishaps=0).save(tmp_path / "run")
    for file in (path / "trace" / "raw").rglob("*.trace"):
        file.unlink()
    series = run_series(read_run(path))
    assert Counter(one.kind for one in series.incidents) == {"no_trace": 2}
    assert not any(series.latencies.values()) and not series.uses and not series.slowest
