import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, close, one, show, until, type Asked } from '../page';
import { Customers } from 'castellan-console/app/search/customers';

after(close);

const known = '01JD3XE5GN2D2R8A5PKM9C1YQG';
const at = '2026-01-31T10:00:00.000Z';
const login = (n: number, outcome: string, userId: string) => ({
  id: `e${n}`,
  at,
  outcome,
  userId,
  ip: `192.0.2.${n}`,
});
const logins = [login(1, 'success', known), login(2, 'refused', known), login(3, 'refused', '')];

/** Home of a user with these permissions. */
async function home(...may: string[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  await show(<Customers />, {
    may: ['GET /admin/list-users', 'GET /admin/user-names', ...may],
    service: (request) => {
      asked.push(request);
      if (request.path === '/admin/user-names')
        return { body: { data: [{ userId: known, fullName: 'Ada Kaya', email: null, phoneNumber: null }] } };
      return { body: request.path === '/admin/audit' ? logins : [] };
    },
  });
  await one('home.newest');
  return asked;
}

test('the last refused logins over all accounts, for users who may read the audit', async () => {
  const asked = await home('GET /admin/audit');
  const words = () => all('refusal').map((line) => line.querySelector('span')?.textContent);
  await until(() => words()[0] === 'Ada Kaya · 192.0.2.2');
  assert.deepEqual(words(), ['Ada Kaya · 192.0.2.2', 'Unknown identifier · 192.0.2.3']);
  assert.deepEqual(asked.find(({ path }) => path === '/admin/audit')?.query, { action: 'LOGIN', limit: '100' });
});

test('without the permission no audit is read', async () => {
  const asked = await home();
  assert.equal(all('home.refusals').length, 0);
  assert.ok(asked.every(({ path }) => path !== '/admin/audit'));
});
