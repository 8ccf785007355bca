"""Tables of offered tuples and of what may have been missed, as rows of text. Nothing here is escaped yet."""

from collections.abc import Iterator, Sequence

from coordinator.report import missed_share
from coordinator.report.report_document import Report

Reports = Sequence[tuple[str, Report]]  # name of the run, report

OFFERED = ("source", "offered", "admitted", "policed", "refused")
NOTE = (
    "Missed: late, shed and lost of what was offered, an interval. Its lower end takes all that lies between for met, "
    "its upper end for missed: results of tuples that were refused or policed, that a filter might have dropped, or "
    "that the clocks cannot judge. Of delivered: late over met and late, the papers' ratio, which counts nothing that "
    "did not come."
)


def offered_rows(reports: Reports) -> Iterator[tuple[str, ...]]:
    """Cells as in OFFERED, led by the run's name; none where every tuple that was offered came in."""
    if not any(found.refused or found.policed for _, report in reports for found in report.offered.values()):
        return
    for source in dict.fromkeys(source for _, report in reports for source in report.offered):
        for run, report in reports:
            found = report.offered.get(source)
            if found is not None:
                reasons = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in found.refused.items())
                yield run, source, f"{found.offered:,}", f"{found.admitted:,}", f"{found.policed:,}", reasons or "–"


def sentences(report: Report) -> Iterator[str]:
    """Of each output whose share is an interval, what lies between its ends."""
    for name, found in report.outputs.items():
        share = found.missed_of_offered
        if share is not None and share[0] != share[1]:
            parts = missed_share.reasons(found.between)
            yield f"output {name}: missed {missed_share.text(share)} of what was offered: between lie {parts}"


__all__ = ["NOTE", "OFFERED", "offered_rows", "sentences"]
