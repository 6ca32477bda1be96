/** The password: reset by a user who forgot it, and changed by a user who is logged in. */

import { $, busy } from './dom.js';

const text = (form, name) => form.elements.namedItem(name).value;

export class Passwords {
  #page; #once = '';

  /** @param page see app.js */
  constructor(page) {
    this.#page = page;
    $('forgot').addEventListener('click', () => this.#forgot());
    this.#on('reset-form', (form) => this.#reset(form));
    this.#on('renew-form', (form) => this.#renew(form));
    this.#on('change-form', (form) => this.#change(form));
  }

  /** Clears typed text, and the token of a reset. */
  clear() {
    this.#once = '';
    for (const id of ['renew-form', 'change-form']) $(id).reset();
  }

  #on(id, work) {
    $(id).addEventListener('submit', (event) => {
      event.preventDefault();
      busy(event.target.querySelector('button'), () => work(event.target));
    });
  }

  #forgot() {
    this.#page.clear();
    for (const [to, from] of [['reset-country', 'country-code'], ['reset-phone', 'phone-number']]) $(to).value = $(from).value;
    this.#page.show('reset');
  }

  // Both methods are required; the outcome is a token that sets the password once.
  async #reset(form) {
    const account = { countryCode: text(form, 'countryCode').trim().replace(/^\+/, ''), phoneNumber: text(form, 'phoneNumber').trim() };
    const outcome = await this.#page.verify('whatReset', () => this.#page.client.start('POST', '/auth/password/reset', account, { xAuth: '' }), form);
    if (!outcome) return;
    this.#once = outcome.headers['ot-auth'];
    this.#page.show('renew');
  }

  // A refused password does not use the token up.
  async #renew(form) {
    this.#page.clear();
    const body = { password: text(form, 'password'), passwordVerify: text(form, 'passwordVerify') };
    try {
      await this.#page.client.request('POST', '/auth/password/update', { body, headers: { 'ot-auth': this.#once } });
      this.#page.leave('passwordSet');
    } catch (error) {
      this.#page.fail(error, form);
    }
  }

  async #change(form) {
    const body = { oldPassword: text(form, 'oldPassword'), password: text(form, 'password'), passwordVerify: text(form, 'passwordVerify') };
    const outcome = await this.#page.verify('whatPassword', () => this.#page.client.start('POST', '/auth/password', body), form);
    if (!outcome) return;
    form.reset();
    this.#page.note('passwordChanged');
  }
}
