"""Checks of the age and the reaction that an output asks: sources that these do not count, and limits that are too
short."""

from __future__ import annotations

from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.quality import Freshness
from coordinator.spec.query import Output, Query
from coordinator.units import show_ns


def check(query: Query) -> None:
    """Adds what is wrong to the file's mistakes."""
    for output in query.outputs:
        for key, asked in (("age", output.age), ("reaction", output.reaction)):
            if asked is not None:
                _sources(query, output, key, asked)
        if output.age is not None and output.age.limit_ns < output.deadline_ns:
            _floor(query, output, output.age)


def _sources(query: Query, output: Output, key: str, asked: Freshness) -> None:
    behind = _behind(query, output.origin, through_sides=True)
    keys = (*output.keys, key, "without")
    for name in asked.without:
        if name not in behind:
            text = f"output '{output.name}' asks its {key} without source '{name}', whose data are not behind it"
            query.file.wrong("source_not_behind", keys, text, nearest(name, behind))
    if not behind - set(asked.without):
        text = f"output '{output.name}' asks its {key} without every source behind it"
        query.file.wrong("no_source_left", keys, text, f"remove a source, or '{key}:'")


def _floor(query: Query, output: Output, asked: Freshness) -> None:
    """The tuples that a deadline counts from are among the data behind the result."""
    if _behind(query, output.origin, through_sides=False) & set(asked.without):
        return
    age, deadline = show_ns(asked.limit_ns), show_ns(output.deadline_ns)
    text = f"output '{output.name}' asks an age of {age}, below its deadline of {deadline}"
    query.file.wrong("age_below_deadline", (*output.keys, "age"), text, "make the deadline shorter, or the age longer")


def _behind(query: Query, stream: str, through_sides: bool) -> set[str]:
    """The sources whose data reach a stream."""
    operators = {operator.name: operator for operator in query.operators}
    found, waiting = set(), [stream]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name in operators:
            waiting += operators[name].inputs
            waiting += operators[name].side.values() if through_sides else ()
    return found - operators.keys()
