"""`make house`: how the packages are laid out, by their imports, and the way of a query through `coordinator plan`.

A room is a file or folder at a package's top. An arrow leads from a room to another one that it imports. A circle is a
set of files that import one another, type checking included. The way of `plan` is the order in which its functions are
called for the first time: a room that it enters again after it had left it is a return.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from types import FrameType

import grimp
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra")
QUERIES = ROOT / "sim_vehicles" / "queries"
PLAN = ["plan", str(QUERIES / "collision_warning.yaml"), str(QUERIES / "cluster_paper.yaml"), "--model", "paper"]
Edges = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class House:
    """Of one package. longest: rooms in the longest chain of imports; fullest: a folder, and its files."""

    files: int
    folders: int
    rooms: int
    arrows: int
    circles: int
    longest: int
    fullest: tuple[str, int]


def house(graph: grimp.ImportGraph, package: str) -> House:
    """Its figures by the graph of all imports."""
    modules = {name for name in graph.modules if name == package or name.startswith(f"{package}.")}
    folders = {name for name in modules if graph.find_children(name)}
    drawers = Counter(name.rpartition(".")[0] for name in modules - folders)
    imports = {name: frozenset(graph.find_modules_directly_imported_by(name) & modules) for name in modules}
    rooms = _between_rooms(imports)
    return House(
        files=len(modules - folders),
        folders=len(folders),
        rooms=len(rooms),
        arrows=sum(map(len, rooms.values())),
        circles=sum(len(each) > 1 for each in _components(imports)),
        longest=_longest(rooms),
        fullest=drawers.most_common(1)[0],
    )


def _between_rooms(imports: Edges) -> Edges:
    found: dict[str, set[str]] = defaultdict(set)
    for module, imported in imports.items():
        if "." in module:
            found[_room(module)] |= {_room(each) for each in imported if "." in each} - {_room(module)}
    return {room: frozenset(each) for room, each in found.items()}


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _components(edges: Edges) -> list[frozenset[str]]:
    """Strongly connected ones."""
    reach = {node: _reached(edges, node) for node in edges}
    return list({frozenset(each for each in reach[node] if node in reach[each]) | {node} for node in edges})


def _reached(edges: Edges, start: str) -> frozenset[str]:
    seen: set[str] = set()
    ahead = list(edges[start])
    while ahead:
        node = ahead.pop()
        if node not in seen:
            seen.add(node)
            ahead += edges[node]
    return frozenset(seen)


def _longest(edges: Edges) -> int:
    """Rooms in the longest chain; rooms that import one another count as one."""
    part = {node: each for each in _components(edges) for node in each}

    @cache
    def below(of: frozenset[str]) -> int:
        lower = {part[each] for node in of for each in edges[node]} - {of}
        return 1 + max(map(below, lower), default=0)

    return max(map(below, part.values()), default=0)


def way() -> list[str]:
    """The rooms that `coordinator plan` enters, in order."""
    from coordinator.cli.app import app, register

    functions: dict[object, str] = {}

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (module := str(frame.f_globals.get("__name__"))).startswith(("coordinator.", "protos.")):
            functions.setdefault(frame.f_code, _room(module))

    register()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        sys.setprofile(called)
        try:
            app([*PLAN, "-o", f"{folder}/plan.json"], standalone_mode=False)
        finally:
            sys.setprofile(None)
    return list(_entered(functions.values()))


def _entered(rooms: Iterable[str]) -> Iterator[str]:
    last = ""
    for room in rooms:
        if room != last:
            yield room
        last = room


def main() -> None:
    """Prints all of it."""
    graph = grimp.build_graph(*PACKAGES, include_external_packages=False)
    table = Table("package", "files", "folders", "rooms", "arrows", "circles", "longest chain", "fullest folder")
    for package in PACKAGES:
        found = house(graph, package)
        table.add_row(
            package, str(found.files), str(found.folders), str(found.rooms), str(found.arrows), str(found.circles),
            str(found.longest), f"{found.fullest[0]} ({found.fullest[1]})",
        )  # fmt: skip
    entered = way()
    console = Console()
    console.print(table)
    rooms = len(set(entered))
    console.print(f"the way of plan: {rooms} rooms, {len(entered) - rooms} returns to one that it had left")


if __name__ == "__main__":
    main()
