"""What commonroad-crime's measures say of a pair."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite

import numpy as np
from commonroad.scenario.scenario import Scenario
from commonroad_crime.data_structure.configuration import CriMeConfiguration
from commonroad_crime.measure import DCE, PET, TTCStar

from infra.second_witness.crime.lanes import Lane, crossing_part, lane_of
from infra.second_witness.crime.pair_scenarios import ONE, OPEN, OTHER, obstacle, on_lanes, on_open_ground
from infra.second_witness.pair_file import Driven, Encroachment, NearPair, Statement

AHEAD_S = 4.0  # of TTC*


def statement(pair: NearPair, least_rad: float, most_rad: float) -> Statement:
    """least_rad, most_rad: between them two lanes cross."""
    failed: list[str] = []
    one, other = lane_of(pair.one), lane_of(pair.other)
    of_one, of_other = (crossing_part(*lanes, least_rad, most_rad) for lanes in ((one, other), (other, one)))
    open_ground = on_open_ground(pair)
    return Statement(
        across=_encroachment(pair, (of_one, of_other), failed) if of_one and of_other else None,
        joint=_encroachment(pair, (one, other), failed),
        closest_m=float(DCE(_configuration(open_ground, ONE)).compute(OTHER, 0, verbose=False)),
        ttc_of_one_s=_ttc_s(pair, pair.one, open_ground, ONE, OTHER),
        ttc_of_other_s=_ttc_s(pair, pair.other, open_ground, OTHER, ONE),
        failed=failed,
    )


def _encroachment(pair: NearPair, lanes: tuple[Lane, Lane], failed: list[str]) -> Encroachment:
    """With either as the ego: the library looks for the area where the other's centre comes over the ego's lane. The
    first area that it finds is as good as the second one."""
    try:
        scenario = on_lanes(pair, lanes)
        both = [_asked(scenario, ego, against) for ego, against in ((ONE, OTHER), (OTHER, ONE))]
    except Exception as error:  # its lanelets have assertions that lanes with a turn can fail
        failed.append(f"PET: {type(error).__name__} {error}".strip())
        return Encroachment(inf, "failed")
    return min(both, key=lambda one: (one.outcome != "time", one.outcome == "no area", one.pet_s))


def _asked(scenario: Scenario, ego: int, against: int) -> Encroachment:
    measure = PET(_configuration(scenario, ego))
    pet_s = float(measure.compute(against, 0, verbose=False))
    if isfinite(pet_s):
        return Encroachment(pet_s, "time")
    if measure.ca is None:
        return Encroachment(inf, "no area")
    entered = measure.ego_vehicle_enter_time, measure.other_vehicle_enter_time
    first_left = measure.ego_vehicle_exit_time if entered[0] < entered[1] else measure.other_vehicle_exit_time
    if max(entered) < inf and max(entered) < first_left:
        return Encroachment(inf, "both within")
    return Encroachment(inf, "unfinished")


def _ttc_s(pair: NearPair, driven: Driven, scenario: Scenario, ego: int, other: int) -> list[float]:
    """TTC* at each instant that has both: the ego goes on along its own path at its speed, the other as recorded."""
    measure = TTCStar(_configuration(scenario, ego))
    found = []
    for k in range(min(len(pair.one.x_m), len(pair.other.x_m))):
        measure.ego_vehicle = obstacle(ego, _at_its_speed(driven, k, pair.step_s), OPEN)
        found.append(float(measure.compute(k, other, verbose=False)))
    return found


def _at_its_speed(driven: Driven, k: int, step_s: float) -> Driven:
    """As recorded up to its k-th instant, then its recorded path at the speed that it has there, to the path's end."""
    x, y, heading = np.asarray(driven.x_m), np.asarray(driven.y_m), np.unwrap(driven.heading_rad)
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    place = way[k] + driven.speed_mps[k] * step_s * np.arange(round(AHEAD_S / step_s) + 1)
    place = place[: max(2, int(np.searchsorted(place, way[-1], side="right")))]  # a trajectory has two states at least
    columns = (
        [*driven_column[:k], *np.interp(place, way, each).tolist()]
        for driven_column, each in ((driven.x_m, x), (driven.y_m, y), (driven.heading_rad, heading))
    )
    x_m, y_m, heading_rad = columns
    speeds = [*driven.speed_mps[:k], *[driven.speed_mps[k]] * len(place)]
    return replace(driven, x_m=x_m, y_m=y_m, heading_rad=heading_rad, speed_mps=speeds)


def _configuration(scenario: Scenario, ego: int) -> CriMeConfiguration:
    configuration = CriMeConfiguration()
    configuration.update(ego_id=ego, sce=scenario)
    return configuration
