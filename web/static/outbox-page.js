/** The page of the development outbox; its filter is the endpoint's own `to`. */

import { Outbox } from './outbox.js';
import { $ } from './dom.js';
import { languageSwitch } from './texts.js';

const base = new URL('..', import.meta.url);

const outbox = new Outbox({
  list: $('outbox'),
  status: $('outbox-status'),
  address: () => {
    const address = new URL('dev/outbox?limit=200', base);
    const to = $('to').value.trim();
    if (to) address.searchParams.set('to', to);
    return address;
  },
});

languageSwitch($('language'));
$('to').value = new URLSearchParams(location.search).get('to') ?? '';
$('to').addEventListener('input', () => outbox.read());
$('filter').addEventListener('submit', (event) => event.preventDefault());
outbox.start();
