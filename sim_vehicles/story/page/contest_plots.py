"""The contest's published results: crash probability and impact speed of each way at each load, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from sim_vehicles.contest.contest_results import ContestResults, Crashes, Interval, WayAtLoad
from sim_vehicles.story.page.plots import Figure, Key, layout, way_look
from sim_vehicles.story.page.tables import row, table
from sim_vehicles.story.page.wording import DASH

SPREAD = 0.78  # of the room between two loads, that the ways of one take


def crash_probability(results: ContestResults) -> Figure:
    """Shares of encounters that end in a crash."""
    axis = {"title": {"text": "crash probability"}, "range": [0, 1.0], "tickformat": ".0%", "fixedrange": True}
    return _figure(results, lambda crashes: crashes.share, axis, "%{y:.0%}")


def impact_speed(results: ContestResults) -> Figure:
    """Mean over all encounters, 0 where there was no crash."""
    most = max(row.crashes.speed_kmh.high for row in results.rows) * 1.05 or 1.0
    axis = {"title": {"text": "impact speed, mean of all [km/h]"}, "range": [0, most], "fixedrange": True}
    return _figure(results, lambda crashes: crashes.speed_kmh, axis, "%{y:.1f} km/h")


def keys(results: ContestResults) -> list[Key]:
    """The ways, in the order of the results."""
    looks = [way_look(number) for number in range(len(results.ways))]
    return [Key(escape(way), look.colour, look.letter) for way, look in zip(results.ways, looks, strict=True)]


def contest_table(results: ContestResults) -> str:
    """All that the plots show, in figures."""
    head = [
        "load", "way", "crashed", "95 %", "median impact of crashes [km/h]", "mean of all [km/h]",
        f"crashed alone: it, {results.compared_with}", "by chance",
    ]  # fmt: skip
    return table(head, [row(_cells(each)) for each in results.rows]).replace("<table>", '<table class="second">', 1)


def _cells(each: WayAtLoad) -> list[str]:
    crashes, pair = each.crashes, each.pair
    share = crashes.share
    return [
        f"{each.load:g}", escape(each.way), f"{crashes.crashes} of {crashes.encounters}",
        f"{share.low:.0%} to {share.high:.0%}", _speed(crashes.impact_kmh), _speed(crashes.speed_kmh),
        *([DASH, DASH] if pair is None else [f"{pair.only_second}, {pair.only_first}", f"{pair.by_chance:.2g}"]),
    ]  # fmt: skip


def _speed(of: Interval | None) -> str:
    return DASH if of is None else f"{of.value:.1f}, {of.low:.1f} to {of.high:.1f}"


def _figure(results: ContestResults, pick: Callable[[Crashes], Interval], axis: dict[str, Any], value: str) -> Figure:
    loads, ways = results.loads, results.ways
    data = []
    for number, way in enumerate(ways):
        look, shift = way_look(number), SPREAD * ((number + 0.5) / len(ways) - 0.5)
        rows = [each for each in results.rows if each.way == way]
        shown = [(loads.index(each.load) + shift, each, pick(each.crashes)) for each in rows]
        data.append({
            "type": "scatter", "mode": "markers", "name": escape(way), "cliponaxis": False,
            "x": [round(x, 4) for x, _, _ in shown], "y": [round(of.value, 4) for _, _, of in shown],
            "error_y": {
                "type": "data", "symmetric": False, "array": [round(of.high - of.value, 4) for _, _, of in shown],
                "arrayminus": [round(of.value - of.low, 4) for _, _, of in shown], "color": look.colour,
                "thickness": 2, "width": 3,
            },
            "marker": {"color": look.colour, "symbol": look.symbol, "size": 9},
            "customdata": [_hover(each) for _, each, _ in shown],
            "hovertemplate": f"%{{customdata}}<br>{value}<extra></extra>",
        })  # fmt: skip
    return {
        "data": data,
        "layout": layout(
            340,
            shapes=_between(loads),
            xaxis={
                "tickvals": list(range(len(loads))), "ticktext": [_load(results, load) for load in loads],
                "range": [-0.5, len(loads) - 0.5], "showgrid": False, "zeroline": False, "fixedrange": True,
                "title": {"text": "load of both computers"},
            },
            yaxis=axis,
            margin={"l": 60, "r": 8, "t": 12, "b": 64},
        ),
    }  # fmt: skip


def _hover(each: WayAtLoad) -> str:
    share = each.crashes.share
    return (
        f"{escape(each.way)}, load {each.load:g}<br>{each.crashes.crashes} of {each.crashes.encounters} crash, "
        f"{share.low:.0%} to {share.high:.0%}"
    )


def _load(results: ContestResults, load: float) -> str:
    most = max(each.crashes.encounters for each in results.rows if each.load == load)
    return f"{load:g}<br>n = {most}"


def _between(loads: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {"type": "line", "x0": place - 0.5, "x1": place - 0.5, "y0": 0, "y1": 1, "yref": "paper",
         "line": {"color": "var(--rule)", "width": 1}}
        for place in range(1, len(loads))
    ]  # fmt: skip
