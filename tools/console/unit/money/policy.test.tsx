import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { click, close, one, show, until, type Asked } from '../page';
import Policy from 'castellan-console/money/policy';

after(close);

const path = '/admin/money/rules';
const rule = {
  label: 'Large',
  version: 3,
  status: 'ACTIVE',
  kinds: ['WITHDRAWAL'],
  match: {
    amount: { over: '2000000', unit: 'TRY' },
    sums: [{ per: 'INITIATOR', window: '24h', of: 'VALUE', over: '5000000' }],
    destination: { firstUse: true },
    device: ['NEW'],
  },
  except: {},
  effect: { type: 'APPROVAL', group: 'treasury', required: 2, expires: '72h' },
  expiresAt: null,
  hits: 7,
};
const sent: Asked[] = [];

async function opens() {
  sent.length = 0;
  await show(<Policy />, {
    may: [`GET ${path}`, `POST ${path}`, `PATCH ${path}`, `DELETE ${path}`],
    service: (asked) => {
      if (asked.method === 'GET') return { body: [rule] };
      if (asked.method === 'PATCH') sent.push(asked);
      return { body: {} };
    },
  });
}

test('a rule is one sentence', async () => {
  await opens();
  assert.match((await one('row')).textContent, /from a new device.*7/);
  assert.match(
    (await one('row')).textContent,
    /withdrawals over 2000000 TRY, from a new device, to a new destination, and beyond 5000000 \(value in TRY per requ/,
  );
});

test('a trial names the version that the operator saw', async () => {
  await opens();
  (await one('row')).querySelector('td')!.click();
  await click('policy-status');
  await until(() => sent.length > 0);
  assert.deepEqual(sent[0]!.body, { label: 'Large', version: 3, status: 'TRIAL' });
});

test('a change replaces whole fields and keeps the effect', async () => {
  await opens();
  (await one('row')).querySelector('td')!.click();
  await click('policy-change');
  await click('send');
  await until(() => sent.length > 0);
  const { label, version, kinds, match, effect, expiresAt } = sent[0]!.body as typeof rule;
  assert.deepEqual({ label, version, kinds, match, effect, expiresAt }, {
    label: 'Large', version: 3, kinds: rule.kinds, match: rule.match, effect: rule.effect, expiresAt: null,
  });
});
