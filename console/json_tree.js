/** A JSON value as a folding tree; children are made when they are first seen, 100 at a time. */

import {body, bytes, clip, count, name} from './format.js';
import {button, h} from './h.js';

const AT_ONCE = 100;
const OPEN_DEPTH = 1;

/**
 * The tree of a value.
 * @param {any} value @param {string} label what it is, for people who do not see it @returns {HTMLElement}
 */
export function jsonTree(value, label) {
  const tree = h('ul', {class: 'json', role: 'tree', 'aria-label': label}, node(null, value, 0));
  tree.querySelector('[role=treeitem]').tabIndex = 0;
  tree.addEventListener('keydown', (event) => walk(tree, event));
  return tree;
}

function node(key, value, depth) {
  const keyPart = key === null ? null : h('span', {class: 'json-key'}, name(String(key), 200), ': ');
  if (value === null || typeof value !== 'object') {
    return h('li', {role: 'treeitem', tabindex: '-1'}, keyPart, scalar(value));
  }
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  const brief = Array.isArray(value) ? `[${count(entries.length)}]` : `{${count(entries.length)}}`;
  const group = h('ul', {role: 'group', hidden: true});
  const item = h('li', {role: 'treeitem', tabindex: '-1', 'aria-expanded': 'false'},
    h('span', {class: 'json-head', on: {click: () => toggle(item)}}, keyPart, h('span', {class: 'faint'}, brief)), group);
  item.more = () => grow(group, entries, depth);
  if (depth < OPEN_DEPTH && entries.length) toggle(item);
  return item;
}

function toggle(item) {
  const open = item.getAttribute('aria-expanded') !== 'true';
  const group = item.querySelector(':scope > [role=group]');
  if (open && !group.firstChild) item.more();
  group.hidden = !open;
  item.setAttribute('aria-expanded', String(open));
}

function grow(group, entries, depth) {
  const from = group.querySelectorAll(':scope > [role=treeitem]').length;
  group.querySelector(':scope > .json-more')?.remove();
  group.append(...entries.slice(from, from + AT_ONCE).map(([key, value]) => node(key, value, depth + 1)));
  const left = entries.length - from - AT_ONCE;
  if (left > 0) {
    group.append(h('li', {class: 'json-more', role: 'none'}, button(`${count(left)} more`, () => grow(group, entries, depth))));
  }
}

function scalar(value) {
  if (typeof value !== 'string') return h('span', {class: `json-${value === null ? 'null' : typeof value}`}, String(value));
  return h('span', {class: 'json-string', dir: 'auto'}, '"', longText(value), '"');
}

/**
 * A text that may be long: head and tail, with a button for what is between.
 * @param {string} text @returns {HTMLElement}
 */
export function longText(text) {
  const {head, left, tail} = clip(text);
  const box = h('span', {class: 'text', dir: 'auto'}, body(head));
  if (left) {
    box.append(button(`show ${count(left)} more characters`, () => { box.textContent = body(text); }), body(tail));
  }
  return box;
}

function walk(tree, event) {
  const item = event.target.closest('[role=treeitem]');
  const items = [...tree.querySelectorAll('[role=treeitem]')].filter((one) => one.offsetParent !== null);
  const at = items.indexOf(item);
  const expanded = item?.getAttribute('aria-expanded');
  const moves = {ArrowDown: items[at + 1], ArrowUp: items[at - 1], Home: items[0], End: items.at(-1)};
  let next = moves[event.key];
  if (event.key === 'ArrowRight' && expanded === 'false') toggle(item);
  else if (event.key === 'ArrowRight') next = item.querySelector('[role=treeitem]');
  else if (event.key === 'ArrowLeft' && expanded === 'true') toggle(item);
  else if (event.key === 'ArrowLeft') next = item.parentElement.closest('[role=treeitem]');
  else if (!next) return;
  event.preventDefault();
  event.stopPropagation();
  if (!next) return;
  item.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

/** A value's size as JSON. @param {any} value @returns {string} */
export function jsonSize(value) {
  return bytes(new TextEncoder().encode(JSON.stringify(value) ?? '').length);
}
