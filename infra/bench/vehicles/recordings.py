"""A recording of a million rows: how long and how much memory it takes to read it, and to run one of its egos."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import chain, groupby
from math import pi, sin
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

from infra.bench.figures import Figure

ROWS, SEED = 1_000_000, 1
ROWS_EACH, STEP_S = 600, 0.1
STREET_M, LANE_M = 200, 1.75
READ_GOAL_S, MOST_MB = 10.0, 500.0
READ = "import sys, pathlib, sim_vehicles.readers.formats as f; f.read_motion(pathlib.Path(sys.argv[1]))"
EGO = "0"


@dataclass(frozen=True)
class Row:
    """One record of a car; metres, degrees clockwise from north, m/s."""

    t_s: float
    car: int
    x_m: float
    y_m: float
    angle_deg: int
    speed_mps: float


def recordings() -> list[Figure]:
    """In both formats, each in a process of its own."""
    rows = int(os.environ.get("ROWS", ROWS))
    with TemporaryDirectory() as folder:
        table, markup = Path(folder) / "town.csv", Path(folder) / "town.xml"
        _write_table(table, rows)
        _write_markup(markup, rows)
        read = [sys.executable, "-c", READ]
        ego = [sys.executable, "-m", "sim_vehicles", "traffic", str(table), "--ego", EGO, "--json"]
        return [
            *_figures("recording_csv", [*read, str(table)], READ_GOAL_S, f"read {rows} rows of our CSV"),
            *_figures("recording_fcd", [*read, str(markup)], READ_GOAL_S, f"read {rows} rows of SUMO's XML"),
            *_figures("traffic_ego", ego, None, f"`sim-vehicles traffic --ego` on {rows} rows, reading them included"),
        ]


def _figures(name: str, command: list[str], goal_s: float | None, what: str) -> list[Figure]:
    began_s = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took_s = perf_counter() - began_s
    if status:
        raise RuntimeError(f"{what}: ended with status {status}")
    how = f"{what}; the whole process, {usage.ru_utime + usage.ru_stime:.1f} s of CPU; seed {SEED}"
    return [
        Figure(f"{name}_s", took_s, "s", goal_s, how),
        Figure(f"{name}_mb", usage.ru_maxrss / 1000, "MB", MOST_MB, how),
    ]


def _cars(rows: int) -> Iterator[Iterator[Row]]:
    """A minute of each of the cars in a town of straight streets, where nobody gives way."""
    chance = Random(SEED)
    cars = rows // ROWS_EACH
    streets = max(1, round(40 * cars**0.5 / STREET_M))
    for car in range(cars):
        angle_deg = 90 * chance.randrange(4)
        lane_m = STREET_M * chance.randrange(streets)
        along_m, begin_s = chance.uniform(0, STREET_M * streets), round(chance.uniform(0, 60), 1)
        yield _drive(car, angle_deg, lane_m, along_m, begin_s, chance.uniform(8, 14), chance.uniform(0, 2 * pi))


def _drive(
    car: int, angle_deg: int, street_m: float, along_m: float, begin_s: float, mean_mps: float, phase: float
) -> Iterator[Row]:
    east, north = ((0, 1), (1, 0), (0, -1), (-1, 0))[angle_deg // 90]
    across_m = street_m + LANE_M * (north - east)
    for k in range(ROWS_EACH):
        speed_mps = mean_mps + 3 * sin(k / 30 + phase)
        x_m, y_m = (along_m, across_m) if east else (across_m, along_m)
        yield Row(begin_s + k * STEP_S, car, x_m, y_m, angle_deg, speed_mps)
        along_m += (east + north) * speed_mps * STEP_S


def _write_table(path: Path, rows: int) -> None:
    """Car by car."""
    with path.open("w", encoding="utf-8") as file:
        file.write("t_s,id,type,length_m,width_m,x_m,y_m,heading_rad,speed_mps\n")
        for one in chain.from_iterable(_cars(rows)):
            heading_rad = pi / 2 - one.angle_deg * pi / 180
            file.write(
                f"{one.t_s:.1f},{one.car},car,4.5,1.8,{one.x_m:.3f},{one.y_m:.3f},{heading_rad:.4f},"
                f"{one.speed_mps:.3f}\n"
            )


def _write_markup(path: Path, rows: int) -> None:
    """By time, as SUMO does."""
    with path.open("w", encoding="utf-8") as file:
        file.write("<fcd-export>\n")
        by_time = merge(*_cars(rows), key=lambda one: round(one.t_s, 1))
        for t_s, there in groupby(by_time, key=lambda one: round(one.t_s, 1)):
            file.write(f'    <timestep time="{t_s:.2f}">\n')
            for one in there:
                file.write(
                    f'        <vehicle id="{one.car}" x="{one.x_m:.2f}" y="{one.y_m:.2f}" angle="{one.angle_deg}.00" '
                    f'type="passenger" speed="{one.speed_mps:.2f}" pos="7.20" lane="w_0" slope="0.00"/>\n'
                )
            file.write("    </timestep>\n")
        file.write("</fcd-export>\n")


if __name__ == "__main__":
    for figure in recordings():
        goal = "" if figure.goal is None else f" (goal {figure.goal:g})"
        print(f"{figure.name:16} {figure.value:6.1f} {figure.unit}{goal}: {figure.how}")
