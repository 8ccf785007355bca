"""The age of data in a run by hand: in report.json, in the terminal's tables and sentences, and on the page."""

from dataclasses import replace
from pathlib import Path

from coordinator.report.blame.ages.oldest_data import with_hops
from coordinator.report.facts.reader import Run, read_run
from coordinator.report.page import age_tables
from coordinator.report.page.elements import PageRun
from coordinator.report.page.sections.data_ages import ages
from coordinator.report.report_document import Report
from coordinator.report.series.run_series import run_series
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.aged_worlds import asking
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, plan_document

S, T = 1, 2
OPERATOR = {"name": "o", "at": "a", "in": ["s"], "side": ["t"]}


class ByHand(Cluster):
    """An operator that reads `t` as it runs on `s`."""

    def came(self, source: int, seq: int, origin_ms: int, at_ms: int) -> Lineage:
        node, lineage = self.nodes[0], Lineage(source, 1, seq, 0, origin_ms * MS, origin_ms * MS)
        node.write(rec.ADMITTED, self.flags, source, lineage, at_ms * MS, lineage.lo, lineage.hi)
        if source == T:
            node.write(rec.ABSORBED, self.flags, 1, lineage, at_ms * MS, self.plan.sources[T][1], 0)
        return lineage

    def ran(self, lineage: Lineage, at_ms: int, start_ms: int, end_ms: int, gives: int = 1) -> None:
        node, times = self.nodes[0], (at_ms * MS, start_ms * MS, end_ms * MS, end_ms * MS, 0)
        if gives:
            words = (end_ms * MS, lineage.lo, lineage.hi, self.plan.outputs[1].deadline_ns, 0)
            node.write(rec.OUTPUT, self.flags, 1, lineage, *words)
        node.write(rec.RAN, self.flags, 1, lineage, *times, last=gives)


def by_hand(path: Path) -> tuple[Run, Report]:
    document = plan_document(["a"], {"s": "a", "t": "a"}, [OPERATOR], {"out": ("o", "a", 50 * MS)})
    made = ByHand(asking(document, 20 * MS, 20 * MS), 0, mishaps=0, many=0)
    made.came(T, 1, 8, 10)
    made.ran(made.came(S, 1, 14, 15), 15, 16, 18)
    made.came(T, 2, 20, 21)
    made.ran(made.came(S, 2, 50, 51), 51, 52, 54)
    made.ran(made.came(S, 3, 59, 60), 60, 60, 61, gives=0)
    made.came(T, 3, 95, 96)
    made.nodes[0].now = 100 * MS
    made.finish()
    run = read_run(made.save(path))
    report = verdict(run)
    return run, replace(report, freshness=with_hops(run, report))


def test_ages_and_reactions_in_figures(tmp_path: Path) -> None:
    _, report = by_hand(tmp_path / "run")
    assert report.document()["freshness"] == {  # type: ignore[call-overload, index]
        "out": {
            "age": {
                "limit_ns": 20 * MS, "bound_ns": None, "above_bound": None, "results": 2, "without_data": 0, "above": 1,
                "undecidable": 0, "share": [0.5, 0.5], "age_ns": {"p50": 10 * MS, "p99": 34 * MS, "max": 34 * MS},
                "worst": [
                    {
                        "source": "s", "epoch": 1, "seq": seq, "ordinal": 0, "age_least_ns": ns, "age_ns": ns,
                        "oldest": "t",
                    }
                    for seq, ns in ((2, 34 * MS), (1, 10 * MS))
                ],
                "blamed": 1,
                "hops": [
                    {"kind": kind, "place": place, "mean_ns": ms * MS, "share": ms / 34}
                    for kind, place, ms in (
                        ("side", "lying at side input o.t at a", 31), ("run", "running o at a", 2),
                        ("admission", "before admission of t", 1),
                    )
                ],
            },
            "reactions": {
                "s": {
                    "limit_ns": 20 * MS, "bound_ns": None, "above_bound": None, "tuples": 3, "answered": 2,
                    "unanswered": 1, "undecided": 0, "above": 0, "undecidable": 0, "share": [1 / 3, 1 / 3],
                    "reaction_ns": {"p50": 4 * MS, "p99": 4 * MS, "max": 4 * MS},
                },
                "t": {
                    "limit_ns": 20 * MS, "bound_ns": None, "above_bound": None, "tuples": 3, "answered": 2,
                    "unanswered": 0, "undecided": 1, "above": 1, "undecidable": 0, "share": [1 / 3, 2 / 3],
                    "reaction_ns": {"p50": 10 * MS, "p99": 34 * MS, "max": 34 * MS},
                },
            },
            "unread": 0,
            "untold": [],
        }
    }  # fmt: skip


def test_rows_sentences_and_the_page_say_the_same(tmp_path: Path) -> None:
    run, report = by_hand(tmp_path / "run")
    assert list(age_tables.age_rows([("r", report)])) == [
        ("r", "out", "age", "20", "–", "10.0", "34.0", "34.0", "50 %", ""),
        ("r", "out", "reaction to s", "20", "–", "4.0", "4.0", "4.0", "33.3 %", "1"),
        ("r", "out", "reaction to t", "20", "–", "10.0", "34.0", "34.0", "33.3 to 66.7 %", "0"),
    ]
    assert list(age_tables.sentences(report)) == [
        "output out: the data of 1 of 2 results were above their limit, 20 ms; of the oldest one: "
        "31 ms lying at side input o.t at a, 2 ms running o at a, 1 ms before admission of t"
    ]
    page = ages([PageRun(0, "r", run, report, run_series(run, 1))], "out")
    assert "reaction to t" in page and "lying at side input o.t at a" in page and "33.3 to 66.7 %" in page


def test_where_no_output_asks_nothing_is_said(tmp_path: Path) -> None:
    document = plan_document(["a"], {"s": "a", "t": "a"}, [OPERATOR], {"out": ("o", "a", 50 * MS)})
    made = ByHand(document, 0, mishaps=0, many=0)
    made.ran(made.came(S, 1, 14, 15), 15, 16, 18)
    made.finish()
    run = read_run(made.save(tmp_path / "run"))
    report = verdict(run)
    assert "freshness" not in report.document()  # type: ignore[operator]
    assert ages([PageRun(0, "r", run, report, run_series(run, 1))], "out") == ""
