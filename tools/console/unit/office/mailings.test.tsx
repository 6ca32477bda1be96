import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, close, one, show, until } from '../page';
import Announcements from 'castellan-console/office/announcements';
import Mailings from 'castellan-console/office/mailings';

after(close);

const job = (id: string, type: string) => ({ id, type, status: 'done', done: 3, total: 3, failed: 0, unknown: 0 });
const audit = 'GET /admin/audit';

function service({ path, query }: { path: string; query: Record<string, string> }) {
  if (path === '/admin/jobs') return { body: [job('j1', 'send-notification'), job('j2', 'send-notification')] };
  assert.deepEqual(query, { action: 'NOTIFICATION_SEND', limit: '100' });
  return { body: [{ target: 'j1', detail: 'topic news, 3 recipients', actorId: 'operator' }] };
}

const cells = (n: number) => [...all('row')[n]!.querySelectorAll('td')].map((td) => td.textContent);

test('a mailing has its topic, its recipients and its sender, as the audit has them', async () => {
  await show(<Mailings />, { may: ['GET /admin/jobs', audit], service });
  await until(() => all('row').length === 2 && cells(0)[1] !== '–');
  assert.equal(cells(0)[1], 'Topic news, recipients: 3 · Command line');
  assert.equal(cells(1)[1], '–');
});

test('without the audit the list has no such column', async () => {
  await show(<Mailings />, { may: ['GET /admin/jobs'], service });
  await until(() => all('row').length === 2);
  assert.equal(cells(0)[1], 'Done');
});

test('a user who may only send reads why there is no list', async () => {
  await show(<Mailings />, { may: ['POST /admin/send-notification'], service });
  await until(() => document.body.textContent?.includes('You may send mailings.'));
});

test('an announcement is live between its start and its end, while it is active', async () => {
  const day = 86_400_000;
  const around = (from: number, to: number, isActive = true) => ({
    id: from * 100 + to,
    title: `${from} ${to}`,
    isActive,
    startDate: new Date(Date.now() + from * day).toISOString(),
    endDate: new Date(Date.now() + to * day).toISOString(),
    priority: 0,
  });
  const body = [around(-1, 1), around(1, 2), around(-2, -1), around(-1, 1, false)];
  await show(<Announcements />, { service: () => ({ body }) });
  await one('row');
  const states = all('row').map((row) => row.querySelector('[data-state]')?.textContent);
  assert.deepEqual(states, ['Live', 'Scheduled', 'Ended', 'Inactive']);
});
