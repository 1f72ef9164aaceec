// SPDX-License-Identifier: MIT
// charts.js - lines over time, and small bars. A chart reads its legend's values where the pointer or the arrow keys are.
import { h, s, setText, setAttr } from './dom.js';
import { clock, duration, plain } from './figures.js';

const LEFT = 44, RIGHT = 8, TOP = 8, BOTTOM = 20;

// The next round number at or above n.
export function nice(n) {
  if (!(n > 0)) return 1;
  const base = 10 ** Math.floor(Math.log10(n));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(step => step * base >= n * 0.9999) * base;
}

function pathOf(points, x, y) {
  let text = '', pen = 'M', first = null, last = null, area = '';
  for (const [at, value] of points) {
    if (value === null || !Number.isFinite(value)) {
      if (first !== null) area += `L${last},${y(0)}L${first},${y(0)}Z`;
      pen = 'M';
      first = null;
      continue;
    }
    const here = `${x(at).toFixed(1)},${y(value).toFixed(1)}`;
    if (pen === 'M') first = x(at).toFixed(1);
    text += pen + here;
    area += pen + here;
    last = x(at).toFixed(1);
    pen = 'L';
  }
  if (first !== null) area += `L${last},${y(0)}L${first},${y(0)}Z`;
  return [text, area];
}

// As much of the time as there is something of: what has just begun fills its chart, too.
export function spanOf(points, most) {
  const there = points.length ? points[points.length - 1][0] - points[0][0] : 0;
  return [60e3, 120e3, 300e3].find(span => span >= there && span < most) || most;
}

// series: [{ label, css, area, format }]; update(rows) with rows [[at_ms, [value, …]], …], the oldest first.
export function timeline({ title, series, mostMs = 300e3, height = 168, format, axis = plain, least = 0 }) {
  const svg = s('svg', { role: 'img', tabindex: 0, height });
  const grid = s('g', { class: 'grid' }), marks = s('g', { class: 'marks' });
  const lines = series.map(each => ({
    area: each.area ? s('path', { class: `area ${each.css}` }) : null,
    line: s('path', { class: `line ${each.css}${each.dashed ? ' dashed' : ''}` }),
    value: h('b'),
  }));
  const cross = s('line', { class: 'cross' });
  svg.append(grid, ...lines.map(each => each.area).filter(Boolean), ...lines.map(each => each.line), cross, marks);
  const when = h('span', { class: 'when' });
  const legend = h('div', { class: 'legend' }, series.map((each, i) =>
    h('span', { class: each.css }, each.label ? [h('i', { class: each.dashed ? 'dashed' : null, 'aria-hidden': 'true' }), each.label + ' '] : null,
      lines[i].value)), when);
  const element = h('figure', { class: 'chart' }, h('figcaption', {}, h('span', { class: 'title' }, title), legend), svg);
  let rows = [], at = null, frame = 0, spanMs = mostMs;

  function draw() {
    frame = 0;
    const width = Math.round(svg.clientWidth);
    if (!width) return;
    const end = rows.length ? rows[rows.length - 1][0] : Date.now();
    const start = end - spanMs;
    const visible = rows.filter(row => row[0] >= start);
    let top = least;
    for (const [, values] of visible) for (const value of values) if (Number.isFinite(value)) top = Math.max(top, value);
    top = nice(top * 1.06);
    const x = t => LEFT + (t - start) / spanMs * (width - LEFT - RIGHT);
    const y = v => TOP + (1 - Math.min(v, top) / top) * (height - TOP - BOTTOM);
    setAttr(svg, 'viewBox', `0 0 ${width} ${height}`);
    lines.forEach((each, i) => {
      const [line, area] = pathOf(visible.map(row => [row[0], row[1][i] ?? null]), x, y);
      setAttr(each.line, 'd', line || 'M0,0');
      if (each.area) setAttr(each.area, 'd', area || 'M0,0');
    });
    drawGrid(width, top, x, y, end);
    drawCross(visible, x, end);
  }

  function drawGrid(width, top, x, y, end) {
    const parts = [];
    for (let i = 0; i <= 2; i++) {
      const v = top * i / 2;
      parts.push(s('line', { x1: LEFT, x2: width - RIGHT, y1: y(v), y2: y(v) }),
        s('text', { x: LEFT - 6, y: y(v) + 3.5, 'text-anchor': 'end' }, axis(v)));
    }
    const step = spanMs / 5;
    for (let i = 0; i <= 5; i++) {
      const t = end - i * step;
      if (width < 480 && i % 5 !== 0) continue;
      parts.push(s('text', { x: x(t), y: height - 5, 'text-anchor': i === 0 ? 'end' : i === 5 ? 'start' : 'middle' },
        i === 0 ? 'now' : '−' + duration(i * step)));
    }
    grid.replaceChildren(...parts);
  }

  function drawCross(visible, x, end) {
    let row = visible.length ? visible[visible.length - 1] : null;
    if (at !== null && visible.length) row = visible.reduce((best, each) => Math.abs(each[0] - at) < Math.abs(best[0] - at) ? each : best);
    cross.style.display = at === null || !row ? 'none' : '';
    if (row) for (const [key, value] of [['x1', x(row[0])], ['x2', x(row[0])], ['y1', TOP], ['y2', height - BOTTOM]]) setAttr(cross, key, value);
    lines.forEach((each, i) => setText(each.value, row ? (series[i].format || format)(row[1][i]) : '–'));
    setText(when, at === null || !row ? '' : clock(row[0]));
    setAttr(svg, 'aria-label', `${title}: ` + series.map((each, i) => `${each.label} ${lines[i].value.textContent}`).join(', ') +
      (at === null || !row ? '' : `, ${duration(end - row[0])} ago`));
  }

  const later = () => { frame = frame || requestAnimationFrame(draw); };
  const atPointer = event => {
    const box = svg.getBoundingClientRect();
    const end = rows.length ? rows[rows.length - 1][0] : 0;
    at = end - spanMs + (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT) * spanMs;
    later();
  };
  const leave = () => { at = null; later(); };
  svg.addEventListener('pointermove', atPointer);
  svg.addEventListener('pointerleave', leave);
  svg.addEventListener('blur', leave);
  svg.addEventListener('keydown', event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === 'Escape') leave();
    if (!step || !rows.length) return;
    event.preventDefault();
    const end = rows[rows.length - 1][0];
    at = Math.max(end - spanMs, Math.min(end, (at ?? end) + step * (event.shiftKey ? 30e3 : 5e3)));
    later();
  });
  new ResizeObserver(later).observe(svg);
  return { element, update(next) { rows = next; spanMs = spanOf(rows, mostMs); later(); } };
}

// A line without axes, for a tile.
export function trace(css) {
  const area = s('path', { class: `area ${css}` }), line = s('path', { class: `line ${css}` });
  const element = s('svg', { class: 'trace', viewBox: '0 0 120 28', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, area, line);
  return { element, update(points, mostMs) {
    if (points.length < 2) return;
    const spanMs = spanOf(points, mostMs);
    const end = points[points.length - 1][0];
    const top = Math.max(...points.map(point => point[1] ?? 0)) * 1.1 || 1;
    const [path, below] = pathOf(points, t => 120 * (1 - (end - t) / spanMs), v => 27 - 25 * v / top);
    setAttr(line, 'd', path || 'M0,0');
    setAttr(area, 'd', below || 'M0,0');
  } };
}

// What a host was asked in each slice of the last minute; the last one is not over.
export function bars(values, sliceS) {
  const element = s('svg', { class: 'bars', viewBox: `0 0 ${values.length * 6} 20`, preserveAspectRatio: 'none', role: 'img' });
  const rects = values.map((_, i) => s('rect', { x: i * 6 + 0.5, width: 5, rx: 0.8, class: i === values.length - 1 ? 'open' : null }));
  element.append(...rects);
  return { element, update(next) {
    const top = Math.max(...next, 1);
    next.forEach((value, i) => {
      if (!rects[i]) return;
      const tall = value ? Math.max(1.5, 19 * value / top) : 0.8;
      setAttr(rects[i], 'height', tall);
      setAttr(rects[i], 'y', 20 - tall);
      rects[i].classList.toggle('none', !value);
    });
    setAttr(element, 'aria-label', `requests in each ${sliceS} s of the last minute: ${next.join(', ')}`);
  } };
}

// How much of what is allowed is used.
export function gauge() {
  const fill = h('i');
  const element = h('span', { class: 'gauge', 'aria-hidden': 'true' }, fill);
  return { element, update(value, most) {
    const bounded = Number.isFinite(most) && most > 0;
    element.classList.toggle('open', !bounded);
    const share = bounded ? Math.min(1, value / most) : value > 0 ? 1 : 0;
    fill.style.width = `${(100 * share).toFixed(1)}%`;
    element.classList.toggle('over', bounded && value > most * 1.05);
  } };
}

// Parts of a whole, side by side: [[label, css, n], …].
export function shares() {
  const bar = h('div', { class: 'shares', 'aria-hidden': 'true' });
  const legend = h('ul', { class: 'keys' });
  const element = h('div', {}, bar, legend);
  return { element, update(parts, format) {
    const whole = parts.reduce((sum, part) => sum + part[2], 0);
    while (bar.children.length < parts.length) bar.append(h('i'));
    while (legend.children.length < parts.length) legend.append(h('li', {}, h('i', { 'aria-hidden': 'true' }), h('span'), h('b')));
    parts.forEach(([label, css, n], i) => {
      setAttr(bar.children[i], 'class', css);
      bar.children[i].style.flexGrow = whole ? n / whole : 0;
      setAttr(legend.children[i], 'class', css);
      setText(legend.children[i].children[1], label);
      setText(legend.children[i].children[2], format(n));
    });
  } };
}
