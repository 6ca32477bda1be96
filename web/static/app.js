/** The demonstration page: log in, answer the challenge, hold the session, log out. */

import { CastellanClient, CastellanError } from './castellan-client.js';
import { ChallengeView } from './challenge.js';
import { SessionView } from './session.js';
import { EventLog } from './log.js';
import { Outbox } from './outbox.js';
import { $, h, clock } from './dom.js';
import { t, language, languageSwitch, translate } from './texts.js';

// This file lies in <base>/static/: the page works below any base path.
const base = new URL('..', import.meta.url);
const log = new EventLog($('log'), $('log-empty'));
const client = new CastellanClient({ baseUrl: base.href, fetch: log.fetch, headers: { 'accept-language': language() } });
const outbox = new Outbox({
  list: $('outbox'), status: $('outbox-status'), address: () => new URL('dev/outbox', base),
  onUse: (item) => challenge?.fill(String(item.channel).toUpperCase(), item.code),
});

let flow, challenge, session, shownError, busyLogin = false;

function say(text) {
  $('announcer').textContent = text;
}

/** Shows a refusal: what to do, which field, and the code that a bug report needs. */
function fail(error) {
  if (error.status === 401 && session) {
    leave('sessionGone');
    return;
  }
  const known = error instanceof CastellanError ? error : new CastellanError(0, { code: 'PAGE', message: error.message });
  shownError = { error: known, until: Date.now() + known.retryAfter * 1000 };
  drawError();
}

function drawError() {
  $('error').hidden = !shownError;
  for (const input of $('login-form').elements) input.removeAttribute('aria-invalid');
  if (!shownError) return;
  const { error } = shownError;
  const more = error.errors.filter((e) => e.field !== error.field || e.message !== error.message);
  $('error').dataset.code = error.code;
  $('error-text').replaceChildren(
    h('p', {}, error.code === 'NETWORK' ? t('network') : error.message),
    ...(more.length ? [h('ul', {}, more.map((e) => h('li', {}, h('code', {}, e.field), ' ', e.message)))] : []),
    h('p', { class: 'error-facts' }, h('code', {}, error.code), error.field && h('code', {}, error.field),
      error.requestId && h('span', {}, `${t('errorRequest')} `, h('code', {}, error.requestId))));
  const faulty = error.field && $('login-form').elements.namedItem(error.field);
  if (faulty instanceof HTMLElement) faulty.setAttribute('aria-invalid', 'true');
  drawWait();
}

/** The waiting time stands outside the alert: a reader hears the refusal once, not every second. */
function drawWait() {
  const wait = shownError ? shownError.until - Date.now() : 0;
  $('error-wait').hidden = wait <= 0;
  $('error-wait').textContent = wait > 0 ? t('retryIn', { time: clock(wait) }) : '';
}

function clearError() {
  shownError = undefined;
  drawError();
}

function show(step) {
  for (const name of ['login', 'challenge', 'ended', 'session']) $(`${name}-step`).hidden = name !== step;
  const at = { login: 0, challenge: 1, ended: 1, session: 2 }[step];
  [...$('steps').children].forEach((item, i) => {
    item.dataset.state = i < at ? 'done' : i === at ? 'now' : 'next';
    if (i === at) item.setAttribute('aria-current', 'step'); else item.removeAttribute('aria-current');
  });
  document.body.dataset.step = step;
  $(`${step}-title`).focus();
}

function credentials(form) {
  const value = (name) => form.elements.namedItem(name).value.trim();
  const password = form.elements.namedItem('password').value;
  return form.elements.namedItem('by').value === 'email'
    ? { email: value('email'), password }
    : { countryCode: value('countryCode').replace(/^\+/, ''), phoneNumber: value('phoneNumber').replace(/[\s()-]/g, ''), password };
}

async function login(event) {
  event.preventDefault();
  if (busyLogin) return;
  clearError();
  $('notice').hidden = true;
  busyLogin = true;
  drawLogin();
  try {
    open(await client.login(credentials(event.target)));
    $('password').value = '';
  } catch (error) {
    fail(error);
  } finally {
    busyLogin = false;
    drawLogin();
  }
}

function drawLogin() {
  $('login-submit').disabled = busyLogin;
  $('login-submit').textContent = t(busyLogin ? 'loginBusy' : 'loginTitle');
  const byMail = $('login-form').elements.namedItem('by').value === 'email';
  $('phone-fields').hidden = byMail;
  $('mail-fields').hidden = !byMail;
  $('reveal').textContent = t($('password').type === 'password' ? 'showPassword' : 'hidePassword');
}

function open(started) {
  flow = started;
  watch(flow);
  if (!flow.challenge) return void flow.done.then(enter);
  challenge = new ChallengeView(flow, { list: $('methods'), left: $('challenge-left'), bar: $('challenge-bar'), announce: say });
  outbox.start(flow.challenge.ts - 2000); // a message may be dated a moment before its challenge
  show('challenge');
}

function watch(watched) {
  const mine = (listener) => ({ detail }) => { if (watched === flow) listener(detail); };
  watched.addEventListener('message', ({ detail }) => log.add('socket', detail.event, detail.action, { detail }));
  watched.addEventListener('transport', mine(({ name, code }) => {
    if (name === 'socket') log.add('socket', 'OPEN', '/2fa', {});
    if (name === 'lost') log.add('socket', 'CLOSED', String(code), { bad: true });
    if (name === 'poll') log.add('result', 'WAIT', t('socketPoll'), {});
    $('transport').dataset.transport = name;
    $('transport').textContent = t({ socket: 'socketOpen', lost: 'socketLost', poll: 'socketPoll' }[name]);
  }));
  watched.addEventListener('error', mine((error) => log.add('result', error.code, error.message, { bad: true })));
  watched.addEventListener('closed', mine(ended));
  watched.addEventListener('done', mine((outcome) => {
    log.add('page', 'DONE', t('outcomeVia', { via: outcome.via }), {});
    if (outcome.success) enter(outcome);
    else ended({ code: outcome.code ?? 'DENIED', message: outcome.message ?? '' });
  }));
}

/** The end without a session. `shown` keeps the reason for a language switch. */
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

function enter(outcome) {
  settle();
  clearError();
  session = new SessionView(client, outcome,
    { key: $('session-key'), left: $('token-left'), claims: $('claims'), list: $('sessions') }, { fail, say });
  session.refresh();
  say(t('announceDone'));
  show('session');
}

/** Back to the login, with a word on why. */
function leave(reason = '') {
  clearError();
  session?.stop();
  session = undefined;
  settle();
  client.xAuth = '';
  const old = flow;
  flow = undefined;
  old?.close();
  $('notice').dataset.t = reason;
  $('notice').textContent = reason && t(reason);
  $('notice').hidden = !reason;
  show('login');
}

async function logout() {
  clearError();
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
  $('cancel').addEventListener('click', () => leave());
  $('again').addEventListener('click', () => leave());
  $('logout').addEventListener('click', logout);
  $('refresh').addEventListener('click', () => session?.refresh());
  $('log-clear').addEventListener('click', () => log.clear());
  document.addEventListener('languagechanged', () => {
    client.headers['accept-language'] = language();
    challenge?.render();
    session?.render();
    drawLogin();
    drawEnd();
    drawError();
  });
  setInterval(drawWait, 1000);
  $('error-close').addEventListener('click', clearError);
  translate();
  drawLogin();
  outbox.read();
  document.body.dataset.ready = 'true';
}

start();
