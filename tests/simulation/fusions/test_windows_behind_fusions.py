"""Windows over fused results are exact: each has the results whose oldest tuple lies in it, and none waits in vain."""

import os
from collections.abc import Sequence
from random import Random

import pytest

from coordinator.guarantee import window_closing
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from protos import records
from tests.sampling import sample
from tests.simulation.fusions.fusion_worlds import Periodic, windows_behind
from tests.simulation.planned_queries import planned
from tests.simulation.windows import window_worlds
from tests.simulation.windows.test_windows_guaranteed import check_releases
from tests.traces import Kind, of

MS = 1_000_000
SETS = int(os.environ.get("SHIMEKIRI_SETS", "12"))
QUERY = """
shimekiri: 1
query: behind
sources:
  camera: {at: a, type: json, max_age: 20 ms, arrival: {burst: 1, period: 5 ms}}
  lidar: {at: b, type: json, max_age: 20 ms, arrival: {burst: 1, period: 5 ms}}
operators:
  some: {run: filter, in: camera, with: {keep: 2, of: 3}, cost: 100 us, nodes: [a]}
  F: {run: join, in: [some, lidar], cost: 100 us, nodes: [b], sync: SYNC}
  W: {run: aggregate, in: F, with: {n: count}, cost: 50 us, window: {time: 80 ms, hop: 40 ms, lateness: 30 ms}}
outputs:
  out: {from: W, at: b, deadline: 400 ms}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 2 ms}]
"""


class Drawn:
    """Both sources for half a second; lidar pauses."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.given: list[dict[str, int]] = []

    def begin(self, trial: int) -> Sequence[Admission]:
        draw, found = Random(self._seed), list[Admission]()
        for name in ("camera", "lidar"):
            for at in range(300 * MS, 800 * MS, 5 * MS):
                if name == "camera" or not 450 * MS < at < 550 * MS:
                    at_ns = at + draw.randint(0, 4 * MS)
                    found.append(Admission(at_ns, name, (Offer({"n": at}, draw.randint(0, 20 * MS)),)))
        return sorted(found, key=lambda each: each.at_ns)

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        raise AssertionError("never asked")

    def deliver(self, delivery: Delivery) -> None:
        self.given.append(delivery.payload)


def facts(done: Simulation, kind: type[Kind]) -> list[Kind]:
    return [each for trace in done.traces for each in of(kind, records.unpack_records(trace.records))]


TIMED, UNTIMED = ("{on: all, timeout: 10 ms}", "{within: 6 ms, timeout: 30 ms}"), ("all", "{within: 6 ms}")


@pytest.mark.parametrize("seed", sample(range(3), 3))
@pytest.mark.parametrize("sync", [*TIMED, *UNTIMED])
def test_windows_over_fused_results_are_exact(sync: str, seed: int) -> None:
    plan, world = planned(QUERY.replace("SYNC", sync), CLUSTER), Drawn(seed)
    done = simulate(plan, Scenario(seed=seed), world=world)
    unit = next(task.id for task in plan.tasks["b"] if "F" in task.operators)
    origins = {(f.source, f.epoch, f.seq): f.origin_lo_ns for f in facts(done, records.Admitted)}
    fused = [origins[f.source, f.epoch, f.seq] for f in facts(done, records.Ran) if f.unit == unit]
    assert len(fused) > 20
    if sync in TIMED:  # else a tuple that nothing follows holds its windows up until they are of no use
        causes = {f.cause for f in facts(done, records.Window) if f.state == records.WINDOW_ABANDONED}
        assert causes <= {records.WINDOW_CAUSES.index("stopped")}
        assert max(window["end_ns"] for window in world.given) > max(fused)
    assert len(world.given) > 5
    for window in world.given:
        within = [origin for origin in fused if window["start_ns"] <= origin < window["end_ns"]]
        assert window["n"] == len(within), window


def test_windows_behind_fusions_close_within_their_bounds() -> None:
    """A tuple that finds no partner holds its windows up until it is known to have none."""
    results, bounded = 0, 0
    for seed in range(SETS):
        plan = window_worlds.planned(*windows_behind(seed), sound=False)
        if plan is None:
            continue
        analysis = analyse(read(plan), NOTHING)
        found = claims(analysis)
        done = simulate(plan, Scenario(seed=seed), world=Periodic(plan, seed))
        check_releases(analysis, done, seed)
        bound_ns, given = found["out"].bound_ns, facts(done, records.Output)
        if bound_ns is None:
            continue
        names = {source.id for source in plan.graph.sources.values()}
        ends = {f.source: f.at_ns for f in facts(done, records.Admitted) if f.source in names}
        last_ns = min(ends.values())  # then a source breaks its period
        took = [f.at_ns - f.origin_lo_ns for f in given if f.at_ns <= last_ns]
        assert max(took, default=0) <= bound_ns, f"seed {seed}: {max(took)} > {bound_ns}"
        results, bounded = results + len(took), bounded + 1
    print(f"{results} results of {bounded} cases with a bound")
    assert results > 5 * SETS and bounded > SETS // 3


def test_without_the_wait_more_windows_close_at_once_than_their_curve_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a source has fallen silent, what waits for it at a fusion is given up together."""
    plan = window_worlds.planned(*windows_behind(0), sound=False)
    assert plan is not None
    done = simulate(plan, Scenario(seed=0), world=Periodic(plan, 0))
    check_releases(analyse(read(plan), NOTHING), done, 0)
    monkeypatch.setattr(window_closing, "_untimed", lambda system, windows: False)
    with pytest.raises(AssertionError) as failed:
        check_releases(analyse(read(plan), NOTHING), done, 0)
    assert "5 in 0 ns" in str(failed.value)


APART = """
shimekiri: 1
query: apart
sources:
  camera: {at: a, type: json, max_age: 3 ms, arrival: {period: 20 ms}}
  lidar: {at: a, type: json, max_age: 3 ms, arrival: {period: 20 ms}}
operators:
  F: {run: join, in: [camera, lidar], cost: 500 us, sync: {within: 1 ms, keep: 1024}}
  W: {run: aggregate, in: F, with: {n: count}, cost: 50 us, on_late: deliver, window: {time: 50 ms, shed: none}}
outputs:
  out: {from: W, at: a, deadline: 600 ms}
"""


def test_the_bound_of_a_window_counts_what_waits_for_a_partner_that_never_comes() -> None:
    """Periods are kept, phases never meet, and nothing times out: each window waits until its tuples are given up."""
    plan = planned(APART, 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700", policy: edf}}\n')
    done = simulate(plan, Scenario(bursts=150, phase_ns={"lidar": 10 * MS}))
    claim = plan.guarantee["out"]
    worst_ns = max(each.latency.most_ns for each in facts(done, records.Output))
    assert claim.bound_ns is not None and 2 * 10**9 < worst_ns <= claim.bound_ns
    assert not claim.guaranteed
