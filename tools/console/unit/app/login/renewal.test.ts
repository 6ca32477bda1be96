import '../../dom';
import assert from 'node:assert/strict';
import { createHash, webcrypto } from 'node:crypto';
import test, { mock } from 'node:test';
import { session } from 'castellan-console/app/session';

// A database of one store, as much of it as the key of a session needs.
const rows = new Map<string, unknown>();
const request = (result: unknown) => {
  const made = { result, onsuccess: () => undefined };
  queueMicrotask(() => made.onsuccess());
  return made;
};
const store = {
  get: (slot: string) => request(rows.get(slot)),
  put: (value: unknown, slot: string) => rows.set(slot, value),
  delete: (slot: string) => rows.delete(slot),
};
function transaction() {
  const one = { objectStore: () => store, oncomplete: () => undefined };
  setImmediate(() => one.oncomplete());
  return one;
}
const locks = { request: (_: string, work: () => Promise<void>) => work() };
for (const [name, value] of Object.entries({
  crypto: webcrypto,
  indexedDB: { open: () => request({ transaction, close: () => undefined }) },
}))
  Object.defineProperty(globalThis, name, { value, configurable: true });
Object.defineProperty(navigator, 'locks', { value: locks, configurable: true });

const asked: { path: string; dpop: string }[] = [];
let answer: (path: string) => { status: number; body?: object; token?: string };
globalThis.fetch = async (input, init) => {
  const { pathname: path } = new URL(String(input), location.href);
  asked.push({ path, dpop: new Headers(init?.headers).get('dpop') ?? '' });
  const { status, body = {}, token } = answer(path);
  return new Response(JSON.stringify(body), { status, headers: token ? { 'x-auth': token } : {} });
};

const life = 100; // seconds
let made = 0;
/** A new session of a new key, whose token has so many seconds left. */
async function begins(left: number) {
  const { keepSession, sessionKey } = await import('castellan-console/app/login/renewal');
  if (made++ === 0) {
    mock.timers.enable({ apis: ['setInterval'] });
    keepSession();
  }
  const proof = (await sessionKey!.proof({ method: 'POST', url: 'https://castellan.example/auth/login' }))!;
  const { jwk } = JSON.parse(atob(proof.split('.')[0]!)) as { jwk: object };
  const jkt = createHash('sha256').update(JSON.stringify(jwk)).digest('base64url');
  const exp = Math.floor(Date.now() / 1000) + left;
  const token = (jti: number) =>
    `x.${btoa(JSON.stringify({ sub: 'U1', sid: `S${made}`, jti, iat: exp - life, exp, cnf: { jkt } }))}.x`;
  await sessionKey!.keep(token(1));
  asked.length = 0;
  session.begin(token(1), 'here', 0);
  return token;
}
const until = async (holds: () => unknown) => {
  for (let turn = 0; !holds(); turn++) {
    assert.ok(turn < 500, `not reached: ${String(holds)}`);
    await new Promise((next) => setTimeout(next, 1));
  }
};
const renewal = () => asked.some(({ path }) => path === '/auth/sessions/renew');
const refusal = (code: string) => ({ status: 401, body: { code } });

test('a session that has ended in the service ends on the screen', async () => {
  await begins(5);
  answer = () => refusal('TOKEN_REVOKED');
  mock.timers.tick(5000);
  await until(() => session.now().over === 'over');
});

test('a session whose key the service refuses ends with its token', async () => {
  await begins(5);
  answer = () => refusal('DPOP_INVALID');
  mock.timers.tick(5000);
  await until(renewal);
  await new Promise((next) => setTimeout(next, 10));
  assert.notEqual(session.now().token, '');
  await begins(-1);
  mock.timers.tick(5000);
  await until(() => session.now().over === 'over');
});

test('a session stays while the service is unreachable', async () => {
  await begins(-1);
  answer = () => ({ status: 503 });
  mock.timers.tick(5000);
  await until(renewal);
  await new Promise((next) => setTimeout(next, 10));
  assert.equal(session.now().over, undefined);
});

test('a logout is signed also if the token is renewed for it, and nothing stays stored', async () => {
  const { client } = await import('castellan-console/app/login/renewal');
  const token = await begins(5);
  const ends = { data: { expiresAt: '', sessionEndsAt: '2100-01-01T00:00:00Z' } };
  answer = (path) => (path === '/auth/logout' ? { status: 200 } : { status: 200, body: ends, token: token(2) });
  const logout = client().logout();
  session.leave();
  await logout;
  assert.deepEqual(
    asked.map(({ path, dpop }) => [path, dpop !== '']),
    [
      ['/auth/sessions/renew', true],
      ['/auth/logout', true],
    ],
  );
  await until(() => rows.size === 0);
});
