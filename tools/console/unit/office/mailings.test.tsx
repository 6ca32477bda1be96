import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, close, one, show, until } from '../page';
import Announcements from 'castellan-console/office/announcements';
import Mailings from 'castellan-console/office/mailings';

after(close);

const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const job = (rest: object) => ({
  id: 'j1',
  type: 'send-notification',
  subject: 'A week without fees',
  actorId: 'operator',
  status: 'done',
  done: 3,
  total: 4,
  failed: 0,
  unknown: 0,
  skipped: 0,
  startedAt: ago(30.4),
  updatedAt: ago(18.4),
  finishedAt: ago(18.4),
  error: null,
  ...rest,
});

const service = () => ({
  body: [
    job({}),
    job({ id: 'j2', actorId: 'schedule', failed: 1, error: 'the mail server is away' }),
    job({ id: 'j3', status: 'running', updatedAt: ago(12), finishedAt: null }),
    job({ id: 'j4', status: 'running', updatedAt: ago(1), finishedAt: null }),
  ],
});

const cells = (n: number) => [...all('row')[n]!.querySelectorAll('td')].map((td) => td.textContent);

test('a mailing has its subject, its starter, its failures and its duration', async () => {
  await show(<Mailings />, { may: ['GET /admin/jobs'], service });
  await until(() => all('row').length === 4);
  assert.deepEqual(cells(0), [
    'NotificationA week without fees',
    'Done',
    '3 / 4',
    'Command line',
    '30 min. ago',
    '12 min',
  ]);
  assert.equal(cells(1)[2], '3 / 41 failed · The mail server is away.');
  assert.equal(cells(1)[3], 'Schedule');
});

test('a running job without a step for ten minutes has a warning', async () => {
  await show(<Mailings />, { may: ['GET /admin/jobs'], service });
  await until(() => all('row').length === 4);
  assert.equal(cells(2)[1], 'RunningNo progress');
  assert.equal(cells(3)[1], 'Running');
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
