"""Remedies that change no number: where operators may run and streams may go, a link more, a policy that the test
covers, a wish that is dropped, a window that counts from its end, a fusion that waits no longer, outputs declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil

from coordinator.calculus.selectivity import Selectivity
from coordinator.plan import policy_choice
from coordinator.solve.repair.case_parts import (
    ENTRIES,
    NODES,
    OPERATORS,
    OUTPUTS,
    SOURCES,
    chained,
    host,
)
from coordinator.solve.repair.remedy import Remedy
from coordinator.solve.repair.repair import Change, Edit
from coordinator.solve.repair.what_if_runs import Case
from coordinator.spec import graph, policy_names
from coordinator.spec.cluster import Link
from coordinator.spec.files.query_file import SelectivityFile
from coordinator.spec.quality import Qos
from coordinator.spec.query import Operator, Output
from coordinator.units import exact, show_ns, step_of
from protos.plan.operators import Sync
from protos.plan_document import Plan

FEW_LINKS = 10  # up to which links that are not there are tried together with other changes
LONGEST_TIMEOUT_NS = 10 * 10**9
ELSEWHERE = DROPPED = (Fraction(1000),)  # for ordering: what is asked is then another thing
OF = 10  # inputs in a row, of which results are bounded


def _once(name: str, change: Callable[[Case], Change], alone: bool = False) -> Remedy:
    return Remedy(name, lambda case, _: change(case), alone=alone)


def places(case: Case, missed: Mapping[str, str]) -> list[Remedy]:
    """Without 'nodes:' (or --place) and without 'forbid_nodes:', of what leads to a missed output first."""
    wanted = {output.origin for output in case.query.outputs if output.name in missed or not missed}
    for operator in reversed(graph.order(case.query)):
        if operator.name in wanted:
            wanted |= set(operator.inputs)
    first: list[Remedy] = []
    last: list[Remedy] = []
    for name, operators in ENTRIES.of(case).items():
        found = first if any(one.name in wanted for one in operators) else last
        if any(one.nodes is not None or one.name in case.choices.place for one in operators):
            found.append(_once(f"'nodes' of {name}", lambda it, name=name: _free(it, name)))  # type: ignore[misc]
        if any(one.barred for one in operators):
            found.append(_once(f"'forbid_nodes' of {name}", lambda it, name=name: _unbarred(it, name)))  # type: ignore[misc]
    return first + last


def _free(case: Case, name: str) -> Change:
    operators = ENTRIES.of(case)[name]
    members = {one.name for one in operators}
    pinned = any(one.nodes is not None for one in operators)
    held = [one for one in members if one in case.choices.place]
    several = any(chained(one) and one.name == name for one in operators)  # of several queries' chains
    place = {one: node for one, node in case.choices.place.items() if one not in members}
    changed = ENTRIES.changed(case, name, lambda one: replace(one, nodes=None))
    changed = replace(changed, choices=replace(case.choices, place=place))
    what = " and ".join([*(["'nodes:'"] if pinned else []), *(["--place"] if held else [])])
    edits = (Edit("operators", name, "nodes", ""),) if pinned and not several else ()
    return Change("free", f"let {name} run anywhere (no {what})", changed, edits)


def _unbarred(case: Case, name: str) -> Change:
    barred = dict.fromkeys(node for one in ENTRIES.of(case)[name] for node in one.barred)
    text = f"let {name} run on {', '.join(barred)}, too (no 'forbid_nodes:')"
    changed = ENTRIES.changed(case, name, lambda one: replace(one, barred=()))
    return Change("free", text, changed, (Edit("operators", name, "forbid_nodes", ""),))


def streams(case: Case) -> list[Remedy]:
    """Without 'forbid_streams:'."""
    found = []
    for name, sources in SOURCES.of(case).items():
        if any(one.forbidden for one in sources):
            found.append(_once(f"'forbid_streams' of {name}", lambda it, name=name: _source_let_go(it, name)))  # type: ignore[misc]
    for name, operators in ENTRIES.of(case).items():
        if any(one.forbidden for one in operators):
            found.append(_once(f"'forbid_streams' of {name}", lambda it, name=name: _operator_let_go(it, name)))  # type: ignore[misc]
    return found


def _source_let_go(case: Case, name: str) -> Change:
    text = f"let tuples of {name} take every link (no 'forbid_streams:')"
    changed = SOURCES.changed(case, name, lambda one: replace(one, forbidden=()))
    return Change("streams", text, changed, (Edit("sources", name, "forbid_streams", ""),))


def _operator_let_go(case: Case, name: str) -> Change:
    text = f"let results of {name} take every link (no 'forbid_streams:')"
    changed = ENTRIES.changed(case, name, lambda one: replace(one, forbidden=()))
    return Change("streams", text, changed, (Edit("operators", name, "forbid_streams", ""),))


def links(case: Case) -> list[Remedy]:
    """Each link that is not there, as slow as the slowest that is."""
    hosts = NODES.of(case)
    linked = {frozenset(host(case.cluster.nodes[end]) for end in link.between) for link in case.cluster.links}
    missing = [pair for pair in combinations(hosts, 2) if frozenset(pair) not in linked]
    across = [link for link in case.cluster.links if len({host(case.cluster.nodes[end]) for end in link.between}) > 1]
    latency_ns = max((link.latency_ns for link in across), default=0)

    def change(it: Case, pair: tuple[str, str]) -> Change:
        more = [
            Link((one.name, other.name), latency_ns, 0) for one, other in product(*(NODES.of(it)[end] for end in pair))
        ]
        changed = replace(it, cluster=replace(it.cluster, links=(*it.cluster.links, *more)))
        slow = f" with a latency of {show_ns(latency_ns)} at most" if latency_ns else ""
        written = f", latency: {exact(latency_ns)}" if latency_ns else ""
        edit = Edit("links", "", "", f"{{between: [{pair[0]}, {pair[1]}]{written}}}")
        return Change("link", f"link {pair[0]} and {pair[1]}{slow}", changed, (edit,))

    alone = len(missing) > FEW_LINKS
    return [
        _once(f"a link of {one} and {other}", lambda it, pair=(one, other): change(it, pair), alone)  # type: ignore[misc]
        for one, other in missing
    ]


def policy(case: Case) -> list[Remedy]:
    """The policy with bounds on every node that names another; none where all have bounds."""
    chosen = policy_names.read(case.choices.policy) if case.choices.policy is not None else None
    named = policy_choice.everywhere(case.cluster, chosen).nodes.values()
    other = {node.name for node in named if node.policy is not None and not policy_choice.covered(node.policy)}
    if not other:
        return []
    sound = policy_choice.SOUND.name
    names = list(dict.fromkeys(host(node) for node in case.cluster.nodes.values() if node.name in other))

    def change(it: Case) -> Change:
        nodes = {
            name: replace(node, policy=policy_choice.SOUND) if name in other else node
            for name, node in it.cluster.nodes.items()
        }
        changed = replace(it, cluster=replace(it.cluster, nodes=nodes), choices=replace(it.choices, policy=None))
        text = f"schedule {', '.join(names)} by {sound}: there is a bound for no other policy"
        return Change("policy", text, changed, tuple(Edit("nodes", name, "policy", sound) for name in names))

    return [_once("'policy'", change)]


def moves(case: Case, plan: Plan | None) -> Iterator[Remedy]:
    """Operators that are free to run elsewhere, held there; nothing without a plan that says where they are. What
    collects windows goes where they are closed."""
    if plan is None:
        return
    for operator in case.query.operators:
        if operator.name in case.choices.place or operator.window is not None:
            continue
        for node in operator.nodes if operator.nodes is not None else tuple(case.cluster.nodes):
            if node != plan.placement[operator.name] and node not in operator.barred:
                yield _once(
                    f"{operator.name} on {node}",
                    lambda it, name=operator.name, node=node: _move(it, name, node),  # type: ignore[misc]
                    alone=True,
                )


def _move(case: Case, name: str, node: str) -> Change:
    place = {**case.choices.place, name: node}
    changed = replace(case, choices=replace(case.choices, place=place))
    return Change("move", f"hold {name} to {node}", changed, place={name: node})


def deliveries(case: Case) -> Iterator[Remedy]:
    """Outputs at another node, and sources that clients feed."""
    for output in case.query.outputs:
        for name, nodes in NODES.of(case).items():
            if host(case.cluster.nodes[output.at]) != name:

                def deliver(it: Case, one: str = output.name, to: str = name, at: str = nodes[0].name) -> Change:
                    changed = OUTPUTS.changed(it, one, lambda each: replace(each, at=at))
                    return Change(
                        "place", f"deliver {one} at {to}", changed, (Edit("outputs", one, "at", to),), ELSEWHERE
                    )

                yield _once(f"'at' of {output.name}, {name}", deliver, alone=True)
    for source in case.query.sources:
        for name, nodes in NODES.of(case).items():
            if host(case.cluster.nodes[source.at]) != name:

                def enter(it: Case, one: str = source.name, to: str = name, at: str = nodes[0].name) -> Change:
                    changed = SOURCES.changed(it, one, lambda each: replace(each, at=at))
                    return Change(
                        "place", f"let {one} enter at {to}", changed, (Edit("sources", one, "at", to),), ELSEWHERE
                    )

                yield _once(f"'at' of {source.name}, {name}", enter, alone=True)


def wishes(case: Case) -> list[Remedy]:
    """Without what an output asks beyond its deadline."""
    found = []
    for output in case.query.outputs:
        qos = output.qos
        if qos.wait_ns is not None:
            found.append(_dropped(output.name, ("wait",), lambda one: _asked(one, wait_ns=None)))
        if qos.throughput is not None:
            keys = ("throughput", "latency")
            found.append(_dropped(output.name, keys, lambda one: _asked(one, throughput=None, latency_ns=None)))
        if qos.queue_bytes is not None:
            found.append(_dropped(output.name, ("queue",), lambda one: _asked(one, queue_bytes=None)))
        if output.age is not None:
            found.append(_dropped(output.name, ("age",), lambda one: replace(one, age=None)))
        if output.reaction is not None:
            found.append(_dropped(output.name, ("reaction",), lambda one: replace(one, reaction=None)))
    return found


def _asked(output: Output, **changed: None) -> Output:
    given: dict[str, object] = {
        "wait_ns": output.qos.wait_ns,
        "throughput": output.qos.throughput,
        "latency_ns": output.qos.latency_ns,
        "queue_bytes": output.qos.queue_bytes,
    }
    return replace(output, qos=Qos(**{**given, **changed}))  # type: ignore[arg-type]


def _dropped(name: str, keys: tuple[str, ...], change: Callable[[Output], Output]) -> Remedy:
    def dropped(case: Case) -> Change:
        edits = tuple(Edit("outputs", name, key, "") for key in keys)
        text = f"ask no {keys[0]} of {name}"
        return Change("quality", text, OUTPUTS.changed(case, name, change), edits, DROPPED)

    return _once(f"no '{keys[0]}' of {name}", dropped)


def windows(case: Case) -> list[Remedy]:
    """Windows whose deadlines count from their end."""

    def change(it: Case, name: str) -> Change:
        def ended(one: Operator) -> Operator:
            return replace(one, window=replace(one.window, first=False)) if one.window is not None else one

        text = f"count deadlines of windows of {name} from their end (deadline: end)"
        return Change(
            "window", text, OPERATORS.changed(it, name, ended), (Edit("operators", name, "window.deadline", "end"),)
        )

    return [
        _once(f"'window.deadline' of {one.said}", lambda it, name=one.said: change(it, name))  # type: ignore[misc]
        for one in case.query.operators
        if one.window is not None and one.window.first
    ]


def timeouts(case: Case) -> list[Remedy]:
    """A timeout of fusions that have none: the longest that holds."""
    return [
        _timeout(one.said, one.sync)
        for one in case.query.operators
        if one.sync is not None and not one.sync.each and not one.sync.timeout_ns
    ]


def _timeout(name: str, sync: Sync) -> Remedy:
    def change(case: Case, value: int) -> Change:
        value = max(1, value // step_of(value) * step_of(value))
        within = "on: all" if sync.within_ns is None else f"within: {exact(sync.within_ns)}, keep: {sync.keep}"
        text = f"let {name} wait at most {show_ns(value)} for its other inputs (timeout)"
        edit = Edit("operators", name, "sync", f"{{{within}, timeout: {exact(value)}}}")

        def timed(one: Operator) -> Operator:
            return replace(one, sync=replace(sync, timeout_ns=value))

        return Change("fusion", text, OPERATORS.changed(case, name, timed), (edit,))

    limits = (LONGEST_TIMEOUT_NS // 100, LONGEST_TIMEOUT_NS // 10_000, 1)
    return Remedy(
        f"a 'sync.timeout' of {name}", change, LONGEST_TIMEOUT_NS, limits, lambda value: max(1, value // 1000)
    )


def outputs_of_operators(case: Case) -> list[Remedy]:
    """Fewer results of ten inputs in a row, of operators that declare a selectivity: what is beyond it is shed."""
    return [
        _at_most(one.said, one.selectivity)
        for one in case.query.operators
        if one.selectivity is not None and not one.is_windowed and one.run != "filter"
    ]


def _at_most(name: str, declared: SelectivityFile) -> Remedy:
    given = tuple(declared.at_most)
    pairs = given or ((1, max(1, ceil(declared.mean))),)
    most = Selectivity(pairs)(OF)

    def change(case: Case, value: int) -> Change:
        others = tuple(
            pair for pair in pairs if pair[0] > OF or (pair[0] < OF and pair[1] <= value)
        )  # no contradiction
        at_most = pairs if value >= most else (*others, (OF, value))
        mean = min(declared.mean, value / OF)
        changed = SelectivityFile(mean=mean, at_most=list(at_most))
        written = ", ".join(f"[{inputs}, {results}]" for inputs, results in at_most)
        bounds = [f"of any {inputs} in a row at most {results}" for inputs, results in at_most]
        text = f"declare how many results of inputs of {name} go on (at_most): {', '.join(bounds)}"
        edit = Edit("operators", name, "selectivity", f"{{mean: {mean!r}, at_most: [{written}]}}")
        written_to = OPERATORS.changed(case, name, lambda one: replace(one, selectivity=changed))
        return Change("input", text, written_to, (edit,), (Fraction(most, value),) if value < most else ())

    limits = tuple(dict.fromkeys((most, max(1, most // 2), 1)))
    start = most if given else most + 1
    return Remedy(f"'selectivity.at_most' of {name}", change, start, limits[1:] if given else limits)


__all__ = [
    "deliveries",
    "links",
    "moves",
    "outputs_of_operators",
    "places",
    "policy",
    "streams",
    "timeouts",
    "windows",
    "wishes",
]
