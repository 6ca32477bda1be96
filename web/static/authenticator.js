/** The authenticator app: its setup with the QR code and the recovery codes, its end, its recovery; and beside the page
 *  a demonstration of the app itself, which computes codes (RFC 6238) from the secret shown last. */

import { $, h, busy, clock, copy } from './dom.js';
import { t } from './texts.js';

const STEP_MS = 30_000;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The code of a secret in base32 at a moment: SHA-1, six digits, steps of 30 seconds. */
export async function codeAt(base32, ms) {
  const bits = Array.from(base32.replace(/=+$/, '').toUpperCase(), (c) => ALPHABET.indexOf(c).toString(2).padStart(5, '0')).join('');
  const secret = Uint8Array.from(bits.match(/.{8}/g), (byte) => parseInt(byte, 2));
  const counter = new DataView(new ArrayBuffer(8));
  counter.setBigUint64(0, BigInt(Math.floor(ms / STEP_MS)));
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-1' }, false, ['sign']);
  const mac = new DataView(await crypto.subtle.sign('HMAC', key, counter));
  const number = mac.getUint32(mac.getUint8(19) & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, '0');
}

export class Authenticator {
  #page; #secret = ''; #code = ''; #step = 0; #offered = false; #shown;

  /** @param page see app.js */
  constructor(page) {
    this.#page = page;
    $('totp-setup').addEventListener('click', (event) => busy(event.target, () => this.#setup()));
    $('totp-deactivate').addEventListener('click', (event) => busy(event.target, () => this.#deactivate()));
    $('recover-form').addEventListener('submit', (event) => {
      event.preventDefault();
      busy(event.target.querySelector('button'), () => this.#recover(event.target));
    });
    $('totp-use').addEventListener('click', () => this.#use());
    $('totp-forget').addEventListener('click', () => this.#hold(''));
    setInterval(() => this.#tick(), 250);
    document.addEventListener('languagechanged', () => { this.#draw(); this.#label(); });
    addEventListener('afterprint', () => document.body.classList.remove('printing'));
    this.#label();
  }

  /** Whether a challenge takes a code now; otherwise it can be copied. */
  offer(taken) {
    this.#offered = taken;
    this.#label();
  }

  /** Removes the values that are shown once. The demonstration of the app keeps its secret, as a phone would. */
  clear() {
    this.#shown = undefined;
    $('recover-form').reset();
    this.#draw();
  }

  async #setup() {
    this.clear();
    const outcome = await this.#page.verify('whatTotp', () => this.#page.client.start('POST', '/auth/totp/setup'));
    if (outcome) this.#take(outcome.data);
  }

  async #deactivate() {
    const outcome = await this.#page.verify('whatTotpOff', () => this.#page.client.start('POST', '/auth/totp/deactivate'));
    if (!outcome) return;
    this.clear();
    this.#hold('');
    this.#page.note('totpGone');
  }

  async #recover(form) {
    this.#page.clear();
    try {
      const body = { recoveryCode: form.elements.namedItem('recoveryCode').value };
      const { data } = await this.#page.client.request('POST', '/auth/totp/recover', { body, headers: { 'x-auth': this.#page.client.xAuth } });
      form.reset();
      this.#take(data);
    } catch (error) {
      this.#page.fail(error, form);
    }
  }

  #take(shown) {
    this.#shown = shown;
    this.#hold(shown.base32, decodeURIComponent(new URL(shown.otpAuthUrl).pathname.replace(/^\/+(totp\/)?/, '')));
    this.#draw();
    $('totp-result-title').focus();
  }

  // The result of the setup or the recovery: the QR code, the secret, and once only the recovery codes.
  #draw() {
    const shown = this.#shown;
    $('totp-result').hidden = !shown;
    if (!shown) return void $('totp-result').replaceChildren();
    const codes = shown.recoveryCodes;
    const copied = (text) => async ({ currentTarget: button }) => { button.textContent = t(await copy(text) ? 'copied' : 'copyFailed'); };
    $('totp-result').replaceChildren(
      h('h2', { id: 'totp-result-title', tabindex: '-1' }, t(codes ? 'totpReady' : 'totpAgain')),
      h('p', { class: 'lead' }, t('totpScan')),
      h('div', { class: 'totp-secret' },
        h('img', { class: 'qr', src: shown.qrDataUrl, alt: t('qrAlt'), width: 180, height: 180 }),
        h('div', {},
          h('p', { class: 'small-label' }, t('secret')),
          h('code', { class: 'secret', dir: 'ltr', dataset: { testid: 'totp-secret' } }, shown.base32.match(/.{1,4}/g).join(' ')),
          h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'small', on: { click: copied(shown.base32) } }, t('copyCode'))))),
      codes && h('div', { class: 'recovery' },
        h('h3', {}, t('recoveryTitle')),
        h('p', { class: 'lead' }, t('recoveryLead')),
        h('ol', { class: 'recovery-codes', dir: 'ltr' }, codes.map((code) => h('li', {}, h('code', { dataset: { testid: 'recovery-code' } }, code)))),
        h('div', { class: 'buttons' },
          h('button', { type: 'button', class: 'small', on: { click: copied(codes.join('\n')) } }, t('copyCode')),
          h('button', { type: 'button', class: 'small', dataset: { testid: 'totp-print' }, on: { click: () => this.#print() } }, t('print')))),
      h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', dataset: { testid: 'totp-kept' }, on: { click: () => this.clear() } }, t('kept'))));
  }

  // Only the recovery codes are printed (style.css).
  #print() {
    document.body.classList.add('printing');
    print();
  }

  #hold(secret, account = '') {
    this.#secret = secret;
    this.#step = 0;
    $('totp-account').textContent = account;
    $('authenticator-pane').hidden = !secret;
    this.#tick();
  }

  async #tick() {
    if (!this.#secret) return;
    const now = Date.now();
    $('totp-left').textContent = clock(STEP_MS - (now % STEP_MS));
    const step = Math.floor(now / STEP_MS);
    if (step === this.#step) return;
    this.#step = step;
    this.#code = await codeAt(this.#secret, now);
    $('totp-code').textContent = this.#code;
    this.#label();
  }

  #label() {
    $('totp-use').textContent = t(this.#offered ? 'useCode' : 'copyCode');
  }

  async #use() {
    if (this.#offered) this.#page.fill('TOTP', this.#code);
    else $('totp-use').textContent = t(await copy(this.#code) ? 'copied' : 'copyFailed');
  }
}
