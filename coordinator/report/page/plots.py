"""The page's plots as Plotly figures (plain dicts: data and layout). All names are escaped, Plotly reads some HTML."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from coordinator.report.page.timeline import Timeline
from coordinator.report.report_document import LatencyBreakdown, Report

Figure = dict[str, Any]

RUN_COLOURS = ("#2f7ed8", "#e07b39", "#3aa17e", "#9b6fd0", "#c2528b", "#8a8f3c")
HOPS = ("age", "queue", "run", "link", "rest")
PLAIN = {"age": "#7d8894", "rest": "#c9ced6"}
# Told apart by all kinds of colour vision (Okabe and Ito); each has a second and third look before it comes again.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
LOOKS = {"run": ("", "x", "+"), "queue": ("/", "\\", "-"), "link": (".", "|", ".")}
MS = 1_000_000


def layout(height: int, **more: Any) -> dict[str, Any]:
    """What all plots share; colours of text and grid come from the page's theme."""
    return {
        "height": height,
        "margin": {"l": 60, "r": 16, "t": 34, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,  # the page has its own: Plotly's does not wrap on a phone
        "hovermode": "closest",
    } | more


def legend(figure: Figure) -> list[tuple[str, str]]:
    """(name, CSS background) of every trace; names are escaped already."""
    return [(trace["name"], _swatch(trace.get("line") or trace["marker"])) for trace in figure["data"]]


def _swatch(look: Mapping[str, Any]) -> str:
    colour, shape = look["color"], look.get("pattern", {}).get("shape", "")
    if not shape:
        return str(colour)
    if shape == ".":
        return f"radial-gradient(circle, #fff 1px, {colour} 1.6px) 0 0/5px 5px"
    turns = {"/": (135,), "\\": (45,), "-": (180,), "|": (90,), "x": (45, 135), "+": (90, 180)}[shape]
    stripes = (f"repeating-linear-gradient({turn}deg, #fff 0 1.4px, #fff0 1.4px 5px)" for turn in turns)
    return f"{', '.join(stripes)}, {colour}"


def _looks(hops: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Each hop's marker. A unit has one colour wherever it runs and queues: plain while it runs, striped while it
    queues; links are dotted. hops: of all outputs, so that a unit looks the same in each of them; hop -> kind."""
    units = dict.fromkeys(_about(hop) for hop in sorted(hops) if hops[hop] in ("run", "queue"))
    links = dict.fromkeys(hop for hop in sorted(hops) if hops[hop] == "link")
    order = {about: n for each in (units, links) for n, about in enumerate(each)}
    found = {}
    for hop, kind in hops.items():
        again, at = divmod(order.get(_about(hop), 0), len(COLOURS))
        colour, shape = PLAIN.get(kind, COLOURS[at]), LOOKS[kind][again % 3] if kind in LOOKS else ""
        pattern = {"shape": shape, "bgcolor": colour, "fgcolor": "#fff", "size": 6, "solidity": 0.3}
        found[hop] = {"color": colour, "line": {"width": 0.5}} | ({"pattern": pattern} if shape else {})
    return found


def _about(hop: str) -> str:
    """The unit that runs or is queued for, or the link."""
    return hop.removeprefix("queued for ").removeprefix("running ")


def ecdf(output: str, runs: Sequence[tuple[str, Report]]) -> Figure | None:
    """Share of delivered results within a latency (upper bounds), one line per run, the deadline as a vertical."""
    data: list[dict[str, Any]] = []
    deadlines = set()
    for number, (name, verdict) in enumerate(runs):
        result = verdict.outputs.get(output)
        if result is None:
            continue
        deadlines.add(result.deadline_ns)
        known = [bound for bound in result.quantiles_ns if bound is not None]
        if known:
            steps = len(result.quantiles_ns)
            data.append({
                "type": "scatter", "mode": "lines", "name": escape(name), "x": [ns / MS for ns in known],
                "y": [100 * (k + 1) / steps for k in range(len(known))],
                "line": {"shape": "hv", "width": 2.5, "color": RUN_COLOURS[number % len(RUN_COLOURS)]},
                "hovertemplate": "%{y:.1f} % within %{x:.3f} ms",
            })  # fmt: skip
    if not data:
        return None
    lines = [
        {"type": "line", "x0": ns / MS, "x1": ns / MS, "y0": 0, "y1": 1, "yref": "paper",
         "line": {"color": "#d64550", "width": 2, "dash": "dash"}}
        for ns in sorted(deadlines)
    ]  # fmt: skip
    names = [
        {"x": ns / MS, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False,
         "text": f"deadline {ns / MS:g} ms", "font": {"color": "#d64550", "size": 12}}
        for ns in sorted(deadlines)
    ]  # fmt: skip
    return {
        "data": data,
        "layout": layout(
            300,
            shapes=lines,
            annotations=names,
            xaxis={"title": {"text": "latency, upper bound [ms]"}, "rangemode": "tozero"},
            yaxis={"title": {"text": "delivered results [%]"}, "range": [0, 101]},
        ),
    }


def latency_breakdown(output: str, runs: Sequence[tuple[str, Mapping[str, LatencyBreakdown]]]) -> Figure | None:
    """Where the time of the delivered results went: stacked bars per run, on average and in the slowest 1 %.

    runs: of each, the breakdowns by output.
    """
    rows: list[tuple[str, LatencyBreakdown, bool]] = []  # the last: of the slowest
    for name, splits in runs:
        split = splits.get(output)
        if split is not None and split.results:
            rows += [(f"{escape(name)}, mean", split, False), (f"{escape(name)}, slowest 1 %", split, True)]
    if not rows:
        return None
    rows.reverse()  # Plotly draws from the bottom
    hops = {hop.hop: hop.kind for _, split, _ in rows for hop in split.hops}
    order = sorted(hops, key=lambda hop: (HOPS.index(hops[hop]), hop))
    every = [hop for _, splits in runs for split in splits.values() for hop in split.hops]
    looks = _looks({hop.hop: hop.kind for hop in every})
    data = []
    for hop in order:
        times = [_mean_ns(split, hop, slowest) for _, split, slowest in rows]
        data.append({
            "type": "bar", "orientation": "h", "name": escape(hop), "y": [label for label, _, _ in rows],
            "x": [ns / MS for ns in times], "marker": looks[hop],
            "hovertemplate": escape(hop) + ": %{x:.3f} ms<extra></extra>",
        })  # fmt: skip
    return {
        "data": data,
        "layout": layout(
            130 + 34 * len(rows),
            barmode="stack",
            xaxis={"title": {"text": "time [ms]"}},
            yaxis={"automargin": True},
        ),
    }


def _mean_ns(split: LatencyBreakdown, hop: str, slowest: bool) -> int:
    found = next((each for each in split.hops if each.hop == hop), None)
    ns = None if found is None else found.tail_mean_ns if slowest else found.mean_ns
    return ns or 0


def gantt(shown: Timeline) -> Figure:
    """One row per node and unit; the tuple that it is about in red."""
    rows = sorted({(bar.node, bar.unit) for bar in shown.bars}, reverse=True)
    labels = {row: f"{escape(row[0])}: {escape(row[1])}" for row in rows}
    data = []
    for mine, name, colour in ((False, "other tuples", "#7fa8d1"), (True, "this tuple", "#d64550")):
        bars = [bar for bar in shown.bars if bar.mine is mine]
        data.append({
            "type": "bar", "orientation": "h", "name": name, "marker": {"color": colour, "line": {"width": 0}},
            "y": [labels[bar.node, bar.unit] for bar in bars], "base": [bar.start_ns / MS for bar in bars],
            "x": [bar.run_ns / MS for bar in bars], "customdata": [bar.tuple for bar in bars],
            "hovertemplate": "tuple %{customdata}: %{base:.3f} ms + %{x:.3f} ms<extra></extra>",
        })  # fmt: skip
    return {
        "data": data,
        "layout": layout(
            130 + 34 * len(rows),
            barmode="overlay",
            bargap=0.35,
            xaxis={"title": {"text": "time in the window [ms]"}},
            yaxis={"automargin": True, "categoryorder": "array", "categoryarray": [labels[row] for row in rows]},
        ),
    }
