/** The demonstration page: log in, answer the challenge, hold the session, log out. The authenticator is beside it. This
 *  file owns the steps; the content of each step has a separate file. The account's own pages are in the console. */

import { CastellanClient } from './castellan-client.js';
import { SessionKey, claimsOf } from './castellan-key.js';
import { ChallengeView } from './challenge.js';
import { dismissed, enroll, login as loginByPasskey, offer, supported } from './castellan-passkey.js';
import { startDevices } from './devices.js';
import { SessionView } from './session.js';
import { EventLog } from './log.js';
import { Outbox } from './outbox.js';
import { clearNotices, drawError, showError, showNotice, startNotices } from './errors.js';
import { $ } from './dom.js';
import { t, language, languageSwitch, translate } from './texts.js';

// This file is in <base>/static/: the page works below any base path.
const base = new URL('..', import.meta.url);
const log = new EventLog($('log'), $('log-empty'));
// The session is bound to a key of this browser: a reload keeps it, and it is renewed without a second factor.
const key = SessionKey.available ? new SessionKey('page') : undefined;
const headers = { 'accept-language': language() };
const client = new CastellanClient({ baseUrl: base.href, fetch: log.fetch, headers, key });
const outbox = new Outbox({
  list: $('outbox'), status: $('outbox-status'), address: () => new URL('dev/outbox?limit=200', base),
  onUse: (item) => challenge?.fill(String(item.channel).toUpperCase(), item.code),
});

const STEPS = { login: 0, challenge: 1, ended: 1, session: 2 };

/** The current challenge of the page: {flow, what, settled}. settled receives its outcome, or undefined. */
let current;
let challenge, session, busyLogin = false;

/** Ends the offer of passkeys in the autofill of the login. */
let stopOffer = () => {};

function say(text) {
  $('announcer').textContent = text;
}

/** Shows a refusal. If the session is over, the page returns to the login. */
function fail(error, form) {
  if (error.status === 401 && session && !error.code.startsWith('DEVICE_')) leave('sessionGone');
  else showError(error, form);
}

function show(step) {
  for (const name of Object.keys(STEPS)) $(`${name}-step`).hidden = name !== step;
  const at = STEPS[step];
  [...$('steps').children].forEach((item, i) => {
    item.dataset.state = i < at ? 'done' : i === at ? 'now' : 'next';
    if (i === at) item.setAttribute('aria-current', 'step'); else item.removeAttribute('aria-current');
  });
  document.body.dataset.step = step;
  offerPasskeys(step);
  $(`${step}-title`).focus();
}

/**
 * Runs an operation that a challenge may guard: the challenge occupies the page until it is over. Resolves with the
 * outcome of a success, and otherwise with undefined, after the page has shown the reason.
 * @param {string} what text of the requested operation @param {() => Promise<Flow>} begin @param {HTMLFormElement} [form]
 */
async function verify(what, begin, form) {
  clearNotices();
  let flow;
  try {
    flow = await begin();
  } catch (error) {
    if (!dismissed(error)) fail(error, form);
    return undefined;
  }
  return new Promise((settled) => open({ flow, what, settled }));
}

function open(started) {
  const { flow } = current = started;
  watch(flow);
  if (!flow.methods.length) { // nothing guards it, or a passkey has completed it
    return void flow.done.then((outcome) => {
      if (outcome.success) succeeded(outcome);
      else ended({ code: outcome.code ?? 'DENIED', message: outcome.message ?? '' });
    });
  }
  challenge = new ChallengeView(flow, { list: $('methods'), left: $('challenge-left'), bar: $('challenge-bar'), announce: say, device: $('device-pane') });
  $('remember').checked = false;
  outbox.start(flow.challenge.ts); // codes of earlier challenges are older
  drawChallenge();
  show('challenge');
}

function drawChallenge() {
  if (!current) return;
  $('challenge-what').textContent = t(current.what);
  const days = current.flow.challenge?.rememberDays;
  $('remember-field').hidden = !days;
  $('remember-text').textContent = t('remember', { days });
  for (const id of ['cancel', 'again']) $(id).textContent = t(session ? 'backToAccount' : 'cancel');
}

function watch(watched) {
  const mine = (listener) => ({ detail }) => { if (watched === current?.flow) listener(detail); };
  watched.addEventListener('message', ({ detail }) => log.add('socket', detail.event, detail.action, { detail }));
  watched.addEventListener('transport', mine(({ name, code }) => {
    if (name === 'socket') log.add('socket', 'OPEN', '/2fa', {});
    if (name === 'lost') log.add('socket', 'CLOSED', String(code), { bad: true });
    if (name === 'poll') log.add('result', 'WAIT', t('socketPoll'), {});
    $('transport').dataset.transport = name;
    $('transport').dataset.t = { socket: 'socketOpen', lost: 'socketLost', poll: 'socketPoll' }[name]; // for a change of language
    $('transport').textContent = t($('transport').dataset.t);
  }));
  watched.addEventListener('error', mine((error) => log.add('result', error.code, error.message, { bad: true })));
  watched.addEventListener('closed', mine(ended));
  watched.addEventListener('done', mine((outcome) => {
    log.add('page', 'DONE', t('outcomeVia', { via: outcome.via }), {});
    if (outcome.success) succeeded(outcome);
    else ended({ code: outcome.code ?? 'DENIED', message: outcome.message ?? '' });
  }));
}

function succeeded(outcome) {
  const { settled } = current;
  settle();
  say(t('announceDone'));
  if (session) show('session');
  settled(outcome);
}

/** The end without a success. `shownEnd` keeps the reason for a language switch. */
let shownEnd;

function ended(error) {
  shownEnd = error;
  settle();
  drawEnd();
  show('ended');
}

function drawEnd() {
  if (!shownEnd) return;
  const reason = { CHALLENGE_EXPIRED: 'endedExpired', CHALLENGE_CLOSED: 'endedClosed', TOKEN_EXPIRED: 'endedToken', NETWORK: 'endedLost', DENIED: 'endedDenied' };
  $('ended-text').textContent = t(reason[shownEnd.code] ?? 'endedFailed');
  $('ended-message').textContent = reason[shownEnd.code] ? '' : shownEnd.message;
  $('ended-code').textContent = shownEnd.code;
}

function settle() {
  challenge?.stop();
  challenge = undefined;
  outbox.stop();
}

/** Leaves a challenge: to the account, or to the login. */
function back() {
  if (!session) return leave();
  clearNotices();
  settle();
  drop();
  show('session');
}

function drop() {
  const old = current;
  current = undefined;
  old?.flow.close();
  old?.settled(undefined);
}

function enter(outcome) {
  clearNotices();
  session = new SessionView(client.xAuth, outcome, { key: $('session-key'), left: $('token-left'), claims: $('claims') });
  show('session');
}

/** Takes the session that another tab has, or this one had before a reload. */
async function resume() {
  const kept = await client.resume().catch(() => undefined);
  const sessionKey = kept && claimsOf(client.xAuth).sid;
  if (kept && !session && !current) enter({ data: { sessionKey }, endsAt: kept.sessionEndsAt });
}

/** Returns to the login, with the reason. */
function leave(reason = '') {
  clearNotices();
  session?.stop();
  session = undefined;
  settle();
  if (client.xAuth) key?.forget(client.xAuth).catch(() => {});
  client.xAuth = '';
  drop();
  if (reason) showNotice(reason);
  show('login');
}

async function login(event) {
  event.preventDefault();
  if (busyLogin) return;
  const form = event.target;
  busyLogin = true;
  drawLogin();
  const began = verify('whatLogin', async () => {
    try {
      const flow = await client.login(credentials(form));
      $('password').value = '';
      return flow;
    } finally {
      busyLogin = false;
      drawLogin();
    }
  }, form);
  const outcome = await began;
  if (outcome) enter(outcome);
}

/** Logs in with a passkey: by the button, or with a flow that the autofill of the browser began. */
async function enterByPasskey(begin) {
  stopOffer();
  const outcome = await verify('whatLogin', begin);
  if (outcome) enter(outcome);
  else if (document.body.dataset.step === 'login') offerPasskeys('login');
}

function offerPasskeys(step) {
  stopOffer();
  const begin = (flow) => void enterByPasskey(async () => flow);
  stopOffer = step === 'login' && supported() ? offer(client, begin, fail) : () => {};
}

async function addPasskey() {
  if (await verify('whatPasskey', () => enroll(client))) showNotice('passkeyAdded');
}

function credentials(form) {
  const value = (name) => form.elements.namedItem(name).value.trim();
  const password = form.elements.namedItem('password').value;
  return form.elements.namedItem('by').value === 'email'
    ? { email: value('email'), password }
    : { countryCode: value('countryCode').replace(/^\+/, ''), phoneNumber: value('phoneNumber').replace(/[\s()-]/g, ''), password };
}

function drawLogin() {
  $('login-submit').disabled = busyLogin;
  $('login-submit').textContent = t(busyLogin ? 'loginBusy' : 'loginTitle');
  const byMail = $('login-form').elements.namedItem('by').value === 'email';
  $('phone-fields').hidden = byMail;
  $('mail-fields').hidden = !byMail;
  $('reveal').textContent = t($('password').type === 'password' ? 'showPassword' : 'hidePassword');
}

async function logout() {
  clearNotices();
  $('logout').disabled = true;
  try {
    await client.logout();
    leave('loggedOut');
  } catch (error) {
    fail(error);
  } finally {
    $('logout').disabled = false;
  }
}

function start() {
  languageSwitch($('language'));
  $('login-form').addEventListener('submit', login);
  $('login-form').addEventListener('change', drawLogin);
  $('reveal').addEventListener('click', () => {
    $('password').type = $('password').type === 'password' ? 'text' : 'password';
    drawLogin();
  });
  for (const id of ['login-passkey', 'passkeys']) $(id).hidden = !supported();
  $('login-passkey').addEventListener('click', () => void enterByPasskey(() => loginByPasskey(client)));
  $('passkey-add').addEventListener('click', () => void addPasskey());
  $('remember').addEventListener('change', ({ target }) => current?.flow.rememberBrowser(target.checked));
  $('cancel').addEventListener('click', back);
  $('again').addEventListener('click', back);
  $('logout').addEventListener('click', logout);
  $('log-clear').addEventListener('click', () => log.clear());
  document.addEventListener('languagechanged', () => {
    client.headers['accept-language'] = language();
    challenge?.render();
    session?.render();
    drawLogin();
    drawChallenge();
    drawEnd();
    drawError();
  });
  startNotices();
  offerPasskeys('login');
  translate();
  drawLogin();
  outbox.read();
  Promise.allSettled([startDevices(base), resume()]).finally(() => { document.body.dataset.ready = 'true'; });
}

start();
