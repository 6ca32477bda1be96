/** The account's notifications, newest first, and marking them as read. */

import { $, h, busy, instant } from './dom.js';
import { t, moment } from './texts.js';

const PATH = '/user/notifications';

export class Notifications {
  #page; #list;

  /** @param page see app.js */
  constructor(page) {
    this.#page = page;
    $('notifications-read').addEventListener('click', (event) => busy(event.currentTarget, () => this.#mark({ all: true })));
    document.addEventListener('languagechanged', () => this.#draw());
  }

  /** Clears the account's list. */
  clear() {
    this.#list = undefined;
    this.#draw();
  }

  async refresh() {
    const list = await this.#page.read(`${PATH}?limit=50`);
    if (!list) return;
    this.#list = list;
    this.#draw();
  }

  async #mark(which) {
    try {
      const { client } = this.#page;
      await client.request('POST', `${PATH}/read`, { body: which, headers: { 'x-auth': client.xAuth } });
      this.#page.say(t('notificationsMarked'));
      await this.refresh();
    } catch (error) {
      this.#page.fail(error);
    }
  }

  #draw() {
    $('notifications-empty').hidden = this.#list?.length !== 0; // an unloaded list is not empty
    $('notifications-read').hidden = !this.#list?.some(({ readAt }) => !readAt);
    $('notifications').replaceChildren(...(this.#list ?? []).map((one) => this.#row(one)));
  }

  #row({ id, title, body, createdAt, readAt }) {
    return h('li', { class: 'row', dataset: { testid: 'notification-item', read: String(Boolean(readAt)) } },
      h('div', { class: 'row-what' },
        h('p', { class: 'row-name' }, h('bdi', {}, title), !readAt && h('span', { class: 'badge current' }, t('notificationNew'))),
        h('p', {}, h('bdi', {}, body)),
        h('p', { class: 'row-facts' }, h('time', { datetime: createdAt }, moment(instant(createdAt))))),
      !readAt && h('button', {
        type: 'button', class: 'small', 'aria-label': `${t('notificationRead')}: ${title}`, dataset: { testid: 'notification-read' },
        on: { click: (event) => busy(event.currentTarget, () => this.#mark({ ids: [id] })) },
      }, t('notificationRead')));
  }
}
