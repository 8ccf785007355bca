"""Windows in the report: ledgers that balance and ledgers that do not, and figures that follow from the records."""

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from coordinator.report.facts.plan_view import Reach
from coordinator.report.facts.reader import read_run
from coordinator.report.page.page import page
from coordinator.report.summary.best_share import best_share, long_run_share
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, plan_document
from tests.coordinator.report.synthetic_windows import as_earlier, overloaded, play_windows, with_windows, write_missing
from tests.coordinator.report.test_report_command import app
from tests.node_agent.core.simulated.best_share_of_windows import best_share as agents_best_share

S = 1_000_000_000


def judged(cluster: Cluster, path: Path) -> dict[str, Any]:
    return verdict(read_run(cluster.save(path / "run"))).document()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), mishaps=st.sampled_from((0.0, 0.1, 0.3)))
def test_the_books_balance_whatever_becomes_of_windows(tmp_path: Path, seed: int, mishaps: float) -> None:
    cluster = play_windows(overloaded(), seed, tuples=25, mishaps=mishaps)
    told = judged(cluster, tmp_path)
    books = told["conservation"]
    assert books["balanced"], books["problems"]
    sources = told["shed"]["sources"]
    assert books["windows"] == sources["mean.add"]["admitted"] + sources["pairs.add"]["admitted"] <= books["admitted"]
    for output in ("means", "joined", "pairs"):
        for found in told["outputs"][output]["windows"].values():
            assert 0 <= found["on_time"] + found["filtered"] <= found["all"]
            ended = found["given"] + sum(found["abandoned"].values()) + found["skipped"]
            assert ended + found["unended"] <= found["all"] or mishaps, found
    assert "windows" not in told["outputs"]["cars"]


def test_any_missing_record_unbalances(tmp_path: Path) -> None:
    cluster = play_windows(overloaded(), 7, tuples=14, mishaps=0.05)
    kinds = set()
    for path, kind in write_missing(cluster, tmp_path):
        kinds.add(kind)
        assert not verdict(read_run(path)).document()["conservation"]["balanced"], path.name
    assert {rec.WINDOW, rec.DEGRADED, rec.SHED, rec.ADMITTED, rec.RAN} <= kinds


def test_a_window_without_its_end_is_a_contradiction_by_the_ledger_alone(tmp_path: Path) -> None:
    whole, lacking = Overload(), Overload()
    for cluster in (whole, lacking):
        cluster.window(3, rec.WINDOW_ABANDONED, 1)
    lacking.node.records.pop()
    assert whole.told(tmp_path)["conservation"]["balanced"]
    (problem,) = lacking.told(tmp_path)["conservation"]["problems"]
    assert "tuple 2/1/3.0: arrived for unit 2 (mean), but no RAN, SHED, LOST or MERGED record ends it" in problem


class Overload(Cluster):
    """One node: s -> mean.add (windows of 5 s every 4 s) -> mean, which may filter -> out."""

    def __init__(self, window: dict[str, Any] | None = None, deadline_ns: int = 5 * S) -> None:
        document = plan_document(
            ["a"],
            {"s": "a"},
            [
                {"name": "mean.add", "at": "a", "in": ["s"]},
                {"name": "mean", "at": "a", "in": ["mean.add"], "mean": 0.9},
            ],
            {"out": ("mean", "a", deadline_ns)},
        )
        long = {"length": str(5 * S), "hop": str(4 * S)}
        super().__init__(with_windows(document, {"mean": long | (window or {})}), 1, mishaps=0, many=0)
        self.node, self.free_ns = self.nodes[0], 0
        del self.node.records[-2:]  # of another plan

    def tuple(self, seq: int, at: int, run_ns: int, policy: int = 0) -> None:
        lineage = Lineage(1, 1, seq, 0, at, at)
        self.node.write(rec.ADMITTED, self.flags, 1, lineage, at, at, at)
        if policy:
            self.node.write(rec.SHED, self.flags, 1, lineage, at, policy, 0)
        else:
            start = max(at + 7, self.free_ns)
            self.free_ns = start + run_ns
            self.node.write(rec.RAN, self.flags, 1, lineage, at, start, self.free_ns, 0, 0)

    def window(
        self, number: int, state: int, cause: int = 0, late_ns: int = 0, gives: bool = True, last: int = 0
    ) -> None:
        end = (4 * number + 5) * S
        lineage = Lineage(2, 1, number, 0, end, end)
        held = last or int(state == rec.WINDOW_CLOSED)
        self.node.write(rec.WINDOW, self.flags, 1, lineage, end, state, end - 5 * S, end, cause, last=held)
        if state == rec.WINDOW_OPENED or (state, cause) in ((rec.WINDOW_SKIPPED, 0), (rec.WINDOW_ABANDONED, 7)):
            return
        for seq in range(number, max(number, last) + 1 if state == rec.WINDOW_SKIPPED else number + 1):
            lineage = Lineage(2, 1, seq, 0, end, end)
            self.node.write(rec.ADMITTED, self.flags, 2, lineage, end, end, end)
            if state != rec.WINDOW_CLOSED:
                self.node.write(rec.SHED, self.flags, rec.NO_REF, lineage, end, rec.POLICY_WINDOW, 0, 2)
                continue
            at = end + late_ns
            self.node.write(rec.RAN, self.flags, 2, lineage, end, at, at, 0, 0, last=int(gives))
            if gives:
                self.node.write(rec.OUTPUT, self.flags, 1, lineage, at, end, end, self.plan.outputs[1].deadline_ns, 0)

    def told(self, path: Path) -> dict[str, Any]:
        self.node.in_order()
        self.finish()
        return judged(self, path)


def test_figures_of_a_run(tmp_path: Path) -> None:
    cluster = Overload()
    for n in range(1001):  # every 10 ms, each 11 ms of work; of 1001 every tenth is shed
        cluster.tuple(n, 10 * MS * n, 11 * MS, rec.POLICY_WINDOW_AWARE if n % 10 == 9 else 0)
    cluster.window(0, rec.WINDOW_SKIPPED, last=1)  # before all sources were heard of
    for number in (2, 3, 4, 5, 6, 7):
        cluster.window(number, rec.WINDOW_OPENED)
    for number, late_ns in ((2, MS), (3, 5 * S), (4, 5 * S + 1)):
        cluster.window(number, rec.WINDOW_CLOSED, late_ns=late_ns)
    cluster.window(5, rec.WINDOW_CLOSED, gives=False)
    cluster.window(6, rec.WINDOW_ABANDONED, rec.WINDOW_CAUSES.index("removed"))
    cluster.window(8, rec.WINDOW_SKIPPED, rec.WINDOW_CAUSES.index("removed"), last=9)
    cluster.window(7, rec.WINDOW_ABANDONED, rec.WINDOW_CAUSES.index("stopped"))
    cluster.node.write(rec.DEGRADED, cluster.flags, 1, Lineage(1, 1, 1, 0, 0, 0), 5, 1, 0)
    told = cluster.told(tmp_path)
    assert told["conservation"]["balanced"], told["conservation"]["problems"]
    assert (told["conservation"]["admitted"], told["conservation"]["windows"]) == (1008, 7)
    found = told["outputs"]["out"]["windows"]["mean"]
    assert found == {
        "all": 7, "given": 4, "on_time": 2, "filtered": 1, "abandoned": {"removed": 1}, "skipped": 2, "unended": 0,
        "never_opened": 0, "unknown": 0, "idle": 0, "not_counted": [], "opened": 6, "cut_off": 3,
        "share": 3 / 7, "load": 1.1,
        "long_run_share": float(best_share(Fraction(11, 10), 5 * S, 4 * S, 5 * S)), "long_run_share_why": None,
    }  # fmt: skip
    assert round(found["long_run_share"], 3) == 0.891
    assert told["shed"]["sources"]["s"]["policies"] == {"window-aware": {"tuples": 100, "rate": 100 / 1001}}
    assert told["shed"]["units"] == {
        "mean.add at a": {"came": 1001, "policies": {"window-aware": {"tuples": 100, "rate": 100 / 1001}}}
    }
    assert told["degraded"] == {"mean.add": 1}
    output = told["outputs"]["out"]
    assert (output["met"], output["late"], output["shed_unsure"]) == (2, 1, 3), "behind a filter a window is not sure"
    assert told["blame"]["out"]["hops"][0]["hop"] == "age of a window as it closes"


@pytest.mark.parametrize(
    ("window", "deadline_ns", "best", "why"),
    [
        ({"kind": "count", "length": "10", "hop": "10"}, 5 * S, None, "windows by count have no fixed length in time"),
        ({"kind": "sized"}, 5 * S, None, "windows by sized have no fixed length in time"),
        ({"hop": str(6 * S)}, 5 * S, None, "the hop is longer than the window: some of the stream is in none"),
        ({"first": True}, 9 * S, float(best_share(Fraction(2), 5 * S, 4 * S, 4 * S)), None),
        ({"first": True}, 10 * S, float(best_share(Fraction(2), 5 * S, 4 * S, 5 * S)), None),
    ],
)
def test_the_bound_is_told_where_it_means_something(
    tmp_path: Path, window: dict[str, Any], deadline_ns: int, best: float | None, why: str | None
) -> None:
    cluster = Overload(window, deadline_ns)
    for n in range(11):
        cluster.tuple(n, 10 * MS * n, 20 * MS)
    found = cluster.told(tmp_path)["outputs"]["out"]["windows"]["mean"]
    assert (found["long_run_share"], found["long_run_share_why"], found["load"], found["share"]) == (
        best,
        why,
        2.0,
        None,
    )


def test_no_load_and_no_bound_of_one_tuple(tmp_path: Path) -> None:
    cluster = Overload()
    cluster.tuple(1, 0, MS)
    found = cluster.told(tmp_path)["outputs"]["out"]["windows"]["mean"]
    assert (found["load"], found["long_run_share"], found["long_run_share_why"]) == (None, None, "no load was measured")


@given(
    load=st.fractions(0, 20), hop=st.integers(1, 10**10), more=st.integers(0, 10**11), latency=st.integers(-9, 10**11)
)
def test_the_bound_is_the_agents(load: Fraction, hop: int, more: int, latency: int) -> None:
    mine = best_share(load, hop + more, hop, latency)
    assert mine == agents_best_share(load, Fraction(hop + more), Fraction(hop), Fraction(latency))
    assert 0 <= mine <= 1 and (load <= 1 or mine <= 1 / load)


def test_windows_of_an_earlier_plan_are_judged_alike(tmp_path: Path) -> None:
    cluster = play_windows(overloaded(), 11, tuples=40)
    alone = judged(cluster, tmp_path)
    told = verdict(read_run(as_earlier(tmp_path / "run"))).document()
    assert told["conservation"] == alone["conservation"] and told["conservation"]["windows"] > 0
    assert told["outputs"] == alone["outputs"] and told["shed"] == alone["shed"]
    assert told["degraded"] == alone["degraded"] != {}


def test_no_tuple_leads_through_a_window() -> None:
    cluster = Overload()
    reach = Reach(cluster.plan)
    node, stream = cluster.plan.sources[1]
    assert reach.stream(node, stream) == {} and reach.stream(*cluster.plan.sources[2]) == {1: False}
    view = cluster.plan.windows[2]
    assert (view.name, view.path, view.operators, view.useful_ns) == ("mean", (1,), (1, 2), 0)


def test_tables_and_page_tell_windows_and_what_was_shed(tmp_path: Path) -> None:
    one = read_run(play_windows(overloaded(), 3, tuples=40).save(tmp_path / "one"))
    two = read_run(play_windows(overloaded(), 4, tuples=40).save(tmp_path / "two"))
    text = page([(one, verdict(one))])
    both = page([(run, verdict(run)) for run in (one, two)])
    for each in (text, both):
        assert "<h2>Overload</h2>" in each and "of them windows)" in each
        assert "source pairs.add" in each and "pairs.add at b" in each
    said = CliRunner().invoke(app, ["report", str(one.path), str(two.path), "--engine", "python", "-v"])
    assert said.exit_code == 0, said.output
    assert "windows: in time of all" in said.output and "window-aware" in said.output
    told = json.loads((one.path / "report.json").read_text())
    assert told["outputs"]["pairs"]["windows"]["pairs"]["long_run_share"] is None


def had(load: Fraction, latency: Fraction, windows: tuple[int, ...]) -> bool:
    """Whether all of these windows, 1 long and one after the other, are had in time."""
    free = Fraction(0)
    for number in windows:
        free = max(free, Fraction(number)) + load
        if free > number + 1 + latency:
            return False
    return True


@pytest.mark.parametrize(
    ("load", "latency", "share"), [("1.6", "1", "1/2"), ("1.6", "1.2", "3/5"), ("1.6", "0.5", "0"), ("1", "0.1", "1")]
)
def test_of_windows_that_are_had_whole_or_not_at_all_fewer_can_be_had_for_long(
    load: str, latency: str, share: str
) -> None:
    assert long_run_share(Fraction(load), 1000, 1000, int(1000 * Fraction(latency))) == Fraction(share)


@settings(max_examples=25)
@given(load=st.fractions(1, 4, max_denominator=20), latency=st.fractions(0, 4, max_denominator=20))
def test_no_choice_of_windows_has_more_for_long(load: Fraction, latency: Fraction) -> None:
    share = long_run_share(load, 20 * 19 * 18, 20 * 19 * 18, int(latency * 20 * 19 * 18))
    assert share <= best_share(load, 20 * 19 * 18, 20 * 19 * 18, int(latency * 20 * 19 * 18))
    most = max(len(each) for n in range(7) for each in combinations(range(6), n) if had(load, latency, each))
    room = 1 + latency / load  # what a backlog at the end of a finite run is worth
    assert most <= share * 6 + room + 1
