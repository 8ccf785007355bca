"""What an engine gives of windows is exact, also after shedding, loss and late news; where nothing is removed all of
them are given; and the ledger has one end for each."""

import os
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.engine.handover import inherit_state
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.core.punctuation import ABSENCE, Progress, Removal
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import Limits
from protos import records
from tests.node_agent.core.simulated.window_node import WINDOWS, Node, window, windowed
from tests.node_agent.core.windows.window_world import Admitted, World, exact
from tests.sampling import examples

EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", examples(150, 4)))
POLICIES = ("edf", "fifo", "edf-e2e", "edf-op", "muf", "qed", "bts", "slack")
KEEPING = ("edf", "fifo", "edf-e2e", "muf")  # that shed nothing
BATCHING = ("edf", "fifo")
AGE = 6  # what a heartbeat promises


class Play:
    """Random sources, some at this node, some behind a link that loses, delays and confuses; then a plan change."""

    def __init__(self, seed: int, clean: bool) -> None:
        self.random = random = Random(seed)
        self.clean, self.at = clean, 10
        kind = random.choice(("time", "time", "count", "sized"))
        hop = random.choice((2, 3, 5, 10))
        grid = Grid(random.choice((3, 5, 10, 12)), hop)
        sources = random.choice((1, 1, 2)) if kind == "time" else 1
        limits = Limits(random.choice((0, 2, 10)), 10_000 if clean else random.choice((0, 5, 40)))
        self.world = World(kind, grid, limits, sources, None)
        spec = window(
            kind=kind, length=grid.length, hop=hop, lateness_ns=limits.lateness_ns, wait_ns=limits.wait_ns,
            size="my.size" if kind == "sized" else "", feeds=tuple((i + 1, i) for i in range(sources)),
            useful_ns=0 if clean or random.random() < 0.5 else random.choice((10, 60)), first=random.random() < 0.3,
        )  # fmt: skip
        self.joined = random.random() < 0.4
        plan = windowed(spec, joined=self.joined)
        if not clean and random.random() < 0.4:
            plan = replace(plan, sources=tuple(
                each if each.id == WINDOWS else replace(each, spans=((2, 3), (4, 12))) for each in plan.sources
            ))  # fmt: skip
        name = random.choice(KEEPING if clean else POLICIES)
        batch = random.choice((1, 1, 3, 0)) if name in BATCHING else 1
        self.plan, self.node = plan, Node(plan, None, lambda payload: payload["size"], name, batch)
        if not clean and random.random() < 0.3:
            self.node.engine.limit_to(random.choice((2, 5)))
        self.old: CompiledPlan | None = None
        self.loaded = self.node.loaded
        self.far = [random.random() < 0.5 for _ in range(sources)]
        self.lose = 0.0 if clean else random.choice((0.0, 0.02, 0.2))
        self.breaks = 0.0 if clean else random.choice((0.0, 0.02, 0.1))
        self.lag = random.choice((0, 3, 15))
        self.epoch, self.number = [0] * sources, [0] * sources  # the next one
        self.first = [0] * sources  # under the plan that is admitted to
        self.link: list[tuple[int, int, CompiledPlan, int, Lineage, Any]] = []
        self.job: Any = None

    def play(self) -> None:
        """To the end."""
        random, node = self.random, self.node
        for source in range(self.world.sources):
            self.beat(source)
        changes = random.choice((0, 0, 1))
        for _ in range(random.choice((5, 20, 60))):
            self.pass_(random.choice((0, 1, 1, 2, 4)))
            source = random.randrange(self.world.sources)
            what = random.random()
            if what < 0.7:
                self.tuple(source)
            elif what < 0.85:
                self.beat(source)
            elif what < 0.9 and changes:
                changes -= 1
                self.change()
            elif what < 0.93 and self.far[source] and not self.clean:
                self.epoch[source], self.number[source], self.first[source] = self.epoch[source] + 1, 0, 0
                self.beat(source)
            elif what < 0.96 and self.old is not None:
                self.settle()
                node.engine.unload(self.old, self.at)
                self.old = None
            else:
                node.engine.expire(self.at)
        self.pass_(AGE + 60)
        for source in range(self.world.sources):
            self.beat(source)
        self.settle()
        node.expire(self.at + 400)
        node.engine.limit_to(1_000_000)
        self.settle()

    def pass_(self, time: int) -> None:
        """Time passes; what has arrived by then arrives, and some of what is ready runs."""
        self.at += time
        self.node.at_ns = self.at
        self.arrive(self.at)
        for _ in range(self.random.choice((0, 1, 3, 9))):
            self.step()

    def step(self) -> bool:
        node = self.node
        self.job = node.engine.next(node.at_ns) if self.job is None else self.job
        if self.job is not None:
            self.job = node.executor.run(self.job)
            return True
        return False

    def settle(self) -> None:
        """All that is on its way arrives, and runs."""
        self.at = max([self.at, *(each[0] for each in self.link)])
        self.node.at_ns = self.at
        self.arrive(self.at)
        while self.step():
            pass

    def arrive(self, at: int) -> None:
        self.link.sort(key=lambda each: each[:2])
        while self.link and self.link[0][0] <= at:
            _, _, loaded, stream, lineage, payload = self.link.pop(0)
            self.node.engine.receive(at, loaded.routes[stream], lineage, payload)

    def send(self, source: int, lineage: Lineage, payload: Any, lag: int | None = None) -> None:
        """Over the link, by the stream of that source."""
        due = self.at + (self.random.randint(0, self.lag) if lag is None else lag)
        self.link.append((due, len(self.world.tuples), self.loaded, 5 if source else 1, lineage, payload))

    def tuple(self, source: int) -> None:
        """One more is admitted."""
        random, number = self.random, self.number[source]
        self.number[source] += 1
        origin = self.at - random.randint(0, AGE)
        passes, passes_too = random.random() < 0.8, not self.joined or source > 0 or random.random() < 0.8
        one = Admitted(
            source, self.epoch[source], number, self.at, origin, passes and passes_too, random.randint(1, 12)
        )
        self.world.tuples.append(one)
        lineage = (source + 1, one.epoch, number, 0, origin, min(self.at, origin + random.choice((0, 0, 2))))
        payload = {
            "x": one.name, "passes": passes, "passes_too": passes_too, "size": one.value,
            "breaks": passes and random.random() < self.breaks, "breaks_too": random.random() < self.breaks,
        }  # fmt: skip
        if not self.far[source]:
            self.node.engine.admit(self.at, self.loaded.source_routes[source + 1], lineage, payload, 0)
        elif random.random() < self.lose:
            if random.random() < 0.5:
                self.send(source, lineage, Removal(number))
        elif not one.passes and random.random() < 0.5:
            self.send(source, lineage, ABSENCE)
        else:
            self.send(source, lineage, payload)
            if random.random() < 0.05:
                self.send(source, lineage, payload)

    def beat(self, source: int) -> None:
        """A source says how far it is."""
        epoch, upto, first = self.epoch[source], self.number[source], self.first[source]
        if not self.far[source]:
            self.node.engine.heartbeat(self.at, self.loaded, source + 1, epoch, upto, first, self.at - AGE)
        elif self.random.random() >= self.lose:
            lag = self.lag if self.world.tuples else 0  # what comes before the first one is not counted
            self.send(source, (source + 1, epoch, upto, 0, self.at - AGE, self.at), Progress(first), lag)

    def change(self) -> None:
        """Another plan, which is admitted to from now on."""
        if self.old is not None:
            return
        self.old, new = self.loaded, self.node.load(replace(self.plan, hash=2, epoch=self.loaded.plan.epoch + 1))
        inherit_state(new, self.old)
        self.loaded = new
        self.first = list(self.number)
        for source in range(self.world.sources):
            self.beat(source)

    # -- what has to hold

    def check_results(self) -> None:
        """What was given is exact."""
        seen = set()
        for each in self.node.results:
            assert each["window"] not in seen, "one window twice"
            seen.add(each["window"])
            got, epochs = each["xs"], {name[1] for name in each["xs"]} or set(range(max(self.epoch) + 1))
            wanted = [exact(self.world, each["window"], epoch, each.get("first", 0)) for epoch in epochs]
            if self.world.sources == 1:
                assert got in wanted, each
            else:
                assert sorted(got) in [sorted(names) for names in wanted], each
            assert each["count"] == len(got)

    def check_ends(self) -> None:
        """Windows end once, and so does each that was admitted."""
        opened: list[int] = []
        ended: list[int] = []
        for state, number, _, _, cause, last in self.node.told():
            if state == "opened":
                opened.append(number)
            elif state == "skipped":
                if cause != "-":
                    ended += range(number, last + 1)
            else:
                ended.append(number)
                assert number in opened
        kept = self.node.engine.windows.operators[0].state
        still = [number + max(0, kept.base) for number in kept.store.live.open]
        assert len(ended + still) == len(set(ended + still)) and len(opened) == len(set(opened))
        if ended:
            assert set(ended + still) == set(range(min(ended + still), max(ended + still) + 1))
        facts = [each for each in self.node.records(records.Record) if each.source == WINDOWS]
        admitted = [(each.epoch, each.seq) for each in facts if isinstance(each, records.Admitted)]
        how = (records.Output, records.Shed, records.Lost)
        ends = [(each.epoch, each.seq) for each in facts if isinstance(each, how)]
        assert sorted(admitted) == sorted(ends) and len(set(ends)) == len(ends)
        assert sorted(seq for _, seq in admitted) == sorted(ended)

    def check_gaps(self) -> None:
        """Of the empty windows that lie within the feed none is counted that does not; and all are, in order."""
        told = [each for each in self.node.told() if each[0] == "closed"]
        fed = [number for _, number, *_, tuples in told if tuples]
        empty = [number for _, number, *_, tuples in told if not tuples]
        within = sum(min(fed) < number < max(fed) for number in empty) if fed else 0
        counts = self.node.engine.windows.operators[0].state.counts
        assert (counts["closed"], counts["empty"]) == (len(told), len(empty))
        assert counts["empty_within"] == within or (self.world.kind == "sized" and counts["empty_within"] < within)

    def check_all_given(self) -> None:
        """Nothing was removed: every window that has ended was given."""
        assert {state for state, *_ in self.node.ends()} <= {"skipped", "closed"}
        assert all(cause == "-" for _, _, _, _, cause, _ in self.node.told())
        closed = [number for state, number in self.node.ends() if state == "closed"]
        assert sorted(each["window"] for each in self.node.results) == sorted(closed)
        assert closed or self.world.kind == "count"


@given(st.integers(0, 2**48))
@settings(max_examples=EXAMPLES, deadline=None)
def test_what_is_given_is_exact_and_everything_ends_once(seed: int) -> None:
    """Filters, failing operators, policing, full queues, losses, lost marks, disorder, restarts, deadlines, a plan
    change."""
    play = Play(seed, clean=False)
    play.play()
    play.check_results()
    play.check_ends()
    play.check_gaps()


@given(st.integers(0, 2**48))
@settings(max_examples=EXAMPLES // 2, deadline=None)
def test_where_nothing_is_removed_everything_is_given(seed: int) -> None:
    """Filters, disorder, a plan change."""
    play = Play(seed, clean=True)
    play.play()
    play.check_results()
    play.check_ends()
    play.check_gaps()
    play.check_all_given()


@pytest.mark.parametrize("name", POLICIES)
def test_windows_run_under_every_kind_of_policy(name: str) -> None:
    node = Node(windowed(), name=name).beat(5, 1)
    for number in range(1, 30):
        node.admit(10 + number, number, passes=number % 3 > 0).run()
    node.expire(10_000).run()
    given_ = [(each["window"], each["xs"]) for each in node.results]
    assert given_ == [(1, [1, 2, 4, 5, 7, 8]), (2, [10, 11, 13, 14, 16, 17, 19])]
