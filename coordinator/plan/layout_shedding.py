"""Layout of entry shedders, for tuples that windows cannot all be made of.

A shedder is at the first unit of a node from which everything leads to its windows, so that what goes has cost that
node nothing; else it is at the entry of what collects them.

Windows that read a stream side by side share a shedder: a tuple that one of them lacks is shed from none, or from all.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.plan import layout_windows
from coordinator.plan.layout import Layout
from protos import plan_pb2

PERIOD_NS = 500_000_000  # of the control, as [S] has it

Unit = tuple[int, tuple[str, ...]]  # id, operators


@dataclass(frozen=True)
class EntryShedder:
    """`path`: units from the shedder on to those that collect, in order; the first is the shedder."""

    inputs: frozenset[str]
    path: tuple[int, ...]
    windows: tuple[str, ...]


def of_node(layout: Layout, node: str) -> list[plan_pb2.Shedding]:
    """The sheddings of one node."""
    policies = dict.fromkeys(
        operator.window.policy
        for operator in layout.windows
        if operator.window is not None and layout.place[operator.name] == node
    )
    found = []
    for policy in policies:
        if policy is not None:
            for entry_shedders in _beside(_entry_shedders(layout, node, policy)):
                found.append(_shedding(layout, policy, entry_shedders))
    return found


def _shedding(layout: Layout, policy: str, entry_shedders: list[EntryShedder]) -> plan_pb2.Shedding:
    names = list(dict.fromkeys(name for shedder in entry_shedders for name in shedder.windows))
    given = [window for name in names if (window := layout.by_name[name].window) is not None]
    useful = [layout_windows.useful_ns(layout, layout.by_name[name]) or layout.deadline_ns[name] for name in names]
    order = {number: position for position, (number, _) in enumerate(_sorted_units(layout))}
    path = sorted({number for shedder in entry_shedders for number in shedder.path}, key=lambda number: order[number])
    return plan_pb2.Shedding(
        policy=policy,
        units=[shedder.path[0] for shedder in entry_shedders],
        windows=[layout.operator_id[name] for name in names],
        most=min(window.most for window in given),
        target_ns=min(useful) // 2,
        period_ns=PERIOD_NS,
        path=path,
    )


def _sorted_units(layout: Layout) -> list[Unit]:
    """Units so that each stands after those that trigger it."""
    position = {operator.name: i for i, operator in enumerate(layout.order)}
    units = [unit for tasks in layout.tasks.values() for unit in tasks]
    return sorted(units, key=lambda unit: position[unit[1][0]])


def _entry_shedders(layout: Layout, node: str, policy: str) -> list[EntryShedder]:
    """One per first unit, with all windows behind it."""
    inner = _inner(layout, node, policy)
    units = dict(layout.tasks[node])
    unit_of = {name: number for number, members in units.items() for name in members}
    behind: dict[int, tuple[set[int], list[str]]] = {}
    for operator in layout.windows:
        if operator.window is None or operator.window.policy != policy or layout.place[operator.name] != node:
            continue
        way = [unit_of[operator.name]]
        while True:
            inputs = layout.by_name[units[way[0]][0]].inputs
            before = unit_of.get(inputs[0]) if len(inputs) == 1 else None
            if before is None or before not in inner or inputs[0] != units[before][-1]:
                break
            way.insert(0, before)
        passed, names = behind.setdefault(way[0], (set(), []))
        passed.update(way)
        names.append(operator.name)
    position = {number: i for i, (number, _) in enumerate(_sorted_units(layout))}
    return [
        EntryShedder(
            frozenset(layout.by_name[units[first][0]].inputs),
            tuple(sorted(passed, key=lambda number: position[number])),
            tuple(names),
        )
        for first, (passed, names) in behind.items()
    ]


def _inner(layout: Layout, node: str, policy: str) -> set[int]:
    """Units of which everything that they lead to are windows of this node with this shedder."""
    query = layout.query
    units = dict(layout.tasks[node])
    unit_of = {name: number for number, members in units.items() for name in members}
    found: set[int] = set()
    for number, members in reversed(_sorted_units(layout)):
        if number not in units:
            continue
        last = layout.by_name[members[-1]]
        if last.window is not None:
            if last.window.policy == policy:
                found.add(number)
            continue
        inside = all(
            not any(output.origin == name for output in query.outputs) and name not in layout.hops for name in members
        )
        readers = [one for one in query.operators if set(members) & {*one.inputs, *one.side.values()}]
        onward = [one for one in readers if one.name not in members]
        sides = any(set(members) & set(one.side.values()) for one in readers)
        # What has several inputs is a shedder itself: its windows are not behind any one of them.
        leads = all(unit_of.get(one.name) in found and len(one.inputs) == 1 for one in onward)
        if inside and onward and not sides and leads:
            found.add(number)
    return found


def _beside(entry_shedders: list[EntryShedder]) -> list[list[EntryShedder]]:
    """Entry shedders that read a stream in common go together."""
    groups: list[list[EntryShedder]] = []
    for shedder in entry_shedders:
        mine = [group for group in groups if any(shedder.inputs & other.inputs for other in group)]
        groups = [group for group in groups if group not in mine] + [
            [each for group in mine for each in group] + [shedder]
        ]
    return groups
