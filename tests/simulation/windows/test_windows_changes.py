"""Windows while plans change, in virtual time: a query that stays gives every window, exactly, once.

More cases: SHIMEKIRI_CASES=1000 .venv/bin/python -m pytest -s tests/simulation/windows/test_windows_changes.py
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from coordinator.solve import planner
from node_agent.virtual.change_schedule import Change
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan
from tests.simulation.sharing.random_queries_virtual import by_traffic
from tests.simulation.windows.test_windows_virtual import books
from tests.simulation.windows.window_exact import Ran, bounds, exact, missing, read
from tests.simulation.windows.window_queries import LEAD_MS, MS, Planned, Query, queries, registry

CASES = int(os.environ.get("SHIMEKIRI_CASES", "5"))


@st.composite
def pairs(draw: st.DrawFn, light: bool) -> tuple[Query, Query]:
    """A query that stays, and one over the same sources that comes and goes; its windows may be the same."""
    first = draw(queries(light))
    other = draw(queries(light, over=first))
    shed, queue = first.windows[0].shed, first.windows[0].queue  # windows over one stream share it
    called = tuple(replace(each, name=f"V{i}", shed=shed, queue=queue) for i, each in enumerate(other.windows))
    if draw(st.booleans()):
        called = (replace(first.windows[0], name="V0"), *called[1:])
    read_ = {source for each in called for source in each.sources}
    sources = tuple(source for source in first.sources if source in read_)
    return first, replace(other, sources=sources, windows=called, name="other")


def plan(cluster: str, *given_: Query) -> Plan:
    """The plan of one query or both."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(cluster)
        (folder / "operators.json").write_text(json.dumps(registry().describe()))
        paths = []
        for query in given_:
            paths.append(folder / f"{query.name}.yaml")
            paths[-1].write_text(query.text())
        return planner.make_plan(paths, folder / "cluster.yaml", by_traffic())


EXAMPLES = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
instants = st.tuples(st.integers(0, 300), st.integers(60, 300))
spreads = st.sampled_from([0, 20 * MS])


def changed(both: tuple[Query, Query], ms: tuple[int, int], scenario: Scenario) -> tuple[Ran, Planned]:
    """A run in which the other query is added and removed, with every given result checked, and the books."""
    first, other = both
    note(first.text() + other.text())
    alone, together = plan(first.cluster(), first), plan(first.cluster(), first, other)
    after_ns = (LEAD_MS + ms[0]) * MS
    then = [Change(together, after_ns), Change(alone, after_ns + ms[1] * MS)]
    world = Planned(first)
    done = simulate(alone, replace(scenario, cost_scale=first.scale), registry(), world, then=then)
    found = read(first, done)
    by_output = {f"out_{each.name}": each for each in (*first.windows, *other.windows)}
    seen = set()
    for trial, delivery in world.delivered:
        windows, result = by_output[delivery.output], dict(delivery.payload)
        key = trial, delivery.output, result["window"]
        assert key not in seen, "a result comes twice"
        seen.add(key)
        start, end = bounds(windows, result, result["window"])
        assert result == exact(first, windows, found, trial, start, end), key
    told = books(done)
    note(str(told["conservation"]["problems"]))
    assert told["conservation"]["balanced"] and told["conservation"]["by_outcome"]["open"] == 0
    return found, world


@EXAMPLES
@given(pairs(True), instants, spreads, st.sampled_from(["edf", "fifo"]))
def test_a_query_that_stays_gives_every_window_while_another_comes_and_goes(
    both: tuple[Query, Query], ms: tuple[int, int], spread_ns: int, policy: str
) -> None:
    found, world = changed(both, ms, Scenario(policy=policy, spread_ns=spread_ns))
    assert missing(both[0], found, world) == []


@EXAMPLES
@given(
    pairs(False), instants, spreads, st.sampled_from(["edf", "fifo", "slack", "edf-op"]), st.sampled_from([0.0, 0.1])
)
def test_no_result_is_wrong_in_overload_while_another_query_comes_and_goes(
    both: tuple[Query, Query], ms: tuple[int, int], spread_ns: int, policy: str, loss: float
) -> None:
    changed(both, ms, Scenario(policy=policy, spread_ns=spread_ns, loss=loss, trials=2))
