/** The session after a login: the claims of the token, and every session of the account with its end button. */

import { h, clock, instant } from './dom.js';
import { shortened } from './agent.js';
import { t, moment } from './texts.js';

const TIMES = ['iat', 'exp', 'nbf', 'auth_time'];

/** The claims of a JWT, for display only: nothing here verifies it. */
export function claimsOf(token) {
  try {
    const part = token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/');
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (c) => c.charCodeAt(0))));
  } catch {
    return {};
  }
}

export class SessionView {
  #timer; #sessions = [];

  /** @param {{client: import('./castellan-client.js').CastellanClient, fail: (error: Error) => void, say: (text: string) => void}} page
   *  @param {{key: HTMLElement, left: HTMLElement, claims: HTMLElement, list: HTMLElement, others: HTMLElement}} parts */
  constructor(page, outcome, parts) {
    this.client = page.client;
    this.parts = parts;
    this.tell = page;
    this.key = outcome.data?.sessionKey ?? '';
    this.claims = claimsOf(page.client.xAuth);
    // The lifetime is taken from the claims and counted from now: the two clocks need not agree.
    this.endsAt = Date.now() + (this.claims.exp - this.claims.iat) * 1000;
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
    this.#draw();
  }

  async refresh() {
    try {
      this.#sessions = await this.client.sessions();
      this.#draw();
    } catch (error) {
      this.tell.fail(error);
    }
  }

  #tick() {
    const rest = this.endsAt - Date.now();
    this.parts.left.textContent = Number.isFinite(rest) ? (rest > 0 ? clock(rest) : t('tokenOver')) : '–';
  }

  #draw() {
    this.parts.list.replaceChildren(...this.#sessions.map((session) => this.#row(session)));
    this.parts.others.hidden = !this.#sessions.some((session) => !session.current);
  }

  #row(session) {
    const device = shortened([session.deviceBrand, session.deviceModel].filter(Boolean).join(' ') || session.deviceDesc) || t('unknownDevice');
    const when = (label, value) => instant(value) && h('span', {}, `${t(label)}: `, h('time', {}, moment(instant(value))));
    return h('li', { class: 'row', dataset: { testid: 'session-item', current: String(Boolean(session.current)) } },
      h('div', { class: 'row-what' },
        h('p', { class: 'row-name' }, h('bdi', { title: session.deviceDesc }, device),
          session.current && h('span', { class: 'badge current', dataset: { testid: 'session-current' } }, t('thisSession'))),
        h('p', { class: 'row-facts' },
          session.ip && h('bdi', { dir: 'ltr' }, session.ip),
          session.countryName && h('bdi', {}, session.countryName),
          when('started', session.createdAt), when('lastSeen', session.lastSeenAt))),
      h('button', {
        type: 'button', class: 'small danger', 'aria-label': `${t('endSession')}: ${device}`, dataset: { testid: 'session-end' },
        on: { click: (event) => this.#end(session, event.currentTarget) },
      }, t('endSession')));
  }

  /** Ends every session except the current one. */
  async endOthers() {
    this.parts.others.disabled = true;
    try {
      this.#sessions = await this.client.sessions(); // one may have begun since
      for (const { sessionId, current } of this.#sessions) if (!current) await this.client.endSession({ sessionId });
      this.tell.say(t('othersEnded'));
    } catch (error) {
      this.tell.fail(error);
    } finally {
      this.parts.others.disabled = false;
    }
    if (this.client.xAuth) await this.refresh();
  }

  async #end(session, button) {
    button.disabled = true;
    try {
      await this.client.endSession({ sessionId: session.sessionId });
      this.tell.say(t('sessionEnded'));
      await this.refresh(); // if it was the current one, this is refused and the page returns to the login
    } catch (error) {
      button.disabled = false;
      this.tell.fail(error);
    }
  }
}
