import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, click, close, one, search, show, type, until } from '../page';
import { session } from 'castellan-console/app/session';
import { Write } from 'castellan-console/kit/write';

after(close);

const path = '/blockage/insert-blockage';
const may = [`POST ${path}`];
const form = (
  <Write
    method="post"
    path={path}
    title="money.block"
    fields={[
      { name: 'description', title: 'money.reason' },
      { name: 'amount', title: 'money.amount', kind: 'money' },
      { name: 'userId', title: 'money.user', kind: 'secret' },
    ]}
    initial={{ description: 'first' }}
    record={7}
  />
);
const value = async (id: string) => ((await one(id)) as HTMLInputElement).value;
const holds = (id: string, text: string) => until(() => (all(id)[0] as HTMLInputElement | undefined)?.value === text);
const escape = () => document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
const stored = () => JSON.stringify({ ...sessionStorage });
const token = (sub: string) => `x.${btoa(JSON.stringify({ sub }))}.x`;

/** Leaves the page and comes back, as a reload does. */
async function again() {
  dispatchEvent(new Event('pagehide'));
  const { form: name = '' } = search();
  await show(form, { at: `/?form=${name}`, may });
}

async function typed() {
  dispatchEvent(new Event('pagehide')); // nothing is left to be written
  sessionStorage.clear();
  await show(form, { may });
  await click(`write-${path}`);
  await type('field-description', 'unusual');
  await holds('field-description', 'unusual');
}

test('input is in the storage of the tab soon, and after a reload in the form that the address opens', async () => {
  await typed();
  assert.equal(search().form, 'money.block:7');
  await until(() => stored().includes('unusual'));
  await again();
  assert.equal(await value('field-description'), 'unusual');
  await click('restored-discard');
  await holds('field-description', 'first');
  assert.equal(stored(), '{}');
});

test('an ambiguous amount is kept as it was typed', async () => {
  await typed();
  await type('field-amount', '1.000');
  await one('field-amount-means');
  await again();
  assert.equal(await value('field-amount'), '1.000');
  assert.equal(all('field-amount-means').length, 2);
});

test('a secret is never stored', async () => {
  await typed();
  await type('field-userId', 'hidden word');
  await until(() => stored().includes('unusual'));
  await again();
  assert.equal(await value('field-userId'), '');
  assert.equal(stored().includes('hidden'), false);
});

test('a form with input asks before it closes', async () => {
  await typed();
  escape();
  await click('draft-continue');
  await until(() => all('unsent').length === 0);
  assert.equal(await value('field-description'), 'unusual');
  escape();
  await click('draft-keep');
  await until(() => search().form === undefined && all('send').length === 0);
  await click(`write-${path}`);
  await one('restored');
  assert.equal(await value('field-description'), 'unusual');
  escape();
  await click('draft-discard');
  await until(() => search().form === undefined && all('send').length === 0);
  assert.equal(stored(), '{}');
});

test('an accepted write removes the draft', async () => {
  await typed();
  await show(form, { at: '/?form=money.block:7', may, service: () => ({ body: { data: {} } }) });
  await one('restored');
  await click('send');
  await until(() => search().form === undefined);
  assert.equal(stored(), '{}');
});

test('a logout removes every draft, and so does another user', async () => {
  for (const end of [() => session.leave(), () => session.begin(token('someone'))]) {
    await typed();
    await until(() => stored().includes('unusual'));
    await type('field-description', 'unusual too'); // not yet in the storage
    end();
    dispatchEvent(new Event('pagehide'));
    assert.equal(stored(), '{}');
  }
});

test('a draft is dropped after twelve hours', async () => {
  await typed();
  await until(() => stored().includes('unusual'));
  const real = Date.now;
  Date.now = () => real() + 12 * 3_600_000 + 1;
  await show(form, { at: '/?form=money.block:7', may });
  assert.equal(await value('field-description'), 'first');
  Date.now = real;
});
