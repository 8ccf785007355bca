"""Memory, bandwidth, missing links and forbidden nodes against brute force over placements and over routes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import InfeasibleError
from coordinator.model import problem
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem, Stream
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from coordinator.solve.heuristics import scale
from coordinator.solve.milp import capacity_rows, deadline
from coordinator.solve.milp.infeasible import explain
from coordinator.spec import input_files
from tests.coordinator.solve.milp.test_placement_oracle import _even, _feasible
from tests.coordinator.wording import Wording, named
from tests.sampling import sample
from tests.seeds import seeds
from tests.whole_plans import altered

SAID = Wording("plan", "no room")

Files = Callable[[str, str], tuple[Path, Path]]
Tree = tuple[tuple[int, int], ...]


def _query(seed: int) -> str:
    """A source, four or five operators that keep state, some pinned, some barred; rates of megabits per second."""
    dice = random.Random(seed)
    text = "shimekiri: 1\nquery: q\nsources:\n"
    text += f"  s: {{at: {dice.choice('ab')}, type: json, arrival: {{burst: {dice.randint(2, 6)}, period: 100 ms}}}}\n"
    text += "operators:\n"
    streams, read = ["s"], set()
    for number in range(dice.randint(4, 5)):
        first = dice.choice(streams)
        read.add(first)
        where = dice.choice(["", "", ", nodes: [a]", ", nodes: [c]", f", forbid_nodes: [{dice.choice('abc')}]"])
        text += (
            f"  o{number}: {{run: pass, in: {first}, cost: {dice.randint(1, 6)} ms, memory: {dice.randint(1, 6)} MiB,"
            f" selectivity: {{mean: {dice.choice([0.5, 1, 2])}}}{where}}}\n"
        )
        streams.append(f"o{number}")
    text += "outputs:\n"
    for one in streams[1:]:
        if one not in read:
            text += f"  out_{one}: {{from: {one}, at: {dice.choice('abc')}, deadline: {dice.randint(60, 200)} ms}}\n"
    return text


def _cluster(seed: int) -> str:
    dice = random.Random(seed + 1000)
    nodes = "".join(f'  {n}: {{address: "127.0.0.1:{i}", memory: {dice.randint(6, 14)} MiB}}\n' for i, n in
                    enumerate("abc", 1))  # fmt: skip
    pairs = ["a, b", "b, c", "a, c"]
    if dice.random() < 0.4:
        pairs.pop(dice.randrange(3))
    room = [dice.choice(["", f", bandwidth: {dice.randint(2, 12) * 100} kbit/s"]) for _ in pairs]
    links = ", ".join(f"{{between: [{pair}]{extra}}}" for pair, extra in zip(pairs, room, strict=True))
    return f"shimekiri: 1\nnodes:\n{nodes}links: [{links}]\n"


def _trees(built: Problem, stream: Stream, place: dict[int, int]) -> Iterator[Tree]:
    """Every way to bring a stream to those that need it, none of whose hops could be left out."""
    start = place[stream.item] if stream.item is not None else stream.node
    ends = ({place[reader] for reader in stream.readers} | set(stream.sinks)) - {start}
    if not ends:
        yield ()
        return
    links = [pair for pair in built.links - stream.forbidden if pair[1] != start]
    for chosen in product((False, True), repeat=len(links)):
        tree = tuple(pair for pair, one in zip(links, chosen, strict=True) if one)
        if len({end for _, end in tree}) < len(tree):
            continue
        reached, before = {start}, 0
        while len(reached) != before:
            before = len(reached)
            reached |= {end for one, end in tree if one in reached}
        if ends <= reached and len(reached) == len(tree) + 1:
            leaves = {end for _, end in tree} - {one for one, _ in tree}
            if leaves <= ends:
                yield tree


def _least_traffic(built: Problem, place: dict[int, int], megabits: dict[frozenset[int], Fraction]) -> Fraction | None:
    """Over all routes within every bandwidth; None: there are none."""
    options = [list(_trees(built, stream, place)) for stream in built.streams]
    best: Fraction | None = None
    for trees in product(*options):
        used: dict[tuple[int, int], Fraction] = {}
        traffic = Fraction(0)
        for stream, tree in zip(built.streams, trees, strict=True):
            traffic += stream.tuples * len(tree)
            for pair in tree:
                used[pair] = used.get(pair, Fraction(0)) + stream.bits_per_s
        if all(frozenset(pair) not in megabits or sent <= megabits[frozenset(pair)] for pair, sent in used.items()):
            best = traffic if best is None else min(best, traffic)
    return best


@pytest.mark.parametrize("seed", sample(seeds(range(60)), 4))
def test_rooms_against_every_placement_and_route(seed: int, files: Files) -> None:
    query, cluster, _ = input_files.read_files(*files(_query(seed), _cluster(seed)))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    assert not scale.takes(built, Limits()) or not (built.stores or built.pipes)
    index = {name: node.index for name, node in cluster.nodes.items()}
    widths = {
        frozenset(index[one] for one in link.between): Fraction(link.bandwidth_bps)
        for link in cluster.links
        if link.bandwidth_bps
    }
    traffic: dict[tuple[int, ...], Fraction] = {}
    even: list[tuple[int, ...]] = []
    for nodes in product(*(item.nodes for item in built.items)):
        place = dict(enumerate(nodes))
        kept = [sum(i.memory_bytes for k, i in enumerate(built.items) if place[k] == node) for node in range(3)]
        if any(size > node.host_memory_bytes for size, node in zip(kept, built.nodes, strict=True)):
            continue
        if not _feasible(built, place) or (least := _least_traffic(built, place, widths)) is None:
            continue
        traffic[nodes] = least
        if _even(built, place):
            even.append(nodes)
    if not traffic:
        with pytest.raises(InfeasibleError):
            deadline.allocate(built, Limits())
        assert explain(built, Limits())
        return
    found = deadline.allocate(built, Limits())
    chosen = tuple(found.place[item] for item in range(len(built.items)))
    assert chosen in traffic
    assert not capacity_rows.exceeded(built, found.place, found.hops)
    assert (found.nlr == 0) == bool(even)
    if even:
        assert found.traffic == min(traffic[one] for one in even)
    assert audit(planner.make_plan(query.file.path, cluster.file.path, Choices(model="paper"))) == []


def test_the_random_problems_are_of_every_kind(files: Files) -> None:
    """The rows above bind in some of them, and in some nothing is possible."""
    binding, impossible = 0, 0
    for seed in range(60):
        query, cluster, _ = input_files.read_files(*files(_query(seed), _cluster(seed)))
        assert cluster is not None
        built = problem.build(query, cluster, {})
        binding += bool(built.stores and built.pipes)
        try:
            deadline.allocate(built, Limits())
        except InfeasibleError:
            impossible += 1
    assert binding >= 10 and 5 <= impossible <= 50, (binding, impossible)


LINE = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:1", memory: 4 MiB}
  b: {address: "127.0.0.1:2"}
  c: {address: "127.0.0.1:3", memory: 4 MiB}
links: [{between: [a, b], bandwidth: 1 Mbit/s}, {between: [b, c], bandwidth: 1 Mbit/s}]
"""
SENT = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 10 ms}}
operators:
  one: {run: pass, in: s, cost: 1 ms, nodes: [a, b], memory: 3 MiB}
  two: {run: pass, in: one, cost: 1 ms, nodes: [b, c], memory: 3 MiB}
outputs:
  out: {from: two, at: c, deadline: 100 ms}
"""


@pytest.mark.parametrize(
    ("query", "cluster", "reason"),
    [
        (
            SENT.replace("[a, b], memory: 3", "[a], memory: 5"),
            LINE,
            ("memory_exceeded", "a"),
        ),
        (
            SENT.replace("[a, b], memory: 3", "[a, c], memory: 5"),
            LINE,
            ("memory_exceeded", "one"),
        ),
        (
            SENT.replace("nodes: [b, c]", "nodes: [a, b]"),
            LINE.replace('2"', '2", memory: 1 MiB').replace('3", memory: 4 MiB', '3", memory: 512 KiB'),
            ("memories_exceeded", ""),
        ),
        (
            SENT.replace("nodes: [b, c]", "nodes: [a, b]"),
            LINE.replace('2"', '2", memory: 2560 KiB').replace("1 Mbit", "10 Mbit"),
            ("memory_exceeded", "b"),
        ),
        (
            SENT.replace("period: 10 ms", "period: 5 ms"),
            LINE,
            ("bandwidth_exceeded", "a to b"),
        ),
        (
            SENT,
            LINE.replace(", {between: [b, c], bandwidth: 1 Mbit/s}", ""),
            ("no_way", "two"),
        ),
        (
            SENT.replace("in: s,", "in: s, forbid_streams: [[b, c]],").replace("[b, c], memory", "[c], memory"),
            LINE,
            ("no_way", "one"),
        ),
    ],
)
def test_what_has_no_room_is_named(query: str, cluster: str, reason: tuple[str, str], files: Files) -> None:
    with pytest.raises(InfeasibleError) as raised:
        planner.make_plan(*files(query, cluster), Choices(model="paper"))
    assert reason in named(raised.value.mistakes)
    SAID.check(f"{reason[0]} {reason[1]}".strip(), raised.value.lines())


def _mutate(plan: dict[str, Any], change: str) -> None:
    if change == "memory":
        plan["graph"]["operators"]["one"]["memory_bytes"] = 5 << 20
    elif change == "bandwidth":
        for link in plan["cluster"]["links"]:
            link["bandwidth_bps"] = 10**6
    else:
        plan["graph"]["operators"]["one"]["forbid_nodes"] = [plan["placement"]["one"]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("memory", "node a: its operators keep 5242880 bytes, its memory is 4194304"),
        ("bandwidth", "link a to b: 1200000 bit/s are sent on 1000000"),
        ("nodes", "operator one is placed on a, where it is forbidden"),
    ],
)
def test_the_audit_finds_what_has_no_room(change: str, said: str, files: Files) -> None:
    plan = planner.make_plan(
        *files(SENT, LINE.replace("1 Mbit/s", "10 Mbit/s")), Choices(model="paper", place={"one": "a"})
    )
    assert audit(plan) == []
    assert said in audit(altered(plan, lambda values: _mutate(values, change)))
