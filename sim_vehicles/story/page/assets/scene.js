// The scene from above, played back. DATA comes from replay.json; every text is drawn, never parsed as HTML.
'use strict';
const FLIGHT_S = 0.25;   // a message is drawn for this long, or nobody would see it
const FLASH_S = 0.7;
const still = window.matchMedia('(prefers-reduced-motion: reduce)');

const theme = () => {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, {get: (_, name) => style.getPropertyValue('--' + name).trim()});
};

// -- motion

function sampleOf(car, t, step) {
  const place = (t - car.from_s) / step, last = car.x_m.length - 1;
  if (place < -1e-6 || place > last + 1e-6) return null;
  const i = Math.max(0, Math.min(Math.floor(place), last)), j = Math.min(i + 1, last), k = Math.min(1, Math.max(0, place - i));
  const mix = (column) => column[i] + k * (column[j] - column[i]);
  let turn = car.heading_rad[j] - car.heading_rad[i];
  turn = Math.atan2(Math.sin(turn), Math.cos(turn));
  return {x: mix(car.x_m), y: mix(car.y_m), heading: car.heading_rad[i] + k * turn, speed: mix(car.speed_mps),
    slowing: j > i && (car.speed_mps[j] - car.speed_mps[i]) / step < -0.8};
}

const Play = {
  t: DATA.begin_s, playing: false, speed: 0.5, last: 0, watchers: [],
  set(t) {
    this.t = Math.min(DATA.scene.end_s, Math.max(DATA.scene.start_s, t));
    for (const watch of this.watchers) watch(this.t);
  },
  toggle() {
    if (!this.playing && this.t >= DATA.finish_s - 1e-6 && this.t < DATA.finish_s + 0.01) this.set(DATA.begin_s);
    if (!this.playing && this.t >= DATA.scene.end_s - 1e-6) this.set(DATA.begin_s);
    this.playing = !this.playing;
    this.last = performance.now();
    if (this.playing) requestAnimationFrame((now) => this.frame(now));
    for (const watch of this.watchers) watch(this.t);
  },
  frame(now) {
    if (!this.playing) return;
    const before = this.t, next = before + Math.max(0, now - this.last) / 1000 * this.speed;
    this.last = now;
    const end = before < DATA.finish_s - 1e-6 ? DATA.finish_s : DATA.scene.end_s;
    if (next >= end) this.playing = false;
    this.set(Math.min(next, end));
    if (this.playing) requestAnimationFrame((at) => this.frame(at));
  },
};

// -- the camera: everything that matters at an instant, smoothed over time

function cameraTrack() {
  const scene = DATA.scene, every = 0.1, raw = [];
  const seers = (t) => scene.perceives.filter((p) => p.from_s <= t && t <= p.until_s).map((p) => p.who);
  for (let t = scene.start_s; t <= scene.end_s + 1e-9; t += every) {
    const [cx, cy] = DATA.centre, box = [cx - 14, cx + 14, cy - 14, cy + 14];
    for (const id of new Set([scene.ego, scene.crossing, ...seers(t)])) {
      const car = scene.vehicles[id], at = car && sampleOf(car, t, scene.step_s);
      const reach = id === scene.ego || (id === scene.crossing && t < DATA.finish_s) ? 70 : 30;
      if (!at || Math.hypot(at.x - cx, at.y - cy) > reach) continue;
      box[0] = Math.min(box[0], at.x - 7); box[1] = Math.max(box[1], at.x + 7);
      box[2] = Math.min(box[2], at.y - 7); box[3] = Math.max(box[3], at.y + 7);
    }
    raw.push(box);
  }
  const reach = 8, smooth = raw.map((_, i) => {
    const near = raw.slice(Math.max(0, i - reach), i + reach + 1);
    return [0, 1, 2, 3].map((side) => near.reduce((sum, box) => sum + box[side], 0) / near.length);
  });
  const widest = raw.reduce((all, box) => all.map((v, i) => i % 2 ? Math.max(v, box[i]) : Math.min(v, box[i])));
  return (t) => {
    if (still.matches) return widest;
    const place = Math.max(0, Math.min((t - scene.start_s) / every, smooth.length - 1));
    const i = Math.floor(place), j = Math.min(i + 1, smooth.length - 1), k = place - i;
    return smooth[i].map((v, side) => v + k * (smooth[j][side] - v));
  };
}

// -- drawing

function sceneView(canvas) {
  const scene = DATA.scene, cameraAt = cameraTrack(), pen = canvas.getContext('2d');
  let colour = theme(), scale = 1, ox = 0, oy = 0, width = 0, height = 0;
  const px = (x) => ox + x * scale, py = (y) => oy - y * scale;
  const path = (points) => { pen.beginPath(); points.forEach(([x, y], i) => i ? pen.lineTo(px(x), py(y)) : pen.moveTo(px(x), py(y))); };
  const at = (id, t) => { const car = scene.vehicles[id]; return car ? sampleOf(car, t, scene.step_s) : null; };

  function fit(t) {
    const ratio = window.devicePixelRatio || 1;
    width = canvas.clientWidth; height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [x0, x1, y0, y1] = cameraAt(t);
    scale = Math.min(width / (x1 - x0), height / (y1 - y0));
    ox = width / 2 - (x0 + x1) / 2 * scale; oy = height / 2 + (y0 + y1) / 2 * scale;
  }

  function ground() {
    pen.fillStyle = colour.ground; pen.fillRect(0, 0, width, height);
    pen.lineJoin = 'round'; pen.lineCap = 'butt';
    const wide = (road) => 2 * road.lanes_each_way * road.lane_width_m;
    for (const [extra, shade] of [[0.5, colour.edge], [0, colour.road]]) {
      for (const road of scene.roads) {
        path(road.line); pen.strokeStyle = shade; pen.lineWidth = (wide(road) + 2 * extra) * scale; pen.stroke();
      }
    }
    for (const road of scene.roads) {   // middle lines end where the roads meet
      const half = Math.max(...scene.roads.map(wide)) / 2 + 1;
      pen.save(); pen.beginPath(); pen.rect(0, 0, width, height);
      pen.rect(px(DATA.junction[0] - half), py(DATA.junction[1] + half), 2 * half * scale, 2 * half * scale);
      pen.clip('evenodd');
      path(road.line); pen.strokeStyle = colour.lane; pen.lineWidth = Math.max(1, 0.14 * scale);
      pen.setLineDash([3 * scale, 3 * scale]); pen.stroke(); pen.restore();
    }
    pen.setLineDash([]);
  }

  function buildings() {
    for (const one of scene.occluders) {
      path(one.polygon); pen.closePath();
      pen.fillStyle = colour.building; pen.fill();
      pen.save(); pen.clip(); pen.strokeStyle = colour.roof; pen.lineWidth = 1; pen.globalAlpha = 0.55;
      for (let d = -height; d < width; d += 11) { pen.beginPath(); pen.moveTo(d, 0); pen.lineTo(d + height, height); pen.stroke(); }
      pen.restore();
      pen.strokeStyle = colour.roof; pen.lineWidth = 1.5; path(one.polygon); pen.closePath(); pen.stroke();
    }
    pen.font = '12px system-ui, sans-serif'; pen.textAlign = 'center';
    for (const one of scene.occluders) {
      const shown = clipped(one.polygon);
      if (shown) tag(one.name, shown[0], shown[1], colour.soft, false);
    }
  }

  function clipped(polygon) {   // a place for a building's name: the middle of its visible part
    let [x, y, n] = [0, 0, 0];
    for (let i = 1; i < 12; i += 1) for (let j = 1; j < 12; j += 1) {
      const sx = width * i / 12, sy = height * j / 12, wx = (sx - ox) / scale, wy = (oy - sy) / scale;
      if (inside(wx, wy, polygon)) { x += sx; y += sy; n += 1; }
    }
    return n > 5 ? [x / n, y / n] : null;
  }

  function inside(x, y, polygon) {
    let found = false;
    for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
      const [ax, ay] = polygon[i], [bx, by] = polygon[j];
      if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) found = !found;
    }
    return found;
  }

  function sights(t) {
    const target = at(scene.crossing, t);
    if (!target) return;
    for (const span of scene.perceives) {
      const eye = t >= span.from_s && t <= span.until_s ? at(span.who, t) : null;
      if (!eye) continue;
      pen.strokeStyle = span.who === scene.ego ? colour.ego : colour.sight; pen.globalAlpha = 0.75; pen.lineWidth = 1.6;
      pen.setLineDash([6, 4]); path([[eye.x, eye.y], [target.x, target.y]]); pen.stroke(); pen.setLineDash([]);
      pen.globalAlpha = 1;
    }
  }

  function messages(t) {
    const now = scene.messages.filter((m) => m.at_s <= t && t < m.at_s + FLIGHT_S), fan = {};
    for (const one of now) {
      const from = at(one.station, t), to = at(scene.ego, t);
      if (!from || !to) continue;
      const about = one.object === scene.crossing, place = fan[one.station] = (fan[one.station] || 0) + 1;
      const share = still.matches ? 1 : (t - one.at_s) / FLIGHT_S;
      const side = (place % 2 ? 1 : -1) * Math.ceil((place - 1) / 2) * 7;
      const [ax, ay, bx, by] = [px(from.x), py(from.y), px(to.x), py(to.y)], far = Math.hypot(bx - ax, by - ay) || 1;
      const [mx, my] = [(ax + bx) / 2 - (by - ay) / far * side, (ay + by) / 2 + (bx - ax) / far * side];
      const point = (s) => [(1 - s) ** 2 * ax + 2 * s * (1 - s) * mx + s * s * bx, (1 - s) ** 2 * ay + 2 * s * (1 - s) * my + s * s * by];
      pen.strokeStyle = about ? colour.cross : colour.radio; pen.lineWidth = about ? 3 : 1.3; pen.globalAlpha = about ? 1 : 0.6;
      pen.beginPath();
      for (let s = Math.max(0, share - 0.45), first = true; s <= share + 1e-9; s += 0.05, first = false) {
        const [x, y] = point(Math.min(1, s)); first ? pen.moveTo(x, y) : pen.lineTo(x, y);
      }
      pen.stroke();
      const [hx, hy] = point(share);
      pen.fillStyle = pen.strokeStyle; pen.beginPath(); pen.arc(hx, hy, about ? 4.5 : 2.2, 0, 7); pen.fill();
      pen.globalAlpha = 1;
    }
  }

  function car(id, one, where, look) {
    const long = one.length_m * scale, wide = one.width_m * scale;
    pen.save(); pen.translate(px(where.x), py(where.y)); pen.rotate(-where.heading);
    pen.beginPath(); pen.roundRect(-long / 2, -wide / 2, long, wide, Math.min(wide * 0.32, 8));
    if (look.ghost) {
      pen.setLineDash([4, 3]); pen.strokeStyle = look.fill; pen.lineWidth = 1.5; pen.globalAlpha = 0.8; pen.stroke(); pen.restore();
      return;
    }
    pen.globalAlpha = look.faded ? 0.45 : 1;
    pen.fillStyle = look.fill; pen.fill(); pen.strokeStyle = colour.card; pen.lineWidth = 1; pen.stroke();
    pen.fillStyle = colour.glass; pen.beginPath(); pen.roundRect(long * 0.12, -wide * 0.38, long * 0.16, wide * 0.76, 2); pen.fill();
    if (look.braking) {
      pen.fillStyle = colour.stop; pen.shadowColor = colour.stop; pen.shadowBlur = 10;
      for (const side of [-1, 1]) pen.fillRect(-long / 2 - 1, side * wide * 0.3 - wide * 0.14, Math.max(3, long * 0.08), wide * 0.28);
    }
    pen.restore();
  }

  function tag(text, x, y, ink, bold = true) {
    pen.font = `${bold ? '600 ' : ''}12px system-ui, sans-serif`; pen.textAlign = 'center'; pen.textBaseline = 'middle';
    const half = pen.measureText(text).width / 2 + 5;
    pen.fillStyle = colour.tag; pen.beginPath(); pen.roundRect(x - half, y - 9, 2 * half, 18, 5); pen.fill();
    pen.fillStyle = ink; pen.fillText(text, x, y + 0.5);
  }

  function cars(t) {
    const over = DATA.impact_s !== null && t > DATA.impact_s + 1e-6, ghosted = DATA.begins_s !== null && t > DATA.begins_s;
    if (ghosted && scene.ego_recorded) {
      const where = sampleOf(scene.ego_recorded, t, scene.step_s);
      if (where) car('', scene.ego_recorded, where, {ghost: true, fill: colour.ego});
    }
    const names = [];
    for (const [id, one] of Object.entries(scene.vehicles)) {
      const where = sampleOf(one, t, scene.step_s);
      if (!where) continue;
      const [isEgo, isCross] = [id === scene.ego, id === scene.crossing], radio = scene.stations.includes(id);
      const fill = isEgo ? colour.ego : isCross ? colour.cross : radio ? colour.station : colour.car;
      const braking = isEgo && DATA.begins_s !== null ? t >= DATA.begins_s : where.slowing;
      car(id, one, where, {fill, braking, faded: over && (isEgo || isCross)});
      names.push([id, px(where.x), py(where.y) - (Math.abs(Math.sin(where.heading)) * one.length_m + one.width_m) / 2 * scale - 12, fill]);
    }
    for (const [id, x, y, fill] of names) if (x > -40 && x < width + 40) tag(id, x, y, fill);
  }

  function flashes(t) {
    const where = at(scene.ego, t), ended = DATA.impact_s !== null && t >= DATA.impact_s;
    if (!where || ended) return;
    for (const one of DATA.warnings) {
      const age = (t - one.at_s) / FLASH_S;
      if (age < 0 || age > 1) continue;
      pen.strokeStyle = one.about === scene.crossing ? colour.stop : colour.soft;
      pen.globalAlpha = still.matches ? 0.8 : 1 - age; pen.lineWidth = 3;
      pen.beginPath(); pen.arc(px(where.x), py(where.y), 16 + (still.matches ? 8 : 34 * age), 0, 7); pen.stroke(); pen.globalAlpha = 1;
    }
    if (DATA.knew_s !== null && t >= DATA.knew_s) {
      const [x, y] = [px(where.x) + 26, py(where.y)];
      pen.fillStyle = colour.stop; pen.beginPath(); pen.moveTo(x, y - 10); pen.lineTo(x + 11, y + 9); pen.lineTo(x - 11, y + 9); pen.closePath(); pen.fill();
      pen.fillStyle = '#fff'; pen.font = '700 13px system-ui, sans-serif'; pen.textAlign = 'center'; pen.textBaseline = 'middle';
      pen.fillText('!', x, y + 3);
    }
  }

  function contact(t) {
    if (!DATA.contact || t < DATA.impact_s - 1e-6) return;
    const [x, y] = [px(DATA.contact[0]), py(DATA.contact[1])];
    pen.fillStyle = colour.stop; pen.strokeStyle = colour.card; pen.lineWidth = 1.5; pen.beginPath();
    for (let i = 0; i < 16; i += 1) {
      const far = i % 2 ? 5 : 12, turn = i * Math.PI / 8;
      pen.lineTo(x + far * Math.cos(turn), y + far * Math.sin(turn));
    }
    pen.closePath(); pen.fill(); pen.stroke();
  }

  function furniture() {
    const fits = [100, 50, 20, 10, 5, 2, 1].find((m) => m * scale < width * 0.28) || 1, long = fits * scale, [x, y] = [14, height - 16];
    pen.fillStyle = colour.tag; pen.beginPath(); pen.roundRect(x - 8, y - 22, long + 16, 32, 6); pen.fill();
    pen.strokeStyle = colour.ink; pen.lineWidth = 2; pen.beginPath();
    pen.moveTo(x, y - 4); pen.lineTo(x, y + 3); pen.lineTo(x + long, y + 3); pen.lineTo(x + long, y - 4); pen.stroke();
    pen.fillStyle = colour.ink; pen.font = '12px system-ui, sans-serif'; pen.textAlign = 'center'; pen.textBaseline = 'alphabetic';
    pen.fillText(fits + ' m', x + long / 2, y - 5);
    pen.beginPath(); pen.moveTo(width - 22, height - 34); pen.lineTo(width - 16, height - 14); pen.lineTo(width - 22, height - 19);
    pen.lineTo(width - 28, height - 14); pen.closePath(); pen.fill(); pen.fillText('N', width - 22, height - 39);
  }

  return (t) => {
    colour = theme(); fit(t);
    if (!width) return;
    ground(); buildings(); sights(t); cars(t); messages(t); flashes(t); contact(t); furniture();
  };
}

// -- who perceives it when, the messages, the events: also the scrubber

function timeView(canvas) {
  const scene = DATA.scene, pen = canvas.getContext('2d');
  const seers = [...new Set(scene.perceives.map((p) => p.who))].sort((a, b) =>
    Math.min(...scene.perceives.filter((p) => p.who === a).map((p) => p.from_s)) - Math.min(...scene.perceives.filter((p) => p.who === b).map((p) => p.from_s)));
  const rows = seers.length + 2, row = 20, left = 82, right = 18, top = 4;   // pixels
  canvas.style.height = `${rows * row + 26}px`;
  const x = (t) => left + (t - scene.start_s) / (scene.end_s - scene.start_s) * (canvas.clientWidth - left - right);
  const draw = (t) => {
    const colour = theme(), ratio = window.devicePixelRatio || 1, [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0); pen.clearRect(0, 0, width, height);
    pen.font = '12px system-ui, sans-serif'; pen.textBaseline = 'middle';
    const middle = (i) => top + row * i + row / 2;
    const name = (text, i) => { pen.fillStyle = colour.soft; pen.textAlign = 'right'; pen.fillText(text, left - 8, middle(i), left - 10); };
    for (let i = 0; i < rows; i += 1) { pen.fillStyle = colour.rule; pen.fillRect(left, middle(i) - 0.5, width - left - right, 1); }
    seers.forEach((who, i) => {
      name(`${who} sees ${scene.crossing}`, i);
      pen.fillStyle = who === scene.ego ? colour.ego : colour.sight;
      for (const p of scene.perceives) if (p.who === who) { pen.beginPath(); pen.roundRect(x(p.from_s), middle(i) - 4, Math.max(2, x(p.until_s) - x(p.from_s)), 8, 3); pen.fill(); }
    });
    name('V2V', seers.length);
    for (const about of [false, true]) for (const m of scene.messages) {
      if ((m.object === scene.crossing) !== about) continue;
      pen.fillStyle = about ? colour.cross : colour.radio; pen.globalAlpha = about ? 1 : 0.5;
      pen.fillRect(x(m.at_s) - 1, middle(seers.length) - (about ? 8 : 4), about ? 2.5 : 1.5, about ? 16 : 8);
    }
    pen.globalAlpha = 1;
    name('events', rows - 1);
    for (const event of DATA.events) {
      pen.fillStyle = colour[event.colour]; pen.beginPath(); pen.arc(x(event.at_s), middle(rows - 1), 5, 0, 7); pen.fill();
      pen.strokeStyle = colour.card; pen.lineWidth = 1; pen.stroke();
    }
    pen.fillStyle = colour.soft; pen.textAlign = 'center'; pen.textBaseline = 'alphabetic';
    const span = scene.end_s - scene.start_s, every = [0.5, 1, 2, 5, 10, 20, 60, 300].find((s) => (width - left) / span * s > 46) || 600;
    for (let s = Math.ceil(scene.start_s / every) * every; s <= scene.end_s + 1e-9; s += every) pen.fillText(`${+s.toFixed(1)} s`, x(s), height - 5);
    pen.strokeStyle = colour.accent; pen.lineWidth = 2; pen.beginPath(); pen.moveTo(x(t), 0); pen.lineTo(x(t), height - 18); pen.stroke();
    pen.fillStyle = colour.accent; pen.beginPath(); pen.arc(x(t), height - 18, 5, 0, 7); pen.fill();
  };
  draw.time = (px) => scene.start_s + (px - left) / (canvas.clientWidth - left - right) * (scene.end_s - scene.start_s);
  return draw;
}

// -- the readout and the controls

function leftAt(t) {
  const line = DATA.left;
  if (!line) return null;
  const place = (t - line.from_s) / line.step_s, i = Math.floor(place + 1e-9), j = Math.min(i + 1, line.metres.length - 1);
  if (i < 0 || i > j) return null;
  return line.metres[i] + (place - i) * (line.metres[j] - line.metres[i]);
}

function state(t) {
  const past = (s) => s !== null && t >= s - 1e-9, {ego, crossing} = DATA.scene;
  if (past(DATA.impact_s)) return [`contact at ${DATA.impact_kmh} km/h`, 'bad'];
  if (past(DATA.stopped_s)) return [`${ego} stands`, 'good'];
  if (past(DATA.begins_s)) return [`${ego} brakes`, 'bad'];
  if (past(DATA.knew_s)) return [`${ego} is warned, the brake reacts`, 'warn'];
  const seen = DATA.scene.perceives.filter((p) => p.from_s <= t && t <= p.until_s).map((p) => p.who);
  if (seen.length) return [`${seen.join(', ')} ${seen.length > 1 ? 'see' : 'sees'} ${crossing}; ${ego} has not been warned`, 'warn'];
  return [crossing ? `nobody sees ${crossing} yet` : '', 'soft'];
}

function start() {
  const by = (id) => document.getElementById(id), view = sceneView(by('scene')), times = timeView(by('times'));
  const track = by('track'), play = by('play');
  let drawn = null;
  const show = () => {
    const t = Play.t;
    drawn = null; view(t); times(t);
    const ego = DATA.scene.vehicles[DATA.scene.ego], where = ego && sampleOf(ego, t, DATA.scene.step_s), left = leftAt(t);
    by('clock').textContent = `${t.toFixed(2)} s`;
    by('speed').textContent = where ? `${DATA.scene.ego} ${(where.speed * 3.6).toFixed(0)} km/h` + (left === null ? '' : left < 0 ? `, ${(-left).toFixed(1)} m into ${DATA.scene.crossing}’s way` : `, ${left.toFixed(1)} m left`) : '';
    const [text, kind] = state(t);
    by('said').textContent = text; by('said').className = 'said ' + kind;
    play.textContent = Play.playing ? '❚❚ pause' : '▶ play';
    track.setAttribute('aria-valuenow', t.toFixed(2)); track.setAttribute('aria-valuetext', `${t.toFixed(2)} seconds, ${text}`);
    document.querySelectorAll('#chips button').forEach((chip) => chip.classList.toggle('now', Math.abs(+chip.dataset.at - t) < 0.006));
  };
  const later = () => { if (drawn === null) drawn = requestAnimationFrame(show); };
  Play.watchers.push(later);
  play.addEventListener('click', () => Play.toggle());
  by('rate').addEventListener('change', (event) => { Play.speed = +event.target.value; });
  document.querySelectorAll('#chips button').forEach((chip) => chip.addEventListener('click', () => { Play.playing = false; Play.set(+chip.dataset.at); }));
  const seek = (event) => { Play.playing = false; Play.set(times.time(event.clientX - track.getBoundingClientRect().left)); };
  track.addEventListener('pointerdown', (event) => { track.setPointerCapture(event.pointerId); seek(event); });
  track.addEventListener('pointermove', (event) => { if (track.hasPointerCapture(event.pointerId)) seek(event); });
  by('scene').addEventListener('click', () => Play.toggle());
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    const place = by('scene').getBoundingClientRect();
    if (place.bottom < 0 || place.top > window.innerHeight) return;   // elsewhere on the page the keys scroll
    const button = event.target.tagName === 'BUTTON' || event.target.tagName === 'SUMMARY', step = event.shiftKey ? 0.5 : 0.05;
    if (event.key === ' ' && !button) { event.preventDefault(); Play.toggle(); }
    else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      event.preventDefault(); Play.playing = false; Play.set(Play.t + (event.key === 'ArrowRight' ? step : -step));
    } else if (event.target === track && event.key === 'Home') { event.preventDefault(); Play.set(DATA.scene.start_s); }
    else if (event.target === track && event.key === 'End') { event.preventDefault(); Play.set(DATA.scene.end_s); }
  });
  new ResizeObserver(later).observe(by('scene'));
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', later);
  still.addEventListener('change', later);
  const asked = /^#t=([0-9.]+)$/.exec(location.hash);   // page.html#t=10.5 opens at that moment
  if (asked) Play.set(+asked[1]);
  show();
}
start();
