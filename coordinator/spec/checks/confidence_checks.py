"""Checks of outputs that ask for a confidence: that what it rests on was measured, and often enough."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.spec.query import Output, Query
from coordinator.units import counted
from protos.plan.guarantee import Claim

SHOWN = 4


def check(query: Query) -> None:
    """Raises BadInputError where an output asks for a confidence, and costs of operators are not as they were
    measured."""
    lacking = [one.said for one in query.operators if one.cost_from is None or not one.cost_from.distributions]
    for output in query.outputs if lacking else ():
        if output.confidence is not None:
            names = f"{', '.join(lacking[:SHOWN])}{f' and {len(lacking) - SHOWN} more' if len(lacking) > SHOWN else ''}"
            text = f"output '{output.name}' asks for {output.confidence.said}, and no calls were measured of {names}"
            mend = "run 'coordinator profile' while it runs, and plan with '--costs costs.yaml'"
            query.file.wrong("no_distribution", output.keys, text, mend)
    query.file.check()


def check_samples(query: Query, claims: Mapping[str, Claim]) -> None:
    """Raises BadInputError where too few calls were measured for what an output asks."""
    for output in query.outputs:
        confident = claims[output.name].confident
        if confident is not None and confident.needed is not None:
            query.file.wrong("too_few_samples", output.keys, _too_few(output, confident.why), _longer(confident.needed))
    query.file.check()


def _too_few(output: Output, why: str) -> str:
    assert output.confidence is not None  # else nothing is said with one
    return f"output '{output.name}' asks for {output.confidence.said}: {why}"


def _longer(needed: int) -> str:
    return f"profile longer, for {counted(needed, 'call')} of each operator, or ask for less"
