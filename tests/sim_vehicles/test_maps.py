from sim_vehicles.maps import foreign_maps
from sim_vehicles.scene import Scene


def plan(**maps: str | None) -> dict[str, object]:
    operators = {name: {"with": {} if map_ is None else {"map": map_}} for name, map_ in maps.items()}
    return {"graph": {"operators": {**operators, "plain": {"with": None}}}}


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
