"""Parts of a case by the names that options and files have for them, and cases with parts changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from coordinator.solve.repair.what_if_runs import Case
from coordinator.spec.cluster import Link, Node
from coordinator.spec.files.query_file import CHAIN_NAME
from coordinator.spec.query import Operator, Output, Source
from coordinator.spec.sharing.compose import SEPARATOR

Part = TypeVar("Part", Source, Operator, Output, Node, Link)


@dataclass(frozen=True)
class Section(Generic[Part]):
    """Parts of one kind. `name`: of the section of a file; `of`: a case's, by name, those together that one key of a
    file is about; `put`: a case with other ones in their place and order."""

    name: str
    of: Callable[[Case], Mapping[str, Sequence[Part]]]
    put: Callable[[Case, Callable[[Part], Part]], Case]

    def changed(self, case: Case, name: str, change: Callable[[Part], Part]) -> Case:
        """With the parts of that name changed."""
        chosen = {id(part) for part in self.of(case)[name]}
        return self.put(case, lambda part: change(part) if id(part) in chosen else part)


def host(node: Node) -> str:
    """The node of the file that a place is on."""
    return node.host or node.name


def entry(case: Case, operator: Operator) -> str:
    """What `--what-if` knows it by: its name, or a chain's range; of several queries, with the query that it is of. Of
    both halves of a window operator it is the same."""
    if not chained(operator):
        return operator.said
    users = case.query.users[operator.name]
    if len(users) > 1:  # it may stand in several chains
        return operator.name
    return f"{users[0]}{SEPARATOR}{operator.entry}" if case.query.members else operator.entry


def chained(operator: Operator) -> bool:
    """Whether it is one of a chain that the file has as one."""
    return CHAIN_NAME.fullmatch(operator.entry) is not None


def _grouped(parts: Sequence[Part], name: Callable[[Part], str]) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for part in parts:
        found.setdefault(name(part), []).append(part)
    return found


def _nodes(case: Case) -> dict[str, list[Node]]:
    return _grouped(list(case.cluster.nodes.values()), host)


def _put_nodes(case: Case, change: Callable[[Node], Node]) -> Case:
    nodes = {name: change(node) for name, node in case.cluster.nodes.items()}
    return replace(case, cluster=replace(case.cluster, nodes=nodes))


def _ends(case: Case, link: Link) -> tuple[str, str]:
    one, other = (host(case.cluster.nodes[name]) for name in link.between)
    return one, other


def _links(case: Case) -> dict[str, list[Link]]:
    between = [link for link in case.cluster.links if len(set(_ends(case, link))) == 2]
    return _grouped(between, lambda link: "-".join(_ends(case, link)))


def _core_links(case: Case) -> dict[str, list[Link]]:
    within = [link for link in case.cluster.links if len(set(_ends(case, link))) == 1]
    return _grouped(within, lambda link: _ends(case, link)[0])


def _put_links(case: Case, change: Callable[[Link], Link]) -> Case:
    return replace(case, cluster=replace(case.cluster, links=tuple(map(change, case.cluster.links))))


def _put_operators(case: Case, change: Callable[[Operator], Operator]) -> Case:
    return replace(case, query=replace(case.query, operators=tuple(map(change, case.query.operators))))


def _put_sources(case: Case, change: Callable[[Source], Source]) -> Case:
    return replace(case, query=replace(case.query, sources=tuple(map(change, case.query.sources))))


def _put_outputs(case: Case, change: Callable[[Output], Output]) -> Case:
    return replace(case, query=replace(case.query, outputs=tuple(map(change, case.query.outputs))))


NODES = Section[Node]("nodes", _nodes, _put_nodes)
LINKS = Section[Link]("links", _links, _put_links)
CORE_LINKS = Section[Link]("nodes", _core_links, _put_links)
SOURCES = Section[Source]("sources", lambda case: _grouped(case.query.sources, lambda one: one.name), _put_sources)
OUTPUTS = Section[Output]("outputs", lambda case: _grouped(case.query.outputs, lambda one: one.name), _put_outputs)
OPERATORS = Section[Operator](
    "operators", lambda case: _grouped(case.query.operators, lambda one: one.said), _put_operators
)
ENTRIES = Section[Operator](  # for keys that a chain has as a whole
    "operators", lambda case: _grouped(case.query.operators, lambda one: entry(case, one)), _put_operators
)

__all__ = [
    "CORE_LINKS",
    "ENTRIES",
    "LINKS",
    "NODES",
    "OPERATORS",
    "OUTPUTS",
    "SOURCES",
    "Section",
    "chained",
    "entry",
    "host",
]
