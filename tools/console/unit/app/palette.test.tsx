import assert from 'node:assert/strict';
import test from 'node:test';
import '../page';
import { folded, national, personOf, places } from 'castellan-console/app/search/palette';

const everything = () => true;
const found = (text: string, may: (endpoint: string) => boolean = everything) =>
  places(text, may).map(({ to, search }) => `${to}?${new URLSearchParams(search).toString()}`);

test('the pages of an id', () => {
  const id = '01JD3XE5GN2D2R8A5PKM9C1YQF';
  assert.deepEqual(found(id.toLowerCase()), [
    `/users/${id}?`,
    `/audit?requestId=${id}`,
    `/audit?target=${id}`,
    `/audit?userId=${id}`,
    `/withdrawals?id=${id}`,
    `/jobs/${id}?`,
  ]);
});

test('only pages that the user may open', () => {
  assert.deepEqual(
    found('a@example.com', () => false),
    [],
  );
  assert.deepEqual(
    found('01JD3XE5GN2D2R8A5PKM9C1YQF', (endpoint) => endpoint === 'GET /admin/jobs'),
    ['/jobs/01JD3XE5GN2D2R8A5PKM9C1YQF?'],
  );
});

test('each form of text', () => {
  assert.deepEqual(found('a@example.com'), ['/users?email=a%40example.com']);
  assert.deepEqual(found('0532 123 45 67'), ['/users?phoneNumber=%2B905321234567']);
  assert.deepEqual(found('192.0.2.7'), ['/users/logins?ipaddress=192.0.2.7', '/audit?ip=192.0.2.7']);
  assert.deepEqual(found('2001:db8::1'), ['/users/logins?ipaddress=2001%3Adb8%3A%3A1', '/audit?ip=2001%3Adb8%3A%3A1']);
  assert.deepEqual(found('Ayşe Yılmaz'), ['/users?fullName=Ay%C5%9Fe+Y%C4%B1lmaz']);
  assert.deepEqual(found('?'), []);
});

test('a hash is looked for as a transaction first, and another address as an address', () => {
  const hash = `0x${'a1'.repeat(32)}`;
  assert.equal(found(hash)[0], `/withdrawals?txId=${hash}`);
  const address = '0x52908400098527886E0F7030069857D2E4169EE7';
  assert.deepEqual(found(address).slice(0, 2), [
    `/withdrawals?address=${address}`,
    `/transactions?toAddress=${address}`,
  ]);
});

test('a phone number in the form of the service', () => {
  assert.equal(national('0532 123 45 67'), '+905321234567');
  assert.equal(national('532-123-4567'), '+905321234567');
  assert.equal(national('0212 123 45 67'), '+902121234567');
  assert.equal(national('+49 30 123456'), '+4930123456');
});

test('letters of a name match with and without their signs', () => {
  assert.equal(folded('İŞLEMLER'), folded('islemler'));
  assert.equal(folded('IĞDIR'), folded('igdir'));
});

test('the filter for the person of a text', () => {
  assert.deepEqual(personOf('Emre Ay <emre@example.com>'), { email: 'emre@example.com' });
  assert.deepEqual(found('Emre Ay <emre@example.com>'), ['/users?email=emre%40example.com']);
  assert.deepEqual(personOf('emre@example.com'), { email: 'emre@example.com' });
  assert.deepEqual(personOf('0532 123 45 67'), { phoneNumber: '+905321234567' });
  assert.deepEqual(personOf('01jd3xe5gn2d2r8a5pkm9c1yqf'), { userId: '01JD3XE5GN2D2R8A5PKM9C1YQF' });
  for (const text of ['', 'Emre', '192.0.2.7', '0x52908400098527886E0F7030069857D2E4169EE7'])
    assert.equal(personOf(text), undefined);
});
