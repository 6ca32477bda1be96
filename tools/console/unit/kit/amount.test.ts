// A table beside the property test of tools/console/amount_test.go, for the runs that change the source.
import assert from 'node:assert/strict';
import test from 'node:test';
import { check, grouped, read, type Bounds } from 'castellan-console/kit/amount';

const values: [text: string, value: string, bounds?: Bounds][] = [
  ['', ''],
  [' \u200e ', ''],
  ['0', '0'],
  ['007', '7'],
  ['00', '0'],
  ['1.5', '1.5'],
  ['1,5', '1.5'],
  ['1.50', '1.5'],
  ['.5', '0.5'],
  ['5.', '5'],
  ['0,50', '0.5'],
  ['1.000,50', '1000.5'],
  ['1,000.50', '1000.5'],
  ['1 000,5', '1000.5'],
  ['1\u202f000,5', '1000.5'],
  ["1'000.5", '1000.5'],
  ['1\u2019000.5', '1000.5'],
  ['12.345.678', '12345678'],
  ['12,345,678.9', '12345678.9'],
  ['999.999.999,123', '999999999.123'],
  ['١٬٢٣٤٫٥', '1234.5'],
  ['١٫٥', '1.5'],
  ['١،٥', '1.5'],
  ['۱۲۳', '123'],
  ['0.123', '0.123'],
  ['1.2345', '1.2345'],
  ['1 BTC', '1', { unit: 'BTC' }],
  ['1btc', '1', { unit: 'BTC' }],
  ['BTC 1,5', '1.5', { unit: 'BTC' }],
  ['BTC1,5', '1.5', { unit: 'BTC' }],
  ['5 1INCH', '5', { unit: '1INCH' }],
  ['1INCH 5', '5', { unit: '1INCH' }],
  ['+1', '1', { signed: true }],
  ['-1', '-1', { signed: true }],
  ['\u22121,5', '-1.5', { signed: true }],
  ['- 1', '-1', { signed: true }],
  ['-0', '0', { signed: true }],
  ['123456789012345678', '123456789012345678'],
  ['0.123456789012345678', '0.123456789012345678'],
  ['12', '12', { digits: 2 }],
  ['1.25', '1.25', { decimals: 2 }],
];

test('one value', () => {
  for (const [text, value, bounds] of values) assert.deepEqual(read(text, bounds), { value }, text);
});

test('two values, of which a person chooses', () => {
  assert.deepEqual(read('1.500'), { values: ['1500', '1.5'] });
  assert.deepEqual(read('1,500'), { values: ['1500', '1.5'] });
  assert.deepEqual(read('-1,500', { signed: true }), { values: ['-1500', '-1.5'] });
  assert.deepEqual(read('1,234', { decimals: 2 }), { values: ['1234'] });
  assert.deepEqual(read('1,234', { digits: 3 }), { values: ['1.234'] });
});

const faults: [text: string, fault: string, bounds?: Bounds][] = [
  ['-1', 'sign'],
  ['+1', 'sign'],
  ['1-', 'sign'],
  ['1\u2212', 'sign', { signed: true }],
  ['1x', 'character'],
  ['1 BTC', 'character'],
  ['5 1INCHES', 'character', { unit: '1INCH' }],
  ['51INCH', 'character', { unit: '1INCH' }],
  ['1 ₺', 'character', { unit: '₺' }],
  ['1.2.3', 'grouping'],
  ['1,00,000', 'grouping'],
  ['1234.567,8', 'grouping'],
  ['0.123.456', 'grouping'],
  ['.', 'grouping'],
  ['1,2.3,4', 'grouping'],
  ['1.000 000', 'grouping'],
  ['1234567890123456789', 'range'],
  ['123', 'range', { digits: 2 }],
  ['0.1234567890123456789', 'decimals'],
  ['1.255', 'decimals', { decimals: 2, digits: 3 }],
  ['0.1234567890123456789', 'decimals', { decimals: 30 }],
];

test('a fault', () => {
  for (const [text, fault, bounds] of faults) {
    const got = read(text, bounds);
    assert.equal('fault' in got && got.fault, fault, text);
  }
  assert.deepEqual(read('1;5'), { fault: 'character', of: ';' });
});

test('bounds of a value', () => {
  assert.equal(check('-12.5', { digits: 2, decimals: 1 }), undefined);
  assert.deepEqual(check('12.5', { digits: 1 }), { fault: 'range' });
  assert.deepEqual(check('12.55', { decimals: 1 }), { fault: 'decimals' });
  assert.equal(check('1'), undefined);
});

test('a value as it is shown', () => {
  assert.deepEqual(grouped('1234567.891', 'en'), ['1\u00a0234\u00a0567', '.891']);
  assert.deepEqual(grouped('1234567.891', 'tr'), ['1\u00a0234\u00a0567', ',891']);
  assert.deepEqual(grouped('1234.5', 'ar'), ['1\u00a0234', '.5']);
  assert.deepEqual(grouped('123', 'tr'), ['123', '']);
});
