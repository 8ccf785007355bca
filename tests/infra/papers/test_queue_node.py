"""The short driver of shedders gives what the engine gives."""

import pytest

from infra.bench.shedding.window_shedding import POLICIES, Case, cases, rows
from infra.papers.shedding import queue_node, window_node
from infra.papers.shedding.window_node import Setting, workload
from tests.sampling import sample

SETTINGS = [
    Setting(1.6, seconds=30, warm_s=0, seed=3, most=1000),
    Setting(1.3, phases=((10, 2.6), (20, 0.65)), seconds=45, warm_s=0, seed=3, most=300, cost_cv=1.0),
    Setting(1.1, ((10, 1),), seconds=40, warm_s=0, seed=4),
    Setting(1.0, seconds=60, warm_s=0, seed=5, most=50),
]


@pytest.mark.parametrize(
    ("setting", "shedder"), sample([(setting, each) for setting in SETTINGS for each in POLICIES], 5)
)
def test_it_gives_what_the_engine_gives(setting: Setting, shedder: str) -> None:
    """A result may come up to a heartbeat later there."""
    engine, short = window_node.run(setting, shedder), queue_node.run(setting, workload(setting), shedder)
    assert engine.wrong == 0
    assert abs(engine.given - short.given) <= 1 and engine.windows == short.windows
    assert abs(engine.shed - short.shed) <= 0.02 * engine.tuples
    assert abs(engine.peak - short.peak) <= 2


def test_a_case_has_a_row_per_shedder() -> None:
    """A load of twice the capacity, where the margins of before admitted nothing."""
    assert len(set(cases())) == 2 * 2 * 4 * 6
    found = list(rows([Case("steady", "equal", None, 2.0)], (1,), 40))
    assert [row.policy for row in found] == list(POLICIES)
    assert all(row.exact and row.given <= row.best and row.respects_memory for row in found)
    share = found[0].share
    assert share is not None and share >= 0.5
