"""`sim-vehicles map`: the lanes of a road map as one file that operators read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim_vehicles.cli.exit_code import ended_by

if TYPE_CHECKING:
    from sim_vehicles.maps.extent import Extent
    from sim_vehicles.maps.utm import Geodetic
    from sim_vehicles.world.lane_network import LaneNetwork

EXAMPLES = """Reads the lanes of a road map and writes them as NAME.json.

FILE is a CommonRoad scenario (2018b, 2020a), a Lanelet2 map (.osm), a network of SUMO (.net.xml), OpenDRIVE (.xodr, by
SUMO's netconvert, extra [record]) or such a JSON; its content decides. Lanes on which no motor vehicle drives are left
out.

A query names it with `map: NAME`, on agents whose environment has SHIMEKIRI_MAPS, the folder of NAME.json. Each node
with `vehicle.lane` needs the same file. `sim-vehicles traffic --map` takes it as well.

Examples:

  sim-vehicles map DR_USA_Roundabout_FT.osm -o roundabout.json

  sim-vehicles map town.net.xml -o town.json --within 0,0,800,600

  sim-vehicles map campus.osm -o campus.json --origin 49.0034,8.4233

Exit codes: 0 done; 2 bad input; 1 anything else.
"""
CORNERS, PLACE = "--within", "--origin"


def register(app: typer.Typer) -> None:
    """Adds the command `map`."""
    app.command("map", help=EXAMPLES)(road_map)


def road_map(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The road map, plain or gzip.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="NAME.json", help="The file to write.")],
    within: Annotated[
        str | None,
        typer.Option(CORNERS, metavar="X,Y,X,Y", help="Only lanes that reach into this rectangle, metres."),
    ] = None,
    origin: Annotated[
        str, typer.Option(PLACE, metavar="LAT,LON", help="Of a Lanelet2 map's plane, degrees; 0,0 is INTERACTION's.")
    ] = "0,0",
    as_json: Annotated[bool, typer.Option("--json", help="What was read, as one JSON object.")] = False,
) -> None:
    """Writes the lanes of a map."""
    from rich.console import Console

    from sim_vehicles.maps.extent import within as lanes_within
    from sim_vehicles.maps.map_file import write_map_file
    from sim_vehicles.maps.map_formats import read_map

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        _check_name(out)
        extent = None if within is None else _extent(within)
        network = read_map(file, _origin(origin))
        if extent is not None:
            network = lanes_within(network, extent)
        _check_lanes(file, network)
        write_map_file(out, network)
    found = _facts(network)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        typer.echo(f"{out}: {found['lanes']} lanes, {found['length_m'] / 1000:.2f} km")


def _check_name(out: Path) -> None:
    from sim_vehicles.errors import bad_input
    from sim_vehicles.operators.models.lanes import known_maps

    if out.suffix != ".json" or not out.stem.isidentifier():
        text = f"--out {out}: the name must be letters, digits and _ before .json"
        raise bad_input("wrong_form", text, "a query names the map by it, as in `map: town`", subject="--out")
    if out.stem in known_maps():
        text = f"--out {out}: a query that names {out.stem} gets the installed scene of that name"
        raise bad_input("wrong_form", text, "give the map another name", subject="--out")


def _check_lanes(file: Path, network: LaneNetwork) -> None:
    from sim_vehicles.errors import bad_input

    if not network.lanes:
        text, remedy = f"no lane reaches into {CORNERS}", "give a rectangle in the metres of the map"
        raise bad_input("no_lanes", text, remedy, subject=CORNERS, file=file)


def _extent(text: str) -> Extent:
    from sim_vehicles.maps.extent import Extent

    x0, y0, x1, y1 = _numbers(CORNERS, text, "0,0,800,600")
    return Extent(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


def _origin(text: str) -> Geodetic:
    from sim_vehicles.errors import bad_input
    from sim_vehicles.maps.utm import MOST_LATITUDE_DEG, Geodetic

    latitude, longitude = _numbers(PLACE, text, "49.0034,8.4233")
    if abs(latitude) > MOST_LATITUDE_DEG or abs(longitude) > 180.0:
        text = f"{PLACE}: {text} is no latitude within {MOST_LATITUDE_DEG:g} degrees and longitude within 180"
        raise bad_input("out_of_range", text, subject=PLACE)
    return Geodetic(latitude, longitude)


def _numbers(option: str, text: str, example: str) -> list[float]:
    """As many as the example has."""
    from math import isfinite

    from sim_vehicles.errors import bad_input

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    count = len(example.split(","))
    if len(values) != count or not all(map(isfinite, values)):
        raise bad_input("wrong_form", f"{option}: {text!r} is not {count} numbers", f"write {example}", subject=option)
    return values


def _facts(network: LaneNetwork) -> dict[str, float]:
    from itertools import pairwise
    from math import dist

    lines = [lane.line for lane in network.lanes.values()]
    length_m = sum(dist(a, b) for line in lines for a, b in pairwise(line))
    return {"lanes": len(lines), "points": sum(map(len, lines)), "length_m": round(length_m, 1)}
