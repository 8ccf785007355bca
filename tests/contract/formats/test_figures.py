"""The planner and the agent agree on what the built-in aggregate can make of a window."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.spec.checks import aggregates as planned
from node_agent.operators import aggregate_functions as installed
from tests.sampling import examples

NAMES = st.sampled_from(("speed", "n", "car.kg", "", "a..b", "count", "window", "start_ns", "last", "p95", "mean"))
SHARES = st.sampled_from((0.95, 1, 1.0, 0, -1, 2, 1e-9, 1.0000001, True, "0.5", None))
FIGURES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from((*planned.FIGURES, "median", "", 3, None, True, [])),
    st.dictionaries(st.sampled_from((*planned.FIGURES, "median", "of")), st.one_of(NAMES, SHARES), max_size=2),
    st.fixed_dictionaries({"quantile": SHARES, "of": NAMES}),
    st.fixed_dictionaries({"quantile": SHARES}),
)


@given(st.dictionaries(NAMES, FIGURES, max_size=3))
@settings(max_examples=examples(600, 4), deadline=None)
def test_what_one_refuses_the_other_refuses(with_: dict[str, Any]) -> None:
    refused = bool(list(planned.wrong(with_, None)))
    try:
        installed.Aggregate(json.loads(json.dumps(with_)))
        assert not refused
    except ValueError:
        assert refused
    assert planned.NAMES == installed.NAMES and set(planned.FIGURES) == set(installed.KINDS)
