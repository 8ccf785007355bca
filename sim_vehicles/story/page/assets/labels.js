// Labels of a panel: SVG text, placed so that none covers another one, a vehicle or a mark. What finds no place is not shown.
'use strict';
const SVG = 'http://www.w3.org/2000/svg', HIGH = 18;

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const wideOf = (() => {
  const pen = document.createElement('canvas').getContext('2d'), known = {};
  return (text) => {
    pen.font = '600 12px system-ui, sans-serif';
    return known[text] ??= pen.measureText(text).width;
  };
})();

class Labels {
  constructor(width, height) { Object.assign(this, {width, height, taken: [], asked: [], placed: [], stuck: []}); }

  add(label) { this.asked.push(label); }   // first: the lowest number gets its place first

  fixed(text, x, y, box) { this.taken.push(box); this.stuck.push({text, x, y}); }

  free([x0, y0, x1, y1]) {
    return x0 >= 2 && y0 >= 2 && x1 <= this.width - 2 && y1 <= this.height - 2
      && this.taken.every(([a, b, c, d]) => x1 <= a || x0 >= c || y1 <= b || y0 >= d);
  }

  place(label) {
    const wide = wideOf(label.text) / 2 + 5, high = HIGH / 2;
    const across = label.wide + wide + 3, up = label.high + high + 3;
    const round = [[0, -up], [0, up], [across, 0], [-across, 0], [across, -up], [-across, -up], [across, up], [-across, up]];
    const ways = label.inside ? [[0, 0], [0, -26], [0, 26], [-30, 0], [30, 0]] : label.sides ? [...round.slice(2), ...round.slice(0, 2)] : round;
    for (const far of label.inside ? [1, 2] : [1, 1.7, 2.6, 3.6]) for (const [dx, dy] of ways) {
      const [x, y] = [label.x + dx * far, label.y + dy * far], box = [x - wide, y - high, x + wide, y + high];
      if (!this.free(box)) continue;
      this.taken.push(box);
      this.placed.push({...label, at: [x, y], box, line: far > 1 && !label.inside});
      return;
    }
  }

  draw(svg) {
    this.asked.sort((a, b) => a.first - b.first).forEach((label) => this.place(label));
    const shapes = [];
    for (const {x, y, at} of this.placed.filter((one) => one.line)) shapes.push(shape('line', {x1: x, y1: y, x2: at[0], y2: at[1], class: 'lead'}));
    for (const {text, at, box, look} of this.placed) {
      shapes.push(shape('rect', {x: box[0], y: box[1], width: box[2] - box[0], height: box[3] - box[1], rx: 5}));
      shapes.push(shape('text', {x: at[0], y: at[1] + 4, class: look}, text));
    }
    for (const {text, x, y} of this.stuck) shapes.push(shape('text', {x, y: y + 4, class: 'ink'}, text));
    svg.setAttribute('viewBox', `0 0 ${this.width} ${this.height}`);
    svg.replaceChildren(...shapes);
  }
}
