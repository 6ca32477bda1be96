/** The development outbox: the sent messages, read every second while the page is visible. */

import { h, instant, copy } from './dom.js';
import { t, moment } from './texts.js';

const EVERY_MS = 1000;
const SHOWN = 50;

/** The text of a body; mail bodies are HTML. Tags are removed first, so that the parser handles only entities and the page's
 *  policy blocks no styles. The result is shown as text, whatever it contains. */
function plain(body) {
  if (!/^\s*</.test(body)) return body;
  const bare = body.replace(/<(head|style|script)\b[\s\S]*?<\/\1>/gi, '').replace(/<(br|\/p|\/div|\/tr|\/h\d)\b[^>]*>/gi, '\n').replace(/<[^>]*>/g, '');
  return new DOMParser().parseFromString(bare, 'text/html').body.textContent.replace(/[ \t]+/g, ' ').replace(/\s*\n\s*/g, '\n').trim();
}

export class Outbox {
  #list; #status; #address; #onUse; #timer; #shown = ''; #items = [];

  /** @param {{list: HTMLElement, status: HTMLElement, address: () => URL, onUse?: (item: object) => void}} parts
   *  onUse receives a message whose code was chosen while `using` is set. */
  constructor({ list, status, address, onUse }) {
    this.#list = list;
    this.#status = status;
    this.#address = address;
    this.#onUse = onUse;
    /** Messages older than this (epoch ms) are shown faded. */
    this.since = 0;
    /** Whether a challenge takes a code now; otherwise it can be copied. */
    this.using = false;
    document.addEventListener('languagechanged', () => this.#render());
  }

  /** @param {number} [since] start of a challenge; its codes can be used */
  start(since) {
    this.using = since !== undefined;
    this.since = since ?? 0;
    this.#render(); // at once: a code of the previous challenge must not pass for one of this
    if (this.#timer) return;
    this.#timer = setInterval(() => this.read(), EVERY_MS);
    this.read();
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.using = false;
    this.#render();
  }

  async read() {
    try {
      const response = await fetch(this.#address(), { cache: 'no-store', headers: { accept: 'application/json' } });
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      this.#items = await response.json();
      this.#render();
    } catch (error) {
      this.#say(t('outboxFailed', { message: error.message }));
    }
  }

  // Only a change is drawn: the reader's focus and selection survive the polling.
  #render() {
    const items = this.#items.slice(0, SHOWN);
    const shown = JSON.stringify([items, this.since, this.using, document.documentElement.lang]);
    this.#say(items.length ? '' : t('outboxEmpty'));
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#list.replaceChildren(...items.map((item) => this.#entry(item)));
    this.#list.scrollTop = 0; // new messages come first
  }

  #say(text) {
    if (this.#status.textContent !== text) this.#status.textContent = text;
    this.#status.hidden = !text;
  }

  #entry(item) {
    const at = instant(item.at);
    const old = at && at.getTime() < this.since;
    const channel = String(item.channel).toUpperCase();
    const use = h('button', {
      type: 'button', class: 'small', dataset: { testid: 'use-code' },
      on: { click: () => this.#use(item, use) },
    }, t(this.using ? 'useCode' : 'copyCode'));
    return h('li', { class: old ? 'message old' : 'message', dataset: { testid: 'outbox-item', channel, old: String(Boolean(old)) } },
      h('div', { class: 'message-head' },
        h('span', { class: `badge channel-${channel.toLowerCase()}` }, channel),
        h('bdi', { class: 'message-to' }, item.to),
        at && h('time', { class: 'message-at', datetime: at.toISOString() }, old ? `${t('earlier')} · ${moment(at)}` : moment(at))),
      item.subject && h('p', { class: 'message-subject', dir: 'auto' }, item.subject),
      h('p', { class: 'message-body', dir: 'auto' }, plain(item.body ?? '')),
      item.code && h('div', { class: 'message-code' },
        h('output', { class: 'code', dir: 'ltr', dataset: { testid: 'outbox-code' } }, item.code), use));
  }

  async #use(item, button) {
    if (this.using) this.#onUse(item);
    else button.textContent = (await copy(item.code)) ? t('copied') : item.code;
  }
}
