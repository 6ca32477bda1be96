import assert from 'node:assert/strict';
import test from 'node:test';
import { cell, csv } from 'castellan-console/kit/csv';

test('a cell is text, and an object is JSON', () => {
  for (const [value, want] of [
    [undefined, ''],
    [null, ''],
    ['', ''],
    [0, '0'],
    [false, 'false'],
    ['plain', 'plain'],
    [{ a: 1 }, '"{""a"":1}"'],
    [[1], '[1]'],
  ] as const)
    assert.equal(cell(value), want);
});

test('a cell with a separator, a quote or a line break is quoted', () => {
  assert.equal(cell('a,b'), '"a,b"');
  assert.equal(cell('say "yes" "no"'), '"say ""yes"" ""no"""');
  assert.equal(cell('a\nb'), '"a\nb"');
  assert.equal(cell('a\rb'), '"a\rb"');
  assert.equal(cell('a;b'), 'a;b');
});

test('a cell never begins a formula', () => {
  for (const first of ['=', '+', '-', '@', '\t']) assert.equal(cell(`${first}1`), `'${first}1`);
  assert.equal(cell('\r1'), '"\'\r1"');
  assert.equal(cell(-1), "'-1");
  assert.equal(cell('1=1'), '1=1');
});

test('lines end with CRLF, the last one too', () => {
  assert.equal(csv(['a', 'b'], [[1, 2], [null, 'x,y']]), 'a,b\r\n1,2\r\n,"x,y"\r\n');
  assert.equal(csv(['a'], []), 'a\r\n');
});
