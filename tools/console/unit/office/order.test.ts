import assert from 'node:assert/strict';
import test from 'node:test';
import { moved, ordered } from 'castellan-console/office/order';

const rows = [1, 2, 3].map((id) => ({ id }));
const ids = (of: { id: number }[]) => of.map((row) => row.id);

test('rows follow the ids', () => {
  assert.equal(ordered(rows), rows);
  assert.deepEqual(ids(ordered(rows, [3, 1, 2])), [3, 1, 2]);
  assert.deepEqual(ids(ordered(rows, [])), [1, 2, 3]);
});

test('an added row follows, and a deleted one is gone', () => {
  assert.deepEqual(ids(ordered(rows, [3, 9, 1])), [3, 1, 2]);
});

test('a row moves to its place, or to the nearest end', () => {
  const before = [1, 2, 3, 4];
  assert.deepEqual(moved(before, 0, 2), [2, 3, 1, 4]);
  assert.deepEqual(moved(before, 3, 1), [1, 4, 2, 3]);
  assert.deepEqual(moved(before, 1, -5), [2, 1, 3, 4]);
  assert.deepEqual(moved(before, 1, 9), [1, 3, 4, 2]);
  assert.deepEqual(moved(before, 2, 2), before);
  assert.deepEqual(before, [1, 2, 3, 4]);
});
