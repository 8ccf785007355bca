"""Verdicts, tables from a stored record, the page, and a short run of what needs no peer."""

from pathlib import Path

import pytest
from rich.console import Console

from infra.environments.pinned_environment import UnavailableError
from infra.peers import ours, peer_results, runner, table
from infra.peers.burn import burn, work
from infra.peers.environments import CONTESTANTS, Contestant
from infra.peers.peer_results import Row, StreamResult, judged
from infra.peers.workload import MS, chain, classes

RECORD = Path(__file__).parent / "record.json"


def test_late_and_never_are_missed_and_latencies_are_of_what_came() -> None:
    found = judged([1 * MS, None, 3 * MS, 2 * MS, 9 * MS], 3 * MS)
    assert found == StreamResult(5, 2, 2.0, 9.0, 9.0)
    assert judged([None], 1) == StreamResult(1, 1)


def test_the_operator_uses_as_much_cpu_time_as_it_is_to_and_passes_the_tuple_on() -> None:
    from time import thread_time_ns

    item = {"cost_ns": 2 * MS}
    began_ns = thread_time_ns()
    assert work(item) is item
    assert thread_time_ns() - began_ns >= 2 * MS
    burn(0)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows, conditions = peer_results.read(RECORD)
    peer_results.write(rows, conditions, tmp_path / "again.json")
    assert peer_results.read(tmp_path / "again.json") == (rows, conditions)


def test_the_table_has_a_row_for_each_contestant_and_says_what_is_not_there() -> None:
    rows, conditions = peer_results.read(RECORD)
    lines = table.markdown(rows, conditions).splitlines()
    assert lines[2] == "| EDF |  | 0.0 / 0.0 / 0.0 | 11.2 | 40.0 / 20.0 / 12.5 | 830 | 10 | 0.21 | 12 |"
    assert lines[3].startswith("| half | 1 | – | – | 100.0 / 100.0 / 100.0 | – |")
    assert lines[4].startswith("| absent | 2.0 | not installed: needs Java |")
    assert {line.count("|") for line in lines[:5]} == {len(table.HEAD) + 1}
    assert "half: load 48 %: it ended without a word." in lines


def test_everything_is_shown_on_a_terminal() -> None:
    rows, _ = peer_results.read(RECORD)
    console = Console(record=True, width=200)
    table.show(rows, console)
    assert "not installed: needs Java" in console.export_text()


def test_publishing_changes_the_table_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "peers.md"
    page.write_text(table.PAGE.read_text())
    before, after = (page.read_text().partition(mark) for mark in (table.BEGIN, table.END))
    rows, conditions = peer_results.read(RECORD)
    table.publish(rows, conditions, page)
    now = page.read_text()
    assert now.startswith(before[0]) and now.endswith(after[2]) and "| absent | 2.0 |" in now
    page.write_text("no place")
    with pytest.raises(ValueError, match="no place"):
        table.publish(rows, conditions, page)


def test_the_page_is_short_and_has_every_contestant() -> None:
    page = table.PAGE.read_text()
    assert len(page.encode()) <= 3072
    rows = page.partition(table.BEGIN)[2].partition(table.END)[0]
    assert "No figures yet" in rows or all(f"| {each.name} |" in rows for each in CONTESTANTS)


def test_our_query_is_one_that_can_be_planned(tmp_path: Path) -> None:
    """With the built-in operator in place of the installed one."""
    from coordinator.model.choices import Choices
    from coordinator.solve import planner

    (tmp_path / "cluster.yaml").write_text(ours.CLUSTER.replace("operators: operators.json\n", ""))
    (tmp_path / "query.yaml").write_text(ours.query(classes(0.48, 1, 1)).replace("peers.work", "pass"))
    plan = planner.make_plan([tmp_path / "query.yaml"], tmp_path / "cluster.yaml", Choices(best_effort=True))
    assert plan.nodes["a"].policy.name == "edf" and len(plan.guarantee) == 3


def test_the_floor_runs_and_what_is_measured_adds_up() -> None:
    made = classes(0.1, 0.5, 1)
    edf = CONTESTANTS[0]
    found = runner.measure(edf, edf.python(), made)
    offered = {name: sum(each.counted and each.stream == name for each in made.arrivals()) for name in found.streams}
    assert {name: each.offered for name, each in found.streams.items()} == offered
    assert all(
        each.p50_ms is not None and each.p50_ms * MS >= made.stream(name).cost_ns
        for name, each in found.streams.items()
    )
    assert found.memory_mb > 1 and found.cpu_s >= 0


def test_a_run_that_fails_says_why() -> None:
    broken = Contestant("broken", "no_such_module")
    with pytest.raises(runner.FailedError, match="no_such_module"):
        runner.measure(broken, broken.python(), chain(0.2, 1))


def test_a_peer_that_cannot_be_installed_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnavailableError, match="needs Java"):
        Contestant("x", "x", packages=("x==1",), java=True).python()
    assert Row("x", "1", {}, "not installed: needs Java").runs == {}


@pytest.mark.soak
@pytest.mark.parametrize("peer", [each for each in CONTESTANTS if each.packages], ids=lambda each: each.name)
def test_an_installed_peer_answers_every_tuple_of_a_light_load(peer: Contestant) -> None:
    if not peer.environment.is_ready:
        pytest.skip(f"{peer.name} is not installed; `make peers` does that")
    found = runner.measure(peer, peer.python(), classes(0.1, 1, 1))
    assert all(each.p50_ms is not None for each in found.streams.values())
