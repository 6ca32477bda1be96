import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, close, one, show, until, type Asked } from '../page';
import { Customers } from 'castellan-console/app/search/customers';
import { expiring } from 'castellan-console/app/waiting';

after(close);

const known = '01JD3XE5GN2D2R8A5PKM9C1YQG';
const at = '2026-01-31T10:00:00.000Z';
const refused = (n: number, userId: string | null, reason: string | null) => ({
  id: `l${n}`,
  createdAt: at,
  userId,
  ipaddress: `192.0.2.${n}`,
  reason,
  attempt: reason && 3,
  attemptLimit: reason && 10,
});
const logins = [refused(1, known, 'password'), refused(2, known, 'status'), refused(3, null, null)];

/** Home of a user with these permissions. */
async function home(...may: string[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  await show(<Customers />, {
    may: ['GET /admin/list-users', 'GET /admin/user-names', ...may],
    service: (request) => {
      asked.push(request);
      if (request.path === '/admin/user-names')
        return { body: { data: [{ userId: known, fullName: 'Ada Kaya', email: null, phoneNumber: null }] } };
      return { body: request.path === '/admin/refused-logins' ? logins : [] };
    },
  });
  await one('home.newest');
  return asked;
}

test('the last refused logins over all accounts, with their reasons', async () => {
  const asked = await home('GET /admin/refused-logins');
  const words = () => all('refusal').map((line) => line.querySelector('span')?.textContent);
  await until(() => words()[0]?.startsWith('Ada Kaya'));
  assert.deepEqual(words(), [
    'Ada Kaya · Wrong password, attempt 3 of 10 · 192.0.2.1',
    'Ada Kaya · Account not active · 192.0.2.2',
    'Unknown identifier · 192.0.2.3',
  ]);
  assert.equal(all('refusal')[0]?.querySelector('a')?.getAttribute('href')?.endsWith(`/users/${known}`), true);
  assert.deepEqual(asked.find(({ path }) => path === '/admin/refused-logins')?.query, { limit: '5' });
  assert.equal((await one('home.refusals')).querySelectorAll('a[href*="/audit"]').length, 0);
});

test('users who may read the audit have a link to all logins', async () => {
  await home('GET /admin/refused-logins', 'GET /admin/audit');
  assert.equal((await one('home.refusals')).querySelectorAll('a[href*="/audit"]').length, 1);
});

test('without the permission no logins are read', async () => {
  const asked = await home('GET /admin/audit');
  assert.equal(all('home.refusals').length, 0);
  assert.ok(asked.every(({ path }) => path !== '/admin/refused-logins' && path !== '/admin/audit'));
});

test('a hold is late from half of the time of a missing approval on', () => {
  const since = '2026-01-31T10:00:00.000Z';
  const quorum = (given: number, hours: number) => ({
    group: 'treasury', required: 2, given, expiresAt: new Date(Date.parse(since) + hours * 3_600_000).toISOString(),
  });
  const late = (minutes: number, ...approvals: ReturnType<typeof quorum>[]) =>
    expiring({ since, approvals }, Date.parse(since) + minutes * 60_000);
  assert.deepEqual([late(59, quorum(0, 2)), late(60, quorum(0, 2)), late(60, quorum(2, 2), quorum(1, 3))],
    [false, true, false]);
  assert.equal(expiring(null, 0), false);
});
