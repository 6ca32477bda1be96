/** The withdrawal address book. An addition runs at once, or behind a challenge if the operator configured one. */

import { $, h, busy, instant } from './dom.js';
import { t, moment } from './texts.js';

const PATH = '/asset/withdrawal-addresses';

export class Addresses {
  #page; #list;

  /** @param page see app.js */
  constructor(page) {
    this.#page = page;
    $('address-form').addEventListener('submit', (event) => {
      event.preventDefault();
      busy(event.target.querySelector('button'), () => this.#add(event.target));
    });
    document.addEventListener('languagechanged', () => this.#draw());
  }

  /** Clears the account's list. */
  clear() {
    this.#list = undefined;
    this.#draw();
  }

  async refresh() {
    const list = await this.#page.read(PATH);
    if (!list) return;
    this.#list = list;
    this.#draw();
  }

  async #add(form) {
    const body = Object.fromEntries(['currencyCode', 'networkCode', 'address', 'name'].map((name) => [name, form.elements.namedItem(name).value.trim()]));
    await this.#run('whatAddress', 'POST', body, form, 'addressAdded');
  }

  async #run(what, method, body, form, told) {
    const outcome = await this.#page.verify(what, () => this.#page.client.start(method, PATH, body), form);
    if (!outcome) return;
    for (const name of ['address', 'name']) if (form) form.elements.namedItem(name).value = '';
    this.#page.note(told);
    await this.refresh();
  }

  #draw() {
    $('addresses-empty').hidden = this.#list?.length !== 0; // unread is not empty
    $('addresses').replaceChildren(...(this.#list ?? []).map((entry) => h('li', { class: 'row', dataset: { testid: 'address-item' } },
      h('div', { class: 'row-what' },
        h('p', { class: 'row-name' }, h('bdi', {}, entry.name), h('span', { class: 'badge', dir: 'ltr' }, `${entry.currencyCode} · ${entry.networkCode}`)),
        h('p', { class: 'row-facts' }, h('code', { dir: 'ltr' }, entry.address),
          instant(entry.usableFrom) && h('span', {}, `${t('usableFrom')}: `, h('time', {}, moment(instant(entry.usableFrom)))))),
      h('button', {
        type: 'button', class: 'small danger', 'aria-label': `${t('remove')}: ${entry.name}`, dataset: { testid: 'address-remove' },
        on: { click: (event) => busy(event.currentTarget, () => this.#run('whatAddressOff', 'DELETE', { id: entry.id }, undefined, 'addressRemoved')) },
      }, t('remove')))));
  }
}
