import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, click, close, one, show, type, until } from '../page';
import { AmountInput } from 'castellan-console/kit/amountinput';
import { useState } from 'react';

after(close);

let value = '';
let change: (value: string) => void;
let bounds: (unit: string, decimals: number) => void;

function Form({ initial = '' }: { initial?: string }) {
  const [text, setText] = useState(initial);
  const [[unit, decimals], setBounds] = useState<[string, number]>(['BTC', 8]);
  value = text;
  change = setText;
  bounds = (unit, decimals) => setBounds([unit, decimals]);
  return <AmountInput label="Amount" value={text} onChange={setText} unit={unit} decimals={decimals} data-testid="a" />;
}
const field = async () => (await one('a')) as HTMLInputElement;

test('the text stays as typed, and the value that is sent is shown', async () => {
  await show(<Form />);
  await type('a', '1 234,50');
  await until(() => value === '1234.5');
  assert.equal((await field()).value, '1 234,50');
  assert.equal((await one('a-sends')).dataset.value, '1234.5');
});

test('an ambiguous text has no value until the user chooses one', async () => {
  await show(<Form initial="5" />);
  await type('a', '1,500');
  await until(() => value === '');
  const means = all('a-means');
  assert.deepEqual(
    means.map((button) => button.dataset.value),
    ['1500', '1.5'],
  );
  means[1]!.click();
  await until(() => value === '1.5');
  assert.equal((await field()).value, '1,500');
});

test('a fault empties the value and keeps the form from being sent', async () => {
  await show(<Form initial="5" />);
  await type('a', '0.123456789');
  await until(() => value === '');
  await until(() => document.body.textContent?.includes('Maximum decimals for BTC: 8.'));
  const input = await field();
  assert.equal(input.getAttribute('aria-invalid'), 'true');
  assert.equal(input.validationMessage, 'Maximum decimals for BTC: 8.');
});

test('another currency has other bounds', async () => {
  await show(<Form initial="0.005" />);
  bounds('TRY', 2);
  await until(() => value === '');
  bounds('ETH', 18);
  await until(() => value === '0.005');
});

test('a value that the form sets replaces the text', async () => {
  await show(<Form />);
  await type('a', '1,500');
  await one('a-means');
  change('1,5'.replace(',', '.'));
  await until(() => document.querySelector<HTMLInputElement>('[data-testid="a"]')?.value === '1.5');
  assert.equal(all('a-means').length, 0);
});
