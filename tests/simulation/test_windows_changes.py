"""Windows while plans change, in virtual time: a query that stays gives every window, exactly, once.

More cases: SHIMEKIRI_CASES=1000 .venv/bin/python -m pytest -s tests/simulation/test_windows_changes.py
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from coordinator import planner
from sim_vehicles.virtual.course import Change
from sim_vehicles.virtual.run import simulate
from sim_vehicles.virtual.scenario import Scenario
from tests.simulation.random_queries_virtual import by_traffic
from tests.simulation.test_windows_virtual import books
from tests.simulation.window_exact import bounds, exact, missing, read
from tests.simulation.window_queries import LEAD_MS, MS, Planned, Query, queries, registry

CASES = int(os.environ.get("SHIMEKIRI_CASES", "5"))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Query, Query]:
    """A query that stays, and one over the same sources that comes and goes; its windows may be the same."""
    first = draw(queries(light=True))
    other = draw(queries(light=True, over=first))
    called = tuple(replace(each, name=f"V{number}") for number, each in enumerate(other.windows))
    if draw(st.booleans()):
        called = (replace(first.windows[0], name="V0"), *called[1:])
    read_ = {source for each in called for source in each.sources}
    sources = tuple(source for source in first.sources if source in read_)
    return first, replace(other, sources=sources, windows=called, name="other")


def plan(cluster: str, *given_: Query) -> dict[str, Any]:
    """plan.json of one query or both."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(cluster)
        (folder / "operators.json").write_text(json.dumps(registry().describe()))
        paths = []
        for query in given_:
            paths.append(folder / f"{query.name}.yaml")
            paths[-1].write_text(query.text())
        return planner.make_plan(paths, folder / "cluster.yaml", by_traffic())


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(
    pairs(), st.integers(0, 300), st.integers(60, 300), st.sampled_from([0, 20 * MS]), st.sampled_from(["edf", "fifo"])
)
def test_a_query_that_stays_gives_every_window_while_another_comes_and_goes(
    both: tuple[Query, Query], after_ms: int, for_ms: int, spread_ns: int, policy: str
) -> None:
    first, other = both
    note(first.text() + other.text())
    alone, together = plan(first.cluster(), first), plan(first.cluster(), first, other)
    at_ns = [(LEAD_MS + after_ms) * MS, (LEAD_MS + after_ms + for_ms) * MS]
    world = Planned(first)
    then = [Change(document, at) for document, at in zip((together, alone), at_ns, strict=True)]
    done = simulate(alone, Scenario(policy=policy, spread_ns=spread_ns), registry(), world, then=then)
    found = read(first, done)
    by_output = {f"out_{each.name}": each for each in (*first.windows, *other.windows)}
    seen = set()
    for trial, delivery in world.delivered:
        windows, result = by_output[delivery.output], dict(delivery.payload)
        key = delivery.output, result["window"]
        assert key not in seen, "a result comes twice"
        seen.add(key)
        start, end = bounds(windows, result, result["window"])
        assert result == exact(first, windows, found, trial, start, end), key
    assert missing(first, found, world) == []
    told = books(done)
    note(str(told["conservation"]["problems"]))
    assert told["conservation"]["balanced"] and told["conservation"]["by_outcome"]["open"] == 0
