"""Windows stay exact behind limits, full queues and operators that shed what is late."""

import os
from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Settings
from node_agent.core.shedding.memory_limit import JOB_BYTES
from protos import records
from tests.node_agent.core.simulated.window_node import WINDOWS, Node
from tests.node_agent.core.windows.test_window_operator_exact import Play
from tests.sampling import examples

EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", examples(150, 4)))
VALUE = '["field", "size"]'


class Guarded(Play):
    """The same random streams and windows, with limits in the way."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, clean=False)
        chance = Random(seed + 1)
        old = self.node.engine
        self.plan = guarded(self.plan, chance)
        name, batch = old.policy.name, 3 if old.policy.batch is not None else 1
        settings = Settings(memory_full=lambda: chance.random() < 0.2)
        self.node = Node(self.plan, None, lambda payload: payload["size"], name, batch, settings)
        self.loaded = self.node.loaded


def guarded(plan: plans.Plan, chance: Random) -> plans.Plan:
    """Some of its sources limited, some shedding when full, some operators and queues as well."""
    sources = []
    for source in plan.sources:
        limit = plans.Limit(chance.choice((1, 2, 3)), chance.choice((3, 10)), chance.choice((VALUE, "")))
        on_full = chance.choice(("refuse", "drop-tail", "front"))
        limited = replace(source, limit=limit if chance.random() < 0.6 else None, on_full=on_full)
        sources.append(source if source.id == WINDOWS else limited)
    operators = tuple(
        replace(each, late=plans.Late(chance.choice((3, 8, 20))) if chance.random() < 0.4 else None)
        for each in plan.operators
    )
    units = tuple(
        replace(each, queue_bytes=3 * JOB_BYTES * chance.randint(1, 3), on_full=chance.choice(("drop-tail", "front")))
        if chance.random() < 0.4
        else each
        for each in plan.units
    )
    return replace(plan, sources=tuple(sources), operators=operators, units=units)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(st.integers(0, 2**48))
def test_what_is_given_is_exact_and_everything_ends_once_whatever_is_shed(seed: int) -> None:
    play = Guarded(seed)
    play.play()
    play.check_results()
    play.check_ends()
    shed = Counter(each.policy for each in play.node.records(records.Shed))
    assert shed == +Counter(play.node.engine.ledger.shed_by)


def test_the_limits_are_met() -> None:
    """The test above sheds by each of them, and windows are given all the same."""
    shed, given_ = Counter[int](), 0
    for seed in range(60):
        play = Guarded(seed)
        play.play()
        shed.update(play.node.engine.ledger.shed_by)
        given_ += len(play.node.results)
    for policy in (records.POLICY_RATE, records.POLICY_MEMORY, records.POLICY_LATE, records.POLICY_WINDOW):
        assert shed[policy] > 20
    assert given_ > 20
