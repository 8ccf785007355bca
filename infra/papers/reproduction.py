"""A reproduction: what a paper says, what was measured, and whether they agree; kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from infra.papers.claims import Claim, Verdict, number
from protos.json_shape import Json

Values = Mapping[str, float | int | str | None]
Effort = Literal["tiny", "quick", "full"]  # tiny: for tests; quick: within a minute; full: what the page says
Tell = Callable[[str], None]  # what is being done just now
SEEDS: dict[Effort, list[int]] = {"tiny": [1], "quick": [1, 2, 3], "full": list(range(1, 21))}  # a draw each
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
    """One experiment of a paper. claims: the paper's; none: it prints nothing to compare with. findings: ours.

    `reading` says how what the paper leaves open was read, and how the claims' words were taken.
    """

    name: str
    claims: list[Claim]
    measured: Values
    findings: list[Claim] = field(default_factory=list)
    reading: str = ""
    seeds: list[int] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)

    @property
    def reproduces(self) -> Verdict | None:
        """The worst of the claims' verdicts; None without claims."""
        found = {each.verdict for each in self.claims}
        return "no" if "no" in found else "not determined" if "not determined" in found else "yes" if found else None


@dataclass(frozen=True)
class KeptFigure:
    """A figure as it stands in its paper's file, and the effort of the run that it is of."""

    figure: Figure
    effort: Effort

    def document(self) -> Json:
        """Beside the figure's name."""
        values = {key: value for key, value in asdict(self.figure).items() if key != "name"}
        return values | {"reproduces": self.figure.reproduces, "effort": self.effort}

    @classmethod
    def from_document(cls, name: str, document: Json) -> KeptFigure:
        """Of a paper's file."""
        values = {**document, "name": name}
        effort = values.pop("effort")
        del values["reproduces"]  # follows from the claims
        plots = [Plot(**{**each, "curves": [Curve(**curve) for curve in each["curves"]]}) for each in values["plots"]]
        claims, findings = ([Claim(**each) for each in values[key]] for key in ("claims", "findings"))
        return cls(Figure(**{**values, "claims": claims, "findings": findings, "plots": plots}), effort)


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


def said(claim: Claim) -> str:
    """For people: the paper's statement with its verdict."""
    return f"{claim.says}: {claim.verdict} ({claim.found})"


def finding(claim: Claim) -> str:
    """For people: our statement, or that it does not hold."""
    first = claim.says[0] if claim.says[1:2] == " " else claim.says[0].upper()  # a symbol stays as it is
    return ("" if claim.verdict == "yes" else "Does not hold: ") + f"{first}{claim.says[1:]} ({claim.found})."


def spoken(seeds: list[int]) -> str:
    """For people: a row of them by its ends."""
    row = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if row else ", ".join(map(str, seeds))


def formatted(value: float | int | str | None) -> str:
    """Three significant digits; a dash for nothing."""
    return "–" if value is None else number(value) if isinstance(value, float) else str(value)
