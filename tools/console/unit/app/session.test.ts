import '../dom';
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { session, shareTabs } from 'castellan-console/app/session';
import 'castellan-console/tokens';

const join = (globalThis as unknown as { onconnect: (event: { ports: MessagePort[] }) => void }).onconnect;
const open: MessagePort[] = [];
after(() => open.forEach((port) => port.close()));

/** A port to the worker, as a tab gets it. */
function connect(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  open.push(port1, port2);
  join({ ports: [port2] });
  return port1;
}
Object.assign(globalThis, {
  SharedWorker: class {
    port = connect();
  },
});

const token = (sid: string, n: number) => `x.${btoa(JSON.stringify({ sub: 'U1', sid, jti: n, cnf: {} }))}.x`;
const settled = () => new Promise((next) => setTimeout(next, 20)); // all messages have arrived
const other = connect();
const shared = shareTabs('worker.js');

test('a logout in another tab ends the session, whichever token it has by then', async () => {
  await shared;
  session.begin(token('A', 1));
  await settled();
  other.postMessage({ end: token('A', 1), why: 'left' });
  session.renewed(token('A', 1), token('A', 2), 9e12);
  await settled();
  assert.equal(session.now().token, '');
  assert.equal(session.now().over, undefined);
});

test('a logout stays one, although another tab renews the session', async () => {
  session.begin(token('B', 1));
  await settled();
  other.postMessage({ token: token('B', 2), old: token('B', 1), ends: 9e12 });
  session.leave();
  const logins: string[] = [];
  const stop = session.subscribe(() => logins.push(session.now().token));
  await settled();
  stop();
  assert.equal(logins.find(Boolean), undefined);
  assert.equal(session.now().token, '');
});

test('a refused token ends no session that another tab has renewed', async () => {
  session.begin(token('C', 1));
  await settled();
  other.postMessage({ token: token('C', 2), old: token('C', 1), ends: 9e12 });
  session.ended('over');
  await settled();
  assert.equal(session.now().token, token('C', 2));
  other.postMessage({ end: token('D', 1), why: 'left' }); // of another session
  await settled();
  assert.equal(session.now().token, token('C', 2));
});
