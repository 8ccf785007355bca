"""What a sweep over random plans measures: worst seen over bound, output by output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import NOTHING
from infra.bench.tightness.adversary import worst
from infra.bench.tightness.drawn_queries import LOADS, PLAIN, WINDOWED, case


@dataclass(frozen=True)
class Measured:
    """Of an output of the plan of (kind, load, seed). `since`: admission, closing (of a window), or end (of one);
    `way`: parts in ms."""

    kind: str
    load: float
    seed: int
    output: str
    since: str
    seen_ns: int
    bound_ns: int
    way: str = ""

    @property
    def ratio(self) -> float:
        """1: the bound is reached. Above: it is broken."""
        return self.seen_ns / self.bound_ns


def measured(kind: str, load: float, seed: int, runs: int) -> Iterator[Measured]:
    """Every output with a bound: of a tuple from its admission on, of a window from its end, and from its closing."""
    analysis = analyse(read(case(kind, load, seed).plan()), NOTHING)
    promised = claims(analysis)
    bounded = {name for name, claim in promised.items() if claim.from_admission_ns is not None}
    outputs = {name: one for name, one in analysis.system.outputs.items() if name in bounded}
    lineages = {name: analysis.streams.flows[one.stream, one.node].late for name, one in outputs.items()}
    of_windows = {n for n, late in lineages.items() if any(each in analysis.system.windows for each in late)}
    for aged in (False, True):
        asked = {
            name: claim for name, claim in promised.items() if name in outputs and (name in of_windows or not aged)
        }
        for name, found in worst(analysis, asked, runs, f"{kind} {load} {seed}", aged).items():
            bound_ns = promised[name].bound_ns if aged else promised[name].from_admission_ns
            since = ("end" if aged else "closing") if name in of_windows else "admission"
            way = " | ".join(f"{part.what} {part.ns / 1e6:.2f}" for part in promised[name].parts)
            if found.longest.ns > 0 and bound_ns:
                yield Measured(kind, load, seed, name, since, found.longest.ns, bound_ns, way)


def sweep(kinds: Sequence[str], seeds: Sequence[int], runs: int) -> Iterator[Measured]:
    """All of these classes at all loads."""
    for kind in kinds:
        for load in LOADS:
            for seed in seeds:
                yield from measured(kind, load, seed, runs)


@dataclass(frozen=True)
class Summary:
    """Of some outputs. `mean`, `least`, `largest`: of worst seen over bound; `broken`: outputs beyond their bound."""

    name: str
    outputs: int
    mean: float
    least: float
    largest: float
    broken: int

    @classmethod
    def of(cls, name: str, found: Sequence[Measured]) -> Summary:
        """Of one at least."""
        ratios = [each.ratio for each in found]
        return cls(name, len(ratios), fmean(ratios), min(ratios), max(ratios), sum(ratio > 1 for ratio in ratios))


def summaries(found: Sequence[Measured]) -> list[Summary]:
    """Without windows and with, then class by class, then by load."""
    ends = [each for each in found if each.since != "closing"]
    groups = {
        "without windows": [each for each in found if each.since == "admission"],
        "with windows, from their ends": [each for each in found if each.since == "end"],
        "with windows, from closings": [each for each in found if each.since == "closing"],
        "plans without windows": [each for each in ends if each.kind in PLAIN],
        "plans with windows": [each for each in ends if each.kind in WINDOWED],
    }
    groups |= {kind: [each for each in ends if each.kind == kind] for kind in (*PLAIN, *WINDOWED)}
    groups |= {f"load {load}": [each for each in ends if each.load == load] for load in LOADS}
    return [Summary.of(name, each) for name, each in groups.items() if each]


__all__ = ["Measured", "Summary", "measured", "summaries", "sweep"]
