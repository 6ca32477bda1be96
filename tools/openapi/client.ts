// An integrator's program with the types of docs/openapi.json: log in with a
// code from the outbox of development mode, list the sessions, log out. Each failed
// step ends the program with an error.

import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

declare const process: { env: Record<string, string | undefined> };

const { BASE_URL: baseUrl = '', EMAIL: email = '', PASSWORD: password = '' } = process.env;
const api = createClient<paths>({ baseUrl });

type Problem = components['schemas']['Problem'];

function fail(step: string, status: number, problem: Problem | undefined): never {
  throw new Error(`${step}: ${status} ${problem?.code}: ${problem?.detail}`);
}

async function codeFromOutbox(): Promise<string> {
  const outbox = await fetch(`${baseUrl}/dev/outbox?to=${encodeURIComponent(email)}`);
  const letters = (await outbox.json()) as { code: string }[];
  return letters[0]?.code ?? '';
}

async function login(): Promise<string> {
  const started = await api.POST('/auth/login', { body: { email, password } });
  if (started.error) fail('login', started.response.status, started.error);
  const headers = { 'p-auth': started.response.headers.get('p-auth') ?? '' };
  const mail = started.data.challenge.methodList.find((method) => method.name === 'MAIL');
  if (!mail) throw new Error('login: mail is not offered');

  const code = await codeFromOutbox();
  const wrong = code.startsWith('0') ? '111111' : '000000';
  const answer = (value: string) =>
    api.POST('/auth/2fa/challenge/complete', { body: { methodId: mail.id, method: 'MAIL', value }, headers });

  const refused = await answer(wrong);
  if (refused.error?.code !== 'OTP_INVALID' || refused.error.attemptsLeft === undefined) {
    fail('a wrong code', refused.response.status, refused.error);
  }
  const completed = await answer(code);
  if (completed.error) fail('complete', completed.response.status, completed.error);
  const session: string | undefined = completed.data.execResult?.data?.sessionKey;
  if (!completed.data.execResult?.success || !session) throw new Error('complete: the action yields no session');
  return completed.response.headers.get('x-auth') ?? '';
}

const headers = { 'x-auth': await login() };
const sessions = await api.GET('/auth/sessions', { headers });
if (sessions.error) fail('sessions', sessions.response.status, sessions.error);
if (!sessions.data.some((session) => session.current)) throw new Error('sessions: this one is missing');

const ended = await api.POST('/auth/logout', { headers });
if (ended.error) fail('logout', ended.response.status, ended.error);
const after = await api.GET('/auth/sessions', { headers });
if (after.error?.code !== 'TOKEN_REVOKED') fail('after the logout', after.response.status, after.error);

// Values that must compile, although they are not sent: a device's key, texts by
// language, and pairs of methods.
export const device: components['schemas']['AddDeviceRequest'] = {
  brand: 'Google',
  model: 'Pixel 9',
  description: '',
  platform: 'android',
  publicKey: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
  pushTarget: { type: 'webhook', url: 'https://wake.example.com/device' },
};
export const action: components['schemas']['AddMfaActionRequest'] = {
  actionCode: 'LOGIN',
  title: { en: 'Login', tr: 'Giriş' },
  infoTableHeaders: { currency: { en: 'Currency' } },
};
export const policy: components['schemas']['AddMfaPolicyRequest'] = {
  actionCode: 'LOGIN',
  name: 'Login',
  expireAt: 0,
  required: 1,
  methods: [['SMS', 'login'], ['TOTP']],
};
export const keys: (set: components['schemas']['JwkSet']) => (string | undefined)[] = (set) =>
  set.keys.map((key) => key.kid);
