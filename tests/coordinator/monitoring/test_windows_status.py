"""`coordinator status` of agents that shed: counters as sentences, beside what the plan makes of them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.cli.commands import status as command
from coordinator.monitoring import status_response as replies
from coordinator.monitoring.metrics import Look, between
from coordinator.monitoring.overload_status import OverloadStatus, is_overload, lines, overload
from coordinator.monitoring.status_response import PlaceStatus
from coordinator.report.page.overload_tables import load_text
from coordinator.report.summary.assembly import cause_text
from protos import agent_pb2
from protos.plan_document import Plan

COUNTERS = {
    "highest_epoch": 1, "link_full": 2, "shed.window-aware": 300, "shed.late": 0, "shed.window": 10,
    "windows.speeds.opened": 41, "windows.speeds.closed": 40, "windows.speeds.abandoned": 7,
    "windows.speeds.skipped": 3, "windows.speeds.abandoned_deadline": 4, "windows.speeds.abandoned_removed": 3,
    "windows.speeds.skipped_crowded": 3, "windows.speeds.load_ppm": 1_100_000, "windows.pairs.load_ppm": 900_000,
    "degraded.shown": 5,
}  # fmt: skip


def reported(plan: Plan | None, place: str = "b") -> PlaceStatus:
    """The status of one agent whose counters these are, ten seconds after its start."""
    reply = agent_pb2.StatusReply(node=place, uptime_ns=10**10, queue_bytes=512, runtime_alive=True)
    reply.plans.add(hash=bytes.fromhex("aa" if plan is None else plan.hash), query="road")
    reply.counters.extend(agent_pb2.Counter(name=name, value=n) for name, n in COUNTERS.items())
    return replies.of(reply, agent_pb2.HealthReply(serving=True))


def told(plan: Plan | None, place: str = "b") -> OverloadStatus:
    """What status makes of it."""
    return overload(reported(plan, place), place, {} if plan is None else {plan.hash: plan})


def test_shed_by_policy_windows_and_the_best_share(example_plan: Callable[..., Plan]) -> None:
    found = told(example_plan())
    document = found.document()
    assert document["shed"] == {"window-aware": {"tuples": 300, "per_s": 30.0}, "window": {"tuples": 10, "per_s": 1.0}}
    assert document["degraded"] == {"shown": 5}
    speeds, pairs = found.windows["speeds"], found.windows["pairs"]
    assert (speeds.all, speeds.share, speeds.load, speeds.document()["closed"]) == (50, 0.8, 1.1, 40)
    # Z = 5 s, H = 4 s, L = 0.8 s: one window in a row, so H / Z of the stream's share
    assert speeds.long_run_share == pytest.approx(4 / 5 / 1.1) and speeds.long_run_share_why is None
    assert (pairs.all, pairs.share, pairs.long_run_share) == (0, None, 1.0)
    assert found.windows["totals"].long_run_share_why == "no load was measured"
    assert set(told(example_plan(), "a").windows) == {"tens", "speeds", "pairs"}, "of counters and plan"


def test_without_the_plan_there_is_no_best_share() -> None:
    assert told(None).windows["speeds"].long_run_share_why == "give --plan"
    assert told(None).queue_limit_bytes is None


def test_sentences_instead_of_counters(example_plan: Callable[..., Plan], capsys: pytest.CaptureFixture[str]) -> None:
    plan = example_plan()
    values = replace(reported(plan), queue_limit_bytes=1024)
    command._show(
        {"b": values}, {"b": told(plan)}, between(None, Look(0.0, {"b": values}), {}), {}, {"b": "state/b/agent.log"}
    )
    said = capsys.readouterr().out
    assert "512 of 1k" in said
    assert "  shed: 300 window-aware (30/s), 10 window (1/s)\n" in said
    line = "40 of 50 given (80 %), 7 abandoned, 3 skipped; load 1.1, of which in the long run at most 72.7 % can be had"
    assert f"  windows of speeds: {line}\n" in said
    assert "fed into" not in said
    assert "  windows of totals: none has ended\n" in said and "  degraded: shown 5 times\n" in said
    late, gone = "4 because it could not have been in time any more", "3 because a tuple in it was shed or lost"
    assert f"    7 abandoned (begun and given up): {late}, {gone}\n" in said
    assert "    3 skipped (never begun): 3 because too many windows were open\n" in said
    assert "  window-aware: before windows that would not have been in time; window: windows without a result\n" in said
    full = "  2 tuples lost because the queue to another node was full\n"
    assert full in said and not is_overload("link_full") and "highest" not in said


def test_windows_that_nothing_was_fed_into_are_neither_given_nor_missed() -> None:
    """Of 40 that closed 30 were empty, and 4 of these gaps within the feed."""
    counters = COUNTERS | {"windows.speeds.empty": 30, "windows.speeds.empty_within": 4}
    node = PlaceStatus(counters=counters, uptime_ns=10**10)
    found = overload(node, "b", {})
    assert {key: found.windows["speeds"].document()[key] for key in ("closed", "all", "given", "idle", "share")} == {
        "closed": 40, "all": 24, "given": 14, "idle": 26, "share": 14 / 24,
    }  # fmt: skip
    told = "windows of speeds: 14 of 24 given (58.3 %), 7 abandoned, 3 skipped; 26 not counted: nothing was fed into"
    assert any(line.startswith(told) for line in lines(found))
    only = {"windows.w.closed": 3, "windows.w.empty": 3}
    found = overload(replace(node, counters=only), "b", {})
    assert list(lines(found)) == ["windows of w: none with tuples has ended; 3 not counted: nothing was fed into them"]


def test_small_loads_and_who_shed_are_told_in_words() -> None:
    assert [load_text(load) for load in (0.0, 9.3e-05, 0.00375, 1.1)] == ["0", "< 0.001", "0.00375", "1.1"]
    assert cause_text("shed(window-aware)") == "shed: before windows, by window-aware"
