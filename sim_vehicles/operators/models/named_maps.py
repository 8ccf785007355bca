"""Maps as queries name them: installed scenes, and files in a folder of the machine.

A name, never a path: what a query says is not a way to read files of the machine. Its owner names the folder in the
agent's environment.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from sim_vehicles.errors import BadInputError
from sim_vehicles.maps.map_file import read_map_file
from sim_vehicles.operators.models.lanes import known_maps, lanes
from sim_vehicles.world.lane_network import Lane, LaneNetwork

FOLDER = "SHIMEKIRI_MAPS"  # of the agent's environment


def network(name: str) -> LaneNetwork:
    """The lanes of an installed scene, else of NAME.json in that folder. ValueError where neither is there, with what
    is and what to do, and for a file that is damaged or of another version.

    A way through an installed crossing is one lane, which nothing follows.
    """
    if name.isidentifier() and name in known_maps():
        return LaneNetwork(Lane(lane.name, tuple(zip(lane.x_m, lane.y_m, strict=True))) for lane in lanes(name))
    return _of_file(name)


def _of_file(name: str) -> LaneNetwork:
    folder = os.environ.get(FOLDER)
    file = Path(folder, f"{name}.json") if folder and name.isidentifier() else None
    if file is None or not file.is_file():
        raise ValueError(_missing(name))
    facts = file.stat()
    return _read(file, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=4)  # a file that is written anew is read anew
def _read(file: Path, mtime_ns: int, size: int) -> LaneNetwork:
    try:
        return read_map_file(file)
    except BadInputError as bad:
        raise ValueError(f"map {file.stem!r}: {bad}") from None


def _missing(name: str) -> str:
    folder = os.environ.get(FOLDER)
    if not name.isidentifier():
        return f"map {name!r}: a map is named, without a folder and without .json"
    where = f"{name}.json is not in {folder}" if folder else f"the agent has no {FOLDER}, a folder of maps"
    return (
        f"no map {name!r} is on this node: it is none of the installed {', '.join(known_maps())}, and {where}; "
        f"write it with 'sim-vehicles map FILE -o {name}.json' and copy it to {FOLDER} of every node with this operator"
    )
