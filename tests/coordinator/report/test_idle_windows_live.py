"""A real agent whose feed has ended: what status says of windows holds what the report says, however long that is."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import Wanted
from coordinator.model.choices import Choices
from coordinator.monitoring import metrics, overload_status, status_response
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.sdk import Source
from tests.node_agent.live import until

# A period of an hour: what is beyond a burst does not depend on how fast the machine is.
QUERY = """
shimekiri: 1
query: ended
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 1 h}, max_age: 1 s}
operators:
  w: {run: aggregate, in: s, cost: 50 us, with: {n: count}, window: {time: 50 ms, close: 50 us}}
outputs:
  win: {from: w, at: a, deadline: 60 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
"""
IDLE = 20  # windows that close behind the feed


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Addresses]:
    found = local_agents.start([Wanted("a", "127.0.0.1:0", "127.0.0.1:0", tmp_path / "state" / "a")])
    try:
        assert found[0].address is not None
        addresses = Addresses(tmp_path / "addresses.json", {"a": found[0].address})
        addresses.write()
        yield addresses
    finally:
        local_agents.stop(found)


def test_the_share_of_windows_does_not_sink_when_the_feed_has_ended(tmp_path: Path, agents: Addresses) -> None:
    """One tuple is let in and the others are policed, in other windows: at least one of two windows is missed."""
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    made = planner.make_plan(tmp_path / "query.yaml", tmp_path / "cluster.yaml", Choices(model="sound"))
    plan = made
    plan_file.write(plan, tmp_path / "plan.json")
    with Agents(agents.of_plan(plan)) as connected:
        deploy.deploy(plan, connected)

        def values() -> dict[str, status_response.PlaceStatus]:
            return status_response.ask(connected, 10.0)

        def counted(what: str) -> int:
            return values()["a"].counters.get(f"windows.w.{what}", 0)

        until(lambda: counted("closed") > 0)
        with Source(agents.nodes["a"].data, "s", timeout=20) as source:
            for n in range(5):
                source.send({"n": n})
                time.sleep(0.06)
        ended = counted("empty")
        until(lambda: counted("empty") >= ended + IDLE)
        now = values()
        assert deploy.stop({bytes.fromhex(plan.hash)}, connected, 60) == []
        run = collect.new_run(tmp_path / "runs", plan, tmp_path / "plan.json", tmp_path / "addresses.json")
        assert collect.collect(run, plan, connected).problems == []
    told = verdict(read_run(run)).document()["outputs"]["win"]
    (live,) = metrics.between(None, metrics.Look(0.0, now), {plan.hash: plan}).outputs
    assert told["missed_of_offered"] is not None and live.missed_of_offered is not None
    (least, most), (lo, hi) = live.missed_of_offered, told["missed_of_offered"]
    assert least <= lo <= hi <= most and hi >= 0.5 and live.met_idle >= IDLE
    windows, of_run = overload_status.overload(now["a"], "a", {plan.hash: plan}).windows["w"], told["windows"]["w"]
    assert (windows.all, windows.given) == (of_run["all"], of_run["given"])
