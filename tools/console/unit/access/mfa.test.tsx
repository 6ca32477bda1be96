import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, click, close, one, show, type, until, type Asked } from '../page';
import Mfa from 'castellan-console/access/mfa';

after(close);

const policies = '/admin/system/mfa/policies';
const common = `${policies}/common`;
const rehearse = '/admin/system/mfa/rehearse';
const policy = {
  id: 7,
  actionCode: 'LOGIN',
  name: 'Login',
  entityType: 'GENERAL',
  expireAt: 0,
  type: 'COMMON',
  detail: { methods: [['SMS']], required: 1, preffered: 1 },
};
const sent: Asked[] = [];

/** Opens the drawer of the policy; the service answers rehearsals. */
async function opens(lost: number, you: boolean, stored: object = {}, status = 200) {
  sent.length = 0;
  await show(<Mfa />, {
    may: [`GET ${policies}`, `PATCH ${common}`, `DELETE ${common}`, `POST ${rehearse}`],
    service: ({ ...asked }) => {
      if (asked.method === 'GET') return { body: [{ ...policy, ...stored }] };
      if (asked.path !== rehearse) {
        sent.push(asked);
        return { body: {} };
      }
      const body = { considered: 0, changed: 0, stopped: 0, users: 0, truncated: false, examples: [] };
      return { status, body: status === 200 ? { ...body, accounts: 3009, lost, you } : { code: 'INVALID_FIELD' } };
    },
  });
  (await one('row')).querySelector('td')!.click();
}
const done = async () => {
  await until(() => sent.length > 0);
  return sent[0]!;
};
const go = async () => (await one('sure-go')) as HTMLButtonElement;

test('a policy that shuts its author out is saved by its typed action', async () => {
  await opens(3008, true);
  await click('policy-change');
  await type('field-name', 'Passkeys');
  await click('send');
  assert.match((await one('sure')).textContent, /3008 of 3009 active accounts.*LOGIN.*Your own account/);
  await type('sure-word', 'login');
  assert.equal((await go()).disabled, true);
  await type('sure-word', 'LOGIN');
  await until(() => !(all('sure-go')[0] as HTMLButtonElement).disabled);
  (await go()).click();
  const { method, body } = await done();
  assert.equal(method, 'PATCH');
  assert.deepEqual(
    [(body as { name: string }).name, (body as { force: boolean }).force, (body as { id: number }).id],
    ['Passkeys', true, 7],
  );
});

test('one that takes nothing away is saved at once, and one that takes little after a question', async () => {
  for (const lost of [0, 30]) {
    await opens(lost, false);
    await click('policy-change');
    await type('field-name', 'Other');
    await click('send');
    if (lost > 0) (await go()).click();
    const { body } = await done();
    assert.equal((body as { force?: boolean }).force, undefined);
    assert.equal(all('sure-word').length, 0);
  }
});

test('a policy is disabled by its end, and enabled again', async () => {
  await opens(0, false);
  await click('policy-state');
  const { method, body } = await done();
  const { id, expireAt } = body as { id: number; expireAt: number };
  assert.deepEqual([method, id, expireAt > 0], ['PATCH', 7, true]);
  await opens(0, false, { expireAt: 5 });
  await until(() => /Expired/.test(all('row')[0]!.textContent));
  await click('policy-state');
  assert.deepEqual((await done()).body, { id: 7, expireAt: 0 });
});

test('a policy is deleted after a question', async () => {
  await opens(0, false);
  await click('policy-delete');
  assert.match((await one('sure')).textContent, /Login.*is deleted/);
  assert.equal(sent.length, 0);
  (await go()).click();
  const { method, body } = await done();
  assert.deepEqual([method, body], ['DELETE', { id: 7 }]);
});

test('one that cannot be rehearsed is deleted by its typed action, and saved without a question', async () => {
  await opens(0, false, {}, 400);
  await click('policy-delete');
  await one('sure');
  assert.equal(sent.length, 0);
  await type('sure-word', 'LOGIN');
  await until(() => !(all('sure-go')[0] as HTMLButtonElement).disabled);
  (await go()).click();
  assert.deepEqual((await done()).body, { id: 7 });
  await opens(0, false, {}, 400);
  await click('policy-state');
  assert.equal((await done()).method, 'PATCH');
});
