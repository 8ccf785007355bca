// The scene from above, one panel for each run, all on one clock. DATA comes from replay.json; texts are never parsed as HTML.
'use strict';
const FLIGHT_S = 0.25;   // a message is drawn for this long, or nobody would see it
const FLASH_S = 0.7;
const MARKED = {knew: 'warned', brake: 'brakes', stop: 'stands', contact: 'contact'};
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

const cameraAt = (() => {
  const scene = DATA.scene, every = 0.1, raw = [];
  const seers = (t) => DATA.runs.flatMap((run) => run.perceives.filter((p) => p.from_s <= t && t <= p.until_s).map((p) => p.who));
  for (let t = scene.start_s; t <= scene.end_s + 1e-9; t += every) {
    const [cx, cy] = DATA.centre, box = [cx - 14, cx + 14, cy - 14, cy + 14];
    const egos = DATA.runs.map((run) => [scene.ego, run.ego]);
    for (const [id, car] of [...egos, ...[...new Set([scene.crossing, ...seers(t)])].map((id) => [id, scene.vehicles[id]])]) {
      const at = car && sampleOf(car, t, scene.step_s);
      const reach = id === scene.ego || (id === scene.crossing && t < DATA.finish_s) ? 70 : 30;
      if (!at || Math.hypot(at.x - cx, at.y - cy) > reach) continue;
      box[0] = Math.min(box[0], at.x - 7); box[1] = Math.max(box[1], at.x + 7);
      box[2] = Math.min(box[2], at.y - 7); box[3] = Math.max(box[3], at.y + 7);
    }
    for (const run of DATA.runs) for (const event of run.events.filter((one) => MARKED[one.kind] && one.at_s <= t)) {
      const at = sampleOf(run.ego, event.at_s, scene.step_s);   // what is marked stays in the picture
      if (at) { box[2] = Math.min(box[2], at.y - 4); box[3] = Math.max(box[3], at.y + 4); box[0] = Math.min(box[0], at.x - 4); box[1] = Math.max(box[1], at.x + 4); }
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
})();

// -- drawing

function sceneView(canvas, svg, run) {
  const scene = DATA.scene, pen = canvas.getContext('2d'), cars = {...scene.vehicles, [scene.ego]: run.ego};
  const bySubject = [...run.messages].sort((a, b) => a[2] - b[2]);   // those about the crossing vehicle on top
  let colour = theme(), scale = 1, ox = 0, oy = 0, width = 0, height = 0;
  const px = (x) => ox + x * scale, py = (y) => oy - y * scale;
  const path = (points) => { pen.beginPath(); points.forEach(([x, y], i) => i ? pen.lineTo(px(x), py(y)) : pen.moveTo(px(x), py(y))); };
  const at = (id, t) => { const car = cars[id]; return car ? sampleOf(car, isMet(id) ? untilContact(run, t) : t, scene.step_s) : null; };
  const isMet = (id) => id === scene.ego || id === scene.crossing;

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
    for (const span of run.perceives) {
      const eye = t >= span.from_s && t <= span.until_s ? at(span.who, t) : null;
      if (!eye) continue;
      pen.strokeStyle = colour.sight; pen.lineWidth = 1.6; pen.setLineDash([6, 4]);
      path([[eye.x, eye.y], [target.x, target.y]]); pen.stroke(); pen.setLineDash([]);
    }
  }

  function messages(t) {
    const to = at(scene.ego, t);
    if (!to) return;
    for (const [at_s, station, about] of bySubject) {
      const from = at_s <= t && t < at_s + FLIGHT_S ? at(station, t) : null;
      if (!from) continue;
      const share = still.matches ? 1 : (t - at_s) / FLIGHT_S, point = (s) => [px(from.x + s * (to.x - from.x)), py(from.y + s * (to.y - from.y))];
      pen.strokeStyle = pen.fillStyle = about ? colour.message : colour.radio; pen.lineWidth = about ? 3.5 : 1;
      pen.beginPath(); pen.moveTo(...point(Math.max(0, share - 0.45))); pen.lineTo(...point(share)); pen.stroke();
      pen.beginPath(); pen.arc(...point(share), about ? 5 : 2, 0, 7); pen.fill();
    }
  }

  function limit() {   // a bar across the lane where the front is at the last moment
    if (!DATA.limit) return;
    const [x, y, heading] = DATA.limit, half = 1.9 * scale;
    pen.save(); pen.translate(px(x), py(y)); pen.rotate(-heading);
    pen.strokeStyle = colour.limit; pen.lineWidth = 2.5; pen.setLineDash([4, 3]);
    pen.beginPath(); pen.moveTo(0, -half); pen.lineTo(0, half); pen.stroke(); pen.restore();
  }

  function body(one, where, look) {
    const long = one.length_m * scale, wide = one.width_m * scale;
    pen.save(); pen.translate(px(where.x), py(where.y)); pen.rotate(-where.heading);
    pen.beginPath(); pen.roundRect(-long / 2, -wide / 2, long, wide, Math.min(wide * 0.32, 8));
    if (look.ghost) {
      pen.setLineDash([4, 3]); pen.strokeStyle = look.fill; pen.lineWidth = 1.5; pen.stroke(); pen.restore();
      return;
    }
    pen.fillStyle = look.fill; pen.fill();
    pen.strokeStyle = look.warned ? colour.outline : colour.card; pen.lineWidth = look.warned ? 2 : 1; pen.stroke();
    pen.fillStyle = colour.glass; pen.beginPath(); pen.roundRect(long * 0.12, -wide * 0.38, long * 0.16, wide * 0.76, 2); pen.fill();
    if (look.braking) {
      pen.fillStyle = colour.stop; pen.shadowColor = colour.stop; pen.shadowBlur = 10;
      for (const side of [-1, 1]) pen.fillRect(-long / 2 - 1, side * wide * 0.3 - wide * 0.14, Math.max(3, long * 0.08), wide * 0.28);
    }
    pen.restore();
  }

  const half = (one, where) => {   // of the box around a vehicle, in pixels
    const [c, s] = [Math.abs(Math.cos(where.heading)), Math.abs(Math.sin(where.heading))];
    return [(c * one.length_m + s * one.width_m) / 2 * scale, (s * one.length_m + c * one.width_m) / 2 * scale];
  };

  function traffic(t, labels) {
    const warned = past(run.knew_s, t);
    if (past(run.begins_s, t) && scene.ego_recorded) {
      const where = sampleOf(scene.ego_recorded, t, scene.step_s);
      if (where) body(scene.ego_recorded, where, {ghost: true, fill: colour.ego});
    }
    for (const [id, one] of Object.entries(cars)) {
      const where = at(id, t);
      if (!where) continue;
      const [isEgo, isCross] = [id === scene.ego, id === scene.crossing], radio = scene.stations.includes(id);
      const look = isEgo ? (warned ? 'warned' : 'ego') : isCross ? 'cross' : radio ? 'station' : 'car';
      const braking = isEgo && run.begins_s !== null ? t >= run.begins_s : where.slowing;
      body(one, where, {fill: colour[look], braking, warned: isEgo && warned});
      const [wide, high] = half(one, where), [x, y] = [px(where.x), py(where.y)];
      labels.taken.push([x - wide, y - high, x + wide, y + high]);
      if (x < 0 || x > width || y < 0 || y > height) continue;
      const speed = `${id} ${(where.speed * 3.6).toFixed(0)} km/h`;
      labels.add({text: isEgo || isCross ? speed : id, x, y, wide, high, look: isEgo ? 'ego' : look, first: isEgo ? 0 : isCross ? 1 : 3});
    }
  }

  function flashes(t) {
    const where = at(scene.ego, t);
    if (!where || past(run.impact_s, t)) return;
    for (const one of run.warnings) {
      const age = (t - one.at_s) / FLASH_S;
      if (age < 0 || age > 1) continue;
      pen.strokeStyle = one.about === scene.crossing ? colour.warned : colour.soft;
      pen.globalAlpha = still.matches ? 0.8 : 1 - age; pen.lineWidth = 3;
      pen.beginPath(); pen.arc(px(where.x), py(where.y), 16 + (still.matches ? 8 : 34 * age), 0, 7); pen.stroke(); pen.globalAlpha = 1;
    }
  }

  function marks(t, labels) {   // where the ego was warned, braked, stood or hit
    for (const event of run.events) {
      if (!MARKED[event.kind] || event.at_s > t + 1e-6) continue;
      const here = event.kind === 'contact' && run.contact ? {x: run.contact[0], y: run.contact[1]} : at(scene.ego, event.at_s);
      if (!here) continue;
      const [x, y] = [px(here.x), py(here.y)];
      pen.fillStyle = colour[event.look]; pen.strokeStyle = colour.outline; pen.lineWidth = 1.5;
      mark(pen, event.kind, x, y, event.kind === 'contact' ? 12 : 6);
      labels.taken.push([x - 7, y - 7, x + 7, y + 7]);
      labels.add({text: `${MARKED[event.kind]} ${event.at_s.toFixed(2)} s`, x, y, wide: 8, high: 8, look: 'ink', first: 2, sides: true});
    }
  }

  function furniture(labels) {
    const fits = [100, 50, 20, 10, 5, 2, 1].find((m) => m * scale < width * 0.28) || 1, long = fits * scale, [x, y] = [12, height - 12];
    pen.fillStyle = colour.tag; pen.beginPath(); pen.roundRect(x - 6, y - 20, long + 12, 26, 6); pen.fill();
    pen.strokeStyle = colour.ink; pen.lineWidth = 2; pen.beginPath();
    pen.moveTo(x, y - 4); pen.lineTo(x, y + 2); pen.lineTo(x + long, y + 2); pen.lineTo(x + long, y - 4); pen.stroke();
    labels.fixed(`${fits} m`, x + long / 2, y - 9, [x - 6, y - 20, x + long + 6, y + 6]);
    pen.fillStyle = colour.ink; pen.beginPath(); pen.moveTo(width - 16, height - 28); pen.lineTo(width - 10, height - 8); pen.lineTo(width - 16, height - 13);
    pen.lineTo(width - 22, height - 8); pen.closePath(); pen.fill();
    labels.fixed('N', width - 16, height - 36, [width - 26, height - 46, width - 6, height - 6]);
  }

  function names(labels) {
    for (const one of scene.occluders) {
      const shown = clipped(one.polygon);
      if (shown) labels.add({text: one.name, x: shown[0], y: shown[1], wide: 0, high: 0, look: 'soft', first: 5, inside: true});
    }
    if (!DATA.limit) return;
    const [x, y] = [px(DATA.limit[0]), py(DATA.limit[1])];
    labels.taken.push([x - 1.9 * scale, y - 2, x + 1.9 * scale, y + 2]);
    labels.add({text: 'last moment to brake', x, y, wide: 2 * scale, high: 6, look: 'limit', first: 4, sides: true});
  }

  return (t) => {
    colour = theme(); fit(t);
    if (!width) return;
    const labels = new Labels(width, height);
    ground(); buildings(); limit(); sights(t); traffic(t, labels); marks(t, labels); messages(t); flashes(t); furniture(labels); names(labels);
    labels.draw(svg);
  };
}

const untilContact = (run, t) => run.impact_s === null ? t : Math.min(t, run.impact_s);   // what follows is not known
const past = (at_s, t) => at_s !== null && t >= at_s - 1e-6;

function mark(pen, kind, x, y, size) {
  pen.beginPath();
  if (kind === 'knew') { pen.moveTo(x, y - size); pen.lineTo(x + size, y + size * 0.8); pen.lineTo(x - size, y + size * 0.8); }
  else if (kind === 'contact') for (let i = 0; i < 16; i += 1) {
    const far = i % 2 ? size * 0.42 : size, turn = i * Math.PI / 8;
    pen.lineTo(x + far * Math.cos(turn), y + far * Math.sin(turn));
  } else pen.rect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
  pen.closePath(); pen.fill(); pen.stroke();
}
