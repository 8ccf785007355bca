"""A closed window is exact on any network; where nothing is removed everything is closed."""

import os
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.node_agent.core.windows.window_world import check, kept, play, world
from tests.sampling import examples

EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", examples(400, 4)))


@given(st.integers(0, 2**48))
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_closed_window_is_exact(seed: int) -> None:
    """Loss, lost marks, removed ranges, restarts, duplicates, disorder, several sources, little memory."""
    made = world(Random(seed))
    check(made, play(made, Random(seed)))


@given(st.integers(0, 2**48))
@settings(max_examples=EXAMPLES // 2, deadline=None)
def test_where_nothing_is_removed_every_window_is_closed(seed: int) -> None:
    """And each not-late tuple is in one."""
    made = world(Random(seed), clean=True)
    closed, other = check(made, play(made, Random(seed)))
    assert other == 0
    assert (
        closed
        or not [one for one in kept(made) if one.passes and one.origin >= made.grid.start]
        or (made.kind == "count")
    )
