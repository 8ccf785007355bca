// Plotly's figures in the page's colours, and the moment that the scene shows as a line in the plots over time.
'use strict';
const narrow = window.matchMedia('(max-width: 640px)');

function paint() {
  const style = getComputedStyle(document.documentElement), pick = (name) => style.getPropertyValue('--' + name).trim();
  const swap = (value) => typeof value === 'string' ? value.replace(/^var\(--([a-z]+)\)$/, (_, name) => pick(name))
    : Array.isArray(value) ? value.map(swap)
    : value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, swap(one)])) : value;
  for (const [id, figure] of Object.entries(FIGURES)) {
    const rule = pick('rule'), axis = {gridcolor: rule, zerolinecolor: rule, linecolor: rule};
    const given = swap(figure.layout), data = swap(figure.data);
    if (narrow.matches) given.annotations = (given.annotations || []).filter((note) => note.name !== 'wide');
    const margin = narrow.matches ? {...given.margin, l: Math.min(given.margin.l, 46), r: 8} : given.margin;
    const layout = {...given, margin, font: {color: pick('ink'), family: 'system-ui, sans-serif', size: narrow.matches ? 11 : 13},
      xaxis: {...given.xaxis, ...axis}, yaxis: {...given.yaxis, ...axis}};
    Plotly.react(id, data, layout, {responsive: true, displaylogo: false, displayModeBar: false});
  }
  cursor();
}

function cursor() {
  if (typeof Play === 'undefined') return;
  for (const line of document.querySelectorAll('.cursor')) {
    const plot = document.getElementById(line.dataset.of), full = plot && plot._fullLayout;
    if (!full || !full.xaxis) continue;
    const at = full.xaxis.l2p(Play.t), inside = at >= 0 && at <= full.xaxis._length;
    Object.assign(line.style, {display: inside ? 'block' : 'none', left: `${full.xaxis._offset + at - 1}px`,
      top: `${full.yaxis._offset}px`, height: `${full.yaxis._length}px`});
  }
}

paint();
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
narrow.addEventListener('change', paint);
window.addEventListener('resize', () => setTimeout(cursor, 50));
if (typeof Play !== 'undefined') {
  Play.watchers.push(cursor);
  for (const line of document.querySelectorAll('.cursor')) {
    const plot = document.getElementById(line.dataset.of);
    plot.on('plotly_click', (event) => { Play.playing = false; Play.set(event.points[0].x); });
  }
}
