// Draws the page's plots when they are scrolled to, from the JSON beside each, and the tables behind them when those are
// opened. Nothing is loaded. Text goes in as text, never as markup, since names come from users' files.
'use strict';
(() => {
  const NS = 'http://www.w3.org/2000/svg';

  function make(parent, name, attributes = {}, text) {
    const element = parent.namespaceURI === NS || name === 'svg'
      ? document.createElementNS(NS, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  // -- numbers

  function ticks(from, to, most) {
    const rough = (to - from) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough) || power;
    const found = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) found.push(n * step);
    return found;
  }

  const number = (value, digits = 4) => value === null || value === undefined ? '–'
    : Number(value.toPrecision(digits)).toLocaleString('en', {maximumFractionDigits: 6});

  const UNITS = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];
  const unit = ns => UNITS.find(([, scale]) => ns >= scale) || UNITS[3];
  function span(ns) {
    const [name, scale] = unit(Math.abs(ns));
    return `${number(ns / scale)} ${name}`;
  }

  // -- a tip beside the pointer

  const tip = make(document.body, 'div', {class: 'tip', hidden: '', role: 'status'});
  function show(text, x, y) {
    tip.textContent = text;
    tip.hidden = !text;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 16 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 16}px`;
  }
  const hide = () => { tip.hidden = true; };
  addEventListener('scroll', hide, {passive: true});
  addEventListener('keydown', event => { if (event.key === 'Escape') hide(); });

  function legend(figure, entries) {
    if (entries.length < 2) return;
    const list = make(figure, 'ul', {class: 'legend'});
    for (const [css, text] of entries) {
      const item = make(list, 'li');
      make(item, 'span', {class: `key ${css}`});
      make(item, 'span', {}, text);
    }
  }

  // -- lines: {x: label, y: label, height, most?, at?, series: [{name, css, kind, x?, y}], marks: [{axis, at, css, text}]}
  // kind: line, step, band (between the series that `of` names), area (on those before it), pin (points). A step or an area
  // begins at its x. Where a series has no x it is that of the series `same`, or `at`, of all.

  function complete(data) {
    let below = null;
    for (const one of data.series) {
      one.x ??= one.same === undefined ? data.at : data.series[one.same].x;
      if (one.of) [one.lo, one.y] = one.of.map(n => data.series[n].y);
      if (one.kind === 'area') {
        one.lo = below || one.y.map(() => 0);
        below = one.y = one.y.map((value, n) => value + one.lo[n]);
      }
    }
    return data;
  }

  function lines(figure, data, width) {
    const height = data.height || 230, left = 46, right = 10, top = 18, bottom = data.x ? 36 : 20;
    const every = data.series.flatMap(one => one.x), marks = data.marks || [];
    const inside = marks.filter(mark => mark.axis === 'x').map(mark => mark.at);
    const x0 = data.from ?? 0, x1 = Math.max(data.to ?? 0, ...every, ...inside) || 1;
    const y1 = data.most ?? (1.08 * Math.max(
      ...data.series.flatMap(one => one.y.map(value => value ?? 0)),
      ...marks.filter(mark => mark.axis === 'y').map(mark => mark.at), 0) || 1);
    const px = x => left + (x - x0) / (x1 - x0) * (width - left - right);
    const py = y => height - bottom - Math.min(1.02, y / y1) * (height - top - bottom);
    const svg = make(figure, 'svg', {viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: 'img',
      'aria-label': `${figure.getAttribute('aria-label')}. Arrow keys read values; a table follows.`});
    for (const y of ticks(0, y1, (height - top - bottom) / 38)) {
      make(svg, 'line', {class: 'grid', x1: left, x2: width - right, y1: py(y), y2: py(y)});
      make(svg, 'text', {x: left - 5, y: py(y) + 4, 'text-anchor': 'end'}, number(y));
    }
    for (const x of ticks(x0, x1, (width - left - right) / 70)) {
      make(svg, 'line', {class: 'axis', x1: px(x), x2: px(x), y1: height - bottom, y2: height - bottom + 4});
      make(svg, 'text', {x: px(x), y: height - bottom + 15, 'text-anchor': 'middle'}, number(x));
    }
    make(svg, 'line', {class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom});
    if (data.x) make(svg, 'text', {x: width - right, y: height - 4, 'text-anchor': 'end'}, data.x);
    if (data.y) make(svg, 'text', {x: 2, y: 10}, data.y);
    for (const one of data.series) parts(one).forEach(part => draw(svg, part, px, py, x1));
    for (const mark of marks) {
      const at = mark.axis === 'x' ? px(mark.at) : py(mark.at), wide = mark.axis === 'y';
      make(svg, 'line', {class: `mark ${mark.css}`,
        ...(wide ? {x1: left, x2: width - right, y1: at, y2: at} : {x1: at, x2: at, y1: top, y2: height - bottom})});
      const tight = !wide && at > width - 90;
      make(svg, 'text', {class: mark.css, 'text-anchor': wide || tight ? 'end' : 'start',
        x: wide ? width - right - 2 : at + (tight ? -3 : 3), y: wide ? at - 4 : top + (mark.row || 0) * 13 + 3}, mark.text);
    }
    const cursor = make(svg, 'line', {class: 'cursor', y1: top, y2: height - bottom, visibility: 'hidden'});
    const known = data.series.flatMap(one => one.x.filter((_, n) => one.y[n] !== null));
    const stops = [...new Set(known)].sort((a, b) => a - b);
    let stop = -1;
    function read(x, clientX, clientY) {
      cursor.setAttribute('x1', px(x));
      cursor.setAttribute('x2', px(x));
      cursor.setAttribute('visibility', 'visible');
      const told = data.series.filter(one => one.name).map(one => [one.name, valueAt(one, x)])
        .filter(([, value]) => value !== null).map(([name, value]) => `${name}: ${number(value)}`);
      show([`${data.x || 'at'}: ${number(x)}`, ...told].join('\n'), clientX, clientY);
    }
    svg.addEventListener('pointermove', event => {
      if (!stops.length) return;
      const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * width;
      const x = x0 + (at - left) / (width - left - right) * (x1 - x0);
      stop = nearest(stops, x);
      read(stops[stop], event.clientX, event.clientY);
    });
    const leave = () => { cursor.setAttribute('visibility', 'hidden'); hide(); };
    svg.addEventListener('pointerleave', leave);
    svg.addEventListener('blur', leave);
    svg.addEventListener('keydown', event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step || !stops.length) return;
      event.preventDefault();
      stop = Math.max(0, Math.min(stops.length - 1, stop + step));
      const box = svg.getBoundingClientRect();
      read(stops[stop], box.left + px(stops[stop]) / width * box.width, box.top + 20);
    });
    legend(figure, data.series.filter(one => one.name).map(one => [`${one.css} ${one.kind}${one.thin ? ' thin' : ''}`, one.name]));
  }

  function parts(one) {  // what lies between gaps, which are nulls
    const found = [];
    let part = null;
    one.x.forEach((x, n) => {
      if (one.y[n] === null) { part = null; return; }
      if (!part) found.push(part = {...one, x: [], y: [], lo: one.lo && []});
      part.x.push(x);
      part.y.push(one.y[n]);
      if (one.lo) part.lo.push(one.lo[n]);
    });
    return found;
  }

  function draw(svg, one, px, py, x1) {
    const points = (values, ends) => one.x.map((x, n) => {
      const next = n + 1 < one.x.length ? one.x[n + 1] : Math.min(x1, x + (one.width || 0));
      const y = py(values[n]);
      return ends ? `${px(x).toFixed(1)},${y.toFixed(1)} ${px(next).toFixed(1)},${y.toFixed(1)}` : `${px(x).toFixed(1)},${y.toFixed(1)}`;
    });
    if (one.kind === 'pin') {
      one.x.forEach((x, n) => make(svg, 'circle', {class: `pin ${one.css}`, cx: px(x), cy: py(one.y[n]), r: 2.4}));
    } else if (one.kind === 'band' || one.kind === 'area') {
      const ends = one.kind === 'area', base = one.lo || one.x.map(() => 0);
      const back = points(base, ends).reverse().map(pair => pair.split(' ').reverse().join(' '));
      make(svg, 'polygon', {class: `${one.kind} ${one.css}`, points: [...points(one.y, ends), ...back].join(' ')});
    } else if (one.x.length === 1 && one.kind === 'line') {
      make(svg, 'circle', {class: `pin ${one.css}`, cx: px(one.x[0]), cy: py(one.y[0]), r: 1.6});
    } else {
      make(svg, 'polyline', {class: `line ${one.thin ? 'thin' : ''} ${one.css}`, points: points(one.y, one.kind === 'step').join(' ')});
    }
  }

  function nearest(sorted, x) {
    let low = 0, high = sorted.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < x) low = middle + 1; else high = middle;
    }
    return low > 0 && x - sorted[low - 1] < sorted[low] - x ? low - 1 : low;
  }

  function valueAt(one, x) {
    if (!one.x.length) return null;
    const n = one.x.indexOf(x);
    if (n < 0) return one.kind === 'line' || one.kind === 'step' ? one.y[nearest(one.x, x)] : null;
    return one.kind === 'area' && one.lo ? one.y[n] - one.lo[n] : one.y[n];
  }

  function linesTable(data) {
    const shown = data.series.filter(one => one.name), rows = new Map();
    shown.forEach((one, column) => one.x.forEach((x, n) => {
      if (one.y[n] === null) return;
      if (!rows.has(x)) rows.set(x, Array(shown.length).fill(null));
      rows.get(x)[column] = one.kind === 'area' && one.lo ? one.y[n] - one.lo[n] : one.y[n];
    }));
    const sorted = [...rows].sort(([a], [b]) => a - b);
    return [[data.x || 'at', ...shown.map(one => one.name)], sorted.map(([x, cells]) => [number(x), ...cells.map(y => number(y))])];
  }

  // -- lanes: {from, length, kinds: [[css, text]], rows: [{label, bars: [gap to the one before, length, n, kind, ...], texts?}],
  // marks: [{at, css, text}]}, all in ns; a bar without a length is a tick

  function unfolded(row) {
    const found = [];
    for (let n = 0, at = 0; n < row.bars.length; n += 4) {
      at += row.bars[n];
      found.push({from: at, length: row.bars[n + 1], n: row.bars[n + 2], kind: row.bars[n + 3], text: (row.texts || {})[n / 4]});
    }
    return found;
  }

  function lanes(figure, data, width) {
    const rows = data.rows.map(row => ({label: row.label, bars: unfolded(row)}));
    const top = (data.marks || []).length ? 14 : 0, tall = 36, bar = 16, axis = 22, height = top + rows.length * tall + axis;
    const whole = {from: 0, to: data.length}, view = figure.view || {...whole};
    figure.view = view;
    const tools = make(figure, 'div', {class: 'tools'});
    const svg = make(figure, 'svg', {viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: 'img',
      'aria-label': `${figure.getAttribute('aria-label')}. Plus and minus zoom, arrow keys move, 0 shows all; a table follows.`});
    const px = ns => (ns - view.from) / (view.to - view.from) * width;

    function paint() {
      svg.replaceChildren();
      const [name, scale] = unit(view.to - view.from);
      rows.forEach((row, n) => {
        const y = top + n * tall + 15;
        make(svg, 'rect', {class: 'lane', x: 0, y, width, height: bar});
        for (const one of row.bars) {
          one.box = null;
          const left = Math.max(-2, px(one.from)), right = Math.min(width + 2, px(one.from + one.length));
          if (right < 0 || left > width) continue;
          const css = data.kinds[one.kind][0];
          one.box = [left, Math.max(right, left + 1.5), n];
          make(svg, 'rect', {class: `pin ${css}`, x: left.toFixed(1), y: one.length ? y : y - 2, rx: one.length ? 1 : 0,
            width: Math.max(1.5, right - left).toFixed(1), height: one.length ? bar : bar + 4});
        }
      });
      for (const mark of data.marks || []) {
        if (mark.at < view.from || mark.at > view.to) continue;
        make(svg, 'line', {class: `mark ${mark.css}`, x1: px(mark.at), x2: px(mark.at), y1: top, y2: height - axis});
        const late = px(mark.at) > width / 2;
        make(svg, 'text', {class: mark.css, x: px(mark.at) + (late ? -3 : 3), y: 10, 'text-anchor': late ? 'end' : 'start'}, mark.text);
      }
      rows.forEach((row, n) => make(svg, 'text', {class: 'label', x: 2, y: top + n * tall + 11}, row.label));
      const shift = data.from || 0;
      for (const at of ticks((view.from + shift) / scale, (view.to + shift) / scale, width / 80)) {
        const x = px(at * scale - shift);
        make(svg, 'line', {class: 'axis', x1: x, x2: x, y1: height - axis, y2: height - axis + 4});
        make(svg, 'text', {x, y: height - 5, 'text-anchor': x < 20 ? 'start' : x > width - 30 ? 'end' : 'middle'}, `${number(at, 7)} ${name}`);
      }
    }

    function zoom(factor, middle = (view.from + view.to) / 2) {
      const length = Math.min(data.length, Math.max(1000, (view.to - view.from) * factor));
      const share = (middle - view.from) / (view.to - view.from);
      move(middle - share * length, length);
    }
    function move(from, length = view.to - view.from) {
      view.from = Math.max(0, Math.min(data.length - length, from));
      view.to = view.from + length;
      hide();
      paint();
    }
    const all = () => move(0, data.length);
    for (const [text, label, act] of [['−', 'Zoom out', () => zoom(2)], ['+', 'Zoom in', () => zoom(0.5)],
      ['All', 'Show all', all]]) {
      const button = make(tools, 'button', {type: 'button', 'aria-label': label, title: label}, text);
      button.addEventListener('click', act);
    }
    const position = event => {
      const box = svg.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width * width, (event.clientY - box.top) / box.height * height];
    };
    const instant = x => view.from + x / width * (view.to - view.from);
    svg.addEventListener('keydown', event => {
      const length = view.to - view.from;
      const act = {'+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), '0': all,
        ArrowLeft: () => move(view.from - length / 5), ArrowRight: () => move(view.from + length / 5)}[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    svg.addEventListener('wheel', event => {  // pinching, or with the control key: without it the page scrolls
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, instant(position(event)[0]));
    }, {passive: false});
    svg.addEventListener('dblclick', event => zoom(0.4, instant(position(event)[0])));
    let held = null;
    svg.addEventListener('pointerdown', event => { held = {x: event.clientX, from: view.from}; });
    const release = () => { held = null; };
    svg.addEventListener('pointerup', release);
    svg.addEventListener('pointercancel', release);
    svg.addEventListener('pointerleave', () => { release(); hide(); });
    svg.addEventListener('pointermove', event => {
      if (held && Math.abs(event.clientX - held.x) > 3 && view.to - view.from < data.length) {
        const width = svg.getBoundingClientRect().width;
        move(held.from - (event.clientX - held.x) / width * (view.to - view.from));
        return;
      }
      const [x, y] = position(event), n = Math.floor((y - top) / tall);
      const found = rows[n] && rows[n].bars.findLast(one => one.box && one.box[0] - 2 <= x && x <= one.box[1] + 2);
      if (!found) { hide(); return; }
      show(told(data, rows[n].label, found), event.clientX, event.clientY);
    });
    paint();
    const seen = new Set(rows.flatMap(row => row.bars.map(one => one.kind)));
    legend(figure, data.kinds.filter((_, n) => seen.has(n)));
  }

  function told(data, label, one) {
    const when = `from ${span(one.from + (data.from || 0))}${one.length ? `, for ${span(one.length)}` : ''}`;
    const many = one.n > 1 ? `${number(one.n, 9)} ` : '';
    return `${label}: ${many}${data.kinds[one.kind][1]}\n${when}${one.text ? `\n${one.text}` : ''}`;
  }

  function lanesTable(data) {
    const rows = data.rows.flatMap(row => unfolded(row).map(one => [row.label, span(one.from + (data.from || 0)), span(one.length),
      data.kinds[one.kind][1], number(one.n, 9), one.text || '']));
    return [['where', 'from', 'for', 'what', 'how many', ''], rows];
  }

  // -- when what is drawn

  const KINDS = {lines: [lines, linesTable], lanes: [lanes, lanesTable]};
  const MOST_ROWS = 2000;
  const drawn = new Map();

  function dataOf(figure) {
    if (!drawn.has(figure)) {
      const data = JSON.parse(figure.querySelector('script').textContent);
      drawn.set(figure, data.series ? complete(data) : data);
    }
    return drawn.get(figure);
  }
  function render(figure) {
    const width = Math.floor(figure.clientWidth);
    if (!width || figure.dataset.width === String(width)) return;
    const data = dataOf(figure), script = figure.querySelector('script');
    figure.replaceChildren(script);
    figure.dataset.width = String(width);
    KINDS[figure.dataset.kind][0](figure, data, width);
    figure.dataset.drawn = '';
  }
  function fill(details) {
    if (!details.open || details.querySelector('table')) return;
    const figure = details.previousElementSibling;
    const [head, rows] = KINDS[figure.dataset.kind][1](dataOf(figure));
    const box = make(details, 'div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table'});
    const table = make(box, 'table'), top = make(make(table, 'thead'), 'tr'), body = make(table, 'tbody');
    for (const text of head) make(top, 'th', {scope: 'col'}, text);
    for (const cells of rows.slice(0, MOST_ROWS)) {
      const line = make(body, 'tr');
      for (const text of cells) make(line, 'td', {}, text);
    }
    if (rows.length > MOST_ROWS) make(details, 'p', {}, `${number(rows.length - MOST_ROWS, 9)} more rows are left out.`);
  }

  const resized = new ResizeObserver(entries => entries.forEach(({target}) => requestAnimationFrame(() => render(target))));
  const seen = new IntersectionObserver(entries => entries.forEach(({target, isIntersecting}) => {
    if (isIntersecting) {
      seen.unobserve(target);
      render(target);
      resized.observe(target);
    }
  }), {rootMargin: '200px'});
  document.querySelectorAll('figure.plot').forEach(figure => seen.observe(figure));
  document.addEventListener('toggle', event => {
    if (event.target.classList.contains('made')) fill(event.target);
  }, true);
  function follow() {  // a link into what is folded opens it
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let each = target.querySelector(':scope > details'); each; each = each.parentElement) {
      if (each.tagName === 'DETAILS') each.open = true;
    }
    target.scrollIntoView();
  }
  addEventListener('hashchange', follow);
  follow();
})();
