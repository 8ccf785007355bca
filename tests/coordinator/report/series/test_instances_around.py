"""What ran around a tuple: its own instances, no more bars than asked for, and gaps that nobody sees are none."""

from pathlib import Path

from coordinator.report.facts.reader import read_run
from coordinator.report.series.instances_around import MOST_BARS, Focus, instances_around
from coordinator.report.series.run_series import run_series
from protos import records as rec
from tests.coordinator.report.synthetic import MS, Cluster, everything, plan_document, play


def test_the_tuple_itself_is_found_on_every_node(tmp_path: Path) -> None:
    run = read_run(play(everything(), 3, tuples=12, mishaps=0, many=0).save(tmp_path / "run"))
    series = run_series(run)
    slow = next(one for one in series.slowest if one.output == "far")
    at_ns = series.clock.at(run.incarnations[slow.trace], slow.at_ns)
    focus = Focus(slow.source, slow.epoch, slow.seq, at_ns - slow.took_ns, at_ns)
    (found,) = instances_around(run, series.records, series.clock, [focus], 10_000)
    mine = {each.node for each in found if any(bar.mine for bar in each.bars)}
    assert mine == {"a", "b"}
    length_ns = focus.window[1] - focus.window[0]
    assert all(0 <= bar.from_ns <= bar.from_ns + bar.run_ns <= length_ns for each in found for bar in each.bars)


def test_bars_are_bounded_and_those_that_touch_are_one(tmp_path: Path) -> None:
    ops = [{"name": "o", "at": "a", "in": ["s"]}]
    cluster = Cluster(plan_document(["a"], {"s": "a"}, ops, {"out": ("o", "a", MS)}), 2, mishaps=0, many=0)
    node, (unit, *_) = cluster.nodes[0], cluster.plan.units
    many = 2 * MOST_BARS
    for n in range(many):  # alone, then without a gap
        node.write(rec.RAN, cluster.flags, unit, None, 0, 100 * n * MS, (100 * n + 1) * MS)
    for n in range(many):
        node.write(rec.RAN, cluster.flags, unit, None, 0, (100 * many + n) * MS, (100 * many + n + 1) * MS)
    run = read_run(cluster.save(tmp_path / "run"))
    series = run_series(run)
    focuses = [Focus(1, 1, 1, 0, 100 * many * MS), Focus(1, 1, 1, (100 * many + 3) * MS, (100 * many + 9) * MS)]
    apart, together = instances_around(run, series.records, series.clock, focuses, 10_000)
    assert len(apart[0].bars) == MOST_BARS and apart[0].left_out > 0
    assert [bar.instances for bar in together[0].bars] in ([8], [9], [7])
    assert instances_around(run, series.records, series.clock, focuses, MOST_BARS)[1] == []
