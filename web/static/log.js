/** The event log: the network traffic, newest first, with shortened tokens. */

import { h, block, breakable } from './dom.js';
import { t } from './texts.js';

const LIMIT = 100;

/** The fields of an outcome that are shown once, in both spellings of the interface. */
const ONCE = ['base32', 'otpAuthUrl', 'otp_auth_url', 'qrDataUrl', 'qr_data_url', 'recoveryCodes', 'recovery_codes'];

/** A token in a screenshot is a leaked token: only its beginning is shown. Values that are shown once are not logged. */
function shorten(key, value) {
  if (ONCE.includes(key)) return '…';
  return typeof value === 'string' && /^eyJ[\w-]+\.[\w-]+\./.test(value) ? `${value.slice(0, 10)}… (${value.length})` : value;
}

export class EventLog {
  /** @param {HTMLOListElement} list @param {HTMLElement} empty shown while the list is empty */
  constructor(list, empty) {
    this.list = list;
    this.empty = empty;
  }

  /** @param {'http'|'socket'|'result'|'page'} via @param {string} event @param {string} [note]
   *  @param {{detail?: any, bad?: boolean}} [more] */
  add(via, event, note = '', { detail, bad = false } = {}) {
    const at = new Date();
    const time = `${at.toLocaleTimeString('en-GB')}.${String(at.getMilliseconds()).padStart(3, '0')}`;
    const head = [
      h('span', { class: 'log-event' }, breakable(event)),
      h('span', { class: `badge via-${via}` }, via),
      h('bdi', { class: 'log-note' }, note),
      h('time', { class: 'log-time', datetime: at.toISOString() }, time),
    ];
    const props = { dir: 'ltr', class: bad ? 'log-entry bad' : 'log-entry', dataset: { testid: 'log-entry', via, event } };
    this.list.prepend(h('li', props, detail === undefined
      ? h('div', { class: 'log-line' }, head)
      : h('details', {},
        h('summary', { class: 'log-line' }, head),
        block(t('detail'), JSON.stringify(detail, shorten, 2)))));
    while (this.list.children.length > LIMIT) this.list.lastElementChild.remove();
    this.empty.hidden = true;
  }

  clear() {
    this.list.replaceChildren();
    this.empty.hidden = false;
  }

  /** A fetch that logs each request; answers are cloned, so the caller can still read them. */
  fetch = async (url, init = {}) => {
    const path = `${init.method ?? 'GET'} ${new URL(url, location.href).pathname}`;
    try {
      const response = await fetch(url, init);
      const tokens = ['p-auth', 'x-auth', 'ot-auth', 'retry-after'].filter((name) => response.headers.has(name));
      const body = await response.clone().json().catch(() => undefined);
      const headers = Object.fromEntries(tokens.map((name) => [name, response.headers.get(name)]));
      const note = [response.status, body?.code, ...tokens.map((name) => `+ ${name}`)].filter(Boolean).join('  ');
      this.add('http', path, note, { detail: { headers, body }, bad: !response.ok });
      return response;
    } catch (error) {
      if (error.name !== 'AbortError') this.add('http', path, error.name, { bad: true });
      throw error;
    }
  };
}
