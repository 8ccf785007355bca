"""The share of results that were missed of what was offered, in words: an interval, and what lies between its ends."""

from collections.abc import Mapping

from coordinator.report.report_document import Share

WINDOWS = "windows_without_refused"
MEANT = {
    "refused": "refused",
    "policed": "policed (beyond what was declared)",
    "shed_before_filter": "shed before a filter",
    "lost_before_filter": "lost before a filter",
    "undecidable": "undecidable",
    WINDOWS: "windows that refused tuples may belong into",
}


def interval(met: int, missed: int, between: Mapping[str, int], met_idle: int = 0) -> Share:
    """[lo, hi] of results; None where nothing was offered. met_idle: how many of the met may be of windows that nothing
    was fed into, and so no part of what was offered; the upper end leaves all of them out, the lower one none."""
    open_ = sum(between.values())
    whole = met + missed + open_ - between.get(WINDOWS, 0)  # those were met, and are counted there
    if not whole:
        return None
    most, least = missed + open_, whole - met_idle
    return missed / whole, min(1.0, most / least) if least else float(most > 0)


def text(share: Share) -> str:
    """`0 to 90.9 %`; one figure where both ends read the same."""
    if share is None:
        return "–"
    least, most = (f"{100 * end:.3g}" for end in share)
    return f"{least} %" if least == most else f"{least} to {most} %"


def is_missed(share: Share) -> bool:
    """Whether anything may have been missed: the upper end decides."""
    return share is not None and share[1] > 0


def markup(share: Share) -> str:
    """`text` in the colour of its upper end, for rich."""
    return text(share) if share is None else f"[{'red' if is_missed(share) else 'green'}]{text(share)}[/]"


def reasons(between: Mapping[str, int]) -> str:
    """What lies between, in results: `249 policed (beyond what was declared), 3 refused`. Empty: nothing."""
    return ", ".join(f"{between[key]:,} {meant}" for key, meant in MEANT.items() if between.get(key))


def idle(share: Share, met_idle: int) -> str:
    """Of results that the upper end leaves out. Empty: there are none, or leaving them out changes nothing."""
    if not met_idle or not is_missed(share):
        return ""
    return f"up to {met_idle:,} met results are of windows that nothing was fed into, and left out of the upper end"


__all__ = ["MEANT", "WINDOWS", "idle", "interval", "is_missed", "markup", "reasons", "text"]
