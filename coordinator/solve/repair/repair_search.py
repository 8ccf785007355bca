"""Search for repairs, kind by kind within a time: those found, the kinds that do not help, those not tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from coordinator.solve.repair import relaxation, structure
from coordinator.solve.repair.bisect import OverError
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.what_if_runs import Case, Outcome, WhatIfRuns, outcome


@dataclass(frozen=True)
class Job:
    """One way: its name, the sentence where it does not help (empty: not worth one), and what looks."""

    name: str
    useless: str
    look: Callable[[], Repair | list[Repair] | None]


@dataclass(frozen=True)
class Findings:
    """`now`: what is without a change. `repairs`: the smallest first. `useless`: ways that do not help, in sentences;
    `untried`: what there was no time for; `undecided`: some attempts ended without a plan and without a proof;
    `hopeless`: sources whose ages on admission take a whole deadline, so that every mend has to change them, too;
    `from_admission`: outputs that mends guarantee from admission on only, since a source of theirs has no `max_age`."""

    now: Outcome
    repairs: tuple[Repair, ...] = ()
    useless: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    attempts: int = 0
    undecided: bool = False
    hopeless: tuple[str, ...] = ()
    from_admission: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "infeasible": list(map(str, self.now.reasons)),
            "missed": dict(self.now.missed),
            "from_admission_only": list(self.from_admission),
            "mends": [mend.document() for mend in self.repairs],
            "useless": list(self.useless),
            "untried": list(self.untried),
            "too_old": list(self.hopeless),
            "attempts": self.attempts,
        }


def find(
    case: Case, seconds: float, tell: Callable[[str], None] = lambda _: None, known: Outcome | None = None
) -> Findings:
    """Mends of a case; none where every output is guaranteed already. `known`: how it is without a change.

    Ways that change no number first, then [Q] 4.4's three; each may take an equal part of the time that is left.
    """
    now = known or outcome(case)
    if now.holds and not now.ageless:
        return Findings(now)
    hopeless = structure.hopeless(case)
    base = structure.aged(case, dict.fromkeys(hopeless, 0))
    quick = replace(base, choices=replace(base.choices, quick=True))
    trials = WhatIfRuns(quick, seconds, tell)
    start = outcome(trials.limited(quick)) if hopeless else now
    repairs: list[Repair] = []
    useless: list[str] = []
    untried = list(_jobs(trials, start, hopeless))
    for last_round in (False, True):  # what was cut short goes on where it was with what the others have left
        jobs, untried = untried, []
        for position, job in enumerate(jobs):
            trials.slice(len(jobs) - position)
            try:
                found = job.look()
                several = found if isinstance(found, list) else [found] if found else []
                several = [_with_ages(trials, mend, [] if start.holds else hopeless) for mend in several]
            except OverError:
                untried.append(job)
                continue
            if last_round or all(mend.settled for mend in several):
                repairs += several
            else:
                untried.append(job)
            if not several and job.useless:
                useless.append(job.useless)
    if not repairs and not start.holds:
        repairs += _both(trials, hopeless)
    return Findings(
        now,
        tuple(sorted(repairs, key=lambda mend: mend.size)),
        tuple(useless),
        tuple(job.name for job in untried),
        trials.count,
        trials.undecided,
        tuple(hopeless),
        () if now.holds else structure.ageless(case),
    )


def _both(trials: WhatIfRuns, hopeless: list[str]) -> list[Repair]:
    """Where no single change was found: speed and deadlines together."""
    trials.slice(1)
    try:
        found = relaxation.both(trials, [relaxation.host(node) for node in trials.case.cluster.nodes.values()])
        return [_with_ages(trials, found, hopeless)] if found else []
    except OverError:
        return []


def _with_ages(trials: WhatIfRuns, mend: Repair, hopeless: list[str]) -> Repair:
    """The mend, and the ages on admission that it leaves room for."""
    if not hopeless:
        return mend
    found = trials.outcome(mend.case, f"{mend.text}, any age")
    assert found.plan is not None  # a mend holds
    also = structure.declare_ages(trials, mend.case, found.plan, hopeless, mend.text)
    if also is None:
        return replace(mend, text=f"{mend.text}, and let no tuple be old on admission")
    return replace(mend, text=f"{mend.text}; and {also.text}", case=also.case, what_if=(*mend.what_if, *also.what_if))


def _jobs(trials: WhatIfRuns, now: Outcome, hopeless: list[str]) -> Iterator[Job]:
    """Each way with its name and the sentence that is told where it does not help."""
    case = trials.case
    if now.holds:
        plan = now.plan
        assert plan is not None  # it holds
        names = hopeless or [source.name for source in case.query.sources if not source.max_age_ns]
        look = partial(structure.declare_ages, trials, case, plan, names)
        yield Job("max_age", "no declared age helps", look)
        return
    yield Job("policy", "", partial(structure.policy, trials))
    for entry in structure.pinned(case, now.missed):
        yield Job(f"{entry} free", "", partial(structure.free, trials, entry))
    hosts = list(dict.fromkeys(relaxation.host(node) for node in case.cluster.nodes.values()))
    if len(hosts) > 1:
        yield Job("speed of all nodes", "no speed of all nodes helps", partial(relaxation.speed, trials, hosts))
    asked = list(now.missed) if now.plan is not None else [output.name for output in case.query.outputs]
    yield Job("deadlines", "relaxing deadlines does not help", partial(relaxation.deadlines, trials, asked))
    for host in hosts:
        yield Job(
            f"speed of {host}",
            f"no speed of node {host} alone helps",
            partial(relaxation.speed, trials, [host]),
        )
    for source in case.query.sources:
        sentence = f"shedding input of {source.name} alone does not help"
        yield Job(f"input of {source.name}", sentence, partial(relaxation.shedding, trials, source.name))
        if source.max_age_ns:
            yield Job(f"age of {source.name}", "", partial(relaxation.age, trials, source.name))
    for name, node in structure.moves(case, now.plan):
        yield Job(f"{name} on {node}", "", partial(structure.move, trials, name, node))
