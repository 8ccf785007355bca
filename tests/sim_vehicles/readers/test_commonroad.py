"""CommonRoad scenarios. commonroad-io (extra [record]) reads them; without it a file is refused with the mend."""

import gzip
from math import pi
from pathlib import Path

import pytest

from sim_vehicles.readers.commonroad import Lean
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.markup import Elements
from sim_vehicles.world.motion import Motion
from tests.sentences import Wording

SAID = Wording("readers", "commonroad")

try:
    import commonroad  # noqa: F401

    HERE = True
except ImportError:
    HERE = False
needed = pytest.mark.skipif(not HERE, reason="commonroad-io is not installed: pip install 'shimekiri[record]'")


def exact(name: str, value: object) -> str:
    return f"<{name}><exact>{value}</exact></{name}>"


def state(tag: str, step: object, x: object, v: object, y: object = 2.0, heading: object = 0.5) -> str:
    point = f"<position><point><x>{x}</x><y>{y}</y></point></position>"
    return f"<{tag}>{point}{exact('orientation', heading)}{exact('time', step)}{exact('velocity', v)}</{tag}>\n"


def obstacle(number: object, *states: str, shape: str = "<length>4.5</length><width>1.8</width>") -> str:
    body = f"<type>car</type>\n<shape><rectangle>{shape}</rectangle></shape>\n{states[0]}"
    return f'<dynamicObstacle id="{number}">{body}<trajectory>\n{"".join(states[1:])}</trajectory></dynamicObstacle>\n'


def scenario(*obstacles: str, version: str = "2020a", dt: object = 0.1) -> str:
    head = f'<commonRoad timeStepSize="{dt}" commonRoadVersion="{version}" benchmarkID="ZAM_Tst-1_1_T-1">\n'
    lane = '<lanelet id="1"><leftBound><point><x>here</x></point></leftBound></lanelet>'
    road = f"<scenarioTags><urban/></scenarioTags>\n{lane}\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{road}{"".join(obstacles)}</commonRoad>\n'


CAR = obstacle(7, state("initialState", 0, 0.0, 10.0), state("state", 1, 1.0, 11.0), state("state", 2, 2.1, 12.0))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.xml"
    path.write_text(text)
    return path


def read(tmp_path: Path, text: str, skip_bad_rows: bool = False) -> Motion:
    return read_motion(written(tmp_path, text), skip_bad_rows)


@pytest.mark.skipif(HERE, reason="commonroad-io is installed")
def test_without_the_library_the_mend_is_said(tmp_path: Path) -> None:
    with SAID.refuses("missing_tool commonroad-io", worded=False):
        read(tmp_path, scenario(CAR))


@needed
def test_reads_obstacles_as_vehicles(tmp_path: Path) -> None:
    other = obstacle(12, state("initialState", 3, 50, 0), shape="<length>12</length><width>2.5</width>")
    path = written(tmp_path, scenario(CAR, other.replace("car", "bus").replace("<trajectory>\n</trajectory>", "")))
    motion = read_motion(path)
    car, bus = motion.tracks["7"], motion.tracks["12"]
    assert (car.type, car.length_m, car.width_m) == ("car", 4.5, 1.8)
    assert [(s.t_s, s.x_m, s.y_m, s.speed_mps) for s in car.states] == [
        (0.0, 0.0, 2.0, 10.0),
        (0.1, 1.0, 2.0, 11.0),
        (0.2, 2.1, 2.0, 12.0),
    ]
    assert car.states[0].heading_rad == pytest.approx(0.5)
    assert (bus.type, bus.length_m, [s.t_s for s in bus.states]) == ("bus", 12.0, [0.3])
    (tmp_path / "packed").write_bytes(gzip.compress(path.read_bytes()))
    assert read_motion(tmp_path / "packed").tracks == motion.tracks


@needed
def test_intervals_are_read_as_their_middle_and_the_older_version_as_well(tmp_path: Path) -> None:
    wide = CAR.replace(
        "<velocity><exact>11.0</exact>", "<velocity><intervalStart>10</intervalStart><intervalEnd>13</intervalEnd>"
    )
    turned = wide.replace("<exact>0.5</exact>", "<intervalStart>3.0</intervalStart><intervalEnd>3.2</intervalEnd>", 1)
    track = read(tmp_path, scenario(turned)).tracks["7"]
    assert track.states[1].speed_mps == 11.5
    assert track.states[0].heading_rad == pytest.approx(3.1)
    old = CAR.replace("dynamicObstacle", "obstacle").replace("<type>", "<role>dynamic</role><type>")
    still = old.replace('id="7"', 'id="8"').replace("<role>dynamic", "<role>static")
    assert read(tmp_path, scenario(old, still, version="2018b")).tracks == read(tmp_path, scenario(CAR)).tracks


@needed
def test_a_shape_beside_its_reference_is_moved_with_the_heading(tmp_path: Path) -> None:
    shape = "<length>4.5</length><width>1.8</width><center><x>1.5</x><y>0.0</y></center>"
    north = obstacle(7, state("initialState", 0, 0.0, 10.0, heading=pi / 2), shape=shape)
    (first,) = read(tmp_path, scenario(north.replace("<trajectory>\n</trajectory>", ""))).tracks["7"].states
    assert (first.x_m, first.y_m) == (pytest.approx(0.0), pytest.approx(3.5))


@needed
def test_shapes_that_are_no_box(tmp_path: Path) -> None:
    circle = CAR.replace("rectangle>", "circle>").replace(
        "<length>4.5</length><width>1.8</width>", "<radius>0.9</radius>"
    )
    assert read(tmp_path, scenario(circle)).tracks["7"].length_m == 1.8
    askew = CAR.replace("<width>1.8</width>", "<width>1.8</width><orientation>0.3</orientation>")
    with SAID.refuses("scenario.xml:7 bad_row", False):
        read(tmp_path, scenario(askew))


@needed
def test_what_the_library_refuses_is_refused_with_its_words(tmp_path: Path) -> None:
    with SAID.refuses("scenario.xml unreadable", False):
        read(tmp_path, scenario(CAR.replace("<type>car", "<type>spaceship")))


@needed
def test_the_first_good_state_begins_where_the_initial_one_is_left_out(tmp_path: Path) -> None:
    text = scenario(CAR.replace("<x>0.0</x>", "<x>nan</x>"))
    motion = read(tmp_path, text, skip_bad_rows=True)
    assert [s.t_s for s in motion.tracks["7"].states] == [0.1, 0.2]
    assert len(motion.skipped) == 1


def test_only_these_versions_and_a_step_of_time(tmp_path: Path) -> None:
    with SAID.refuses("scenario.xml:2 other_version commonRoadVersion"):
        read(tmp_path, scenario(CAR, version="2017a"))
    for dt in ("0", "fast", ""):
        with SAID.refuses("scenario.xml:2 out_of_range timeStepSize"):
            read(tmp_path, scenario(CAR, dt=dt))


def lean(tmp_path: Path, text: str) -> Lean:
    path = written(tmp_path, text)
    with path.open("rb") as stream:
        found = Elements(path, stream)
        next(found)
        copy = Lean("2020a", 0.1)
        copy.read(found)
    return copy


def test_the_library_is_handed_the_obstacles_alone(tmp_path: Path) -> None:
    copy = lean(tmp_path, scenario(CAR, obstacle("08", state("initialState", 0, 5, 1))))
    assert [part.tag for part in copy.root] == ["scenarioTags", "dynamicObstacle", "dynamicObstacle"]
    assert copy.lines == {"7": [7, 9, 10], "8": [14]}
    assert copy.bad == []


BAD = [
    (CAR.replace("<x>1.0</x>", "<x>one</x>"), 9, "x is 'one', which is no number"),
    (CAR.replace("<exact>11.0", "<exact>inf"), 9, "velocity is inf, which is not finite"),
    (CAR.replace("<time><exact>1<", "<time><exact>1.5<"), 9, "time is 1.5 (exact); it must be exact, a whole number"),
    (CAR.replace('id="7"', 'id="left"'), 5, "the obstacle's id is 'left'; it must be a whole number"),
    (CAR.replace("shape>", "form>"), 5, "obstacle 7 has no shape"),
    (CAR.replace("<length>4.5", "<length>long"), 6, "length is 'long', which is no number"),
]


@pytest.mark.parametrize(("text", "line", "said"), BAD)
def test_what_cannot_be_is_left_out_of_the_copy_and_named(tmp_path: Path, text: str, line: int, said: str) -> None:
    copy = lean(tmp_path, scenario(text))
    assert copy.bad[0].line == line
    assert said in copy.bad[0].what
    if HERE or not copy.lines:
        with SAID.refuses(f"scenario.xml:{line} bad_row", worded=not copy.lines):
            read(tmp_path, scenario(text))


def test_signals_and_occupancy_sets_are_no_business_of_ours(tmp_path: Path) -> None:
    wide = "<time><intervalStart>0</intervalStart><intervalEnd>1</intervalEnd></time>"
    circle = "<shape><circle><radius>much</radius></circle></shape>"
    more = f"<occupancySet><occupancy>{wide}{circle}</occupancy></occupancySet>"
    copy = lean(tmp_path, scenario(CAR.replace("<trajectory>", f"{more}<trajectory>")))
    assert copy.bad == []
    assert list(copy.lines) == ["7"]
    assert copy.root.find("dynamicObstacle/occupancySet") is None


def test_an_id_that_stands_twice(tmp_path: Path) -> None:
    assert "obstacle 7 stands twice" in lean(tmp_path, scenario(CAR, CAR)).bad[0].what
