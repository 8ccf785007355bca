"""Windows that nobody opened because their node was away, or that were open as it crashed: both engines count them."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run, records_of
from coordinator.report.page.overload_tables import window_sentences
from coordinator.report.page.page import page
from coordinator.report.page.terminal import notes as said
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.sdk import Sink, Source
from protos import records as rec
from tests import traces
from tests.coordinator.fleet.deployment.test_deploy_live import Street
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, Node, hashed, plan_document
from tests.coordinator.report.synthetic_windows import with_windows

S = 1_000_000_000
STOPPED = rec.WINDOW_CAUSES.index("stopped")


def document(window: dict[str, Any] | None = None, mean: float | None = None) -> dict[str, Any]:
    """s at a -> link -> mean.add at b, windows of 1 s -> mean -> out; `mean` may filter."""
    closes: dict[str, Any] = {"name": "mean", "at": "b", "in": ["mean.add"]}
    made = plan_document(
        ["a", "b"],
        {"s": "a"},
        [{"name": "mean.add", "at": "b", "in": ["s"]}, closes if mean is None else closes | {"mean": mean}],
        {"out": ("mean", "b", 300 * MS)},
    )
    feeds = [{"source": 1, "name": "s@a"}]
    return with_windows(made, {"mean": {"length": str(S), "hop": str(S), "feeds": feeds} | (window or {})})


@dataclass
class Run:
    """Node a admits every 100 ms, and loses what b does not hear; b is there from second to second."""

    document: dict[str, Any] = field(default_factory=document)

    def __post_init__(self) -> None:
        self.cluster = Cluster(self.document, 1, mishaps=0)
        self.cluster.all.clear()
        self.flags, self.boots = self.cluster.flags, 0
        self.source = self.node(0)
        self.admitted = Counter[int]()  # by boot

    def node(self, index: int, clock: str = "one") -> Node:
        self.boots += 1
        node = Node(self.cluster.plan.nodes[index], index, self.boots, clock)
        self.cluster.all.append(node)
        for state in (rec.STATE_PREPARED, rec.STATE_COMMITTED):
            self.plan(node, state)
        return node

    def plan(self, node: Node, state: int) -> None:
        node.write(rec.PLAN, 0, state, None, node.now, 131, last=self.cluster.plan.hash_u64)

    def over(self, node: Node, state: int = rec.STATE_DRAINED) -> None:
        """In order; drained: by the coordinator, ended: with its agent."""
        if state == rec.STATE_DRAINED:
            self.plan(node, rec.STATE_DRAINING)
        self.plan(node, state)
        node.ended = True

    def tuples(self, first: int, last: int, node: Node | None = None) -> None:
        node = node or self.source
        for n in range(first * 10, last * 10 + 1):
            at = n * S // 10
            self.admitted[node.boot] += 1
            lineage = Lineage(1, node.boot, self.admitted[node.boot], 0, at, at)
            node.write(rec.ADMITTED, self.flags, 1, lineage, at, at, at)
            node.write(rec.LOST, self.flags | rec.FLAG, 1, lineage, at, rec.CAUSE_NO_ROUTE, 0, 1)

    def fact(self, node: Node, number: int, state: int, at: int, cause: int = 0, last: int | None = None) -> None:
        end = S * (number if last is None else last) + S
        lineage = Lineage(2, node.boot, number, 0, end, end)
        held = int(state == rec.WINDOW_CLOSED) if last is None else last
        node.write(rec.WINDOW, self.flags, 1, lineage, at, state, S * number, end, cause, last=held)

    def there(self, since: int, until: int, clock: str = "one", fed_until: int | None = None) -> Node:
        """Windows since + 1..until - 1 are given; `since` was on its way, `until` is open. fed_until: those from there
        on have no tuples."""
        node = self.node(1, clock)
        self.fact(node, since, rec.WINDOW_SKIPPED, since * S + 5, last=since)
        for number in range(since + 1, until + 1):
            self.fact(node, number, rec.WINDOW_OPENED, number * S + 5)
            if number == until:
                break
            end = (number + 1) * S
            lineage = Lineage(2, node.boot, number, 0, end, end)
            held = int(fed_until is None or number < fed_until)
            node.write(rec.WINDOW, self.flags, 1, lineage, end + 4, rec.WINDOW_CLOSED, S * number, end, 0, last=held)
            node.write(rec.ADMITTED, self.flags, 2, lineage, end + 4, end, end)
            node.write(rec.RAN, self.flags, 2, lineage, end + 4, end + 5, end + 6, 0, 0, last=1)
            node.write(rec.OUTPUT, self.flags, 1, lineage, end + 6, end, end, 300 * MS, 0)
        return node

    def crash(self, node: Node) -> None:
        self.plan(node, rec.STATE_CRASHED)
        node.crashed = node.ended = True

    def save(self, path: Path) -> Path:
        return self.cluster.save(path)


def away(made: dict[str, Any] | None = None, clock: str = "one", again: bool = True, open_: bool = False) -> Run:
    """b gives 11 and 12, crashes with 13 open, is back within 21 or not at all, gives 22 and ends in order."""
    run = Run(document() if made is None else made)
    run.tuples(10, 24)
    run.crash(run.there(10, 13))
    if again:
        node = run.there(21, 23, clock)
        if not open_:
            run.fact(node, 23, rec.WINDOW_ABANDONED, 25 * S, STOPPED)
            run.over(node)
    run.over(run.source)
    return run


def stopped(state: int) -> Run:
    """b ends in order, by the coordinator or with its agent, and begins again."""
    run = Run()
    run.tuples(10, 24)
    for since, until in ((10, 13), (21, 23)):
        node = run.there(since, until)
        run.fact(node, until, rec.WINDOW_ABANDONED, (until + 1) * S, STOPPED)
        run.over(node, state if since == 10 else rec.STATE_DRAINED)
    run.over(run.source)
    return run


def dropped() -> Run:
    """Of b's second incarnation records are missing, and it says so."""
    run = away()
    run.cluster.all[-1].write(rec.GAP, 0, 0, None, 26 * S, 3)
    return run


def counted(**more: Any) -> dict[str, Any]:
    """Of 11..12 and 22 given, 13 open at the crash, 14..21 never opened."""
    counts = {"met": 3, "lost": 9, "lost_unsure": 0, "undecidable": 0}
    windows = {"all": 12, "given": 3, "on_time": 3, "unended": 1, "never_opened": 8, "cut_off": 2, "notes": 0}
    return counts | windows | more


NONE = counted(lost=0, all=3, unended=0, never_opened=0, cut_off=4)
CASES: dict[str, tuple[Callable[[], Run], dict[str, Any]]] = {
    "the node is away and comes back": (away, counted()),
    "a filter behind the windows": (lambda: away(document(mean=0.5)), counted(lost=0, lost_unsure=9)),
    "not over as the trace is collected": (lambda: away(open_=True), counted()),
    "another clock": (lambda: away(clock="two"), counted(lost=1, all=4, never_opened=0, cut_off=3, notes=1)),
    "the node stays away": (
        lambda: away(again=False),
        counted(met=2, lost=11, all=13, given=2, on_time=2, never_opened=10, cut_off=1),
    ),
    "windows by count": (lambda: away(document({"kind": "count"})), counted(lost=1, all=4, never_opened=0, cut_off=3)),
    "records are missing": (dropped, counted(lost=1, undecidable=8)),
    "the plan was stopped and begun again": (lambda: stopped(rec.STATE_DRAINED), NONE),
    "the agent was stopped and started again": (
        lambda: stopped(rec.STATE_ENDED), counted(lost=8, all=11, unended=0, cut_off=3),
    ),
}  # fmt: skip


def figures(told: dict[str, Any]) -> dict[str, Any]:
    output = told["outputs"]["out"]
    windows = output["windows"]["mean"]
    assert told["conservation"]["balanced"], told["conservation"]["problems"]
    names = ("all", "given", "on_time", "unended", "never_opened", "cut_off")
    found = {name: output[name] for name in ("met", "lost", "lost_unsure", "undecidable")}
    return found | {name: windows[name] for name in names} | {"notes": len(windows["not_counted"])}


@pytest.mark.parametrize("case", CASES)
def test_windows_of_a_node_that_was_away_are_missed(tmp_path: Path, case: str) -> None:
    make, expected = CASES[case]
    told = verdict(read_run(make().save(tmp_path / "run"))).document()
    assert figures(told) == expected
    output = told["outputs"]["out"]
    unsure = expected["lost_unsure"] + expected["undecidable"]
    assert output["miss_ratio"] == expected["lost"] / (expected["lost"] + expected["met"])
    assert output["miss_ratio_hi"] == (expected["lost"] + unsure) / (expected["lost"] + expected["met"] + unsure)


def as_two_plans(path: Path, between: bool = False) -> dict[str, Any]:
    """The last incarnation of b ran a later plan, which differs in something else; `between`: one that has no such
    windows ran before it."""
    first = json.loads((path / "plan.json").read_text())
    last = hashed(first | {"allocator": "sqpr"})
    other = hashed(first | {"nodes": {name: each | {"sources": []} for name, each in first["nodes"].items()}})
    (path / "earlier").mkdir()
    earlier = [first, other] if between else [first]
    for each in earlier:
        (path / "earlier" / f"{each['hash']}.json").write_text(json.dumps(each))
    said = json.loads((path / "run.json").read_text())
    (path / "plan.json").write_text(json.dumps(last))
    told = {"plan_hash": last["hash"], "earlier": [each["hash"] for each in earlier]}
    (path / "run.json").write_text(json.dumps(said | told))
    old, new = (int(each["hash"][:16], 16).to_bytes(8, "little") for each in (first, last))
    node = max((path / "trace" / "raw" / "b").iterdir())
    traces.change(node, lambda found: [record.replace(old, new) for record in found])
    return verdict(read_run(path)).document()


def test_windows_go_on_from_plan_to_plan_where_each_has_them(tmp_path: Path) -> None:
    assert figures(as_two_plans(away().save(tmp_path / "two"))) == counted()
    apart = as_two_plans(away().save(tmp_path / "three"), between=True)
    assert figures(apart) == counted(lost=1, all=4, never_opened=0, cut_off=3)


def test_missing_windows_are_told_in_sentences(tmp_path: Path) -> None:
    run = read_run(away().save(tmp_path / "run"))
    told = verdict(run)
    (line,) = window_sentences(told)
    assert line.startswith("Windows of mean: 8 never opened while their node was away, 1 open as their node crashed.")
    assert line in page([(run, told)])
    assert line in list(said([told]))
    (note,) = window_sentences(verdict(read_run(away(clock="two").save(tmp_path / "rebooted"))))[1:]
    assert note.startswith("Windows of mean: b began anew with another clock")


QUERY = """
shimekiri: 1
query: live
sources:
  s: {at: a, type: json, arrival: {rate: 100}, tolerance: 50 ms, max_age: 5 s}
operators:
  mean: {run: aggregate, in: s, cost: 100 us, with: {n: count}, window: {time: 100 ms}, nodes: [b]}
outputs:
  out: {from: mean, at: b, deadline: 10 s}
"""


def test_a_killed_agent_misses_windows(tmp_path: Path) -> None:
    street = Street(tmp_path)
    try:
        (tmp_path / "query.yaml").write_text(QUERY)
        street.plan = planner.make_plan(tmp_path / "query.yaml", tmp_path / "cluster.yaml", Choices())
        plan_file.write(street.plan, tmp_path / "plan.json")
        with street.connect() as agents:
            deploy.deploy(street.plan, agents)
        feed = partial(Source, street.addresses.nodes["a"].data, "s", timeout=30)
        data = street.addresses.nodes["b"].data
        with feed() as source:
            with Sink(data, "out", timeout=30) as results:
                _until_a_result(source, results)
            street.kill("b")
            ends = time.monotonic() + 0.5  # five windows long at least
            while time.monotonic() < ends:
                source.send_many([{"n": 0}])
                time.sleep(0.05)
            street.restart("b")
            with Sink(data, "out", timeout=30) as results:
                _until_a_result(source, results)
        with street.connect() as agents:
            assert deploy.stop({bytes.fromhex(street.plan.hash)}, agents, 60) == []
            run = collect.new_run(tmp_path / "runs", street.plan, tmp_path / "plan.json", tmp_path / "addresses.json")
            collect.collect(run, street.plan, agents)
        told = verdict(read_run(run)).document()
    finally:
        street.close()
    assert told["conservation"]["balanced"], told["conservation"]["problems"]
    output = told["outputs"]["out"]
    windows = output["windows"]["mean"]
    assert windows["never_opened"] >= 4 and not windows["not_counted"]
    ended = windows["given"] + sum(windows["abandoned"].values()) + windows["skipped"]
    assert output["lost"] == windows["never_opened"] + windows["unended"] == windows["all"] - ended
    known = {n for each in read_run(run).incarnations for _, record in records_of(each) for n in _numbers(record)}
    assert windows["never_opened"] == max(known) - min(known) + 1 - len(known)


def _numbers(record: rec.Record) -> range:
    """Windows of 100 ms that a record tells of, without those that were on their way as a node began."""
    if not isinstance(record, rec.Window) or (record.state == rec.WINDOW_SKIPPED and not record.cause):
        return range(0)
    return range(record.start // (S // 10), record.end // (S // 10))


def _until_a_result(source: Source, results: Sink) -> None:
    got = threading.Event()

    def read() -> None:
        next(iter(results))
        got.set()

    reader = threading.Thread(target=read)
    reader.start()
    while not got.wait(0.02) and reader.is_alive():
        source.send_many([{"n": 1}])
    reader.join()
    assert got.is_set()


def test_windows_behind_the_end_of_a_feed_are_no_part_of_what_was_offered(tmp_path: Path) -> None:
    """11 and 12 have tuples, 13 is lost, 14 to 22 come in time and are empty: one of three was missed."""
    run = Run()
    run.tuples(10, 13)
    node = run.there(10, 23, fed_until=13)
    run.fact(node, 23, rec.WINDOW_ABANDONED, 25 * S, STOPPED)
    run.over(node)
    run.over(run.source)
    few = verdict(read_run(run.save(tmp_path / "few"))).document()["outputs"]["out"]
    assert (few["met"], few["met_idle"], few["windows"]["mean"]["idle"]) == (12, 10, 10)
    assert few["missed_of_offered"] == [few["missed"] / (2 + few["missed"])] * 2


def test_windows_that_another_node_made_in_the_meantime_are_not_missing(tmp_path: Path) -> None:
    """b is away from 13 to 21; a had the operator under a plan of its own and gives 15 to 19."""
    run = away()
    stand_in = plan_document(
        ["a", "b"],
        {"s": "a"},
        [{"name": "mean.add", "at": "a", "in": ["s"]}, {"name": "mean", "at": "a", "in": ["mean.add"]}],
        {"out": ("mean", "a", 300 * MS)},
    )
    feeds = [{"source": 1, "name": "s@a"}]
    second = with_windows(stand_in, {"mean": {"length": str(S), "hop": str(S), "feeds": feeds}})
    view = Cluster(second, 1).plan
    node, flags = run.source, 132 & rec.PLAN_EPOCH_MASK
    for state in (rec.STATE_PREPARED, rec.STATE_COMMITTED):
        node.write(rec.PLAN, 0, state, None, 13 * S, 132, last=view.hash_u64)
    (collects,) = view.windows.values()
    for n in range(15, 20):
        end = (n + 1) * S
        lineage = Lineage(collects.source, node.boot, n, 0, end, end)
        told = (end + 4, rec.WINDOW_CLOSED, S * n, end, 0)
        node.write(rec.WINDOW, flags, collects.operators[0], lineage, *told, last=1)
    path = run.save(tmp_path / "run")
    (path / "earlier").mkdir()
    (path / "earlier" / f"{second['hash']}.json").write_text(json.dumps(second))
    values = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(values | {"earlier": [second["hash"]]}))
    assert verdict(read_run(path)).document()["outputs"]["out"]["windows"]["mean"]["never_opened"] == 8 - 5
