"""cluster.yaml as the planner uses it: places, links, and what the nodes have installed.

A node of the file is a *host*; each of its cores is a *place*, a node of its own to everything that plans and
analyses: `a`, `a.1`, `a.2`. One runtime process runs on each (partitioned EDF), so a test that takes m cores for one
that is m times as fast would not be safe.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from pathlib import Path

from coordinator.spec import catalog
from coordinator.spec.files import declared_ranges, security, validation, yaml_source
from coordinator.spec.files.cluster_file import CORE_LINK_NS, NOT_YET, ClusterFile, NodeFile
from coordinator.spec.files.declared_ranges import Range
from coordinator.spec.files.yaml_source import nearest
from protos import digests
from protos.plan.charges import NodeCharges
from protos.policies import Chosen

MOST_PLACES = 1000


@dataclass(frozen=True)
class Node:
    """A place: one of the `cores` of a host, its `core`-th. `index` is its number in the plan; `memory_bytes`: its
    part of the host's, 0: the agent's default; `policy` None: the planner's choice; `host_memory_bytes` 0: not
    declared; `cpu` -1: not pinned; `charges` None: not measured."""

    name: str
    index: int
    address: str
    speed: Fraction
    cores: int
    memory_bytes: int
    cap: Fraction
    policy: Chosen | None
    emulate_cost_ns: int
    cpu: int
    charges: NodeCharges | None = None
    host: str = ""
    core: int = 0
    host_memory_bytes: int = 0


@dataclass(frozen=True)
class Link:
    """Between two places, both ways; `bandwidth_bps` 0: unlimited. All places of two hosts share one bandwidth."""

    between: tuple[str, str]
    latency_ns: int
    bandwidth_bps: int


@dataclass(frozen=True)
class Cluster:
    """Places in the file's order, links, the installed operators; `sha256` of the file's bytes; `certificates`: the
    folder where they are, or should be, None: not known; `ranges`: within which values may change."""

    nodes: Mapping[str, Node]
    links: tuple[Link, ...]
    catalog: catalog.Catalog
    security: str
    sha256: str
    file: yaml_source.Source
    certificates: Path | None = field(default=None, compare=False)  # no part of what is planned
    ranges: tuple[Range, ...] = field(default=(), compare=False)  # nor these

    @cached_property
    def hosts(self) -> dict[str, tuple[Node, ...]]:
        """The places of every host, by its name, the first core first."""
        found: dict[str, tuple[Node, ...]] = {}
        for node in self.nodes.values():
            found[node.host] = (*found.get(node.host, ()), node)
        return found

    @cached_property
    def _linked(self) -> dict[frozenset[str], Link]:
        return {frozenset(link.between): link for link in self.links}

    def link(self, one: str, other: str) -> Link | None:
        """The link between two places, if there is one."""
        return self._linked.get(frozenset((one, other)))

    def places(self, name: str) -> tuple[Node, ...]:
        """What a user means: `a`: every place of host a; `a.1`: that one; `a.0`: the first. Empty: unknown."""
        host, dot, core = name.partition(".")
        if not dot:
            return self.hosts.get(name, ())
        return tuple(node for node in self.hosts.get(host, ()) if str(node.core) == core)

    @property
    def names(self) -> list[str]:
        """everything that `core_assignment` knows, but for `.0`."""
        return list(dict.fromkeys([*self.hosts, *self.nodes]))


@dataclass(frozen=True)
class Machines:
    """The nodes of a cluster file alone, by name, and how they know each other."""

    nodes: Mapping[str, Node]
    security: str
    certificates: Path
    file: yaml_source.Source
    shape: ClusterFile


def machines(path: Path, edit: yaml_source.Edit | None = None) -> Machines:
    """Reads what cluster.yaml says about nodes, and needs no other file; problems are noted in `file`, where `check`
    raises them. Raises BadInputError where the file cannot be read or has not the shape."""
    file = yaml_source.load(path)
    if edit is not None:
        edit(file)
    shape = validation.validate(file, ClusterFile, NOT_YET)
    hosts = {name: _node(name, given, file) for name, given in shape.nodes.items()}
    count = sum(node.cores for node in hosts.values())
    if count > MOST_PLACES:
        file.wrong(
            "too_many_nodes",
            ("nodes",),
            f"has {count} nodes, or cores of nodes",
            f"at most {MOST_PLACES} are planned for",
        )
    said = security.check(shape.security, shape.certificates, file)
    security.check_addresses({name: node.address for name, node in hosts.items()}, said, file)
    if said == security.MUTUAL_TLS:
        security.check_names(hosts, file)
    return Machines(hosts, said, security.folder(path, shape.certificates), file, shape)


def with_installed(listing: Path) -> yaml_source.Edit:
    """The edit of a cluster file that names this operators.json, relative to the current directory, in place of its
    own."""
    named = str(listing.absolute())

    def edit(file: yaml_source.Source) -> None:
        if isinstance(file.data, MutableMapping):
            file.data["operators"] = named

    return edit


def load(path: Path, edit: yaml_source.Edit | None = None) -> Cluster:
    """Reads and checks cluster.yaml, changed by `edit` before, and the operators.json that it names. Raises
    BadInputError with every problem."""
    found = machines(path, edit)
    file, shape = found.file, found.shape
    between = _links(shape, found.nodes, file)
    ranges = declared_ranges.read(shape.may_change, file)
    file.check()
    installed = catalog.Catalog()
    if shape.operators is not None:
        installed = catalog.load(path.parent / shape.operators, path, file.line("operators"))
    else:
        installed = catalog.Catalog(complete=True)
    nodes = _expanded(found.nodes)
    within = {name: CORE_LINK_NS if given.core_link is None else given.core_link for name, given in shape.nodes.items()}
    links = _between_places(nodes, between, within)
    sha256 = digests.sha256(file.raw).hexdigest()
    return Cluster(nodes, links, installed, found.security, sha256, file, found.certificates, ranges)


def _node(name: str, given: NodeFile, file: yaml_source.Source) -> Node:
    if given.core_link is not None and given.cores == 1:
        file.wrong(
            "core_link_of_one_core",
            ("nodes", name, "core_link"),
            f"nodes.{name}.core_link is between cores, but the node has one",
            "give 'cores:', or remove it",
        )
    return Node(
        name,
        0,
        given.address,
        Fraction(str(given.speed)),
        given.cores,
        (given.memory or 0) // given.cores,
        Fraction(str(given.cap)),
        given.policy,
        given.emulate.cost_per_tuple if given.emulate else 0,
        -1 if given.cpu is None else given.cpu,
        NodeCharges(decision_ns=given.charges.decision, drain_ns=given.charges.drain, side_ns=given.charges.side)
        if given.charges
        else None,
        name,
        0,
        given.memory or 0,
    )


def _expanded(hosts: Mapping[str, Node]) -> dict[str, Node]:
    """A place per core, pinned to the cores from the host's `cpu` on."""
    nodes: dict[str, Node] = {}
    for host in hosts.values():
        for core in range(host.cores):
            name = f"{host.name}.{core}" if core else host.name
            cpu = host.cpu + core if host.cpu >= 0 else -1
            nodes[name] = replace(host, name=name, index=len(nodes), cpu=cpu, core=core)
    return nodes


def _between_places(
    nodes: Mapping[str, Node], between: tuple[Link, ...], within: Mapping[str, int]
) -> tuple[Link, ...]:
    """Between the places of a host its `core_link`, without a bandwidth; between those of two hosts the hosts' link."""
    places: dict[str, list[str]] = {}
    for node in nodes.values():
        places.setdefault(node.host, []).append(node.name)
    inside = [Link(pair, within[host], 0) for host, names in places.items() for pair in combinations(names, 2)]
    across = [
        replace(link, between=pair)
        for link in between
        for pair in product(places[link.between[0]], places[link.between[1]])
    ]
    return (*inside, *across)


def _links(shape: ClusterFile, nodes: Mapping[str, Node], file: yaml_source.Source) -> tuple[Link, ...]:
    if shape.links is None:
        return tuple(Link(pair, 0, 0) for pair in combinations(nodes, 2))
    links: dict[frozenset[str], Link] = {}
    for position, given in enumerate(shape.links):
        keys = ("links", position, "between")
        unknown = [name for name in given.between if name not in nodes]
        for name in unknown:
            file.wrong(
                "unknown_node", keys, f"links.{position} names node '{name}', which is unknown", nearest(name, nodes)
            )
        pair = frozenset(given.between)
        if len(pair) == 1:
            file.wrong("link_to_itself", keys, f"links.{position} links '{given.between[0]}' to itself", "remove it")
        if pair in links:
            file.wrong("link_twice", keys, f"links.{position} links the same nodes a second time", "remove one")
        links[pair] = Link(given.between, given.latency, given.bandwidth or 0)
    return tuple(links.values())
