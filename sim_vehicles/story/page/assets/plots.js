// Plotly's figures in the page's colours, and the moment that the scene shows as a line in the plots over time.
'use strict';
const narrow = window.matchMedia('(max-width: 640px)');

function paint(id) {
  const style = getComputedStyle(document.documentElement), pick = (name) => style.getPropertyValue('--' + name).trim();
  const swap = (value) => typeof value === 'string' ? value.replace(/^var\(--([a-z0-9]+)\)$/, (_, name) => pick(name))
    : Array.isArray(value) ? value.map(swap)
    : value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, swap(one)])) : value;
  const plot = document.getElementById(id), figure = FIGURES[id], rule = pick('rule'), axis = {gridcolor: rule, zerolinecolor: rule, linecolor: rule};
  if (!plot.checkVisibility()) return;   // until its details are opened
  const given = swap(figure.layout), data = swap(figure.data);
  if (narrow.matches) given.annotations = (given.annotations || []).filter((note) => note.name !== 'wide');
  const margin = narrow.matches ? {...given.margin, l: Math.min(given.margin.l, 48), r: 8} : given.margin;
  const layout = {...given, margin, font: {color: pick('ink'), family: 'system-ui, sans-serif', size: narrow.matches ? 11 : 13},
    hoverlabel: {bgcolor: pick('card'), bordercolor: pick('soft'), font: {color: pick('ink')}},
    xaxis: {...given.xaxis, ...axis}, yaxis: {...given.yaxis, ...axis}};
  Plotly.react(plot, data, layout, {responsive: true, displaylogo: false, displayModeBar: false}).then(() => { plot.dataset.drawn = ''; cursor(); });
}

const paintAll = () => Object.keys(FIGURES).forEach(paint);

function cursor() {
  for (const line of document.querySelectorAll('.cursor')) {
    const full = document.getElementById(line.dataset.of)._fullLayout;
    if (!full || !full.xaxis) continue;
    const at = full.xaxis.l2p(Play.t), inside = at >= 0 && at <= full.xaxis._length;
    Object.assign(line.style, {display: inside ? 'block' : 'none', left: `${full.xaxis._offset + at - 1}px`,
      top: `${full.yaxis._offset}px`, height: `${full.yaxis._length}px`});
  }
}

function wideTables() {   // a table that is wider than its place says that it scrolls
  for (const one of document.querySelectorAll('.scroll')) one.classList.toggle('wide', one.scrollWidth > one.clientWidth + 1);
}

async function begin() {
  const packed = Uint8Array.from(atob(document.getElementById('plotly').textContent), (letter) => letter.charCodeAt(0));
  const script = document.createElement('script');
  script.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
  document.head.append(script);
  paintAll();
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paintAll);
  narrow.addEventListener('change', paintAll);
  window.addEventListener('resize', () => setTimeout(cursor, 50));
  Play.watchers.push(cursor);
  for (const details of document.querySelectorAll('details')) details.addEventListener('toggle', () => {
    for (const plot of details.querySelectorAll('.plot')) paint(plot.id);
    wideTables();
  });
  for (const line of document.querySelectorAll('.cursor')) {
    document.getElementById(line.dataset.of).on('plotly_click', (event) => { Play.playing = false; Play.set(event.points[0].x); });
  }
}

wideTables();
window.addEventListener('resize', wideTables);
begin();
