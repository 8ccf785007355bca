"""Two random queries for one cluster that have operators in common, whose results depend on no timing.

What remembers (filters, counters, operators that fail now and then) reads streams that come in one order however the
nodes are scheduled: a source's, or of operators with one input each behind it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

from coordinator.model.choices import Choices
from coordinator.model.task_units import Units
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from protos.plan_document import Plan
from tests.simulation import operators_for_tests
from tests.simulation.sharing import operators_with_state

NODES = "abc"
ORDERED = ("filter", "state.count", "state.last", "test.fragile")
KINDS = ("pass", "filter", "union", "join", "test.twice", "test.fragile", "state.count", "state.last")
MS = 1_000_000


@cache
def registry() -> Registry:
    """With the operators of the tests."""
    return Registry([Path(str(module.__file__)) for module in (operators_for_tests, operators_with_state)])


@dataclass(frozen=True)
class Two:
    """Files of a cluster and two queries, as text."""

    cluster: str
    first: str
    second: str

    def write(self, folder: Path) -> tuple[Path, Path, Path]:
        """first, second, cluster."""
        (folder / "operators.json").write_text(json.dumps(registry().describe()))
        paths = folder / "first.yaml", folder / "second.yaml", folder / "cluster.yaml"
        for path, text in zip(paths, (self.first, self.second, self.cluster), strict=True):
            path.write_text(text)
        return paths

    def plan(self, *which: str, choices: Choices, share: bool = True) -> Plan:
        """The plan of `first`, `second` or both."""
        with TemporaryDirectory() as name:
            first, second, cluster = self.write(Path(name))
            paths = [{"first": first, "second": second}[each] for each in which]
            return planner.make_plan(paths, cluster, choices, share=share)


BURSTS = st.integers(1, 4).map("{{burst: {}, period: 100 ms}}".format)


@dataclass(frozen=True)
class Load:
    """How much there is to do, and how soon."""

    arrivals: st.SearchStrategy[str] = BURSTS
    dearest_ms: int = 4
    deadlines_ms: tuple[int, ...] = (150, 400, 900)


@dataclass(frozen=True)
class _Pool:
    """Operators to take queries from: each one's line without its name, and what it reads."""

    lines: dict[str, dict[str, str]]
    reads: Mapping[str, tuple[str, ...]]
    sources: Mapping[str, str]

    def behind(self, ends: list[str]) -> list[str]:
        """These and everything that leads to them, in order."""
        wanted = set(ends)
        for name in reversed(self.lines):
            if name in wanted:
                wanted.update(self.reads[name])
        return [name for name in (*self.sources, *self.lines) if name in wanted]


@st.composite
def pairs(draw: st.DrawFn, load: Load | None = None) -> Two:
    """Two queries, the second with other names for its operators or the same, and some of them changed."""
    load = load or Load()
    nodes = NODES[: draw(st.integers(1, 3))]
    pool = _pool(draw, nodes, load)
    names = sorted(pool.lines)
    texts = []
    for number, query in enumerate(("first", "second")):
        ends = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        members = pool.behind(ends)
        suffix = draw(st.sampled_from(["", "x"])) if number else ""
        changed = draw(st.sampled_from([None, None, *names])) if number else None
        called = {name: name + suffix if name in pool.lines else name for name in members}
        texts.append(_text(draw, query, pool, members, called, ends, changed, nodes, load))
    return Two(cluster_of(nodes), *texts)


def _pool(draw: st.DrawFn, nodes: str, load: Load) -> _Pool:
    sources = {
        f"s{i}": f"{{at: {draw(st.sampled_from(nodes))}, type: json, arrival: {draw(load.arrivals)}}}"
        for i in range(draw(st.integers(1, 2)))
    }
    ordered, origins, doubled = set(sources), {name: {name} for name in sources}, dict.fromkeys(sources, 0)
    reads: dict[str, tuple[str, ...]] = {}
    lines: dict[str, dict[str, str]] = {}
    for number in range(draw(st.integers(2, 7))):
        name, known = f"O{number}", sorted(origins)
        first, other = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        kind = draw(st.sampled_from(KINDS))
        if kind in ("union", "join") and (first == other or (kind == "join" and not origins[first] & origins[other])):
            kind = "pass"
        if (kind in ORDERED and first not in ordered) or (kind == "test.twice" and doubled[first]):
            kind = "pass"
        both = kind in ("union", "join")
        reads[name] = (first, other) if both else (first,)
        lines[name] = {
            "run": kind,
            "cost": f"{draw(st.integers(1, load.dearest_ms))} ms",
            "nodes": f"[{draw(st.sampled_from(nodes))}]",
        }
        if kind == "filter":
            lines[name]["selectivity"] = "{mean: 0.5, at_most: [[1, 1], [2, 1]]}"
        if kind == "test.twice":
            lines[name]["selectivity"] = "{mean: 2, at_most: [[1, 2]]}"
        origins[name] = set(origins[first])
        if both:
            origins[name] = (set.union if kind == "union" else set.intersection)(origins[first], origins[other])
        elif first in ordered:
            ordered.add(name)
        doubled[name] = max(doubled[first], doubled[other] if both else 0) + (kind == "test.twice")
    return _Pool(lines, reads, sources)


def _text(
    draw: st.DrawFn, query: str, pool: _Pool, members: list[str], called: Mapping[str, str], ends: list[str],
    changed: str | None, nodes: str, load: Load,
) -> str:  # fmt: skip
    lines = ["shimekiri: 1", f"query: {query}", "sources:"]
    lines += [f"  {name}: {pool.sources[name]}" for name in members if name in pool.sources]
    lines.append("operators:")
    for name in members:
        if name in pool.lines:
            facts = dict(pool.lines[name])
            if name == changed:
                facts["cost"] = f"{load.dearest_ms + 1} ms"
            inputs = ", ".join(called[each] for each in pool.reads[name])
            rest = ", ".join(f"{key}: {value}" for key, value in facts.items())
            lines.append(f"  {called[name]}: {{in: [{inputs}], {rest}}}")
    lines.append("outputs:")
    for end in ends:
        at, deadline_ms = draw(st.sampled_from(nodes)), draw(st.sampled_from(load.deadlines_ms))
        lines.append(f"  {query}_{end}: {{from: {called[end]}, at: {at}, deadline: {deadline_ms} ms}}")
    return "\n".join(lines) + "\n"


def cluster_of(nodes: str) -> str:
    """Nodes of one letter each, all linked."""
    lines = ["shimekiri: 1", "nodes:"]
    lines += [f'  {n}: {{address: "127.0.0.1:77{i}0", memory: 64 MiB, cap: 1}}' for i, n in enumerate(nodes)]
    links = [(a, b) for a in nodes for b in nodes if a < b]
    lines.append("links:" if links else "links: []")
    lines += [f"  - {{between: [{a}, {b}], latency: 1 ms, bandwidth: 10 Mbit/s}}" for a, b in links]
    return "\n".join([*lines, "operators: operators.json", "security: insecure-loopback"]) + "\n"


def by_traffic(units: Units = "path") -> Choices:
    """Plans that promise nothing and are made at once."""
    return Choices(allocator="sqpr", units=units, sub_deadlines="proportional", policy="edf")
