"""OpenDRIVE (.xodr): SUMO's netconvert makes a network of it (extra [record]), which is read then.

What netconvert gets is a copy, written here after this project's own reader went through the whole file: it is XML
without a document type, and no larger than what is read elsewhere. Places stay those of the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfileobj

from sim_vehicles.errors import MissingToolError, bad_input
from sim_vehicles.maps import sumo_net
from sim_vehicles.maps.pieces import Piece
from sim_vehicles.maps.sumo_programs import call
from sim_vehicles.readers.content import opened
from sim_vehicles.readers.markup import Elements, End, Start

ROOT = "OpenDRIVE"
LONGEST_S = 120.0
COPY, NET = "map.xodr", "map.net.xml"
OPTIONS = (
    *("--opendrive-files", COPY, "--output-file", NET, "--offset.disable-normalization", "true"),
    *("--opendrive.internal-shapes", "true", "--opendrive.curve-resolution", "1", "--no-turnarounds", "true"),
    *("--precision", "3", "--no-warnings", "true", "--xml-validation", "never"),
)


def pieces(path: Path, found: Iterator[Start | End]) -> list[Piece]:
    """The lanes that netconvert finds; found: what comes after the root's start. BadInputError where it finds none,
    MissingToolError where SUMO is not installed."""
    for _ in found:
        pass  # what is no plain XML is refused before another program sees it
    with tempfile.TemporaryDirectory(prefix="shimekiri-map-") as folder:
        here = Path(folder)
        with opened(path) as stream, (here / COPY).open("wb") as copy:
            copyfileobj(stream, copy)
        try:
            call("netconvert", list(OPTIONS), here, "OpenDRIVE", LONGEST_S)
        except MissingToolError as failed:
            if failed.mistake.code != "tool_failed":
                raise
            raise bad_input(
                "unreadable", f"cannot be converted: {failed}", "correct what netconvert names", file=path
            ) from None
        net = here / NET
        with opened(net) as stream:
            elements = Elements(net, stream)
            next(elements)
            return sumo_net.pieces(net, elements)
