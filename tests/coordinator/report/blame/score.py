"""Scores what is named as the cause of constructed runs: named right, and nobody accused without a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from coordinator.report.blame.misses import misses
from coordinator.report.facts.reader import read_run
from coordinator.report.report_document import Cause, Misses, Report
from coordinator.report.verdict import verdict
from tests.coordinator.report.blame import (
    constructed,
    faulty,
    outsider,
    outsider_agents,
    outsider_live,
    struck_agents,
)
from tests.coordinator.report.blame.constructed import Constructed, Expected

MOSTLY = 2 / 3  # of the misses of a run
NAMES_NODE = {"pause", "restart", "batch"}  # and nobody else
Construct = Callable[[str, int, Path], Constructed]
WORLDS: Mapping[str, Construct] = {
    **dict.fromkeys(constructed.VIRTUAL, constructed.construct),
    **dict.fromkeys(faulty.FAULTY, faulty.construct),
    **dict.fromkeys(struck_agents.LIVE, struck_agents.construct),
}
OUTSIDERS: Mapping[str, Construct] = {
    **dict.fromkeys(outsider.RUNS, outsider.construct),
    **dict.fromkeys(outsider_agents.HAPPENS, outsider_agents.construct),
    **dict.fromkeys(outsider_live.HAPPENS, outsider_live.construct),
}
EACH = {constructed.construct: 2, faulty.construct: 3, struck_agents.construct: 1}
TWICE = ("live pause", "live burst")  # so that there are 48


@dataclass(frozen=True)
class Scored:
    """One run. share: of the misses that the right cause was named for; wrong: main causes that accuse others."""

    run: Constructed
    seed: int
    named: str
    share: float
    right: bool
    wrong: tuple[str, ...]
    missed: int


def drawn(seed: int, with_live: bool = True) -> list[tuple[str, int]]:
    """48 causes, each with a seed of its own, or those of virtual time."""
    causes = [cause for cause, world in WORLDS.items() for _ in range(EACH[world] + (cause in TWICE))]
    random = Random(f"blame {seed}")
    random.shuffle(causes)
    found = [(cause, random.randrange(1 << 30)) for cause in causes]
    return [each for each in found if with_live or each[0] not in struck_agents.LIVE]


def drawn_outsiders(seed: int, with_live: bool = True) -> list[tuple[str, int]]:
    """Each cause of the outsider's once, with a seed of its own."""
    random = Random(f"outsider {seed}")
    found = [(cause, random.randrange(1 << 30)) for cause in OUTSIDERS]
    return [each for each in found if with_live or each[0] not in outsider_live.HAPPENS]


def score(cause: str, seed: int, worlds: Mapping[str, Construct] = WORLDS) -> Scored:
    """Construct a run, judge it, and see what is named."""
    with TemporaryDirectory() as folder:
        made = worlds[cause](cause, seed, Path(folder) / "made")
        run = read_run(made.path)
        report = verdict(run)
        return _scored(made, seed, report, misses(run, report))


def _scored(made: Constructed, seed: int, report: Report, found: Misses) -> Scored:
    total = sum(sum(each.values()) for each in found.by_cause.values())
    expected = made.expected
    if expected is None:
        return Scored(made, seed, "nothing" if not total else "something", 1.0, not total, (), total)
    struck = expected.outputs or tuple(found.by_cause)
    kinds = _kinds(report, found, struck)
    missed = sum(kinds.values())
    right = sum(n for kind, n in kinds.items() if kind in expected.kinds)
    mains = [each.causes[0] for each in found.worst if each.output in struck and each.causes[0].kind in kinds]
    named = Counter(mains_named := [f"{each.kind} {each.subject}".strip() for each in mains])
    of_kind = [each for each in mains if each.kind in expected.kinds]
    fitting = sum(_fits(expected, each) for each in of_kind)
    share = right / missed * fitting / len(of_kind) if missed and of_kind else 0.0
    wrong = tuple(sorted(set(_accused(expected, found))))
    most = named.most_common(1)[0][0] if mains_named else "nothing"
    return Scored(made, seed, most, share, share >= MOSTLY, wrong, total)


def _fits(expected: Expected, main: Cause) -> bool:
    """Whether it names who is to be named."""
    right = main.subject in expected.subjects and main.query == (expected.query or main.query)
    return right and main.node in (expected.nodes or (main.node,))


def _kinds(report: Report, found: Misses, struck: tuple[str, ...]) -> Counter[str]:
    """Main causes of all misses of these outputs; undecidable results count where nothing else was missed."""
    kinds = Counter[str]()
    for name in struck:
        kinds.update(found.by_cause.get(name, {}))
    if any(report.outputs[each].late + report.outputs[each].shed + report.outputs[each].lost for each in struck):
        kinds["clock"] = 0
    return +kinds


def _accused(expected: Expected, found: Misses) -> Iterator[str]:
    """Main causes that name somebody who has nothing to do with it."""
    for each in found.worst:
        main = each.causes[0]
        innocent = main.subject not in (*expected.subjects, *expected.parts)
        if main.kind in NAMES_NODE and not main.subject:
            innocent = main.kind not in expected.kinds or main.node not in (expected.nodes or (main.node,))
        if innocent and main.kind not in {"clock", "unknown"}:
            yield f"{each.output}: {main.kind} {main.subject or main.node}"


def table(scored: list[Scored]) -> Iterator[str]:
    """A line per run, as the documentation has it."""
    yield "| drawn | intensity | ran | missed | named | of misses | wrong |"
    yield "|---|---|---|---|---|---|---|"
    for each in sorted(scored, key=lambda one: (one.run.where, one.run.cause, one.seed)):
        right = each.named if each.right else f"**{each.named}**"
        wrong = "; ".join(each.wrong) or "-"
        made = each.run
        cause = made.cause.removeprefix("live ")
        yield f"| {cause} | {made.intensity} | {made.where} | {each.missed} | {right} | {each.share:.0%} | {wrong} |"
