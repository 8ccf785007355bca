"""A self-contained page per paper: every figure with its verdict, our curves with the printed points on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from gzip import decompress
from html import escape
from typing import Any

from infra.papers.reproduction import Figure, KeptFigure, Plot, finding, said, spoken, text
from sim_vehicles.story.page.scene_html import plotly

COLOURS = (
    "#2f7ed8", "#e07b39", "#3aa17e", "#9b6fd0", "#c2528b", "#8a8f3c", "#5b6b7b", "#b3263a", "#1fb3c9", "#d4a017",
    "#4d5bd1", "#7a4b2a",
)  # fmt: skip
CSS = """
:root { color-scheme: light dark; --bg: #f7f8fa; --card: #fff; --ink: #1d2733; --soft: #5d6b7a; --rule: #e3e7ec; }
@media (prefers-color-scheme: dark) { :root { --bg: #14181d; --card: #1c2229; --ink: #e6ebf0; --soft: #98a5b3;
  --rule: #2c343d; } }
body { margin: 0; background: var(--bg); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem .9rem 4rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 0 0 .5rem; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 1rem; margin: 1rem 0; }
dt { color: var(--soft); font-size: .9rem; } dd { margin: 0 0 .5rem; overflow-wrap: anywhere; }
"""
SCRIPT = """
const style = getComputedStyle(document.documentElement);
const ink = style.getPropertyValue('--ink').trim(), rule = style.getPropertyValue('--rule').trim();
for (const [id, figure] of Object.entries(PLOTS)) {
  const axis = {gridcolor: rule, zerolinecolor: rule, linecolor: rule};
  const layout = {...figure.layout, font: {color: ink, size: 13}, xaxis: {...figure.layout.xaxis, ...axis},
    yaxis: {...figure.layout.yaxis, ...axis}};
  Plotly.newPlot(id, figure.data, layout, {responsive: true, displayModeBar: false});
}
"""
WORDS = {
    "yes": "reproduces", "no": "does not reproduce", "not determined": "not determined",
    None: "nothing to compare with",
}  # fmt: skip


def page(title: str, figures: Mapping[str, KeptFigure]) -> str:
    """The HTML document."""
    plots: dict[str, Any] = {}
    body = "".join(_section(each.figure, plots) for each in figures.values())
    data = json.dumps(plots, allow_nan=False).replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body><main><h1>{escape(title)}</h1>{body}</main>"
        f"<script>{decompress(plotly()).decode()}</script><script>const PLOTS = {data};{SCRIPT}</script></body></html>"
    )


def _section(figure: Figure, plots: dict[str, Any]) -> str:
    rows = [
        *((f"the paper says ({WORDS[figure.reproduces]})", said(each)) for each in figure.claims),
        ("measured", text(figure.measured)),
        *(("we find", finding(each)) for each in figure.findings),
        ("reading", figure.reading),
        ("seeds", spoken(figure.seeds) if figure.seeds else ""),
    ]
    told = "".join(f"<dt>{escape(term)}</dt><dd>{escape(words)}</dd>" for term, words in rows if words)
    drawn = ""
    for plot in figure.plots:
        where = f"plot{len(plots)}"
        plots[where] = _plot(plot)
        drawn += f'<div id="{where}"></div>'
    return f"<section><h2>{escape(figure.name)}</h2>{drawn}<dl>{told}</dl></section>"


def _plot(plot: Plot) -> dict[str, Any]:
    """Plotly's data and layout; a printed point has the colour of the curve that it belongs to, by name."""
    lines = [curve.name for curve in plot.curves if not curve.printed]
    data = []
    for curve in plot.curves:
        of = curve.name.removesuffix(", printed")
        colour = COLOURS[lines.index(of) % len(COLOURS)] if of in lines else "#808080"
        marker = {"color": colour, "size": 11, "symbol": "x"} if curve.printed else {"color": colour, "size": 5}
        data.append({
            "type": "scatter", "mode": "markers" if curve.printed else "lines+markers",
            "name": escape(curve.name), "x": curve.x, "y": curve.y, "marker": marker, "line": {"color": colour},
        })  # fmt: skip
    layout = {
        "title": {"text": escape(plot.title)}, "height": 420, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "xaxis": {"title": {"text": escape(plot.x)}},
        "yaxis": {"title": {"text": escape(plot.y)}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "y": -0.2},
    }  # fmt: skip
    return {"data": data, "layout": layout}
