"""The tables of docs/explanation/reference_system.md: each figure is one of the runs before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.reference_system.kpis import Kpis
from infra.reference_system.live_runs import Live
from infra.reference_system.reference_graph import MS, UNEVEN
from infra.reference_system.virtual_runs import Planned

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "reference_system.md"
BEGIN, END = "<!-- {}: made by `make ars` -->\n", "<!-- {}: end -->"
NAMES = {"edf": "edf", "fifo": "fifo", "slack": "slack", "ros2": "ROS 2 (model)"}
PLANNING_S, RATIO, LOAD = 10, 1.3, 0.9  # the goals
SHOWN = (
    "latency mean", "std", "max", "hot drops", "planner period mean", "std", "jitter", "end to end max", "age max",
    "missed", "dropped",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A load on so many nodes: its plan, and what came under each policy."""

    load: float
    nodes: int
    planned: Planned
    by_policy: Mapping[str, Kpis]

    @property
    def label(self) -> tuple[str, str]:
        """The first cells of its rows."""
        return str(self.nodes), f"{self.load:.0%}"

    @property
    def worst_ms(self) -> float:
        """Of the hot path under edf, end to end: what the bound is for."""
        return self.by_policy["edf"].end_to_end.max

    @property
    def ratio(self) -> float | None:
        """Bound by worst seen; None: no bound."""
        return self.planned.bound_ns / MS / self.worst_ms if self.planned.bound_ns else None


@dataclass(frozen=True)
class Findings:
    """All that the page tells. phases, seconds: of the virtual runs of a case."""

    cases: Sequence[Case]
    live: Sequence[Live]
    phases: int
    seconds: int


def write(found: Findings) -> Path:
    """The tables of these runs, in the place of those before."""
    content = PAGE.read_text()
    for name, section in sections(found).items():
        before, begin, rest = content.partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        if not begin or not end:
            raise ValueError(f"{PAGE} has no place for {name}")
        content = f"{before}{begin}\n{section}\n{end}{after}"
    PAGE.write_text(content)
    return PAGE


def sections(found: Findings) -> dict[str, str]:
    """Markdown by the name of its place on the page."""
    return {
        "goals": table(("goal", "found", "held"), _goals(found)),
        "plans": table(
            ("nodes", "load", "hot path", "planning s", "bound ms", "seen", "ratio", "age bound ms", "seen", "ratio"),
            map(_plan, found.cases),
        ),
        "virtual": table(("nodes", "load", *NAMES.values()), map(_missed, found.cases))
        + f"\n{found.phases} phases, {found.seconds} s each. {_counted(found)}\n",
        "live": table(
            ("agents", "load", "seconds", "bound ms", "seen", "age bound ms", "seen", "missed", "dropped"),
            map(_live, found.live),
        ),
    }


def details(found: Findings) -> str:
    """Markdown of all figures of the virtual runs, and of the best policies by figure."""
    every = table(("nodes", "load", "policy", *SHOWN), _virtual(found))
    return f"{every}\n{table(('nodes', 'load', *JUDGED), _better(found))}"


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """With a line for the head and each row."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _goals(found: Findings) -> Iterator[Sequence[str]]:
    slow = [each for each in found.cases if each.planned.seconds > PLANNING_S or each.planned.status == "neither"]
    ratios = [each.ratio for each in found.cases if each.ratio is not None]
    close = sum(ratio <= RATIO for ratio in ratios)
    at_load = [each.by_policy for each in found.cases if each.load == LOAD]
    missed = {name: sum(each[name].missed for each in at_load) for name in NAMES}
    ours = sum(count for name, count in missed.items() if name != "ros2")
    yield (
        f"guaranteed or disproven within {PLANNING_S} s of planning",
        f"{len(found.cases) - len(slow)} of {len(found.cases)} cases",
        _held(not slow),
    )
    yield (
        f"bound of the hot path at most {RATIO} times the worst seen",
        f"{close} of {len(ratios)} cases with a bound; {min(ratios):.2f} to {max(ratios):.2f}"
        if ratios
        else "no bound",
        _held(bool(ratios) and close == len(ratios)),
    )
    samples = sum(each["edf"].samples for each in at_load)
    yield (
        f"no miss on the hot path at {LOAD:.0%} load in virtual time",
        f"of {samples} samples: " + ", ".join(f"{NAMES[name]} {count}" for name, count in missed.items()),
        _held(bool(samples) and not ours),
    )
    yield "live runs beside it", f"{len(found.live)} runs", _held(bool(found.live))


def _held(holds: bool) -> str:
    return "yes" if holds else "**no**"


def _plan(case: Case) -> Sequence[str]:
    made = case.planned
    hot, age = _against(made.bound_ns, case.worst_ms), _against(made.age_bound_ns, case.by_policy["edf"].oldest_ms)
    return *case.label, made.status, f"{made.seconds:.1f}", *hot, *age


def _against(bound_ns: int, seen_ms: float) -> Sequence[str]:
    if not bound_ns:
        return "none", f"{seen_ms:.0f}", "–"
    return f"{bound_ns / MS:.0f}", f"{seen_ms:.0f}", f"{bound_ns / MS / seen_ms:.2f}"


def _missed(case: Case) -> Sequence[str]:
    """Of the hot path's samples, and its latest result in ms, by policy."""
    each = (case.by_policy[name] for name in NAMES)
    return *case.label, *(f"{kpis.missed}, {kpis.end_to_end.max:.0f}" for kpis in each)


def _virtual(found: Findings) -> Iterator[Sequence[str]]:
    for case in found.cases:
        for name, kpis in case.by_policy.items():
            yield *case.label, NAMES[name], *_cells(kpis)


def _live(each: Live) -> Sequence[str]:
    hot = _against(each.bound_ns, each.kpis.end_to_end.max)[:2]
    age = _against(each.age_bound_ns, each.kpis.oldest_ms)[:2]
    missed, dropped = f"{each.kpis.missed} of {each.kpis.samples}", _dropped(each.kpis)
    return str(each.nodes), f"{each.load:.0%}", str(each.seconds), *hot, *age, missed, dropped


def _cells(kpis: Kpis) -> Iterator[str]:
    """In the order of SHOWN."""
    yield from (f"{value:.1f}" for value in (kpis.latency.mean, kpis.latency.std, kpis.latency.max))
    yield str(kpis.hot_drops)
    yield from (f"{value:.1f}" for value in (kpis.planner.mean, kpis.planner.std, kpis.jitter_ms))
    yield from (f"{value:.0f}" for value in (kpis.end_to_end.max, kpis.age.max))
    yield f"{kpis.missed} of {kpis.samples}"
    yield _dropped(kpis)


def _dropped(kpis: Kpis) -> str:
    return str(sum(count for name, count in kpis.dropped.items() if name not in UNEVEN))


JUDGED: Mapping[str, Callable[[Kpis], float]] = {
    "mean latency": lambda kpis: kpis.latency.mean,
    "largest latency": lambda kpis: kpis.latency.max,
    "latest end to end": lambda kpis: kpis.end_to_end.max,
    "planner's jitter": lambda kpis: kpis.jitter_ms,
    "hot drops": lambda kpis: kpis.hot_drops,
    "missed": lambda kpis: kpis.missed,
}


def best(by_policy: Mapping[str, Kpis], of: Callable[[Kpis], float]) -> list[str]:
    """Whose figure is the least, to a tenth; nobody's where all are equal."""
    values = {name: round(of(kpis), 1) for name, kpis in by_policy.items()}
    least = [name for name, value in values.items() if value == min(values.values())]
    return [] if len(least) == len(values) else least


def _better(found: Findings) -> Iterator[Sequence[str]]:
    for case in found.cases:
        winners = [best(case.by_policy, of) for of in JUDGED.values()]
        yield *case.label, *(", ".join(NAMES[name] for name in each) or "–" for each in winners)


def _counted(found: Findings) -> str:
    """How often each has the least of a figure."""
    told = []
    for policy, name in NAMES.items():
        loads = [case.load for case in found.cases for of in JUDGED.values() if policy in best(case.by_policy, of)]
        told.append(f"{name} {sum(load < 1 for load in loads)} and {sum(load >= 1 for load in loads)}")
    return f"Best of six figures, below full load and from there on: {', '.join(told)}."
