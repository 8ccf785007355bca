"""The placement problem in integers: costs per burst, contracted chains, streams with their routes, deadlines.

[P] 5.2.2 fixes the input volume, so c_o is the cost of one *burst* (theory: the printed text leaves per tuple or per
burst open; per tuple, (6) would let 20 tuples pass as one). Selectivities enter by their mean. All times are ns,
rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from coordinator.model import capacity, chains
from coordinator.model.capacity import Conflict, Pipe, Store
from coordinator.model.chains import Contract
from coordinator.model.flows import Flow, flows, triggers
from coordinator.spec import core_assignment, graph
from coordinator.spec.catalog import Catalog
from coordinator.spec.cluster import Cluster, Node
from coordinator.spec.query import Operator, Query
from coordinator.spec.runtime_charges import MEASURED, on_wire

LEAST_CAP = Fraction(1, 10**6)  # of a node that calls of sources fill


@dataclass(frozen=True)
class Item:
    """What the model places as one: a contracted chain, or a single operator.

    `cost_ns[n]`: CPU time per burst on node n, for the nodes it may run on; `weight_ns`: c_o of equation (1), the
    least of them; `load[n]`: utilisation of node n; `members_ns`: c_o of each member; `memory_bytes`: the state that
    they keep.
    """

    members: tuple[str, ...]
    nodes: tuple[int, ...]
    cost_ns: Mapping[int, int]
    weight_ns: int
    load: Mapping[int, Fraction]
    members_ns: tuple[int, ...]
    before: tuple[int, ...]
    memory_bytes: int = 0

    @property
    def name(self) -> str:
        """`O4`, or `O4..O21` for a chain."""
        return self.members[0] if len(self.members) == 1 else f"{self.members[0]}..{self.members[-1]}"


@dataclass(frozen=True)
class Terminal:
    """An output stream s of [P]: `items` is Pre(s), `end` its last item, `deadline_ns` d_s.

    Operators that lead to side inputs only have no output; they get a terminal of their own, with the tightest
    deadline of their readers, so that they are scheduled and counted as demand.
    """

    name: str
    end: int
    deadline_ns: int
    items: tuple[int, ...]
    weight_ns: int

    def share(self, item: Item) -> Fraction:
        """Equation (1): d'[s,o] = c_o d_s / c'_s."""
        return Fraction(item.weight_ns * self.deadline_ns, self.weight_ns)


@dataclass(frozen=True)
class Stream:
    """A stream that may have to be shipped: from an item or, for a source, a node, to items and nodes (outputs).
    `bits_per_s`: what one hop of it takes of a link on average, every tuple as large as is assumed."""

    name: str
    tuples: Fraction
    item: int | None
    node: int | None
    readers: tuple[int, ...]
    sinks: tuple[int, ...]
    forbidden: frozenset[tuple[int, int]]
    bits_per_s: Fraction = Fraction(0)


@dataclass(frozen=True)
class Problem:
    """Everything a solver needs. `order`: items by d', ties by the tightest stream, for equation (6).

    `held`: items that the caller holds to a node. They are not contracted as pinned ones are, so that the figures of
    a placement are the same whether the solver chose it or the caller did. `stores`, `pipes`: memories and links that
    might not do; `conflicts`: items that may not all be where each says; `incumbent_hops`: those that streams have
    already; `calls`: by node, the part of its time that calls of its sources use, which its cap here is without.
    """

    nodes: tuple[Node, ...]
    items: tuple[Item, ...]
    terminals: tuple[Terminal, ...]
    streams: tuple[Stream, ...]
    links: frozenset[tuple[int, int]]
    order: tuple[int, ...]
    held: Mapping[int, int]
    stores: tuple[Store, ...] = ()
    pipes: tuple[Pipe, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    incumbent_hops: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    calls: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def meshed(self) -> bool:
        """Every stream may go straight from any node to any other, so routes need no variables of their own: not where
        a link could be full, which a relay goes round."""
        count = len(self.nodes)
        forbidden = any(stream.forbidden for stream in self.streams)
        return len(self.links) == count * (count - 1) and not forbidden and not self.pipes

    def item_of(self) -> dict[str, int]:
        """The item of every operator."""
        return {name: index for index, item in enumerate(self.items) for name in item.members}


def candidates(operator: Operator, cluster: Cluster) -> tuple[int, ...]:
    """Node(o) of [P]: the nodes an operator may run on."""
    return tuple(cluster.nodes[name].index for name in core_assignment.allowed(operator, cluster))


def build(
    query: Query,
    cluster: Cluster,
    held: Mapping[str, str],
    contract: Contract = "fixed",
    tuple_bytes: int = MEASURED.tuple_bytes,
    conflicts: Sequence[Mapping[str, frozenset[str]]] = (),
    incumbent_hops: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> Problem:
    """The problem of a checked query on a cluster; `held`: operators that the caller holds to a node, or to any core of
    one. `tuple_bytes`: the largest size of a tuple on a link, where none is declared. `conflicts`: operators that may
    not all be on these nodes. `incumbent_hops`: hops that streams take already, by place."""
    calls = _calls(query, cluster)
    nodes = tuple(
        replace(node, cap=max(LEAST_CAP, node.cap - calls[name])) if calls.get(name) else node
        for name, node in cluster.nodes.items()
    )
    flow = flows(query, cluster.catalog)
    held = _whole(query, held)
    allowed = {operator.name: candidates(operator, cluster) for operator in query.operators}
    linked = chains.chains(query, cluster.catalog, allowed, held, contract)
    homes = {name: tuple(node.index for node in cluster.places(at)) for name, at in held.items()}
    item_of = {name: index for index, chain in enumerate(linked) for name in chain}
    by_name = {operator.name: operator for operator in query.operators}
    items = []
    for chain in linked:
        before = tuple(item_of[name] for name in by_name[chain[0]].inputs if name in item_of)
        item = _item([by_name[name] for name in chain], allowed[chain[0]], before, nodes, cluster.catalog, flow)
        items.append(_within(item, homes.get(chain[0], item.nodes)))
    terminals = _terminals(query, items, item_of)
    links = frozenset(
        pair
        for link in cluster.links
        for one, other in [(cluster.nodes[link.between[0]].index, cluster.nodes[link.between[1]].index)]
        for pair in ((one, other), (other, one))
    )
    streams = _streams(query, cluster, flow, item_of, tuple_bytes)
    return Problem(
        nodes,
        tuple(items),
        terminals,
        streams,
        links,
        _order(items, terminals),
        held={item_of[name]: home[0] for name, home in homes.items() if len(home) == 1},
        stores=capacity.stores(cluster, [(item.nodes, item.memory_bytes) for item in items]),
        pipes=capacity.pipes(cluster, sum((stream.bits_per_s for stream in streams), Fraction(0))),
        conflicts=capacity.merged(conflicts, item_of, {name: node.index for name, node in cluster.nodes.items()}),
        incumbent_hops={
            name: tuple((cluster.nodes[one].index, cluster.nodes[other].index) for one, other in pairs)
            for name, pairs in (incumbent_hops or {}).items()
        },
        calls=calls,
    )


def _calls(query: Query, cluster: Cluster) -> dict[str, Fraction]:
    """What sources leave of the nodes that make their tuples, by node: the part that their calls use."""
    found: dict[str, Fraction] = {}
    for source in query.sources:
        if source.calls:
            found[source.at] = found.get(source.at, Fraction(0)) + source.calls / cluster.nodes[source.at].speed
    return found


def _whole(query: Query, held: Mapping[str, str]) -> dict[str, str]:
    """The halves of a window operator have the same holders."""
    found = dict(held)
    for operator in query.operators:
        if operator.closes:
            for one, other in ((operator.name, operator.closes), (operator.closes, operator.name)):
                if one in held:
                    found.setdefault(other, held[one])
    return found


def _item(
    chain: Sequence[Operator],
    allowed: tuple[int, ...],
    before: tuple[int, ...],
    nodes: Sequence[Node],
    catalog: Catalog,
    flow: Mapping[str, Flow],
) -> Item:
    entering = [triggers(operator, catalog, flow) for operator in chain]
    per_node: dict[int, list[int]] = {}
    load: dict[int, Fraction] = {}
    for index in allowed:
        costs = [tuple_cost_ns(operator, nodes[index]) for operator in chain]
        per_node[index] = [max(1, ceil(one.burst * cost)) for one, cost in zip(entering, costs, strict=True)]
        load[index] = sum((one.rate * cost for one, cost in zip(entering, costs, strict=True)), Fraction(0))
    members_ns = tuple(min(per_node[index][position] for index in allowed) for position in range(len(chain)))
    cost_ns = {index: sum(costs) for index, costs in per_node.items()}
    names = tuple(operator.name for operator in chain)
    memory_bytes = sum(operator.memory_bytes for operator in chain)
    return Item(names, allowed, cost_ns, sum(members_ns), load, members_ns, before, memory_bytes)


def _within(item: Item, home: Sequence[int]) -> Item:
    """An item that the caller holds to a host of several cores. Its weight stays, so that the figures of a placement
    do not depend on who chose it."""
    nodes = tuple(node for node in item.nodes if node in home)
    if len(home) == 1 or len(nodes) == len(item.nodes):
        return item
    cost_ns = {node: item.cost_ns[node] for node in nodes}
    return replace(item, nodes=nodes, cost_ns=cost_ns, load={node: item.load[node] for node in nodes})


def tuple_cost_ns(operator: Operator, node: Node) -> int:
    """CPU time of one tuple on a node: the declared cost at its speed, at least what it emulates."""
    return max(ceil(operator.cost_ns / node.speed), node.emulate_cost_ns)


def deadlines(query: Query) -> dict[str, int]:
    """The tightest end-to-end deadline that each operator leads to through trigger inputs; 0: none."""
    found = {operator.name: 0 for operator in query.operators}
    for output in query.outputs:
        found[output.origin] = min(found[output.origin] or output.deadline_ns, output.deadline_ns)
    for operator in reversed(graph.order(query)):
        for name in operator.inputs:
            if name in found and found[operator.name]:
                found[name] = min(found[name] or found[operator.name], found[operator.name])
    return found


def effective_deadlines(query: Query) -> dict[str, int]:
    """As `deadlines`, but an operator that leads to side inputs only takes the tightest deadline of their readers."""
    found = deadlines(query)
    for _ in query.operators:
        before = dict(found)
        for operator in query.operators:
            for name in (*operator.inputs, *operator.side.values()):
                if found[operator.name] and name in before and (not before[name]):
                    found[name] = min(found[name] or found[operator.name], found[operator.name])
        if found == before:
            break
    return found


def _terminals(query: Query, items: Sequence[Item], item_of: Mapping[str, int]) -> tuple[Terminal, ...]:
    ends = [(output.name, item_of[output.origin], output.deadline_ns) for output in query.outputs]
    real, effective = deadlines(query), effective_deadlines(query)
    triggering = {name for operator in query.operators for name in operator.inputs}
    ends += [
        (f"side input {name}", item_of[name], effective[name])
        for name, deadline_ns in real.items()
        if not deadline_ns and name not in triggering
    ]
    terminals = []
    for name, end, deadline_ns in ends:
        needed, waiting = {end}, [end]
        while waiting:
            for index in items[waiting.pop()].before:
                if index not in needed:
                    needed.add(index)
                    waiting.append(index)
        weight_ns = sum(items[index].weight_ns for index in needed)
        terminals.append(Terminal(name, end, deadline_ns, tuple(sorted(needed)), weight_ns))
    return tuple(terminals)


def _streams(
    query: Query, cluster: Cluster, flow: Mapping[str, Flow], item_of: Mapping[str, int], tuple_bytes: int
) -> tuple[Stream, ...]:
    streams = []
    sizes = graph.payload_bytes(query, cluster.catalog)
    for one in query.producers:
        own = item_of.get(one.name)
        readers = {
            item_of[operator.name]
            for operator in query.operators
            if one.name in (*operator.inputs, *operator.side.values())
        } - {own}
        sinks = {cluster.nodes[output.at].index for output in query.outputs if output.origin == one.name}
        node = None if isinstance(one, Operator) else cluster.nodes[one.at].index
        forbidden = frozenset((cluster.nodes[a].index, cluster.nodes[b].index) for a, b in one.forbidden)
        bits_per_s = flow[one.name].rate * 10**9 * 8 * on_wire(sizes[one.name], tuple_bytes)
        reading, leaving = tuple(sorted(readers)), tuple(sorted(sinks))
        streams.append(Stream(one.name, flow[one.name].burst, own, node, reading, leaving, forbidden, bits_per_s))
    return tuple(streams)


def _order(items: Sequence[Item], terminals: Sequence[Terminal]) -> tuple[int, ...]:
    """Items by their least d', ties by the tightest stream they serve, then by position."""
    keys = {}
    for index, item in enumerate(items):
        serves = [terminal for terminal in terminals if index in terminal.items]
        keys[index] = (min(one.share(item) for one in serves), min(one.deadline_ns for one in serves), index)
    return tuple(sorted(keys, key=lambda index: keys[index]))
