/** This browser as a device of the account: the pane beside the page simulates a phone that lists its pending
 *  challenges and approves or denies them. An integrator would copy castellan-device.js. */

import { Device, forgetDevice, loadDevice, saveDevice } from './castellan-device.js';
import { agentOf } from './agent.js';
import { digits } from './challenge.js';
import { wordsOf } from './errors.js';
import { $, h, busy, clock, sentences } from './dom.js';
import { t } from './texts.js';

const EVERY_MS = 2000;

/** The values that an answer signs: label and value. */
const rowsOf = ({ intent, data }) => intent?.rows.map(({ label, value }) => [label, value]) ?? data.params.infoTable.data;

export class Devices {
  #page; #device; #owner = ''; #waiting = []; #drawn = ''; #timer; #note;

  /** @param page see app.js */
  constructor(page) {
    this.#page = page;
    const on = (id, work) => $(id).addEventListener('click', (event) => busy(event.currentTarget, work));
    on('enroll', () => this.#enroll());
    on('device-ask', () => this.#ask(true));
    on('device-forget', () => this.#forget());
    setInterval(() => this.#tick(), 1000);
    document.addEventListener('languagechanged', () => { this.#draw(); this.#drawn = ''; this.#drawWaiting(); this.#say(this.#note); });
  }

  /** Finds the device of an earlier visit. */
  async start() {
    try {
      this.#device = await loadDevice();
    } catch { /* storage can be switched off: there is no device then */ }
    this.#draw();
  }

  /** Polls every two seconds while a challenge of this page has a push that can be answered.
   *  @param {number} [until] epoch ms; without it the polling stops */
  listen(until) {
    clearInterval(this.#timer);
    if (!this.#device) return;
    if (until) this.#timer = setInterval(() => (Date.now() < until ? this.#ask() : clearInterval(this.#timer)), EVERY_MS);
    if (until || this.#waiting.length) this.#ask();
  }

  /** Names the user of the page's session, or none. Another user's device does not hide the registration. */
  own(owner) {
    this.#owner = owner;
    this.#draw();
  }

  async #enroll() {
    let device;
    const outcome = await this.#page.verify('whatDevice', async () => {
      // Proofs name the service's public URL, which need not be the address of this page.
      const { publicUrl } = (await this.#page.client.request('GET', '/dev/service')).data;
      device = await Device.create({ audience: publicUrl, owner: this.#owner });
      const { browser, system } = agentOf();
      return device.enroll(this.#page.client, { brand: browser || 'Browser', model: system || '?', description: t('deviceDescription'), platform: 'web' });
    });
    if (!outcome) return;
    device.deviceId = outcome.data.deviceId;
    await saveDevice(device);
    this.#device = device;
    this.#page.note('enrolled');
    this.#draw();
    this.#ask();
  }

  async #forget() {
    clearInterval(this.#timer);
    this.#device = undefined;
    this.#waiting = [];
    this.#say();
    this.#draw();
    await forgetDevice();
  }

  #draw() {
    const mine = this.#device;
    $('enroll-card').hidden = Boolean(mine) && (!this.#owner || mine.owner === this.#owner);
    $('device-pane').hidden = !mine;
    $('device-id').textContent = mine?.deviceId ?? '';
    this.#drawWaiting();
  }

  /** @param {boolean} [asked] by the user: the answer is shown even if nothing is pending */
  async #ask(asked = false) {
    const device = this.#device;
    if (!device) return;
    try {
      const items = await device.ongoing(asked ? this.#page.client : this.#page.quiet);
      if (device !== this.#device) return;
      const now = Date.now();
      this.#waiting = items.map((item) => ({ ...item, endsAt: this.#waiting.find((w) => same(w, item))?.endsAt ?? now + item.data.params.expire * 1000 }));
      if (items.length || this.#note?.asking) this.#say();
      else if (asked) this.#say({ key: 'nothingWaits' });
      this.#drawWaiting();
    } catch (error) {
      this.#say({ error, asking: true });
    }
  }

  async #answer(item, value, note) {
    try {
      await this.#device.answer(this.#page.client, item, value);
      this.#waiting = this.#waiting.filter((other) => !same(other, item));
      this.#drawWaiting();
      this.#say({ key: value === 'DENIED' ? 'denied' : 'approved', ok: true });
    } catch (error) {
      note.textContent = sentences(wordsOf(error), error.attemptsLeft !== undefined && t('attemptsLeft', { n: error.attemptsLeft }));
      if (['CHALLENGE_CLOSED', 'CHALLENGE_EXPIRED', 'METHOD_ALREADY_COMPLETED', 'METHOD_EXPIRED'].includes(error.code)) {
        this.#say({ error });
        await this.#ask();
      }
    }
  }

  // Only a change is drawn: typed text and the focus survive the polling.
  #drawWaiting() {
    const drawn = JSON.stringify([this.#waiting.map((item) => [item.data.challengeId, item.data.methodId]), document.documentElement.lang]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    $('waiting').replaceChildren(...this.#waiting.map((item) => this.#card(item)));
    this.#tick();
  }

  #card(item) {
    const { challengeId, actionTitle, numberMatching, params } = item.data;
    const id = `number-${challengeId}`;
    const note = h('p', { class: 'method-note', role: 'alert', dataset: { testid: 'push-note' } });
    const number = numberMatching && h('input', { id, class: 'number-input', dir: 'ltr', inputmode: 'numeric', autocomplete: 'off', maxlength: 2, dataset: { testid: 'push-number' } });
    const answer = (value) => ({ click: (event) => busy(event.currentTarget, () => this.#answer(item, value(), note)) });
    return h('li', { class: 'message push', dataset: { testid: 'push', challengeId } },
      h('div', { class: 'message-head' }, h('strong', { class: 'push-title' }, actionTitle),
        h('span', { class: 'clock message-at', dir: 'ltr', role: 'timer', dataset: { ends: item.endsAt } })),
      h('p', { class: 'message-body', dir: 'auto' }, item.body),
      h('dl', { class: 'push-facts' }, rowsOf(item).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, h('bdi', {}, value))))),
      numberMatching && h('div', { class: 'field' }, h('label', { for: id }, t('numberLabel')), number),
      note,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', class: 'primary small', dataset: { testid: 'approve' }, on: answer(() => (number ? `APPROVED:${digits(number.value)}` : 'APPROVED')) }, t('approve')),
        h('button', { type: 'button', class: 'small danger', dataset: { testid: 'deny' }, on: answer(() => 'DENIED') }, t('deny'))));
  }

  #tick() {
    for (const left of $('waiting').querySelectorAll('[data-ends]')) left.textContent = clock(left.dataset.ends - Date.now());
    if (!this.#waiting.some((item) => item.endsAt <= Date.now())) return;
    this.#waiting = this.#waiting.filter((item) => item.endsAt > Date.now());
    this.#drawWaiting();
  }

  /** @param {{key?: string, error?: Error, ok?: boolean, asking?: boolean}} [note] */
  #say(note) {
    this.#note = note;
    const text = note?.key ? t(note.key) : note?.error ? wordsOf(note.error) : '';
    if ($('device-note').textContent !== text) $('device-note').textContent = text; // a screen reader announces it once
    $('device-note').dataset.kind = note?.error ? 'bad' : note?.ok ? 'ok' : '';
  }
}

const same = (a, b) => a.data.challengeId === b.data.challengeId && a.data.methodId === b.data.methodId;
