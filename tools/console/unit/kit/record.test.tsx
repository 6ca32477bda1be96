import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, close, one, show, until } from '../page';
import { Diff, shell, yaml } from 'castellan-console/kit/record';

after(close);

const rows = () =>
  [...document.querySelectorAll('[data-testid="diff"] tbody tr')].map((row) =>
    [...row.querySelectorAll('td')].map((cell) => cell.textContent),
  );

test('the fields that differ, with their old and new values', async () => {
  const names = { amount: 'money.amount' };
  await show(
    <Diff
      before={{ amount: '1.50', same: 1, gone: 'x' }}
      after={{ amount: '1.5', same: 1, added: [1] }}
      names={names}
    />,
  );
  await one('diff');
  assert.deepEqual(rows(), [
    ['Amount', '1.50', '1.5'],
    ['gone', 'x', '–'],
    ['added', '–', '[1]'],
  ]);
  assert.equal(document.querySelectorAll('del').length, 3);
  assert.equal(document.querySelectorAll('ins').length, 3);
});

test('all fields: an equal one has one value', async () => {
  await show(<Diff before={{ a: 1, b: { c: 1 } }} after={{ a: 2, b: { c: 1 } }} all />);
  await one('diff');
  assert.deepEqual(rows(), [
    ['a', '1', '2'],
    ['b', '{"c":1}'],
  ]);
});

test('no difference is said in words', async () => {
  await show(<Diff before={{ a: [1, 2] }} after={{ a: [1, 2] }} />);
  await until(() => document.body.textContent?.includes('No changes.'));
  assert.equal(all('diff').length, 0);
});

test('a record as YAML, and as a command', () => {
  assert.equal(
    yaml({ a: 'x: y', b: [1, { c: null }], d: [], e: {} }),
    '"a": "x: y"\n"b":\n  - 1\n  -\n    "c": null\n"d": []\n"e": {}',
  );
  assert.ok(shell({ method: 'POST', path: '/x', body: { a: "it's" } }).endsWith(`-d '{"a":"it'\\''s"}'`));
});
