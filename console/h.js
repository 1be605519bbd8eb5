/** Elements by DOM calls. Text is always text: nothing here parses markup. */

/**
 * Make an element. Properties: `class`, `data` (dataset), `on` (listeners), `.name` (a property);
 * everything else is an attribute, and `false`, `null` and `undefined` leave it away.
 * @param {string} tag @param {object | null} [props] @param {...(Node | string | number | null | false | undefined | Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same in SVG. @param {string} tag @param {object | null} [props] @param {...Node} children */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (key === 'data') Object.assign(element.dataset, value);
    else if (key === 'on') listen(element, value);
    else if (key.startsWith('.')) element[key.slice(1)] = value;
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

function listen(element, listeners) {
  for (const [type, listener] of Object.entries(listeners)) element.addEventListener(type, listener);
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Put other children into an element. @param {Element} element @param {...any} children */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Set text only where it differs, so that nothing is laid out for nothing. @param {Element} element @param {string} text */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A button with a word. @param {string} label @param {() => void} press @param {object} [props] */
export function button(label, press, props = {}) {
  return h('button', {type: 'button', ...props, on: {click: press}}, label);
}

/** Call once in the next frame, however often it is asked for. @param {() => void} work */
export function perFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}
