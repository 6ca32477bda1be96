/** The authenticator: a page that makes the browser of a phone a device of an account, and approves or denies its
 *  requests. It needs no app store: it can be installed, is woken by Web Push and starts without a network. This file
 *  owns the steps and the registration; approvals.js has the requests. */

import { CastellanClient } from './castellan-client.js';
import { Device, forgetDevice, loadDevice, saveDevice } from './castellan-device.js';
import { Approvals } from './approvals.js';
import { ChallengeView } from './challenge.js';
import { agentOf } from './agent.js';
import { clearNotices, drawError, showError, showNotice, startNotices } from './errors.js';
import { $, busy } from './dom.js';
import { t, language, languageSwitch } from './texts.js';
import './authenticator-texts.js';

// This file is in <base>/static/: the page works below any base path.
const base = new URL('..', import.meta.url);
const client = new CastellanClient({ baseUrl: base.href, headers: { 'accept-language': language() } });
const STEPS = ['login', 'challenge', 'register', 'home', 'gone', 'approval'];

let device, approvals, challenge, current, worker;

function show(step) {
  for (const name of STEPS) $(`${name}-step`).hidden = name !== step;
  document.body.dataset.step = step;
  // In a frame of the demonstration page it takes the focus from no other part of it.
  if (self === top || document.hasFocus()) $(`${step}-title`).focus();
  scrollTo(0, 0);
}

const page = {
  client,
  show,
  confirm,
  step: () => document.body.dataset.step,
  say: (text) => {
    $('announcer').textContent = text;
  },
  gone: () => {
    approvals.watch(undefined);
    show('gone');
  },
  /** Removes the notification of a request that was answered here. */
  answered: async (challengeId) => {
    try {
      for (const shown of (await (await worker)?.getNotifications({ tag: challengeId })) ?? []) shown.close();
    } catch {
      /* there are no notifications */
    }
  },
};

/** Runs an operation that a challenge guards. Resolves with the outcome of a success, and otherwise with undefined,
 *  after the page has shown the reason. */
async function verify(what, begin, form) {
  clearNotices();
  let flow;
  try {
    flow = await begin();
    if (!flow.challenge) return await flow.done;
    current = flow;
    challenge?.stop();
    challenge = new ChallengeView(flow, {
      list: $('methods'),
      left: $('challenge-left'),
      bar: $('challenge-bar'),
      announce: page.say,
      device: $('gone-step'),
    });
    $('challenge-what').dataset.t = what;
    $('challenge-what').textContent = t(what);
    show('challenge');
    const outcome = await flow.done;
    if (outcome.success) return outcome;
    throw Object.assign(new Error(outcome.message || t('endedDenied')), outcome);
  } catch (error) {
    if (error.code === 'ABANDONED') return undefined;
    if (flow && client.xAuth) show('register');
    else if (flow) leave();
    showError(error, form);
    return undefined;
  } finally {
    if (flow && flow === current) {
      challenge?.stop();
      current = undefined;
    }
  }
}

/** Returns to the login, or to the requests of a device. */
function leave() {
  client.xAuth = '';
  current?.close();
  current = undefined;
  challenge?.stop();
  show(device ? 'home' : 'login');
}

async function login(event) {
  event.preventDefault();
  const form = event.target;
  const value = (name) => form.elements.namedItem(name).value.trim();
  const password = $('password').value;
  await busy($('login-submit'), async () => {
    const outcome = await verify(
      'whatLogin',
      async () => {
        const flow = await client.login(
          value('by') === 'email'
            ? { email: value('email'), password }
            : {
                countryCode: value('countryCode').replace(/^\+/, ''),
                phoneNumber: value('phoneNumber').replace(/[\s()-]/g, ''),
                password,
              },
        );
        $('password').value = '';
        return flow;
      },
      form,
    );
    if (outcome) show('register');
  });
}

async function register(event) {
  event.preventDefault();
  await busy($('register'), async () => {
    const pushTarget = $('notify').checked && !$('notify-field').hidden ? await subscribe() : undefined;
    let made;
    const outcome = await verify('whatDevice', async () => {
      // Proofs name the service's public URL, which need not be the address of this page.
      const { publicUrl } = (await client.request('GET', '/authenticator/service')).data;
      made = await Device.create({ audience: publicUrl, owner: subjectOf(client.xAuth) });
      const { browser, system } = agentOf();
      const about = { brand: browser || 'Browser', model: system || '?', description: t('authName'), platform: 'web' };
      try {
        return await made.enroll(client, { ...about, pushTarget });
      } catch (error) {
        if (!pushTarget || !error.field?.startsWith('pushTarget')) throw error;
        return made.enroll(client, about); // a push service that the installation does not permit
      }
    });
    if (!outcome) return;
    made.deviceId = outcome.data.deviceId;
    await saveDevice(made);
    device = made;
    await client.logout().catch(() => {
      client.xAuth = '';
    }); // the device needs no session
    start();
    showNotice('authRegistered');
  });
}

/** The account of a session's token, for display only. */
function subjectOf(token) {
  try {
    return JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/'))).sub ?? '';
  } catch {
    return '';
  }
}

const canNotify = () =>
  'PushManager' in globalThis && 'Notification' in globalThis && Notification.permission !== 'denied';

/** A subscription for Web Push as the target of the device; undefined if user, browser or network permit none. */
async function subscribe() {
  try {
    if ((await Notification.requestPermission()) !== 'granted') return undefined;
    const registration = await worker;
    await navigator.serviceWorker.ready;
    const { publicKey } = (await client.request('GET', '/.well-known/vapid.json')).data;
    const made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
    const { endpoint, keys } = made.toJSON();
    return { type: 'webpush', endpoint, keys };
  } catch {
    return undefined;
  }
}

async function forget() {
  if (!(await confirm('authForgetSure', 'authForget'))) return;
  approvals.watch(undefined);
  device = undefined;
  await forgetDevice();
  try {
    await (await (await worker)?.pushManager.getSubscription())?.unsubscribe();
  } catch {
    /* there was none */
  }
  show('login');
  showNotice('authForgotten');
}

let agreed = () => {};

/** Resolves with whether the user agrees. Escape and the way back decline. */
function confirm(question, yes) {
  $('confirm-text').textContent = t(question);
  $('confirm-yes').textContent = t(yes);
  $('confirm').showModal();
  $('confirm-no').focus(); // Enter alone changes nothing
  return new Promise((settled) => {
    agreed = settled;
  });
}

// Not by the event close: it comes late, when the dialog may be open again.
function wireConfirm() {
  const settle = (answer) => {
    $('confirm').close();
    agreed(answer);
  };
  $('confirm-yes').addEventListener('click', () => settle(true));
  $('confirm-no').addEventListener('click', () => settle(false));
  $('confirm').addEventListener('cancel', () => settle(false));
}

/** Shows the step that fits: the requests of a device, or the login. */
function start() {
  $('device-id').textContent = device?.deviceId ?? '';
  drawPush();
  keepWords();
  show(device ? 'home' : 'login');
  approvals.watch(device);
}

async function drawPush() {
  let on = false;
  try {
    on = Boolean(await (await worker)?.pushManager.getSubscription());
  } catch {
    /* none */
  }
  $('push-state').textContent = t(on ? 'authPushOn' : 'authPushOff');
}

let kept = Promise.resolve();

/** Keeps the words of a notification for the service worker, which has no language of its own. One write follows the
 *  other, so that the newest language stays. */
function keepWords() {
  const words = {
    title: t('authPushTitle'),
    body: t('authPushBody'),
    lang: language(),
    dir: document.documentElement.dir,
  };
  kept = kept
    .then(() => caches.open('castellan-authenticator-words'))
    .then((cache) => cache.put(new URL('static/authenticator-words', base), new Response(JSON.stringify(words))))
    .catch(() => {}); // then it uses English
}

function work() {
  const workers = navigator.serviceWorker; // only in a secure context
  worker = workers
    ?.register(new URL('static/sw-authenticator.js', base), { scope: new URL('authenticator', base).pathname })
    .catch(() => undefined);
  workers?.addEventListener('message', ({ data }) => {
    if (data.type === 'open') approvals.want(data.challengeId);
    else approvals.ask();
  });
  return worker;
}

function wanted() {
  const challengeId = decodeURIComponent(location.hash.slice(1));
  if (!challengeId || $(challengeId)) return;
  history.replaceState(null, '', location.pathname);
  approvals.want(challengeId);
}

async function main() {
  approvals = new Approvals(page);
  languageSwitch($('language'));
  work();
  const on = (id, listener) => $(id).addEventListener('click', listener);
  $('login-form').addEventListener('submit', login);
  $('login-form').addEventListener('change', () => {
    const byMail = $('login-form').elements.namedItem('by').value === 'email';
    $('phone-fields').hidden = byMail;
    $('mail-fields').hidden = !byMail;
  });
  $('register-form').addEventListener('submit', register);
  on('register-cancel', () => {
    client.logout().catch(() => {});
    leave();
  });
  on('cancel', leave);
  on('forget', forget);
  on('again', async () => {
    device = undefined;
    await forgetDevice();
    start();
  });
  wireConfirm();
  addEventListener('hashchange', wanted);
  addEventListener('storage', ({ key, newValue }) => {
    // another page of this service changed the language
    if (key !== 'castellan-language' || newValue === language()) return;
    $('language').value = newValue;
    $('language').dispatchEvent(new Event('change'));
  });
  document.addEventListener('languagechanged', () => {
    client.headers['accept-language'] = language();
    challenge?.render();
    drawError();
    drawPush();
    keepWords();
  });
  startNotices();
  $('notify-field').hidden = !canNotify();
  try {
    device = await loadDevice();
  } catch {
    /* storage can be switched off: there is no device then */
  }
  start();
  wanted();
  document.body.dataset.ready = 'true';
}

main();
