"""Ages of data and reactions, as rows of text and in words. Nothing here is escaped yet."""

from collections.abc import Iterator, Sequence

from coordinator.report import missed_share
from coordinator.report.page.run_labels import brief, milliseconds, tenths
from coordinator.report.report_document import DataAge, Freshness, Reaction, Report
from coordinator.units import counted

Reports = Sequence[tuple[str, Report]]  # name of the run, report

AGES = ("output", "what", "limit", "bound", "p50", "p99", "max", "above", "unanswered")
NOTE = (
    "Age: from the origin of the oldest datum behind a result to its delivery. Reaction: from the origin of a source's "
    "tuple to the first result that it, or a later one, is behind. Quantiles are of upper bounds; the share above the "
    "limit counts unanswered tuples, and is an interval where clocks or side inputs leave it open."
)
SHOWN = 4  # hops of an age


def age_rows(reports: Reports) -> Iterator[tuple[str, ...]]:
    """Cells as in AGES, led by the run's name; none where no output asks."""
    for output in dict.fromkeys(output for _, report in reports for output in report.freshness):
        for run, report in reports:
            found = report.freshness.get(output)
            for what, each in parts(found) if found else ():
                yield run, output, what, *_cells(each)


def parts(found: Freshness) -> Iterator[tuple[str, DataAge | Reaction]]:
    """What was measured for one output, by what it is called."""
    if found.age is not None:
        yield "age", found.age
    for source, reaction in found.reactions.items():
        yield f"reaction to {source}", reaction


def _cells(found: DataAge | Reaction) -> tuple[str, ...]:
    spread = found.age_ns if isinstance(found, DataAge) else found.reaction_ns
    return (
        milliseconds(found.limit_ns), milliseconds(found.bound_ns), *map(tenths, (spread.p50, spread.p99, spread.max)),
        missed_share.text(found.share), "" if isinstance(found, DataAge) else str(found.unanswered),
    )  # fmt: skip


def sentences(report: Report) -> Iterator[str]:
    """What was above its bound, who made the data old that were above the limit, and what is not known."""
    for name, found in report.freshness.items():
        for what, each in parts(found):
            if each.above_bound:
                of = each.results if isinstance(each, DataAge) else each.answered
                bound = brief(each.bound_ns or 0)
                yield f"output {name}: {each.above_bound} of {of}: {what} above the plan's bound, {bound}"
        if found.age is not None and (found.age.above or found.age.undecidable):
            yield from _blamed(name, found.age)
        if found.unread:
            yield f"output {name}: {counted(found.unread, 'result')} where a side input had no value"
        yield from (f"output {name}: {why}" for why in found.untold)


def _blamed(name: str, age: DataAge) -> Iterator[str]:
    of, limit = counted(age.results, "result"), brief(age.limit_ns)
    above = f"{age.above}" if not age.undecidable else f"{age.above} to {age.above + age.undecidable}"
    told = ", ".join(f"{brief(hop.mean_ns)} {hop.place}" for hop in age.hops[:SHOWN])
    oldest = "of the oldest one" if age.blamed == 1 else f"of the {age.blamed} oldest, on average"
    why = f"; {oldest}: {told}" if told else ""
    yield f"output {name}: the data of {above} of {of} were above their limit, {limit}{why}"


__all__ = ["AGES", "NOTE", "age_rows", "parts", "sentences"]
