"""Admission of a change: what is promised stays promised, and what is added is promised, during the change and
after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coordinator.change.transition import LOADING_NS, During, during
from coordinator.errors import Mistake
from coordinator.plan.deadline_breakdown import MISSED, guarantee_status
from coordinator.units import show_ns
from protos.plan.guarantee import Claim, Step
from protos.plan_document import Plan


@dataclass(frozen=True)
class Row:
    """One output. `query`: whose; claims before, during and after the change, None where there is none; `wanted`:
    whether it has to hold; `why`: where it does not."""

    output: str
    query: str
    deadline_ns: int
    before: Claim | None
    during: Claim | None
    after: Claim | None
    wanted: bool
    why: str = ""

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "output": self.output,
            "query": self.query,
            "deadline_ns": self.deadline_ns,
            "bound_before_ns": bound_ns(self.before),
            "bound_during_ns": bound_ns(self.during),
            "bound_after_ns": bound_ns(self.after),
            "promised_before": promised(self.before),
            "promised_after": promised(self.after) and promised(self.during),
            "why": self.why,
        }


@dataclass(frozen=True)
class AdmissionResult:
    """`rows`: every output of the next plan; `proof`: why there is no next plan at all; `loading_ns`: how
    long a stretch of loading a plan was assumed."""

    rows: tuple[Row, ...]
    proof: tuple[Mistake, ...] = ()
    loading_ns: int = 0

    @property
    def reasons(self) -> tuple[Mistake, ...]:
        """What speaks against the change: outputs first, then why no other plan helps."""
        late = (Mistake.of("output_not_kept", row.why, row.output) for row in self.rows if row.why)
        return (*late, *self.proof)

    @property
    def only_during(self) -> bool:
        """Whether the next plan is as it should be, and only the change to it takes too long."""
        late = [row for row in self.rows if row.why]
        return bool(late) and not self.proof and all(promised(row.after) for row in late)

    @property
    def admitted(self) -> bool:
        """Whether nothing speaks against the change."""
        return not self.reasons


def judged(
    before: Plan, after: Plan, spared: frozenset[str] = frozenset(), loading_ns: int = LOADING_NS
) -> AdmissionResult:
    """`before` runs, `after` is to run; `spared`: outputs of `after` that need not hold; `loading_ns`: the longest
    stretch of loading a plan."""
    meanwhile = during(before, after, loading_ns)
    owner = {output: name for name, one in after.queries.items() for output in one.outputs}
    rows = [
        _row(name, owner[name], before.guarantee.get(name), meanwhile.claims[name], claim, spared)
        for name, claim in after.guarantee.items()
    ]
    return AdmissionResult(tuple(rows), (), meanwhile.loading_ns)


def _row(name: str, query: str, before: Claim | None, meanwhile: Claim, after: Claim, spared: frozenset[str]) -> Row:
    wanted = promised(before) if before is not None else name not in spared
    why = ""
    if wanted and not promised(after):
        why = f"output {name} of {query}: {_late(after, 'after the change')}"
    elif wanted and not promised(meanwhile):
        why = f"output {name} of {query}: {_late(meanwhile, 'during the change, while both plans are loaded')}"
    return Row(name, query, after.deadline_ns, before, meanwhile, after, wanted, why)


def promised(claim: Claim | None) -> bool:
    """Whether a claim says that an output is in time, at least from admission on where its source declares no age."""
    return claim is not None and guarantee_status(claim) != MISSED


def bound_ns(claim: Claim | None) -> int | None:
    """From origin, or from admission on where that is all there is."""
    if claim is None:
        return None
    return claim.bound_ns if claim.bound_ns is not None else claim.from_admission_ns


def _late(claim: Claim, when: str) -> str:
    """The bound against the deadline, and where most of the time goes."""
    bound = bound_ns(claim)
    if bound is None:
        return f"it would have no bound {when}: {claim.why}"
    if bound <= claim.deadline_ns:  # it asks more than its deadline
        return f"{when}: {claim.why}"
    over = f"{show_ns(bound - claim.deadline_ns)} too late"
    said = f"its bound would be {show_ns(bound)} {when}, its deadline is {show_ns(claim.deadline_ns)}: {over}"
    return f"{said}; {where}" if (where := _where(claim)) else said


def _where(claim: Claim) -> str:
    """The failing test of a node, or else what takes most of the time, and where it waits longest."""
    _, found, failing = claim.why.partition("; ")
    if found and failing.startswith("on node"):
        return failing
    waits = [_waits(part) for part in claim.trail if part.kind == "unit"]
    most = max([*waits, *map(_takes, claim.trail)], default=(0, ""), key=lambda one: one[0])
    longest = max(waits, default=(0, ""), key=lambda one: one[0])
    if not most[0]:
        return ""
    said = f"most of it{most[1]}"
    return said if most is longest or not longest[0] else f"{said}; the longest wait is{longest[1]}"


def _waits(part: Step) -> tuple[int, str]:
    lost = part.waiting_ns + part.blocking_ns
    return lost, f" on node {part.node}, where {part.what} waits up to {show_ns(lost)} behind others"


def _takes(part: Step) -> tuple[int, str]:
    """Of a unit its own work: it waits elsewhere."""
    if part.kind == "unit":
        return part.work_ns, f", {show_ns(part.work_ns)}: the work of {part.what} on node {part.node}"
    return part.ns, f", {show_ns(part.ns)}: {part.what}"


__all__ = ["AdmissionResult", "During", "Row", "bound_ns", "judged", "promised"]
