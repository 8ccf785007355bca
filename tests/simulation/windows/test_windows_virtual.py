"""Windows over whole clusters in virtual time: a result that is given is exact after shedding, loss and lateness.

What is exact is computed from the admitted tuples alone: their order by number, their origins and what they hold.
More cases: SHIMEKIRI_CASES=1000 .venv/bin/python -m pytest -s tests/simulation/windows/test_windows_virtual.py
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from node_agent.runtime.deployments.lifecycle import Policies, installed
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.optimum.regret import regret
from node_agent.virtual.run import Simulation, simulate, write_run
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission
from protos import records
from tests.sampling import examples
from tests.sentences import Wording
from tests.simulation.policies.paper_policies import OWN, handed
from tests.simulation.windows.window_exact import Ran, check, missing
from tests.simulation.windows.window_queries import MOST_AGE_MS, MS, Planned, Query, Source, Windows, queries, registry

SAID = Wording("simulate", "windows")

CASES = int(os.environ.get("SHIMEKIRI_CASES", examples(12, 2)))
EXAMPLES = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
POLICIES = ["edf", "edf", "edf-e2e", "edf-op", "fifo", "slack", "taat", "rr", "spt", "bts", "ats"]

scenarios = st.builds(
    Scenario,
    trials=st.integers(1, 2),
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(POLICIES),
    decision_ns=st.sampled_from([0, 0, 300_000]),
    jitter=st.sampled_from(["none", "exp", "uniform:0.5,1.5"]).map(parse_jitter),
    latency_ns=st.sampled_from([None, 0, 20 * MS]),
    loss=st.sampled_from([0.0, 0.0, 0.02, 0.3]),
)


def ran(query: Query, scenario: Scenario, policies: Policies = installed) -> tuple[Simulation, Planned, Ran]:
    """A run that was checked."""
    world = Planned(query)
    done = simulate(
        query.plan(), replace(scenario, cost_scale=query.scale), registry(), world, policies=policies
    )  # fmt: skip
    return done, world, check(query, done, world)


def books(done: Simulation) -> dict[str, Any]:
    """The report's verdict."""
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        write_run(done, directory)
        return verdict(read_run(directory)).document()


@EXAMPLES
@given(queries(), scenarios, st.sampled_from([installed] * 11 + [handed(OWN["ideal"])]))
def test_every_given_result_is_exact_and_both_ledgers_balance(
    query: Query, scenario: Scenario, policies: Policies
) -> None:
    note(query.text())
    done, world, found = ran(query, scenario, policies)
    told = books(done)
    note(str(told["conservation"]["problems"]))
    assert told["completeness"]["complete"]
    assert told["conservation"]["balanced"]
    assert told["conservation"]["admitted"] == told["conservation"]["accounted"]
    assert told["conservation"]["by_outcome"]["open"] == 0
    for windows in query.windows:
        delivered = {(trial, each.seq) for trial, each in world.delivered if each.output == f"out_{windows.name}"}
        output = told["outputs"][f"out_{windows.name}"]
        assert output["met"] + output["late"] == len(delivered)
        ended = [
            state for (_, name), each in found.ended.items() if name == windows.name for state, _, _ in each.values()
        ]
        assert done.windows[windows.name].closed == ended.count(records.WINDOW_CLOSED) >= len(delivered)


@EXAMPLES
@given(queries(light=True), scenarios.filter(lambda scenario: not scenario.loss))
def test_where_nothing_is_overloaded_or_lost_every_window_is_given(query: Query, scenario: Scenario) -> None:
    note(query.text())
    done, world, found = ran(query, scenario)
    assert missing(query, found, world) == []
    assert not found.lost and not {name for name, n in found.shed.items() if n} - {"window"}
    assert all(each.abandoned == 0 for each in done.windows.values())


@EXAMPLES
@given(queries(lossy=True), scenarios, st.sampled_from([0.01, 0.05, 0.3]))
def test_what_a_link_loses_costs_windows_and_makes_none_wrong(query: Query, scenario: Scenario, loss: float) -> None:
    note(query.text())
    done, _, found = ran(query, replace(scenario, loss=loss))
    assert books(done)["conservation"]["balanced"]
    assert not found.opened or done.windows


def one(shed: str = "none", scale: int = 1, seconds: float = 0.5) -> Query:
    """A source every 8 ms on average, windows of 100 ms that are of use for 200 ms more."""
    source = Source("s0", "a", 4, 0, None, "a")
    windows = Windows("W0", "a", (source,), "time", 100, 100, shed=shed, deadline_ms=200)
    return Query("a", (source,), (windows,), scale, False, 1, seconds)


def test_window_aware_gives_windows_in_overload_and_none_is_wrong() -> None:
    """Load 1.5: without a shedder the backlog grows, and soon no window is in time."""
    done, world, found = ran(one("window-aware", 130, 4), Scenario())
    without = ran(one("none", 130, 4), Scenario())[1]
    assert found.shed["window-aware"] > 0
    assert len(world.delivered) > 2 * len(without.delivered)
    assert done.windows["W0"].closed == len(world.delivered) < done.windows["W0"].all
    assert dict(done.shed) == {name: n for name, n in found.shed.items() if n} == done.document()["shed"]


def test_the_summary_counts_windows() -> None:
    done, world, _ = ran(one(), Scenario())
    told = done.document()["windows"]["W0"]
    assert told["given"] == told["all"] == len(world.delivered) and told["abandoned"] == told["skipped"] == 0


def test_a_tuple_older_than_was_promised_is_refused() -> None:
    query = one()

    class Older(Planned):
        def begin(self, trial: int) -> Sequence[Admission]:
            first, *rest = super().begin(trial)
            return [first._replace(offers=(first.offers[0]._replace(age_ns=MOST_AGE_MS * MS + 1),)), *rest]

    done = simulate(query.plan(), Scenario(), registry(), Older(query))
    assert done.refused == 1 and done.document()["refused"] == 1
    assert done.windows["W0"].closed == done.windows["W0"].all > 0


def test_regret_says_that_windows_cannot_be_compared() -> None:
    with SAID.refuses("regret_of_windows --regret"):
        regret(one().plan(), Scenario(), registry(), ["fifo"])
