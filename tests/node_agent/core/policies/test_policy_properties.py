"""What holds under every policy: never idle with ready work, never interrupted, the least of its order first, every
tuple ends once, the same events give the same commands."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from infra.papers.policies import POLICIES, policy
from node_agent.core.facts import MemoryFacts
from node_agent.core.meters import NodeMeter
from node_agent.core.model import Job
from node_agent.core.plan import Arrivals, Parameters, Service
from node_agent.core.policies.papers.ats import Control
from node_agent.core.policies.policy_parts import Asked, Order
from protos import records
from tests.node_agent.core.simulated.policy_node import Arrival, Node, Shape
from tests.sampling import examples

RUN_ALONE = ["edf", "edf-e2e", "fifo", "taat", "spt", "rr", "muf", "qed", "pqed", "pqed-printed", "slack", "ideal"]
EXAMPLES = settings(max_examples=examples(50, 4), deadline=None, print_blob=True)

services = st.lists(st.builds(Service, st.integers(1, 60), st.sampled_from([0, 7, 20]), st.integers(1, 3)), max_size=2)
shapes = st.builds(
    Shape,
    sub_ns=st.integers(1, 80),
    deadline_ns=st.integers(1, 200),
    cost_ns=st.integers(1, 12),
    service=services.map(tuple),
    arrivals=st.just((Arrivals(20, 10),)),
)


class Load(NamedTuple):
    """What a node gets."""

    shapes: list[Shape]
    arrivals: list[Arrival]
    parameters: Parameters
    decision_ns: int


@st.composite
def loads(draw: st.DrawFn) -> Load:
    units = draw(st.lists(shapes, min_size=1, max_size=4))
    arrival = st.builds(
        Arrival, st.integers(1, len(units)), st.integers(0, 300), st.integers(1, 15), st.integers(0, 40)
    )
    parameters = st.builds(
        Parameters, phi_ns=st.integers(0, 40), share_ppm=st.integers(1, 999_999), first_k=st.integers(1, 5)
    )
    return Load(
        units, draw(st.lists(arrival, min_size=1, max_size=60)), draw(parameters), draw(st.sampled_from([0, 0, 2, 9]))
    )


def play(name: str, load: Load) -> Node:
    return Node(load.shapes, policy(name, parameters=load.parameters), load.decision_ns).run(load.arrivals)


@pytest.mark.parametrize("name", sorted(POLICIES))
@EXAMPLES
@given(loads())
def test_every_tuple_ends_once_and_the_books_balance(name: str, load: Load) -> None:
    if name == "edf-op":
        return  # needs a driver that resumes; tests/simulation runs it
    node = play(name, load)
    ended = [
        (each.ref, each.seq)
        for each in records.unpack_records(node.facts.data())
        if each.kind in (records.RAN, records.SHED)
    ]
    assert sorted(ended) == sorted((each.unit, number) for number, each in enumerate(load.arrivals, 1))
    assert node.engine.ready.released == node.engine.dispatched == len(load.arrivals)
    assert node.engine.most_urgent() is None and not node.engine.queued
    assert all(not unit.queue for unit in node.loaded.units)
    assert [number for _, number, _ in node.delivered] == [number for _, jobs in node.order for number in jobs]
    if POLICIES[name].metered and Asked.COSTS in POLICIES[name].asks:
        assert node.engine.ready.meter.ended == len(load.arrivals)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"edf-op"}))
@EXAMPLES
@given(loads())
def test_a_node_never_idles_with_ready_work_and_never_interrupts(name: str, load: Load) -> None:
    """Between two instances there is nothing but the decision, unless nothing was ready, or all of it was shed."""
    node = play(name, load)
    released = {number: each.at_ns for number, each in enumerate(load.arrivals, 1)}
    dropped = {each.seq for each in records.unpack_records(node.facts.data()) if each.kind == records.SHED}
    for before, after in pairwise(node.started):
        assert before.end_ns <= after.chosen_ns
        if before.end_ns < after.chosen_ns:
            waiting = [
                number
                for each in node.started[node.started.index(after) :]
                for number in each.jobs
                if released[number] < after.chosen_ns
            ]
            assert not waiting, "idle with ready work"
    for each in node.started:
        assert not dropped & set(each.jobs)
        assert each.start_ns - each.chosen_ns in (0, load.decision_ns)


def least(name: str, job: Job) -> tuple[int, int, int]:
    """What the order goes by, from what is written in the plan."""
    unit = job.unit
    end_to_end_ns = job.lineage[4] + unit.deadline_ns
    keys = {"fifo": job.release_ns, "edf-e2e": end_to_end_ns, "qed": job.key_ns, "pqed": job.key_ns}
    key = keys.get(name, job.release_ns + unit.sub_deadline_ns)
    return key, job.release_ns, job.number


@pytest.mark.parametrize(
    "name", ["edf", "edf-e2e", "fifo", "taat", "qed", "pqed", "ideal", "bts", "bts1", "ats", "ats1"]
)
@EXAMPLES
@given(loads())
def test_what_runs_is_the_least_of_the_order_by_deadlines(name: str, load: Load) -> None:
    """Of all that was ready, but for what was shed and for batches that are not complete yet: its head before every
    other unit's, inside a unit in order."""
    node = play(name, load)
    ran = [number for each in node.started for number in each.jobs]
    if POLICIES[name].sifter is not None:  # a batch whose oldest are shed was chosen by a head that does not run
        assume(len(ran) == len(load.arrivals))
    position = {number: index for index, number in enumerate(ran)}
    for each in node.started:
        heads = [job for job in each.ready.values() if job.lineage[2] in position]
        mine = next(job for job in heads if job.lineage[2] == each.jobs[0])
        first = position[each.jobs[0]]
        others = [job for job in heads if job.lineage[2] not in each.jobs and position[job.lineage[2]] > first]
        tuner = node.engine.ready.tuner
        phi_ns = tuner.phi_ns if tuner is not None else 0  # type: ignore[attr-defined]
        complete = [job for job in others if job.release_ns + phi_ns <= each.chosen_ns]
        assert all(least(name, mine) <= least(name, other) for other in complete)
        batch = sorted((job for job in heads if job.lineage[2] in each.jobs), key=lambda job: least(name, job))
        assert [job.lineage[2] for job in batch] == each.jobs


@pytest.mark.parametrize("name", ["spt", "rr", "muf"])
@EXAMPLES
@given(loads())
def test_what_runs_is_the_least_of_the_ranks(name: str, load: Load) -> None:
    """A rank is given when a job becomes its unit's head: the chosen one was the least of all that were in the heap."""
    chosen = policy(name)
    ranks: dict[int, int] = {}

    class Spy(Order):
        def __init__(self, meter: NodeMeter) -> None:
            assert chosen.order is not None
            self.order = chosen.order(meter)

        def place(self, head: Job) -> None:
            self.order.place(head)
            ranks[head.number] = head.rank

        def chosen(self, rank: int) -> None:
            assert rank == min(ranks.values()), "another unit's rank was less"
            del ranks[next(number for number, each in ranks.items() if each == rank)]
            self.order.chosen(rank)

    node = Node(load.shapes, replace(chosen, order=Spy), load.decision_ns)
    node.run(load.arrivals)
    assert not ranks


@EXAMPLES
@given(loads())
def test_round_robin_serves_a_waiting_unit_within_one_round(load: Load) -> None:
    node = play("rr", load)
    for index, each in enumerate(node.started):
        following = {later.unit for later in node.started[index : index + len(load.shapes)]}
        assert {job.unit.id for job in each.ready.values()} <= following, "a unit was passed over"


@EXAMPLES
@given(loads())
def test_pqed_is_qed_with_fewer_decisions(load: Load) -> None:
    load = load._replace(decision_ns=0)
    qed, pqed = play("qed", load), play("pqed", load)
    assert qed.order == pqed.order
    assert [each.start_ns for each in qed.started] == [each.start_ns for each in pqed.started]
    assert sum(each.decided for each in pqed.started) <= len(qed.started)


@EXAMPLES
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60))
def test_the_printed_controller_grows_only_where_one_execution_is_larger_than_all_before(
    steps: list[tuple[int, int]],
) -> None:
    """k grows only if the ratio falls below an eleventh at once, so if the execution has over ten times the tuples of
    all executions before it. (missed, met) of every execution."""
    node = Node([Shape(1, 1, 1)], policy("ats"))
    tuner, meter = node.engine.ready.tuner, node.engine.ready.meter
    assert isinstance(tuner, Control)
    for missed, met in steps:
        before, grown = meter.ended, tuner.grown
        meter.missed, meter.ended = meter.missed + missed, meter.ended + missed + met
        tuner.ended(None, missed + met, 1, 1)
        if tuner.grown > grown:
            assert missed + met > 10 * before > 0


def digest(name: str, seed: int = 7) -> bytes:
    """A run with every part at work; integers only."""
    shapes_ = [
        Shape(40 + 9 * i, 150 + 40 * i, 3 + i, (Service(5, 11, 2),) * (i % 2), (Arrivals(20, 10),)) for i in range(5)
    ]
    state = seed
    arrivals = []
    for number in range(600):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        arrivals.append(Arrival(1 + (state >> 33) % 5, number * 6 + (state >> 40) % 50, 1 + (state >> 50) % 12))
    node = Node(shapes_, policy(name, parameters=Parameters(phi_ns=20, first_k=2)), 3).run(arrivals)
    return node.facts.data()


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"edf-op"}))
def test_a_journal_of_events_gives_the_same_commands(name: str) -> None:
    """The calls of a run, with their instants as they were, played into a new engine: record by record the same."""
    shapes_ = [Shape(40 + 9 * i, 150 + 40 * i, 3 + i, arrivals=(Arrivals(20, 10),)) for i in range(3)]
    arrivals = [Arrival(1 + i % 3, i * 4 + (i * i) % 11, 1 + (i * 5) % 9) for i in range(200)]
    node = Node(shapes_, policy(name, parameters=Parameters(phi_ns=20)), 3)
    journal: list[tuple[str, tuple[object, ...]]] = []
    engine = node.engine

    class Journal:
        """Writes down what the driver tells the engine."""

        def __getattr__(self, what: str) -> object:
            found = getattr(engine, what)
            if what not in ("admit", "next", "emit", "step"):
                return found

            def told(*arguments: object) -> object:
                journal.append((what, arguments))
                return found(*arguments)

            return told

    node.engine = Journal()  # type: ignore[assignment]
    node.run(arrivals)
    again = Node(shapes_, policy(name, parameters=Parameters(phi_ns=20)), 3)
    for what, arguments in journal:
        if what == "admit":
            at_ns, route, *rest = arguments
            again.engine.admit(at_ns, again.loaded.routes[route.stream], *rest)  # type: ignore
        elif what == "emit":
            assert again.engine.job is not None
            at_ns, _, lineage, payload, slot = arguments
            again.engine.emit(at_ns, again.engine.job.unit.exits[0], lineage, payload, slot)  # type: ignore[arg-type]
        else:
            getattr(again.engine, what)(*arguments)
    assert isinstance(node.facts, MemoryFacts)
    assert again.facts.data() == node.facts.data()
    assert again.delivered == node.delivered


def test_two_hash_seeds_give_the_same_bytes() -> None:
    root = Path(__file__).parents[4]
    text = (
        "import hashlib; from tests.node_agent.core.policies.test_policy_properties import digest, POLICIES; "
        "print(hashlib.sha256(b''.join(digest(n) for n in sorted(set(POLICIES) - {'edf-op'}))).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", text], cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
            capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
