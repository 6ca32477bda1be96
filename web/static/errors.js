/** The notices at the top of the page: a refusal with its remedy, its field, and the code for a bug report; or a
 *  confirmation of a success. */

import { CastellanError } from './castellan-client.js';
import { $, h, clock } from './dom.js';
import { t } from './texts.js';

let shown;

/** The text of a refusal. */
export const wordsOf = (error) => (error.code === 'NETWORK' ? t('network') : error.message);

/** @param {Error} error @param {HTMLFormElement} [form] whose field may be the faulty one */
export function showError(error, form) {
  clearNotices();
  const known = error instanceof CastellanError ? error : new CastellanError(0, { code: 'PAGE', message: error.message });
  shown = { error: known, form, until: Date.now() + known.retryAfter * 1000 };
  drawError();
  $('error').scrollIntoView({ block: 'nearest' });
}

/** @param {string} key of a text; it is drawn again with a language switch */
export function showNotice(key) {
  clearNotices();
  $('notice').dataset.t = key;
  $('notice').textContent = t(key);
  $('notice').hidden = false;
}

export function clearNotices() {
  shown = undefined;
  delete $('notice').dataset.t;
  $('notice').hidden = true;
  drawError();
}

export function drawError() {
  $('error').hidden = !shown;
  for (const input of document.querySelectorAll('[aria-invalid]')) input.removeAttribute('aria-invalid');
  if (!shown) return;
  const { error, form } = shown;
  const more = error.errors.filter((e) => e.field !== error.field || !error.message.endsWith(e.message)); // the message contains the first
  $('error').dataset.code = error.code;
  $('error-text').replaceChildren(
    h('p', {}, wordsOf(error)),
    ...(more.length ? [h('ul', {}, more.map((e) => h('li', {}, h('code', {}, e.field), ' ', e.message)))] : []),
    h('p', { class: 'error-facts' }, h('code', {}, error.code), error.field && h('code', {}, error.field),
      error.requestId && h('span', {}, `${t('errorRequest')} `, h('code', {}, error.requestId))));
  const faulty = error.field && form?.elements.namedItem(error.field);
  if (faulty instanceof HTMLElement) faulty.setAttribute('aria-invalid', 'true');
  drawWait();
}

/** The waiting time is outside the alert: a screen reader announces the refusal once, not every second. */
function drawWait() {
  const wait = shown ? shown.until - Date.now() : 0;
  $('error-wait').hidden = wait <= 0;
  $('error-wait').textContent = wait > 0 ? t('retryIn', { time: clock(wait) }) : '';
}

/** Wires the notices; once. */
export function startNotices() {
  setInterval(drawWait, 1000);
  $('error-close').addEventListener('click', clearNotices);
}
