"""What was run of a contest, a line per encounter: a run that was broken off goes on where its journal ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from sim_vehicles.contest.contest_results import PUBLISHED

ROOT = Path(__file__).parents[2]
ENCOUNTERS = Path(__file__).with_name("encounters.jsonl")  # of which the published results are the sums
VEHICLES = (
    "closed_loop",
    "contest",
    "encounter",
    "inputs",
    "operators",
    "queries",
    "readers",
    "recordings",
    "v2v",
    "world",
)
ROOMS = ("coordinator", "infra/contest", "node_agent", "protos", *(f"sim_vehicles/{room}" for room in VEHICLES))


@dataclass(frozen=True)
class Ended:
    """An encounter under every way. impacts_kmh: by way, None where the two did not touch. commanded_s: when the brake
    was commanded, None: never."""

    number: int
    load: float
    impacts_kmh: Mapping[str, float | None]
    commanded_s: Mapping[str, float | None]


def read_encounters(path: Path) -> Iterator[Ended]:
    """All that is there; a line that was not written to its end is none."""
    if path.exists():
        for text in path.read_text(encoding="utf-8").splitlines():
            with suppress(json.JSONDecodeError):
                yield Ended(**json.loads(text))


def write_encounters(ended: Iterable[Ended], path: Path) -> None:
    """A line each, as `read_encounters` reads them."""
    path.write_text("".join(json.dumps(asdict(each)) + "\n" for each in ended), encoding="utf-8")


class EncounterJournal:
    """Of the code as it is: what other code has run is another contest."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"encounters-{code()}.jsonl"

    def read(self) -> Iterator[Ended]:
        """All that is there."""
        return read_encounters(self._path)

    def add(self, ended: Ended) -> None:
        """One more. What was broken off before stays a line of its own."""
        with self._path.open("a+b") as file:
            if file.tell() and not _ends_whole(self._path):
                file.write(b"\n")
            file.write(json.dumps(asdict(ended)).encode() + b"\n")


def code() -> str:
    """Of all that decides how an encounter ends, shortened. What is published of the contest decides nothing."""
    found = sha256()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.is_file() and path != PUBLISHED and path.suffix in {".py", ".json", ".yaml", ".gz"}:
                found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


__all__ = ["ENCOUNTERS", "EncounterJournal", "Ended", "code", "read_encounters", "write_encounters"]
