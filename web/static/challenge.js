/** The view of a challenge: one card per method with its deadline, its code field and its renewal. */

import { h, clock, sentences } from './dom.js';
import { t } from './texts.js';
import { approve, dismissed, supported } from './castellan-passkey.js';

const TICK_MS = 250;

/** Digits of any script as 0-9, everything else dropped: "١٢٣ ٤٥٦" and "123-456" match the sent code. */
export function digits(text) {
  return text.normalize('NFKC')
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (d) => d.charCodeAt(0) & 15)
    .replace(/\D/g, '');
}

export class ChallengeView {
  #cards = new Map(); #timer;

  /** @param {import('./castellan-client.js').Flow} flow
   *  @param {{list: HTMLElement, left: HTMLElement, bar: HTMLProgressElement, announce: (text: string) => void,
   *    device: HTMLElement}} parts */
  constructor(flow, parts) {
    this.flow = flow;
    this.parts = parts;
    this.lifetime = flow.challenge.expire * 1000;
    this.render();
    flow.addEventListener('method', ({ detail }) => this.#completed(detail));
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  stop() {
    clearInterval(this.#timer);
  }

  /** Draws every card again and keeps typed text and messages. */
  render() {
    const before = this.#cards;
    this.#cards = new Map();
    for (const method of this.flow.methods) {
      const card = this.#card(method, before.get(method.id));
      this.#cards.set(method.id, card);
    }
    this.parts.list.replaceChildren(...[...this.#cards.values()].map((card) => card.root));
    this.#tick();
  }

  /** Puts a code from the outbox into the first open method of its channel. */
  fill(channel, code) {
    for (const card of this.#cards.values()) {
      if (card.method.name !== channel || card.method.complete || !card.input) continue;
      card.input.value = code;
      card.input.focus();
      return;
    }
  }

  #card(method, before) {
    const name = method.name;
    const at = (part) => ({ testid: `${part}-${name}` });
    const card = {
      method, state: before?.state ?? 'open', message: before?.message, blockedUntil: before?.blockedUntil ?? 0,
      renewAfter: before?.renewAfter ?? 0, busy: before?.busy ?? false,
      badge: h('span', { class: 'badge state', dataset: at('state') }),
      left: h('span', { class: 'clock', dir: 'ltr', role: 'timer', 'aria-label': t('expiresIn'), dataset: at('countdown') }),
      bar: h('progress', { max: 1, value: 1, 'aria-hidden': 'true' }),
      note: h('p', { class: 'method-note', role: 'alert', dataset: at('note') }),
      wait: h('p', { class: 'method-note', dataset: at('wait') }), // not in the alert: it changes every second
    };
    const rows = [card.bar];
    if (name === 'PUSH') {
      rows.push(h('p', { class: 'method-hint' }, t('pushWait')));
      // On a narrow screen the device is below everything else.
      if (!this.parts.device.hidden) rows.push(h('a', { class: 'to-device', href: `#${this.parts.device.id}` }, t('toDevice')));
      if (method.webauthn && supported()) {
        const approve = { click: () => this.#approve(card) };
        card.passkey = h(
          'button', { type: 'button', class: 'primary', dataset: at('passkey'), on: approve }, t('passkeyApprove'),
        );
        rows.push(card.passkey);
      }
      if (method.matchNumber) {
        rows.push(h('p', { class: 'match' }, t('matchNumber'), ' ', h('strong', { class: 'match-number', dir: 'ltr', dataset: at('match') }, method.matchNumber)));
      }
    } else {
      const id = `code-${method.id}`;
      card.input = h('input', {
        id, class: 'code-input', dir: 'ltr', inputmode: 'numeric', autocomplete: 'one-time-code', maxlength: 11,
        placeholder: '······', 'aria-describedby': `note-${method.id}`, dataset: at('code'),
      });
      card.input.value = before?.input?.value ?? '';
      card.verify = h('button', { class: 'primary', dataset: at('verify') }, t('verify'));
      card.form = h('form', { class: 'method-form', novalidate: true, on: { submit: (e) => { e.preventDefault(); this.#complete(card); } } },
        h('label', { for: id }, t('code')), h('div', { class: 'method-input' }, card.input, card.verify));
      card.note.id = `note-${method.id}`;
      rows.push(card.form);
    }
    rows.push(card.note, card.wait);
    if (method.renewAt) {
      card.renew = h('button', { type: 'button', class: 'quiet', dataset: at('renew'), on: { click: () => this.#renew(card) } });
      rows.push(card.renew);
    }
    const hint = method.hint
      ? h('bdi', { class: 'method-hint', dir: 'ltr', title: t('sentTo', { hint: method.hint }) }, method.hint)
      : name === 'TOTP' && h('span', { class: 'method-hint' }, t('fromApp'));
    card.root = h('li', { class: 'method card', dataset: { testid: `method-${name}`, method: name, methodId: method.id } },
      h('div', { class: 'method-head' }, h('h2', {}, t(`method${name}`)), hint, h('span', { class: 'method-end' }, card.badge, card.left)), ...rows);
    return card;
  }

  #tick() {
    const now = Date.now();
    const rest = this.flow.expiresAt - now;
    set(this.parts.left, clock(rest));
    this.parts.bar.value = Math.max(0, rest / this.lifetime);
    for (const card of this.#cards.values()) this.#paint(card, now);
  }

  #paint(card, now) {
    const { method } = card;
    const rest = method.expiresAt - now;
    const state = method.complete ? 'done' : rest <= 0 ? 'expired' : card.state;
    card.root.dataset.state = state;
    set(card.badge, { done: t('stateDone'), expired: t('stateExpired'), locked: t('stateLocked') }[state] ?? '');
    card.badge.hidden = state === 'open';
    card.left.hidden = method.complete;
    card.bar.hidden = method.complete;
    set(card.left, clock(rest));
    card.bar.value = Math.max(0, rest / method.lifetime);
    card.bar.classList.toggle('short', rest < 30_000);
    set(card.note, this.#words(card));
    const wait = Math.max(card.blockedUntil, card.message?.renewing ? card.renewAfter : 0) - now;
    set(card.wait, card.message && wait > 0 ? t('retryIn', { time: clock(wait) }) : '');
    card.note.dataset.kind = card.message?.kind ?? '';
    card.note.dataset.key = card.message?.key ?? '';
    if (card.form) {
      card.form.hidden = method.complete;
      const shut = state !== 'open' || now < card.blockedUntil;
      card.verify.disabled = shut || card.busy;
      card.input.disabled = state !== 'open';
      set(card.verify, card.busy ? t('verifying') : t('verify'));
    }
    if (card.passkey) {
      card.passkey.hidden = method.complete;
      card.passkey.disabled = state !== 'open' || card.busy;
    }
    if (card.renew) {
      const gate = this.flow.renewal(method, now);
      const early = gate === 'early' ? method.renewAt : gate === 'open' && now < card.renewAfter ? card.renewAfter : 0;
      card.renew.hidden = method.complete;
      card.renew.disabled = gate !== 'open' || early > 0 || card.busy;
      set(card.renew, gate === 'closed' || card.renewOver ? t('renewClosed') : early ? t('renewIn', { time: clock(early - now) }) : t('renew'));
      if (card.renewOver) card.renew.disabled = true;
    }
  }

  // Built again at every tick, so that a language switch shows at once.
  #words(card) {
    const { message } = card;
    if (!message) return '';
    const parts = [message.key ? t(message.key) : `\u2068${message.text}\u2069`];
    if (message.attemptsLeft !== undefined) {
      parts.push(message.attemptsLeft > 0 ? t('attemptsLeft', { n: message.attemptsLeft }) : t('attemptsNone'));
    }
    if (message.kind === 'locked') parts.push(t(card.renew ? 'lockedRenew' : 'lockedForGood'));
    return sentences(...parts);
  }

  async #complete(card) {
    if (card.verify.disabled) return;
    await this.#send(card, () => this.flow.complete(card.method.id, card.method.name, digits(card.input.value)));
  }

  async #approve(card) {
    await this.#send(card, () => approve(this.flow, card.method));
  }

  async #send(card, answered) {
    if (card.busy) return;
    card.busy = true;
    this.#tick();
    try {
      const answer = await answered();
      const waiting = answer.execResult ? 'methodDoneText' : answer.challengeId ? 'executing' : 'moreNeeded';
      this.#current(card).message = { kind: 'ok', key: waiting };
    } catch (error) {
      if (!dismissed(error)) this.#refused(this.#current(card), error);
    } finally {
      this.#current(card).busy = false;
      this.#tick();
    }
  }

  async #renew(card) {
    if (card.busy) return;
    card.busy = true;
    this.#tick();
    try {
      await this.flow.renew(card.method.id, card.method.name);
      const now = this.#current(card);
      Object.assign(now, { state: 'open', blockedUntil: 0, message: { kind: 'ok', key: 'renewed' } });
      now.input.value = '';
      for (const other of this.#cards.values()) if (other.message?.code === 'METHOD_EXPIRED') other.message = undefined;
    } catch (error) {
      this.#refused(this.#current(card), error, true);
    } finally {
      this.#current(card).busy = false;
      this.#tick();
    }
  }

  // A language switch may have replaced the card while its request was under way.
  #current(card) {
    return this.#cards.get(card.method.id) ?? card;
  }

  #refused(card, error, renewing = false) {
    const text = error.code === 'NETWORK' ? t('network') : error.message;
    card.message = { kind: 'bad', text, code: error.code, attemptsLeft: error.attemptsLeft, renewing };
    const until = Date.now() + (error.retryAfter ?? 0) * 1000;
    switch (error.code) {
      case 'METHOD_LOCKED':
        card.state = 'locked';
        card.message.kind = 'locked';
        break;
      case 'OTP_INVALID':
        if (error.attemptsLeft === 0) card.state = 'locked';
        card.message.kind = error.attemptsLeft === 0 ? 'locked' : 'bad';
        break;
      case 'METHOD_EXPIRED':
        card.method.expiresAt = Math.min(card.method.expiresAt, Date.now());
        break;
      case 'RENEW_TOO_EARLY':
        card.renewAfter = until;
        break;
      case 'RENEW_CLOSED':
      case 'RENEW_NOT_SUPPORTED':
        card.renewOver = true;
        break;
      default:
        if (error.retryAfter) card[renewing ? 'renewAfter' : 'blockedUntil'] = until;
    }
    if (!renewing && card.state === 'open' && card.input && !card.input.disabled) {
      card.input.focus();
      card.input.select();
    }
  }

  #completed({ methodId, method }) {
    const card = this.#cards.get(methodId);
    if (card) card.state = 'open';
    this.parts.announce(t('announceMethod', { method: t(`method${method}`) }));
    this.#tick();
  }
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
