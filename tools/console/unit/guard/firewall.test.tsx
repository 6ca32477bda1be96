import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, click, close, one, show, type, until, type Asked } from '../page';
import Firewall from 'castellan-console/guard/firewall';

after(close);

const path = '/admin/system/waf/rules';
const rehearse = '/admin/system/waf/rehearse';
const rule = {
  appId: 'API',
  label: 'no-logins',
  type: 'blacklist',
  period: null,
  limit: null,
  expireAt: 0,
  targetEntityType: 'IP',
  targetEntities: ['127.0.0.1'],
  targetResources: ['POST /auth/login'],
  targetAllEntities: false,
  targetAllResources: false,
  status: 'ACTIVE',
};
const sent: Asked[] = [];

/** Opens the drawer of the rule; the service answers its rehearsal. */
async function opens(stored: object, rehearsal: object, status = 200) {
  sent.length = 0;
  await show(<Firewall />, {
    may: [`GET ${path}`, `PATCH ${path}`, `POST ${rehearse}`],
    service: (asked) => {
      if (asked.method === 'GET') return { body: [{ ...rule, ...stored }] };
      sent.push(asked);
      if (asked.path === rehearse) return { status, body: { truncated: false, examples: [], ...rehearsal } };
      return { body: {} };
    },
  });
  (await one('row')).querySelector('td')!.click();
}
const patched = async () => {
  await until(() => sent.some(({ method }) => method === 'PATCH'));
  return sent.at(-1)!.body;
};
const go = async () => (await one('sure-go')) as HTMLButtonElement;

test('a rule that blocks its author is enforced by its typed name', async () => {
  await opens({ dryRun: true }, { considered: 6, stopped: 6, users: 5, accounts: 900, you: true });
  await click('rule-trial');
  assert.match((await one('sure')).textContent, /6 of 6 requests, of 5 accounts.*Your own account/);
  assert.equal((await go()).disabled, true);
  await type('sure-word', 'no-logins');
  await until(() => !(all('sure-go')[0] as HTMLButtonElement).disabled);
  (await go()).click();
  assert.deepEqual(await patched(), { label: 'no-logins', dryRun: false, force: true });
  assert.deepEqual((sent[0]!.body as { dryRun: boolean }).dryRun, false);
});

test('one that hits few accounts is asked for and enforced by one press', async () => {
  await opens({ dryRun: true }, { considered: 900, stopped: 6, users: 5, accounts: 500, you: false });
  await click('rule-trial');
  (await go()).click();
  assert.deepEqual(await patched(), { label: 'no-logins', dryRun: false });
});

test('nothing is sent if the user cancels, or the rule hits many', async () => {
  await opens({ dryRun: true }, { considered: 900, stopped: 6, users: 6, accounts: 500, you: false });
  await click('rule-trial');
  assert.equal((await go()).disabled, true);
  await click('sure-cancel');
  await until(() => all('sure').length === 0);
  assert.deepEqual(sent.map(({ path }) => path), [rehearse]);
});

test('a rule is enabled after the same question, and asked for by its name if nobody can count', async () => {
  for (const [status, code] of [[503, 'UNAVAILABLE'], [400, 'INVALID_FIELD']] as const) {
    await opens({ status: 'INACTIVE' }, { code }, status);
    await click('rule-status');
    await type('sure-word', 'no-logins');
    await until(() => !(all('sure-go')[0] as HTMLButtonElement).disabled);
    (await go()).click();
    assert.deepEqual(await patched(), { label: 'no-logins', status: 'ACTIVE' });
  }
});

test('a trial begins without a question', async () => {
  await opens({}, {});
  await click('rule-trial');
  assert.deepEqual(await patched(), { label: 'no-logins', dryRun: true });
  assert.equal(sent.length, 1);
});
