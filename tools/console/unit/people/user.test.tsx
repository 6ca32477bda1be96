import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, close, one, show, type Asked } from '../page';
import { SecondFactors } from 'castellan-console/people/factors';

after(close);

const none = { userId: 'u', totp: false, totpConfirmed: false, devices: 0, passkeys: 0, sessions: 0 };

/** The words of the second factors and of the sessions of an account. */
async function words(security: Partial<typeof none>, rememberedBrowsers = 0) {
  const asked: Asked[] = [];
  await show(<SecondFactors id="u" />, {
    service: (request) => {
      asked.push(request);
      return { body: { data: { ...none, rememberedBrowsers, ...security } } };
    },
  });
  const factors = (await one('factors')).textContent;
  assert.deepEqual(
    asked.map(({ path, query }) => [path, query]),
    [['/admin/user/security', { userId: 'u' }]],
  );
  return [factors, all('sessions')[0]?.textContent];
}

test('the second factors and the sessions of an account are in words', async () => {
  assert.deepEqual(await words({ totp: true, totpConfirmed: true, devices: 2, passkeys: 1, sessions: 3 }, 1), [
    'Authenticator app · 2 devices · 1 passkey',
    '3 active sessions · 1 remembered browser',
  ]);
  assert.deepEqual(await words({ totp: true, sessions: 1 }, 2), [
    'Authenticator app, not used yet',
    '1 active session · 2 remembered browsers',
  ]);
  assert.deepEqual(await words({ devices: 1, passkeys: 2 }), ['1 device · 2 passkeys', '0 active sessions']);
});

test('an account without a second factor has a warning', async () => {
  assert.deepEqual(await words({ sessions: 1 }), ['No authenticator, device or passkey', '1 active session']);
  assert.equal(all('factors')[0]?.querySelector('[data-tone]')?.getAttribute('data-tone'), 'yellow');
});
