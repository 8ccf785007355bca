// Rows over time (who sees it, messages, events), and the controls that all panels share.
'use strict';
const PAD = 8;   // left and right of the rows

class Rows {
  constructor(svg) { this.svg = svg; }

  x(t) {
    const {start_s, end_s} = DATA.scene;
    return PAD + (t - start_s) / (end_s - start_s) * (this.width - 2 * PAD);
  }

  time(x) {
    const {start_s, end_s} = DATA.scene;
    return start_s + (x - PAD) / (this.width - 2 * PAD) * (end_s - start_s);
  }

  build() {
    this.width = this.svg.clientWidth;
    const shapes = [], scene = DATA.scene;
    let y = 0;
    const title = (text) => { y += 16; shapes.push(shape('text', {x: PAD, y: y - 4}, text)); };
    const base = (high) => shapes.push(shape('line', {x1: PAD, x2: this.width - PAD, y1: y + high / 2, y2: y + high / 2, class: 'rule'}));
    const bar = (p, high, text) => {
      const x = this.x(p.from_s);
      shapes.push(shape('rect', {x, y: y + high / 2 - 3, width: Math.max(2, this.x(p.until_s) - x), height: 6, rx: 3, class: 'sight'}));
      if (text) shapes.push(shape('text', {x: x - 4, y: y + high / 2 + 4, 'text-anchor': 'end', class: 'who'}, text));
    };
    const seers = [...new Set(DATA.runs[0].perceives.map((p) => p.who))].filter((who) => who !== scene.ego);
    const first = (who) => Math.min(...DATA.runs[0].perceives.filter((p) => p.who === who).map((p) => p.from_s));
    if (seers.length) title(`who sees ${scene.crossing}`);
    for (const who of seers.sort((a, b) => first(a) - first(b))) {
      for (const p of DATA.runs[0].perceives.filter((p) => p.who === who)) bar(p, 16, p.from_s === first(who) && this.x(p.from_s) > 3 * PAD ? who : '');
      y += 16;
    }
    for (const run of DATA.runs) {
      title(DATA.runs.length > 1 ? run.name : 'messages and events');
      base(16);
      for (const about of [0, 1]) {
        const high = about ? 7 : 4, d = run.messages.filter((m) => m[2] === about).map((m) => `M${this.x(m[0]).toFixed(1)} ${y + 8 - high}v${2 * high}`).join('');
        if (d) shapes.push(shape('path', {d, class: about ? 'message' : 'radio'}));
      }
      y += 18;
      base(16);
      for (const p of run.perceives.filter((p) => p.who === scene.ego)) bar(p, 16, '');
      for (const event of run.events.filter((one) => one.kind !== 'message')) shapes.push(this.event(event, y + 8));
      y += 20;
    }
    const span = scene.end_s - scene.start_s, every = [0.5, 1, 2, 5, 10, 20, 60, 300].find((s) => (this.width - 2 * PAD) / span * s > 52) || 600;
    for (let s = Math.ceil(scene.start_s / every) * every; s <= scene.end_s + 1e-9; s += every) {
      const x = this.x(s), anchor = x < 20 ? 'start' : x > this.width - 20 ? 'end' : 'middle';
      shapes.push(shape('text', {x: anchor === 'middle' ? x : anchor === 'start' ? 0 : this.width, y: y + 14, 'text-anchor': anchor}, `${+s.toFixed(1)} s`));
    }
    this.cursor = shape('line', {y1: 0, y2: y, class: 'now'});
    this.svg.style.height = `${y + 18}px`;
    this.svg.replaceChildren(...shapes, this.cursor);
  }

  event(event, y) {
    const x = this.x(event.at_s), look = {class: `event ${event.look}`};
    if (event.kind === 'knew') return shape('path', {d: `M${x} ${y - 7}l7 12h-14z`, ...look});
    if (event.kind === 'limit') return shape('path', {d: `M${x} ${y - 7}l6 7l-6 7l-6 -7z`, ...look});
    if (event.kind === 'contact') return shape('path', {d: `M${x - 6} ${y - 3}l3 -3l3 3l3 -3l3 3l-3 3l3 3l-3 3l-3 -3l-3 3l-3 -3l3 -3z`, ...look});
    if (event.kind === 'sight') return shape('circle', {cx: x, cy: y, r: 5.5, ...look});
    return shape('rect', {x: x - 5, y: y - 5, width: 10, height: 10, ...look});
  }

  draw(t) {
    if (this.svg.clientWidth !== this.width) this.build();
    const x = this.x(t);
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
  }
}

function leftAt(line, t) {
  if (!line) return null;
  const place = (t - line.from_s) / line.step_s, i = Math.floor(place + 1e-9), j = Math.min(i + 1, line.metres.length - 1);
  if (i < 0 || i > j) return null;
  return line.metres[i] + (place - i) * (line.metres[j] - line.metres[i]);
}

function state(run, t) {
  const {ego, crossing} = DATA.scene;
  if (past(run.impact_s, t)) return [`contact at ${run.impact_kmh.toFixed(0)} km/h`, 'bad'];
  if (past(run.stopped_s, t)) return [`${ego} stands`, 'good'];
  if (past(run.begins_s, t)) return [`${ego} brakes`, 'warn'];
  if (past(run.knew_s, t)) return [`${ego} is warned, the brake reacts`, 'warn'];
  const seen = run.perceives.filter((p) => p.from_s <= t && t <= p.until_s).map((p) => p.who);
  if (seen.length) return [`${seen.join(', ')} ${seen.length > 1 ? 'see' : 'sees'} ${crossing}; ${ego} is not warned`, 'warn'];
  return [crossing ? `nobody sees ${crossing} yet` : '', 'soft'];
}

function readout(run, now) {
  const t = untilContact(run, now), {ego, crossing, step_s} = DATA.scene, where = sampleOf(run.ego, t, step_s), left = leftAt(run.left, t);
  if (!where) return '';
  const speed = `${ego} ${(where.speed * 3.6).toFixed(0)} km/h`;
  return speed + (left === null ? '' : left < 0 ? `, ${(-left).toFixed(1)} m into ${crossing}’s way` : `, ${left.toFixed(1)} m to ${crossing}’s way`);
}

function start() {
  const by = (id) => document.getElementById(id), track = by('track'), play = by('play'), seek = by('seek'), rows = new Rows(by('times'));
  const panels = [...document.querySelectorAll('.panel')].map((panel, i) => {
    const find = (name) => panel.querySelector(name), run = DATA.runs[i];
    return {run, canvas: find('canvas'), speed: find('.speed'), said: find('.said'), view: sceneView(find('canvas'), find('svg'), run)};
  });
  let drawn = null;
  const show = () => {
    const t = Play.t;
    drawn = null;
    for (const {run, speed, said, view} of panels) {
      view(t);
      const [text, kind] = state(run, t);
      speed.textContent = readout(run, t);
      said.textContent = text; said.className = 'said ' + kind;
    }
    rows.draw(t);
    document.querySelectorAll('.clock').forEach((clock) => { clock.textContent = `${t.toFixed(2)} s`; });
    play.textContent = Play.playing ? '❚❚ pause' : '▶ play';
    seek.value = t;
    seek.setAttribute('aria-valuetext', `${t.toFixed(2)} seconds; ${panels.map(({run}) => `${run.name}: ${state(run, t)[0]}`).join('; ')}`);
    document.querySelectorAll('.chips button').forEach((chip) => chip.classList.toggle('now', Math.abs(+chip.dataset.at - t) < 0.006));
  };
  const later = () => { if (drawn === null) drawn = requestAnimationFrame(show); };
  const stopAt = (t) => { Play.playing = false; Play.set(t); };
  Play.watchers.push(later);
  play.addEventListener('click', () => Play.toggle());
  by('rate').addEventListener('change', (event) => { Play.speed = +event.target.value; });
  seek.addEventListener('input', () => stopAt(+seek.value));
  document.querySelectorAll('.chips button').forEach((chip) => chip.addEventListener('click', () => stopAt(+chip.dataset.at)));
  const point = (event) => stopAt(rows.time(event.clientX - track.getBoundingClientRect().left));
  track.addEventListener('pointerdown', (event) => { track.setPointerCapture(event.pointerId); point(event); });
  track.addEventListener('pointermove', (event) => { if (track.hasPointerCapture(event.pointerId)) point(event); });
  for (const {canvas} of panels) {
    canvas.addEventListener('click', () => Play.toggle());
    new ResizeObserver(later).observe(canvas);
  }
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const place = document.querySelector('section.scene').getBoundingClientRect();
    if (place.bottom < 0 || place.top > window.innerHeight) return;   // elsewhere on the page the keys scroll
    const button = event.target.tagName === 'BUTTON' || event.target.tagName === 'SUMMARY', step = event.shiftKey ? 0.5 : 0.05;
    if (event.key === ' ' && !button) { event.preventDefault(); Play.toggle(); }
    else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      event.preventDefault(); stopAt(Play.t + (event.key === 'ArrowRight' ? step : -step));
    }
  });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', later);
  still.addEventListener('change', later);
  const asked = /^#t=([0-9.]+)$/.exec(location.hash);   // scene.html#t=10.5 opens at that moment
  if (asked) Play.set(+asked[1]);
  show();
}
start();
