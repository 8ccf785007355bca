"""A reproduction: the printed and the measured values, whether they agree, and why; kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from protos.json_shape import Json

Values = Mapping[str, float | int | str | None]
Effort = Literal["tiny", "quick", "full"]  # tiny: for tests; quick: within a minute; full: what the page says
Tell = Callable[[str], None]  # what is being done just now
OUT = Path(__file__).resolve().parents[2] / "runs" / "papers"


@dataclass(frozen=True)
class Curve:
    """A series of a plot. y None: nothing to draw there (no plan, no tuple). printed: the paper's points, drawn as
    marks."""

    name: str
    x: list[float]
    y: list[float | None]
    printed: bool = False


@dataclass(frozen=True)
class Plot:
    """One diagram."""

    title: str
    x: str
    y: str
    curves: list[Curve]


@dataclass(frozen=True)
class Figure:
    """One claim of a paper. reproduces None: it cannot be told, since what the claim needs is not in the text.

    `reading` says how what the paper leaves open was read; `why` what agrees, or what does not and the evidence.
    """

    name: str
    printed: Values
    measured: Values
    reproduces: bool | None
    why: str
    reading: str = ""
    seeds: list[int] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)


@dataclass(frozen=True)
class KeptFigure:
    """A figure as it stands in its paper's file, and the effort of the run that it is of."""

    figure: Figure
    effort: Effort

    def document(self) -> Json:
        """Beside the figure's name."""
        return {key: value for key, value in asdict(self.figure).items() if key != "name"} | {"effort": self.effort}

    @classmethod
    def from_document(cls, name: str, document: Json) -> KeptFigure:
        """Of a paper's file."""
        values = {**document, "name": name}
        effort = values.pop("effort")
        plots = [Plot(**{**each, "curves": [Curve(**curve) for curve in each["curves"]]}) for each in values["plots"]]
        return cls(Figure(**{**values, "plots": plots}), effort)


@dataclass(frozen=True)
class Reproduction:
    """A part of a paper: `run` yields its figures. `fixed`: no random number enters and every effort gives the "
    "same."""

    paper: str
    name: str
    run: Callable[[Effort, Tell], Iterator[Figure]]
    fixed: bool = False

    @property
    def key(self) -> str:
        """As on the command line."""
        return f"{self.paper}.{self.name}"


def keep(paper: str, figures: Iterable[Figure], effort: Effort, directory: Path = OUT) -> None:
    """Add the figures to the paper's file; those of the same name are replaced, others stay."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{paper}.json"
    known = read(path)
    for each in figures:
        known[each.name] = KeptFigure(each, effort)
    fresh = path.with_suffix(".part")
    fresh.write_text(_written(known))
    fresh.replace(path)


def forget(paper: str, but: Iterable[str], directory: Path = OUT) -> None:
    """Leave only these figures in the paper's file: the others' reproductions are gone."""
    path, stay = directory / f"{paper}.json", set(but)
    known = {name: figure for name, figure in read(path).items() if name in stay}
    path.write_text(_written(known))


def read(path: Path) -> dict[str, KeptFigure]:
    """What a file holds, by name; nothing where it is not there."""
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: KeptFigure.from_document(name, each) for name, each in found.items()}


def _written(known: Mapping[str, KeptFigure]) -> str:
    documents = {name: each.document() for name, each in known.items()}
    return json.dumps(documents, indent=1, allow_nan=False) + "\n"


def text(values: Values) -> str:
    """For people: `name = value; name = value`."""
    return "; ".join(f"{name} = {formatted(value)}" for name, value in values.items())


def formatted(value: float | int | str | None) -> str:
    """Four significant digits; a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
