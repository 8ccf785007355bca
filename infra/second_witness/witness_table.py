"""What two witnesses agree on, and what one of them alone has seen: for a terminal, and as the page has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf

from rich.console import Console
from rich.table import Table

from infra.second_witness.agreement import Agreement, Compared, Spread, agreement

HEAD = (
    "recording",
    "near pairs",
    "crossing conflicts",
    "of these theirs too",
    "theirs alone",
    "critical",
    "theirs too",
)
PAIR_HEAD = ("pair", "our PET", "degrees", "TTC", "their PET", "TTC*", "boxes apart m", "ours alone", "theirs alone")
NOTHING = "–"


def show(recordings: Mapping[str, Sequence[Compared]], console: Console) -> None:
    """Every pair that either side has, and the counts."""
    for name, pairs in recordings.items():
        table = _table(name, PAIR_HEAD)
        for pair in pairs:
            if pair.ours or pair.theirs or pair.theirs_critical:
                table.add_row(*_cells(pair))
        console.print(table)
    console.print(markdown(recordings), highlight=False, markup=False)


def markdown(recordings: Mapping[str, Sequence[Compared]]) -> str:
    """A line for each recording and one for all, and what is behind the differences."""
    every = [pair for pairs in recordings.values() for pair in pairs]
    rows = [(name, agreement(pairs)) for name, pairs in recordings.items()]
    rows += [("all", agreement(every))] if len(rows) > 1 else []
    lines = [HEAD, ["---"] + ["---:"] * (len(HEAD) - 1), *(_counts(name, one) for name, one in rows)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{table}\n{_reasons(agreement(every))}"


def _counts(name: str, one: Agreement) -> list[str]:
    alone = sum(one.only_theirs.values())
    return [name, *map(str, (one.near, one.ours, one.both, alone, one.critical_ours, one.critical_both))]


def _reasons(all_of_them: Agreement) -> str:
    said = [
        ("Ours alone", all_of_them.only_ours),
        ("Theirs alone", all_of_them.only_theirs),
        ("TTC* below 1.5 s, not critical to us", all_of_them.critical_only_theirs),
    ]
    lines = [f"{what}: {_counted(reasons)}." for what, reasons in said]
    lines += [f"PET, ours less theirs: {_spread(all_of_them.pet)}.", f"TTC: {_spread(all_of_them.ttc)}"]
    return "\n".join(lines) + f", {all_of_them.ttc_of_one_side} instants where one side alone has one.\n"


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items())) or "none"


def _spread(of: Spread) -> str:
    if not of.number:
        return "nothing to compare"
    return f"median {of.median:+.2f} s, worst {of.worst:+.2f} s of {of.number}"


def _cells(pair: Compared) -> list[str]:
    numbers = (pair.our_pet_s, pair.angle_deg, pair.our_ttc_s)
    theirs = NOTHING if isinf(pair.their_pet_s) else f"{pair.their_pet_s:.2g}"
    reasons = (
        pair.ours_alone if pair.ours and not pair.theirs else "",
        (
            pair.theirs_alone
            if (pair.theirs and not pair.ours) or (pair.theirs_critical and not pair.ours_critical)
            else ""
        ),
    )
    their_pet = theirs if pair.outcome == "time" else pair.outcome
    ours = [NOTHING if isinf(each) else f"{each:.3g}" for each in numbers]
    ttc = NOTHING if isinf(pair.their_ttc_s) else f"{pair.their_ttc_s:.2g}"
    return [f"{pair.one} {pair.other}", *ours, their_pet, ttc, f"{pair.closest_m:.1f}", *reasons]


def _table(title: str, head: Sequence[str]) -> Table:
    table = Table(title=title, box=None)
    for heading in head:
        table.add_column(heading, justify="left" if heading in ("pair", "ours alone", "theirs alone") else "right")
    return table


__all__ = ["markdown", "show"]
