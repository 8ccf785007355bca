"""The sensors under faults: agents run their sources; fusions, large payloads, a large side input, in virtual time."""

from collections import Counter

import pytest

from tests.sampling import sample
from tests.simulation.agents.sensors.sensors_campaign import SENSORS, run
from tests.simulation.agents.sometimes import ENOUGH


@pytest.mark.parametrize("seed", sample((1, 2), of=2))
def test_seeds_hold(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.problems, outcome.told
    assert outcome.counts["results of fused"] and outcome.counts["results of beats"], outcome.told


def test_without_faults_every_tuple_gives_its_results() -> None:
    outcome = run(4, [])
    assert not outcome.problems, outcome.told
    counts = outcome.counts
    assert not counts["duplicates"] + counts["log crashed"] + counts["no result: LOST"]
    assert counts["results with an image"] and counts["fused in part"] and counts["refused raised"]
    assert counts["nodes whose memory was looked at"] == 3


def test_a_plan_that_drains_ends_though_its_file_is_damaged() -> None:
    """Of that seed: a bit of the file rots, and the runtime hangs and is started again while the plan drains."""
    outcome = run(1000039, ["burst", "bit_rot", "hang", "cut_peers"])
    assert not outcome.problems, outcome.told
    assert outcome.counts["log operator_hung"] and outcome.counts["log plans_not_resumed"]


@pytest.mark.soak
def test_everything_happens_in_some_seed() -> None:
    fired = Counter[str]()
    for seed in range(1, 1 + ENOUGH):
        outcome = run(seed)
        assert not outcome.problems, outcome.told
        fired.update(outcome.fired)
        fired.update(outcome.counts)
    assert not SENSORS.missing(fired)
