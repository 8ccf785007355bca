"""Random small queries on one to three nodes: filters, unions, joins, side inputs, several results, errors."""

from functools import cache

from hypothesis import strategies as st

from coordinator.model.task_units import Units
from node_agent.operators.registry import Registry
from protos.plan_document import Plan
from tests.simulation.operators_for_tests import __file__ as operators_file
from tests.simulation.planned_queries import planned

NODES = "abc"
KINDS = ("pass", "filter", "union", "join", "test.attach", "test.twice", "test.fragile")


@cache
def registry() -> Registry:
    """With the operators of the tests."""
    return Registry([operators_file])


@st.composite
def documents(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> Plan:
    """A plan."""
    nodes = NODES[: draw(st.integers(1, 3))]
    streams = {f"s{i}": draw(st.sampled_from(nodes)) for i in range(draw(st.integers(1, 2)))}
    lines = ["shimekiri: 1", "query: random", "sources:"]
    for name, node in streams.items():
        burst = draw(st.integers(1, 6))
        lines.append(f"  {name}: {{at: {node}, type: json, arrival: {{burst: {burst}, period: 1000 ms}}}}")
    lines.append("operators:")
    used: set[str] = set()
    origins = {name: {name} for name in streams}
    doubled = dict.fromkeys(streams, 0)  # how often a stream's tuples have been multiplied: kept small
    place = {}
    for number in range(draw(st.integers(2, 7))):
        name, known = f"O{number}", sorted(streams)
        unused = [each for each in known if each not in used]
        first = draw(st.sampled_from(unused or known))
        other = draw(st.sampled_from(known))
        kind = draw(st.sampled_from(kinds))
        if first == other and kind in ("union", "join", "test.attach"):
            kind = "pass"
        if kind == "join" and not origins[first] & origins[other]:
            kind = "union"  # a join without a common source is refused
        if kind == "test.twice" and doubled[first] == 2:
            kind = "pass"
        inputs = f"[{first}, {other}]" if kind in ("union", "join") else first
        side = f", side: {{ref: {other}}}" if kind == "test.attach" else ""
        selectivity = ", selectivity: {mean: 0.5}" if kind == "filter" else ""
        cost_ms = draw(st.integers(1, 4))
        lines.append(f"  {name}: {{run: {kind}, in: {inputs}, cost: {cost_ms} ms{side}{selectivity}}}")
        used |= {first} | ({other} if kind in ("union", "join", "test.attach") else set())
        place[name] = draw(st.sampled_from(nodes))
        streams[name] = place[name]
        both = kind in ("union", "join")
        doubled[name] = max(doubled[first], doubled[other] if both else 0) + (kind == "test.twice")
        origins[name] = set(origins[first])
        if both:
            origins[name] = (set.union if kind == "union" else set.intersection)(origins[first], origins[other])
    lines.append("outputs:")
    ends = [name for name in place if name not in used] or [name]
    if draw(st.booleans()):
        ends.append(draw(st.sampled_from(sorted(place))))
    for number, name in enumerate(dict.fromkeys(ends)):
        deadline_ms = draw(st.sampled_from([20, 100, 900]))
        lines.append(f"  out{number}: {{from: {name}, at: {draw(st.sampled_from(nodes))}, deadline: {deadline_ms} ms}}")
    loose = [name for name in streams if name not in used and name not in ends]
    for name in loose:  # a second source that nothing has taken
        lines.insert(lines.index("outputs:"), f"  P{name}: {{run: pass, in: {name}, cost: 1 ms}}")
        lines.append(f"  out_{name}: {{from: P{name}, at: {nodes[0]}, deadline: 900 ms}}")
        place[f"P{name}"] = nodes[-1]
    units: Units = draw(st.sampled_from(("path", "operator")))
    return planned("\n".join(lines), _cluster(nodes), place, registry(), units)


def _cluster(nodes: str) -> str:
    lines = ["shimekiri: 1", "nodes:"]
    lines += [f'  {n}: {{address: "127.0.0.1:77{i}0", memory: 64 MiB, cap: 1}}' for i, n in enumerate(nodes)]
    links = [(a, b) for a in nodes for b in nodes if a < b]
    lines.append("links:" if links else "links: []")
    lines += [f"  - {{between: [{a}, {b}], latency: 1 ms, bandwidth: 10 Mbit/s}}" for a, b in links]
    return "\n".join([*lines, "operators: operators.json", "security: insecure-loopback"])
