"""The witness's process: `testify LEAST_RAD MOST_RAD PAIRS OUT`, or `rows SCENARIO OUT`: a scenario's vehicles in our
columns."""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from commonroad.common.file_reader import CommonRoadFileReader

from infra.second_witness.crime.measures import statement
from infra.second_witness.pair_file import read_pairs, write_statements

COLUMNS = ("t_s", "id", "type", "length_m", "width_m", "x_m", "y_m", "heading_rad", "speed_mps")


def main(words: Sequence[str]) -> int:
    match words:
        case ["testify", least_rad, most_rad, pairs, out]:
            found = [statement(pair, float(least_rad), float(most_rad)) for pair in read_pairs(Path(pairs))]
            write_statements(found, Path(out))
            return 0
        case ["rows", scenario, out]:
            _write_rows(Path(scenario), Path(out))
            return 0
    return 2


def _write_rows(file: Path, out: Path) -> None:
    scenario, _ = CommonRoadFileReader(str(file)).open()
    rows = []
    for vehicle in scenario.dynamic_obstacles:
        shape, kind = vehicle.obstacle_shape, vehicle.obstacle_type.value
        for state in [vehicle.initial_state, *vehicle.prediction.trajectory.state_list]:
            x_m, y_m = state.position
            moved = (x_m, y_m, state.orientation, state.velocity)
            t_s = round(state.time_step * scenario.dt, 6)
            rows.append((t_s, vehicle.obstacle_id, kind, shape.length, shape.width, *moved))
    with out.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(sorted(rows))  # by time, then by number


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main(sys.argv[1:]))
