import assert from 'node:assert/strict';
import test from 'node:test';
import { asList, shapes } from 'castellan-console/app/shape';

test('the one list of texts that an object is', () => {
  assert.equal(asList({ codes: ['a', 'b'] }), 'codes');
  assert.equal(asList({ codes: [] }), 'codes');
  assert.equal(asList({ codes: ['a', 1] }), undefined);
  assert.equal(asList({ codes: 'a' }), undefined);
  assert.equal(asList({ codes: ['a'], more: ['b'] }), undefined);
  assert.equal(asList({}), undefined);
});

test('each shape has words', () => {
  for (const [code, key] of Object.entries(shapes)) {
    assert.match(code, /^[A-Z_]+$/);
    assert.match(key, /^parameter\.[a-z]+$/);
  }
});
