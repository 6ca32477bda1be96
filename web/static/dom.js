/** Small helpers for building pages without markup strings: text from the service can never become an element. */

export const $ = (id) => document.getElementById(id);

/** Creates an element. Props: `class`, `dataset`, `on` (listeners), anything else is an attribute; false and null are
 *  omitted. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value == null) continue;
    if (name === 'dataset') Object.assign(element.dataset, value);
    else if (name === 'on') for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** Unformatted code or data. It scrolls, so the keyboard can reach it, under its name. */
export const block = (label, text, dataset = {}) => h('pre', { dir: 'ltr', tabindex: '0', role: 'group', 'aria-label': label, dataset }, text);

/** A path that may break after its slashes. */
export const breakable = (text) => text.split('/').flatMap((piece, i) => (i ? ['/', h('wbr'), piece] : [piece]));

/** m:ss, rounded up, so that 0:00 means over. */
export function clock(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** Epoch ms, epoch seconds or ISO 8601 as a Date; undefined for other values. */
export function instant(value) {
  if (value == null || value === '') return undefined;
  const number = Number(value);
  const date = new Date(Number.isFinite(number) ? (number < 1e11 ? number * 1000 : number) : value);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** Texts as consecutive sentences: those of the service have no full stop. */
export function sentences(...texts) {
  return texts.filter(Boolean).map((text) => (/[.!?؟…]\u2069?$/.test(text) ? text : `${text}.`)).join(' ');
}

/** Runs work with its button disabled, so that a second click does not start it again. */
export async function busy(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  try {
    await work();
  } finally {
    button.disabled = false;
  }
}

/** Copies only if the browser permits it; the caller shows the result. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
