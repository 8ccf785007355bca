"""Declarations of a query that contradict themselves, found before anything is planned."""

from __future__ import annotations

from fractions import Fraction

from coordinator.calculus.selectivity import contradicting, contradiction
from coordinator.spec.query import Query


def check(query: Query) -> None:
    """Raises BadInputError where an operator passes more on average than it declares to pass at worst, or where fewer
    inputs may have more outputs than more of them."""
    for operator in query.operators:
        if operator.selectivity is None:
            continue
        at_most = operator.selectivity.at_most
        if (pairs := contradicting(at_most)) is not None:
            (k, m), (more, fewer) = pairs
            text = f"operator '{operator.name}': at most {m} of any {k} contradicts at most {fewer} of any {more}"
            query.file.wrong("contradicting_selectivity", (*operator.keys, "selectivity"), text, "correct one of them")
            continue
        means = [(operator.mean, f"a mean of {operator.selectivity.mean:g}")]
        if operator.run == "filter":
            keep, of = operator.parameters.get("keep", 1), operator.parameters.get("of", 2)
            means.append((Fraction(keep, of), f"a filter that keeps {keep} of {of}"))
        for mean, said in means:
            if (pair := contradiction(at_most, mean)) is not None:
                text = f"operator '{operator.name}': {said} is above its worst case, at most {pair[1]} of any {pair[0]}"
                query.file.wrong("mean_above_worst_case", (*operator.keys, "selectivity"), text, "correct one of them")
                break
    query.file.check()
