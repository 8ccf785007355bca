"""The page's look: one column, calm, light and dark by the reader's choice, usable on a phone."""

CSS = """
:root { color-scheme: light dark; --bg: #f7f8fa; --card: #fff; --ink: #1d2733; --soft: #5d6b7a; --rule: #e3e7ec;
  --good: #1f7a54; --bad: #b3263a; --warn: #8a5a00; --accent: #2f7ed8; }
@media (prefers-color-scheme: dark) { :root { --bg: #14181d; --card: #1c2229; --ink: #e6ebf0; --soft: #98a5b3;
  --rule: #2c343d; --good: #5cc79a; --bad: #f0808d; --warn: #e0b05c; --accent: #6aa9ee; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1.2rem .9rem 4rem; }
h1 { font-size: 1.5rem; margin: .4rem 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 .6rem; }
h3 { font-size: .95rem; margin: 1rem 0 .2rem; color: var(--soft); font-weight: 600; }
p { margin: .3rem 0; }
.soft { color: var(--soft); font-size: .92rem; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 1rem; margin: 1rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .4rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child, .left { text-align: left; }
tbody tr:last-child td { border-bottom: 0; }
tr.group td { border-top: 2px solid var(--rule); }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .45em; }
.key { display: inline-block; width: 1.6em; height: .8em; border-radius: 2px; margin-right: .45em; }
ul { margin: .3rem 0; padding-left: 1.2rem; overflow-wrap: anywhere; }
.wrap { display: inline-block; min-width: 14rem; white-space: normal; text-align: left; }
.plot { width: 100%; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; list-style: none; padding: 0; font-size: .85rem;
  color: var(--soft); }
"""

SCRIPT = """
const dark = window.matchMedia('(prefers-color-scheme: dark)');
function paint() {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue('--ink').trim(), rule = style.getPropertyValue('--rule').trim();
  for (const [id, figure] of Object.entries(FIGURES)) {
    const axis = {gridcolor: rule, zerolinecolor: rule, linecolor: rule};
    const layout = {...figure.layout, font: {color: ink, family: 'system-ui, sans-serif', size: 13},
      xaxis: {...figure.layout.xaxis, ...axis}, yaxis: {...figure.layout.yaxis, ...axis}};
    Plotly.react(id, figure.data, layout, {responsive: true, displaylogo: false, displayModeBar: false});
  }
}
paint();
dark.addEventListener('change', paint);
"""
