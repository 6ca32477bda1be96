import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { useState } from 'react';
import { all, click, close, one, press, search, show, until, type Asked } from '../page';
import { Fields } from 'castellan-console/kit/fields';
import { List, type Row } from 'castellan-console/kit/list';
import { Whole } from 'castellan-console/kit/record';
import { Money, Status } from 'castellan-console/kit/show';

after(close);

const path = '/admin/system/waf/rules';
type Rule = Row<typeof path>;
const rules = [
  { label: 'office', type: 'whitelist', status: 'ACTIVE', limit: '1234', expireAt: 0, dryRun: true, appId: null },
  { label: 'rate', type: 'rate_limit', status: 'INACTIVE', limit: '12.50', expireAt: 1790000000000, appId: 'API' },
];

/** The lines of the drawer: the name of each field and its value. */
const lines = () =>
  Object.fromEntries(
    [...document.querySelectorAll('[data-testid="fields"] tr')].map((row) => [
      row.querySelector('th')?.textContent,
      row.querySelector('td')?.textContent,
    ]),
  );

function Screen() {
  const [open, setOpen] = useState<Rule>();
  return (
    <>
      <List
        path={path}
        title="firewall.title"
        columns={[
          { key: 'label', title: 'firewall.label' },
          { key: 'status', title: 'firewall.status', show: (r) => <Status of={r.status} /> },
          { key: 'limit', title: 'firewall.limit', end: true, show: (r) => <Money amount={r.limit} unit="TRY" /> },
          { key: 'appId', title: 'firewall.app', hidden: true },
        ]}
        id={(r) => r.label}
        open={setOpen}
        empty="firewall.none"
        next={{ title: 'firewall.add', form: 'firewall.add', needs: `POST ${path}` }}
      />
      <Whole of={open} title="firewall.rule" onClose={() => setOpen(undefined)} />
    </>
  );
}

test('a drawer has the columns of the list, then named members, and no wire name', async () => {
  await show(<Screen />, { service: () => ({ body: rules }) });
  await until(() => all('row').length === 2);
  press(all('row')[0]!);
  await one('fields');
  assert.deepEqual(lines(), { Label: 'office', Status: 'Active', Limit: '1234 TRY', Expires: 'Never' });
  assert.equal(document.querySelector('[data-testid="fields"]')!.textContent!.includes('targetEntityType'), false);
});

test('the raw record is closed at first, and has every member', async () => {
  await show(<Screen />, { service: () => ({ body: rules }) });
  await until(() => all('row').length === 2);
  press(all('row')[1]!);
  const raw = (await one('raw')) as HTMLDetailsElement;
  assert.equal(raw.open, false);
  assert.equal(raw.querySelector('pre'), null);
  raw.open = true;
  raw.dispatchEvent(new Event('toggle', { bubbles: true }));
  await until(() => raw.querySelector('pre'));
  assert.deepEqual(JSON.parse(raw.querySelector('pre')!.textContent!), rules[1]);
});

test('amounts of a column have groups, and room for the most decimals', async () => {
  await show(<Screen />, { service: () => ({ body: rules }) });
  await until(() => all('row').length === 2);
  const [first, second] = all('row').map((row) => row.querySelector('.money')!);
  assert.equal(first!.querySelectorAll('.digits').length, 1);
  assert.equal(first!.querySelector<HTMLElement>('.pad')!.dataset.pad, '.00');
  assert.equal(second!.querySelector('.pad'), null);
  assert.equal(first!.textContent, '1234 TRY');
});

test('members of a record without a list', async () => {
  await show(
    <Fields
      of={{
        status: 'hotWalletInsufficientBalance',
        amount: '1000.5',
        createdAt: '2026-01-31T10:00:00.000Z',
        isActive: false,
        expireAt: 0,
        reason: '',
        ip: null,
        userId: 'operator',
        walletCurrencyId: 7,
        id: 12,
      }}
    />,
  );
  await one('fields');
  const found = lines();
  assert.equal(found.Status, 'Hot wallet underfunded');
  assert.equal(found.Amount, '1000.5');
  assert.equal(found.Active, 'No');
  assert.equal(found.Expires, 'Never');
  assert.equal(found.Account, 'Command line');
  assert.ok(document.querySelector('[data-field="createdAt"] time'));
  assert.deepEqual(Object.keys(found), ['Status', 'Amount', 'Created', 'Active', 'Expires', 'Account']);
});

test('the cell of a person has the account, so no other line repeats it', async () => {
  const of = { userId: '01JD3XE5GN2D2R8A5PKM9C1YQF', fullName: 'Ada', email: 'ada@example.com', amount: '1' };
  const user = { key: 'userId', title: 'money.user', show: () => 'account', hidden: true } as const;
  const name = { key: 'fullName', title: 'money.customer', show: () => 'Ada · ada@example.com' } as const;
  const shown = async (columns: object[]) => {
    await show(<Fields of={of} columns={columns as never} />);
    await one('fields');
    return lines();
  };
  assert.deepEqual(await shown([{ ...name, person: true }, user]), {
    Customer: 'Ada · ada@example.com',
    Amount: '1',
  });
  // A name that is not a person, such as that of a file, hides nothing.
  assert.deepEqual(Object.keys(await shown([name, user])), ['Customer', 'Account', 'Email address', 'Amount']);
});

test('a list without rows names the next step and opens its form', async () => {
  const asked: Asked[] = [];
  const service = (request: Asked) => (asked.push(request), { body: [] });
  await show(<Screen />, { may: [`POST ${path}`], service });
  await until(() => document.body.textContent?.includes('No rules yet'));
  await click('next-step');
  await until(() => search().form === 'firewall.add');
  await show(<Screen />, { service });
  await until(() => document.body.textContent?.includes('No rules yet'));
  assert.equal(all('next-step').length, 0);
});
