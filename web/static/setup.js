/** The page of the setup link: it makes the first administrator. The token is in the fragment of the address, which no
 *  request contains, and leaves the address at once. */

import { CastellanClient, CastellanError } from './castellan-client.js';
import { about, create, dismissed, supported } from './castellan-passkey.js';
import { $, busy, h } from './dom.js';
import { clearNotices, drawError, showError, startNotices } from './errors.js';
import { language, languageSwitch } from './texts.js';
import './setup-texts.js';

// This file is in <base>/static/: the page works below any base path.
const base = new URL('..', import.meta.url);
const client = new CastellanClient({ baseUrl: base.href, headers: { 'accept-language': language() } });
const token = location.hash.slice(1);
history.replaceState(null, '', location.pathname);

let begun; // the answer to the first step
let attested; // kept, so that a completion without an answer is repeated as it was

function show(step) {
  for (const section of document.querySelectorAll('main > section')) section.hidden = section.id !== `${step}-step`;
  document.body.dataset.step = step;
  $(`${step}-title`).focus();
}

/** Runs a step. A link that is not valid ends the page; a cancelled question of the browser changes nothing. */
async function attempt(button, form, work) {
  await busy(button, async () => {
    clearNotices();
    try {
      await work();
    } catch (error) {
      if (dismissed(error)) return;
      if (error instanceof CastellanError && error.code === 'NOT_FOUND') show('absent');
      showError(error, form);
    }
  });
}

async function begin() {
  const form = $('details-form');
  const body = { token, ...Object.fromEntries(new FormData(form)) };
  begun = (await client.request('POST', '/auth/setup/begin', { body })).data.data;
  attested = undefined;
  form.elements.namedItem('password').value = '';
  if (begun.publicKey) return show('passkey');
  $('qr').src = begun.authenticator.qrDataUrl;
  $('secret').textContent = begun.authenticator.base32;
  $('codes').replaceChildren(...begun.authenticator.recoveryCodes.map((code) => h('li', {}, h('code', {}, code))));
  return show('totp');
}

async function complete(proof) {
  await client.request('POST', '/auth/setup/complete', { body: { token, ticket: begun.ticket, ...proof } });
  begun = attested = undefined;
  show('done');
}

async function createPasskey() {
  const { brand, model } = about();
  attested ??= { attestation: await create(begun.publicKey), brand, model };
  await complete(attested);
}

$('details-form').addEventListener('submit', (event) => {
  event.preventDefault();
  attempt($('begin'), $('details-form'), begin);
});
$('create').addEventListener('click', () => attempt($('create'), undefined, createPasskey));
$('totp-form').addEventListener('submit', (event) => {
  event.preventDefault();
  attempt($('finish'), $('totp-form'), () => complete({ value: $('value').value.trim() }));
});
for (const back of document.querySelectorAll('[data-back]')) back.addEventListener('click', () => show('details'));

languageSwitch($('language'));
document.addEventListener('languagechanged', () => {
  client.headers['accept-language'] = language();
  drawError();
});
startNotices();
if (!supported()) {
  $('by-passkey').hidden = true;
  $('no-passkeys').hidden = false;
  document.querySelector('[name="method"][value="TOTP"]').checked = true;
}
show(token ? 'details' : 'absent');
document.body.dataset.ready = 'true';
