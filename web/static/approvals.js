/** The requests that wait for this device: their list, and one of them in large type with every value that an answer
 *  signs. The service is asked every few seconds while the page is visible, and at once on a push and on a return. */

import { digits } from './challenge.js';
import { showError, showNotice, clearNotices, wordsOf } from './errors.js';
import { $, h, busy, clock, instant, sentences } from './dom.js';
import { t, moment } from './texts.js';

const EVERY_MS = 3000;
const SLOWEST_MS = 30_000; // without a connection

/** Refusals of an answer to a challenge that is over. */
const OVER = [
  'CHALLENGE_CLOSED',
  'CHALLENGE_EXPIRED',
  'CHALLENGE_NOT_FOUND',
  'METHOD_ALREADY_COMPLETED',
  'METHOD_EXPIRED',
];

const idOf = (item) => `${item.data.challengeId}/${item.data.methodId}`;

/** The title and the rows that an answer signs. */
const titleOf = ({ intent, data }) => intent?.title ?? data.actionTitle;
const rowsOf = ({ intent, data }) =>
  intent?.rows ?? data.params.infoTable.data.map(([label, value]) => ({ key: '', label, value }));

/** A long code, such as an address, an account number or a fingerprint: letters and digits without a pause. */
const CODE = /^(?=.*\d)(?:[a-z]+:)?[A-Za-z0-9_-]{17,}$/;
const UUID = /^[\da-f]{8}-[\da-f]{4}-/i; // has groups of its own

/** A value in which long codes are shown completely in groups of four. The text itself stays as it is. */
export function grouped(value) {
  return value.split(/(\s+)/).map((word) =>
    CODE.test(word) && !UUID.test(word)
      ? h(
          'bdi',
          { class: 'groups', dir: 'ltr' },
          word.match(/.{1,4}/g).flatMap((part) => [h('span', {}, part), h('wbr')]),
        )
      : word,
  );
}

export class Approvals {
  #page;
  #device;
  #items = [];
  #open = '';
  #answered = new Set();
  #drawn = '';
  #timer;
  #asking = false;
  #again = false;
  #failures = 0;
  #busy = false;
  #wanted = '';

  /** @param page {client, show(step), step(), say(text), gone()} */
  constructor(page) {
    this.#page = page;
    setInterval(() => this.#tick(), 1000);
    $('approval-back').addEventListener('click', () => this.home());
    document.addEventListener('visibilitychange', () => this.ask());
    addEventListener('online', () => this.ask());
    addEventListener('offline', () => this.#offline(true));
    document.addEventListener('languagechanged', () => {
      this.#drawn = '';
      this.#draw();
      this.#drawOffline();
    });
  }

  /** Watches for a device; without one the watch ends. */
  watch(device) {
    this.#device = device;
    this.#items = [];
    this.#open = '';
    this.#draw();
    this.#offline(false);
    if (device) this.ask();
  }

  /** Opens a request as soon as it is known: from a notification. */
  want(challengeId) {
    this.#wanted = challengeId;
    if (!this.#openWanted()) this.ask();
  }

  home() {
    this.#open = '';
    this.#page.show('home');
  }

  /** Asks the service now. */
  async ask() {
    clearTimeout(this.#timer);
    const device = this.#device;
    if (!device || document.hidden) return;
    this.#again = this.#asking; // what the answer under way cannot know is asked for after it
    if (this.#asking) return;
    this.#asking = true;
    let wait = EVERY_MS;
    try {
      this.#take(device, await device.ongoing(this.#page.client));
      this.#failures = 0;
      this.#offline(false);
    } catch (error) {
      if (device !== this.#device) return;
      if (error.code === 'DEVICE_SIGNATURE_INVALID') return void this.#page.gone();
      this.#failures++;
      this.#offline(error.status === 0 || error.status >= 500);
      if (error.status > 0 && error.status < 500 && error.status !== 429) showError(error);
      wait = Math.max(error.retryAfter * 1000, Math.min(EVERY_MS * 2 ** this.#failures, SLOWEST_MS));
    } finally {
      this.#asking = false;
      clearTimeout(this.#timer);
      if (this.#again) this.ask();
      else if (this.#device) this.#timer = setTimeout(() => this.ask(), wait);
    }
  }

  #take(device, items) {
    if (device !== this.#device) return;
    const now = Date.now();
    const before = new Map(this.#items.map((item) => [idOf(item), item]));
    this.#items = items
      .filter((item) => !this.#answered.has(idOf(item)))
      .map((item) => ({ ...item, endsAt: before.get(idOf(item))?.endsAt ?? now + item.data.params.expire * 1000 }));
    if (this.#items.some((item) => !before.has(idOf(item)))) this.#page.say(t('authWaits', { n: this.#items.length }));
    this.#closeEnded('authElsewhere');
    this.#draw();
    this.#openWanted();
  }

  // An open request that is over is left, with the reason; but not while its answer is under way.
  #closeEnded(reason) {
    if (!this.#open || this.#busy || this.#items.some((item) => idOf(item) === this.#open)) return;
    this.#leave(reason);
  }

  #leave(reason) {
    this.home();
    showNotice(reason);
  }

  #openWanted() {
    const item = this.#wanted && this.#items.find((one) => one.data.challengeId === this.#wanted);
    if (!item || this.#busy) return false;
    this.#wanted = '';
    this.#show(item);
    return true;
  }

  #show(item) {
    clearNotices();
    this.#open = idOf(item);
    this.#draw();
    this.#page.show('approval');
  }

  // Only a change is drawn: typed text and the focus survive the polling.
  #draw() {
    document.title = this.#items.length ? `(${this.#items.length}) ${t('authName')}` : t('authName');
    const drawn = JSON.stringify([this.#items.map(idOf), this.#open, document.documentElement.lang]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    $('nothing').hidden = this.#items.length > 0;
    const focused = document.activeElement?.dataset?.request;
    $('requests').replaceChildren(
      ...this.#items.map((item) =>
        h(
          'li',
          {},
          h(
            'button',
            {
              type: 'button',
              class: 'request',
              dataset: { testid: 'request', request: idOf(item) },
              on: { click: () => this.#show(item) },
            },
            h('strong', { dir: 'auto', lang: item.intent?.language }, titleOf(item)),
            this.#clock(item),
          ),
        ),
      ),
    );
    if (focused) [...$('requests').querySelectorAll('button')].find((one) => one.dataset.request === focused)?.focus();
    const item = this.#items.find((one) => idOf(one) === this.#open);
    if (item && $('approval').dataset.shows !== drawn) this.#drawApproval(item);
    this.#tick();
  }

  #clock(item) {
    return h(
      'span',
      { class: 'clock', dir: 'ltr', role: 'timer', 'aria-label': t('challengeLeft'), dataset: { ends: item.endsAt } },
      clock(item.endsAt - Date.now()),
    );
  }

  #drawApproval(item) {
    const key = `${idOf(item)} ${document.documentElement.lang}`;
    if ($('approval').dataset.shows === key) return;
    $('approval').dataset.shows = key;
    const typed = $('approval').dataset.id === idOf(item) ? $('number')?.value : '';
    $('approval').dataset.id = idOf(item);
    const lang = item.intent?.language;
    const number =
      item.data.numberMatching &&
      h('input', {
        id: 'number',
        class: 'number-input',
        dir: 'ltr',
        inputmode: 'numeric',
        autocomplete: 'off',
        maxlength: 2,
        'aria-describedby': 'answer-note',
        dataset: { testid: 'number' },
      });
    if (number) number.value = typed ?? '';
    const note = h('p', { id: 'answer-note', class: 'method-note', role: 'alert', dataset: { testid: 'answer-note' } });
    const run = (work) => busy(form.querySelector('[data-testid="approve"]'), () => this.#run(note, work));
    const form = h(
      'form',
      {
        class: 'answer',
        novalidate: true,
        on: {
          submit: (event) => {
            event.preventDefault();
            run(() => this.#answer(item, number ? `APPROVED:${digits(number.value)}` : 'APPROVED', 'approved'));
          },
        },
      },
      number && h('div', { class: 'field' }, h('label', { for: 'number' }, t('numberLabel')), number),
      note,
      h('button', { class: 'primary', dataset: { testid: 'approve' } }, t('approve')),
      h(
        'button',
        {
          type: 'button',
          class: 'danger',
          dataset: { testid: 'deny' },
          on: { click: () => run(() => this.#answer(item, 'DENIED', 'denied')) },
        },
        t('deny'),
      ),
      h(
        'button',
        {
          type: 'button',
          class: 'quiet not-me',
          dataset: { testid: 'not-me' },
          on: { click: () => this.#askAlarm(run, item) },
        },
        t('authNotMe'),
      ),
    );
    $('approval').replaceChildren(
      h('h1', { id: 'approval-title', tabindex: '-1', dir: 'auto', lang }, titleOf(item)),
      h('p', { class: 'approval-ends' }, t('challengeLeft'), ' ', this.#clock(item)),
      h(
        'dl',
        { class: 'rows', lang, dataset: { testid: 'rows' } },
        rowsOf(item).map((row) =>
          h(
            'div',
            { dataset: { row: row.key } },
            h('dt', { dir: 'auto' }, row.label),
            h(
              'dd',
              { dir: 'auto' },
              grouped(row.value),
              row.key === 'time' &&
                instant(row.value) &&
                h(
                  'small',
                  { lang: document.documentElement.lang, dir: document.documentElement.dir },
                  moment(instant(row.value)),
                ),
            ),
          ),
        ),
      ),
      form,
    );
  }

  async #askAlarm(run, item) {
    if (await this.#page.confirm('authNotMeSure', 'authNotMeYes')) run(() => this.#alarm(item));
  }

  async #run(note, work) {
    this.#busy = true;
    note.textContent = '';
    try {
      await work();
    } catch (error) {
      this.#busy = false;
      if (OVER.includes(error.code)) {
        this.#drop(this.#open);
        this.home();
        showError(error);
      } else {
        note.textContent = sentences(
          wordsOf(error),
          error.attemptsLeft !== undefined && t('attemptsLeft', { n: error.attemptsLeft }),
        );
        if (error.code === 'OTP_INVALID') $('number')?.select();
        if (error.status === 0) this.#offline(true);
      }
    } finally {
      this.#busy = false;
      this.ask();
    }
  }

  async #answer(item, value, said) {
    await this.#device.answer(this.#page.client, item, value);
    this.#drop(idOf(item));
    this.#leave(said);
  }

  async #alarm(item) {
    try {
      await this.#device.answer(this.#page.client, item, 'DENIED');
    } catch (error) {
      if (!OVER.includes(error.code)) throw error; // one that is over is denied already; the alarm is still due
    }
    await this.#device.alarm(this.#page.client, item.data.challengeId);
    this.#drop(idOf(item));
    this.#leave('authAlarmed');
  }

  #drop(id) {
    this.#answered.add(id);
    const gone = this.#items.find((item) => idOf(item) === id);
    this.#items = this.#items.filter((item) => item !== gone);
    this.#draw();
    if (gone) this.#page.answered(gone.data.challengeId);
  }

  #tick() {
    const now = Date.now();
    for (const left of document.querySelectorAll('.pocket [data-ends]')) {
      const text = clock(left.dataset.ends - now);
      if (left.textContent !== text) left.textContent = text;
    }
    if (this.#busy || !this.#items.some((item) => item.endsAt <= now)) return;
    this.#items = this.#items.filter((item) => item.endsAt > now);
    this.#closeEnded('authExpired');
    this.#draw();
  }

  #isOffline = false;

  #offline(is) {
    this.#isOffline = is;
    this.#drawOffline();
  }

  #drawOffline() {
    const text = this.#isOffline ? t('authOffline') : '';
    if ($('offline').textContent !== text) $('offline').textContent = text; // a screen reader announces it once
  }
}
