/** The session after a login: its key, the lifetime of its token, and the claims. */

import { claimsOf } from './castellan-key.js';
import { h, clock, instant } from './dom.js';
import { t, moment } from './texts.js';

const TIMES = ['iat', 'exp', 'nbf', 'auth_time'];

export class SessionView {
  #timer;

  /** @param {string} token @param {{key: HTMLElement, left: HTMLElement, claims: HTMLElement}} parts */
  constructor(token, outcome, parts) {
    this.parts = parts;
    this.key = outcome.data?.sessionKey ?? '';
    this.claims = claimsOf(token);
    // The lifetime is taken from the claims and counted from now: the two clocks need not agree. A renewal has the end
    // of the whole session.
    this.endsAt = Date.parse(outcome.endsAt ?? '') || Date.now() + (this.claims.exp - this.claims.iat) * 1000;
    this.render();
    this.#timer = setInterval(() => this.#tick(), 1000);
  }

  stop() {
    clearInterval(this.#timer);
  }

  render() {
    this.parts.key.textContent = this.key;
    this.parts.claims.replaceChildren(...Object.entries(this.claims).map(([name, value]) => h('tr', {},
      h('th', { scope: 'row' }, h('code', {}, name)),
      h('td', {}, TIMES.includes(name) && instant(value)
        ? h('time', { datetime: instant(value).toISOString() }, moment(instant(value)))
        : h('code', { dir: 'ltr' }, typeof value === 'string' ? value : JSON.stringify(value))))));
    this.#tick();
  }

  #tick() {
    const rest = this.endsAt - Date.now();
    this.parts.left.textContent = Number.isFinite(rest) ? (rest > 0 ? clock(rest) : t('tokenOver')) : '–';
  }
}
