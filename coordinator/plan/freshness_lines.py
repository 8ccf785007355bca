"""Age and reaction of an output in sentences, from plan.json alone: what is asked, and the paths of data hop by hop."""

from __future__ import annotations

from coordinator.units import show_ns
from protos.plan.guarantee import Claim, DataPath


def judged(claim: Claim) -> list[str]:
    """A sentence for each that is asked."""
    limits = {"age": (claim.age_ns, claim.age_bound_ns), "reaction": (claim.reaction_ns, claim.reaction_bound_ns)}
    found = []
    for name, (limit_ns, bound_ns) in limits.items():
        if limit_ns is None:
            continue
        worst = next(path for path in claim.data_paths if path.of == name and path.bound_ns == bound_ns)
        if bound_ns is None:
            found.append(f"{name} of {show_ns(limit_ns)}: not guaranteed, no bound: {worst.why}")
        else:
            said = "guaranteed" if bound_ns <= limit_ns else "not guaranteed"
            found.append(f"{name} of {show_ns(limit_ns)}: at most {show_ns(bound_ns)}, {said}; of {worst.source}")
    return found


def hops(claim: Claim) -> list[str]:
    """What makes the bound of each source's path."""
    return [line for path in claim.data_paths for line in _path(path)]


def _path(path: DataPath) -> list[str]:
    what = f"{path.of} of {path.source}" if path.of == "age" else f"{path.of} to {path.source}"
    if path.bound_ns is None:
        return [f"{what}: no bound: {path.why}"]
    steps = [f"{show_ns(step.ns):>12}  {step.what}" for step in path.steps]
    return [f"{what}: at most {show_ns(path.bound_ns)}", *steps]


__all__ = ["hops", "judged"]
