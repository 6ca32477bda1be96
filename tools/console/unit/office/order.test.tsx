import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { useState } from 'react';
import { click, close, one, show, until } from '../page';
import { useOrder } from 'castellan-console/office/order';

after(close);

const first = [1, 2, 3].map((id) => ({ id }));
const second = [4, 3, 1, 2].map((id) => ({ id }));

function Rows() {
  const [stored, setStored] = useState(first);
  const [clicks, setClicks] = useState(0);
  const order = useOrder(stored);
  const does: Record<string, () => void> = {
    up: () => order.move(2, 0),
    down: () => order.move(0, 1),
    discard: () => order.reset(),
    saved: () => order.reset([3, 1, 2]),
    fetch: () => setStored(second),
  };
  return (
    <>
      <p data-testid="clicks">{clicks}</p>
      <p data-testid="rows">{`${order.rows.map((row) => row.id).join(' ')}${order.changed ? ' changed' : ''}`}</p>
      {Object.entries(does).map(([name, act]) => (
        <button
          key={name}
          data-testid={name}
          onClick={() => {
            act();
            setClicks(clicks + 1);
          }}
        />
      ))}
    </>
  );
}

/** Shows the rows and clicks. Each step names a button and the rows after it. */
async function steps(...all: [string, string][]) {
  await show(<Rows />);
  const rows = async () => (await one('rows')).textContent;
  assert.equal(await rows(), '1 2 3');
  for (const [n, [button, after]] of all.entries()) {
    await click(button);
    const clicks = await one('clicks');
    await until(() => clicks.textContent === String(n + 1));
    assert.equal(await rows(), after);
  }
}

test('rows move until they are discarded', () =>
  steps(['up', '3 1 2 changed'], ['down', '1 3 2 changed'], ['discard', '1 2 3'], ['discard', '1 2 3']));

test('a move back is no change', () => steps(['down', '2 1 3 changed'], ['down', '1 2 3']));

test('a saved order gives way to that of the service', () =>
  steps(['up', '3 1 2 changed'], ['saved', '1 2 3'], ['fetch', '4 3 1 2']));

test('a move after the save stays', () =>
  steps(['up', '3 1 2 changed'], ['down', '1 3 2 changed'], ['saved', '1 3 2 changed'], ['fetch', '1 3 2 4 changed']));

test('a save without a move changes nothing', () => steps(['saved', '1 2 3']));
