"""CommonRoad scenarios (XML, versions 2018b and 2020a): the trajectories of their dynamic obstacles, as rows.

The format is read by commonroad-io 2022.1 (extra [record]). The version is pinned: it is the last one without a pinned
protobuf (2022.2 to 2026.1 ask for protobuf 3.20.1 or 3.20.2, which cannot be installed beside protobuf 6.33), and it
reads such files with numpy 2 and Python 3.11. It knows nothing of lines, takes any document type declaration and gives
up on a whole file for one bad number. So it is handed a lean copy: the obstacles alone, every number in them checked
here, a state that cannot be reported with its line and left out.

Not read: lanelets, signs, static and phantom obstacles, occupancy sets. The ego of a planning problem has no
trajectory, so it is no vehicle here; --ego names one of the obstacles.
"""

from __future__ import annotations

import io
import xml.etree.ElementTree as Tree  # builds the lean copy; the file itself goes through markup.events
from collections.abc import Iterator
from math import cos, sin
from pathlib import Path
from typing import Any

from sim_vehicles.errors import MissingToolError, bad_input
from sim_vehicles.readers.batches import Bad, Row, number
from sim_vehicles.readers.markup import End, Start
from sim_vehicles.readers.units import no_heading

ROOT = "commonRoad"
VERSIONS = ("2018b", "2020a")
OBSTACLES = ("dynamicObstacle", "obstacle")  # of 2020a, 2018b
PARTS = ("role", "type", "shape", "initialState", "trajectory")
NUMBERS = ("exact", "intervalStart", "intervalEnd", "x", "y", "length", "width", "radius")
STATES = ("initialState", "state")


def rows(path: Path, root: Start, found: Iterator[Start | End]) -> Iterator[Row | Bad]:
    """The obstacles' states, in the order of their lines. BadInputError for what is no scenario that can be read;
    MissingToolError where commonroad-io is not installed."""
    version = check_version(path, root)
    try:
        step_s = number("timeStepSize", root.attributes.get("timeStepSize", ""))
        if step_s <= 0:
            raise ValueError(f"timeStepSize is {step_s:g}; it must be above 0 seconds")
    except ValueError as bad:
        raise bad_input("out_of_range", str(bad), subject="timeStepSize", file=path, line=root.line) from None
    lean = Lean(version, step_s)
    lean.read(found)
    yield from (bad for bad in lean.bad if bad.everywhere)  # before the library, which has no words for it
    obstacles = _open(path, lean) if lean.lines else []
    result: list[Row | Bad] = list(lean.bad)
    for obstacle in obstacles:
        result.extend(_rows(obstacle, lean.lines[str(obstacle.obstacle_id)], step_s))
    yield from sorted(result, key=lambda row: row.line)


def check_version(path: Path, root: Start) -> str:
    """The version of a scenario. BadInputError for one that is not read."""
    version = root.attributes.get("commonRoadVersion")
    if version not in VERSIONS:
        raise bad_input(
            "other_version",
            f"commonRoadVersion is {version}",
            f"only {' and '.join(VERSIONS)} are read",
            subject="commonRoadVersion",
            file=path,
            line=root.line,
        )
    return version


class Lean:
    """The part of a scenario that is handed to commonroad-io: dynamic obstacles whose numbers are numbers.

    `lines`: per obstacle id the lines of its states, the initial one first. `bad`: what was left out.
    """

    def __init__(self, version: str, step_s: float) -> None:
        header = {"commonRoadVersion": version, "timeStepSize": repr(step_s), "benchmarkID": "ZAM_Test-1_1_T-1"}
        self.root = Tree.Element(ROOT, {**header, "author": "", "affiliation": "", "source": "", "tags": ""})
        Tree.SubElement(self.root, "scenarioTags")
        self.lines: dict[str, list[int]] = {}
        self.bad: list[Bad] = []

    def read(self, found: Iterator[Start | End]) -> None:
        """Takes the obstacles out of the rest of the file."""
        depth = 0
        for event in found:
            if isinstance(event, Start):
                depth += 1
                if depth == 1 and event.name in OBSTACLES:
                    self._obstacle(event, found)
                    depth -= 1
            else:
                depth -= 1

    def _obstacle(self, start: Start, found: Iterator[Start | End]) -> None:
        name = start.attributes.get("id", "").lstrip("0")  # the library makes a number of it
        top = Tree.Element(start.name, {"id": name})
        states: list[tuple[Tree.Element, int]] = []
        wrong = self._fill(top, found, states)
        if top.findtext("role", "dynamic") != "dynamic":
            return
        self.bad.extend(wrong)
        if not name.isdecimal():
            self.bad.append(Bad(start.line, f"the obstacle's id is {name!r}; it must be a whole number"))
        elif name in self.lines:
            self.bad.append(Bad(start.line, f"obstacle {name} stands twice in the file"))
        elif top.find("shape") is None:
            self.bad.append(Bad(start.line, f"obstacle {name} has no shape"))
        elif states:
            self._keep(top, states)

    def _fill(
        self, top: Tree.Element, found: Iterator[Start | End], states: list[tuple[Tree.Element, int]]
    ) -> list[Bad]:
        """Reads up to the obstacle's end; its good states go into `states`, what is wrong is returned. A bad shape
        leaves no state good."""
        path, wrong = [top], []
        broken: str | None = None  # what is wrong in the state or shape that is open
        shapeless = False
        for event in found:
            if isinstance(event, Start):
                path.append(Tree.SubElement(path[-1], event.name, event.attributes))
                if event.name in (*STATES, "shape"):
                    broken = None
                continue
            element = path.pop()
            element.text = event.text
            if not path:
                break
            if len(path) > 1 and path[1].tag not in PARTS:
                continue  # signals and occupancy sets are not handed on
            if event.name in NUMBERS and broken is None:
                fault = _fault(path[-1].tag, event)
                broken = fault and fault.what
                wrong += [fault] if fault else []
            elif event.name in STATES and path[-1].tag in (top.tag, "trajectory"):
                if broken is None:
                    states.append((element, event.line))
            elif event.name == "shape":
                shapeless = broken is not None
        if shapeless:
            states.clear()
        return wrong

    def _keep(self, top: Tree.Element, states: list[tuple[Tree.Element, int]]) -> None:
        """Adds the obstacle, its first good state as the initial one: the library demands one."""
        kept = Tree.SubElement(self.root, top.tag, top.attrib)
        kept.extend(part for part in top if part.tag in PARTS[:3])
        (initial, line), *rest = states
        initial.tag = "initialState"
        kept.append(initial)
        if rest:
            trajectory = Tree.SubElement(kept, "trajectory")
            trajectory.extend(state for state, _ in rest)
        self.lines[top.attrib["id"]] = [line, *(line for _, line in rest)]


def _fault(parent: str, leaf: End) -> Bad | None:
    name = parent if leaf.name == "exact" else f"{parent} {leaf.name}"
    try:
        value = number(name, leaf.text)
        if parent == "time" and (leaf.name != "exact" or not leaf.text.isdecimal()):
            raise ValueError(f"time is {value:g} ({leaf.name}); it must be exact, a whole number of steps")
    except ValueError as bad:
        return Bad(leaf.line, str(bad))
    degrees = no_heading(name, value) if parent == "orientation" else None
    return Bad(leaf.line, degrees, everywhere=True) if degrees else None


def _open(path: Path, lean: Lean) -> list[Any]:
    try:
        from commonroad.common.file_reader import CommonRoadFileReader
    except ImportError:
        raise MissingToolError(
            "missing_tool",
            f"{path} is a CommonRoad scenario; reading it needs commonroad-io: pip install 'shimekiri[record]'"
            " (from a file: 'shimekiri-VERSION-py3-none-any.whl[record]')",
            subject="commonroad-io",
        ) from None
    try:
        scenario, _ = CommonRoadFileReader(io.BytesIO(Tree.tostring(lean.root))).open()
    except Exception as bad:  # the library raises all that its parts raise, also bare asserts
        raise bad_input("unreadable", f"commonroad-io cannot read it: {type(bad).__name__} {bad}", file=path) from None
    return list(scenario.dynamic_obstacles)


def _rows(obstacle: Any, lines: list[int], step_s: float) -> Iterator[Row | Bad]:
    """One obstacle of the library's as rows; (x, y) of a state is the shape's reference, so its offset is added."""
    states = [obstacle.initial_state]
    if obstacle.prediction is not None:
        states += obstacle.prediction.trajectory.state_list
    for state, line in zip(states, lines, strict=True):
        try:
            length_m, width_m, (ahead_m, left_m) = _size(obstacle.obstacle_shape)
            heading = _middle(state, "orientation")
            x, y = getattr(state.position, "center", state.position)[:2]
            values = {
                "t_s": round(state.time_step * step_s, 9),
                "length_m": length_m,
                "width_m": width_m,
                "x_m": float(x) + ahead_m * cos(heading) - left_m * sin(heading),
                "y_m": float(y) + ahead_m * sin(heading) + left_m * cos(heading),
                "heading_rad": heading,
                "speed_mps": _middle(state, "velocity"),
            }
        except (ValueError, AttributeError) as bad:
            yield Bad(line, f"obstacle {obstacle.obstacle_id}: {bad}")
        else:
            yield Row(line, str(obstacle.obstacle_id), obstacle.obstacle_type.value, **values)


def _size(shape: Any) -> tuple[float, float, tuple[float, float]]:
    """Length, width and the centre's offset of a rectangle that lies along the heading, or of a circle."""
    kind = type(shape).__name__
    if kind == "Rectangle" and not shape.orientation:
        return float(shape.length), float(shape.width), (float(shape.center[0]), float(shape.center[1]))
    if kind == "Circle":
        return 2 * float(shape.radius), 2 * float(shape.radius), (float(shape.center[0]), float(shape.center[1]))
    raise ValueError(
        f"its shape is a {'turned rectangle' if kind == 'Rectangle' else kind.lower()}; "
        "a rectangle along the heading or a circle is needed"
    )


def _middle(state: Any, name: str) -> float:
    """An exact value, or the middle of an interval."""
    value = getattr(state, name, None)
    if value is None:
        raise ValueError(f"a state has no {name}")
    return float((value.start + value.end) / 2 if hasattr(value, "start") else value)
