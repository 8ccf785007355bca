from protos import plan_document
from protos.plan_document import Plan
from sim_vehicles.inputs.maps import foreign_maps, foreign_origin, misfits
from sim_vehicles.world.scene import Scene
from tests.whole_plans import whole


def plan(**maps: str | None) -> Plan:
    operators = {name: {"with": {} if map_ is None else {"map": map_}} for name, map_ in maps.items()}
    return plan_document.of(whole({"graph": {"operators": {**operators, "plain": {}}}}))


def test_operators_that_know_other_roads_are_named() -> None:
    scene = Scene("crossing_70", "A", (), raw={"roads": [{}]})
    (said,) = foreign_maps(plan(O9="crossing_50", O14="crossing_50", O15=None, O16="", O17="crossing_70"), scene)
    assert said.startswith("O9 and O14 know the roads of crossing_50, not those of crossing_70")
    assert "`map: crossing_70`" in said


def test_a_recording_without_roads_wants_no_map() -> None:
    (said,) = foreign_maps(plan(O9="crossing_50"), Scene("lankershim", "2166", ()))
    assert '`map: ""`' in said


def test_a_map_of_the_scene_or_none_is_right() -> None:
    assert foreign_maps(plan(O9="crossing_50", O14=""), Scene("crossing_50", "A", ())) == []


def test_operators_that_count_from_another_origin_are_named() -> None:
    operators = {
        "O3": {"run": "vehicle.closing", "with": {"latitude": 52.5, "longitude": 13.4}},
        "O7": {"run": "vehicle.plane", "with": {}},
        "O9": {"run": "vehicle.lane", "with": {"map": "crossing_50"}},
    }
    elsewhere = plan_document.of(whole({"graph": {"operators": operators}}))
    berlin = Scene("berlin", "A", (), latitude_deg=52.5, longitude_deg=13.4)
    (said,) = foreign_origin(elsewhere, berlin)
    assert said == "O7 count from another origin than berlin; plan a query with `latitude: 52.5, longitude: 13.4`"
    assert foreign_origin(elsewhere, Scene("crossing_50", "A", ()))[0].startswith("O3 count")
    assert len(misfits(elsewhere, berlin)) == 2
