// SPDX-License-Identifier: MIT
// dom.js - elements out of plain data. Strangers' texts become text nodes, with nothing unseen in them: nothing here reads HTML.

const SVG = 'http://www.w3.org/2000/svg';

// What cannot be seen or turns the reading direction is shown by its number: a name looks like no other.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
export const shown = text => String(text ?? '').replace(UNSEEN, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else setAttr(element, name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false)
    .map(child => child instanceof Node ? child : shown(child)));
  return element;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

export const name = text => h('bdi', { class: 'name' }, String(text ?? ''));

export function setText(element, text) {
  text = shown(text);
  if (element.textContent !== text) element.textContent = text;
}

export function setAttr(element, attr, value) {
  if (value === null || value === undefined) element.removeAttribute(attr);
  else if (element.getAttribute(attr) !== String(value)) element.setAttribute(attr, attr === 'title' || attr === 'aria-label' ? shown(value) : value);
}

const kept = new WeakMap();
export const rowsOf = parent => kept.get(parent) || new Map();

// Children of `parent` for `items`, in their order; elements stay with their key, so that focus and selection do, too.
export function keyed(parent, items, keyOf, make, update) {
  const old = rowsOf(parent);
  const rows = new Map();
  let before = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    if (rows.has(key)) continue;
    let row = old.get(key);
    if (!row) row = make(item);
    rows.set(key, row);
    update(row, item);
    if (row.element === before) before = before.nextElementSibling;
    else parent.insertBefore(row.element, before);
  }
  for (const [key, row] of old) if (!rows.has(key)) row.element.remove();
  kept.set(parent, rows);
}

let seen = 0;
export const unique = prefix => `${prefix}-${++seen}`;
