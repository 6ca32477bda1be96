import assert from 'node:assert/strict';
import test from 'node:test';
import { take, type Event, type EventKind, type Place, type Source } from 'castellan-console/people/merge';

/** A list of events at these times, in pages, and how often it was read. */
function source(kind: EventKind, times: number[], size: number, fails = -1): Source & { cursors: string[] } {
  const cursors: string[] = [];
  return {
    kind,
    cursors,
    page(cursor) {
      cursors.push(cursor);
      const from = Number(cursor);
      if (from === fails) return Promise.reject(new Error(`${kind} fails`));
      const events = times.slice(from, from + size).map((at) => ({ kind, id: `${kind[0]}${at}`, at, record: {} }));
      return Promise.resolve({ events, next: from + size < times.length ? String(from + size) : '' });
    },
  };
}
const ids = (events: Event[]) => events.map((one) => one.id).join(' ');
const none = () => false;

test('events of several lists come newest first, page after page', async () => {
  const a = source('act', [9, 7, 5, 3, 1], 2);
  const b = source('blockage', [8, 6, 4], 2);
  const first = await take([a, b], {}, 3, none);
  assert.equal(ids(first.events), 'a9 b8 a7');
  assert.equal(first.more, true);
  assert.deepEqual([a.cursors, b.cursors], [['', '2'], ['']]); // the next head of a must be known
  const second = await take([a, b], first.place, 3, none);
  assert.equal(ids(second.events), 'b6 a5 b4');
  const last = await take([a, b], second.place, 3, none);
  assert.equal(ids(last.events), 'a3 a1');
  assert.equal(last.more, false);
  assert.deepEqual(first.failed, []);
});

test('of two at the same time the one of the first list comes first', async () => {
  assert.equal(ids((await take([source('act', [5], 1), source('blockage', [5], 1)], {}, 2, none)).events), 'a5 b5');
});

test('the place that it began from is not changed', async () => {
  const from: Place = { act: { waiting: [{ kind: 'act', id: 'a1', at: 1, record: {} }], next: '' } };
  await take([source('act', [1], 1)], from, 1, none);
  assert.equal(from['act']!.waiting.length, 1);
});

test('a page that is exactly full says whether there is more', async () => {
  assert.equal((await take([source('act', [2, 1], 5)], {}, 2, none)).more, false);
  assert.equal((await take([source('act', [3, 2, 1], 5)], {}, 2, none)).more, true);
});

test('what is left out does not count', async () => {
  const got = await take([source('act', [5, 4, 3, 2, 1], 2)], {}, 2, ({ at }) => at % 2 === 1);
  assert.equal(ids(got.events), 'a4 a2');
});

test('a list that fails ends there, and the others go on', async () => {
  const got = await take([source('act', [9, 7], 1, 1), source('blockage', [8, 6], 2)], {}, 9, none);
  assert.equal(ids(got.events), 'a9 b8 b6');
  assert.deepEqual(got.failed.map(({ kind, problem }) => `${kind}: ${(problem as Error).message}`), ['act: act fails']);
  assert.equal(got.more, false);
});

test('it fails when every list fails, or when it is ended', async () => {
  await assert.rejects(take([source('act', [1], 1, 0), source('blockage', [1], 1, 0)], {}, 1, none), /act fails/);
  const ended = AbortSignal.abort();
  await assert.rejects(take([source('act', [1], 1, 0), source('blockage', [1], 1)], {}, 1, none, ended), /act fails/);
});

test('a list of which nearly everything is left out is read ten times', async () => {
  const long = source('act', Array.from({ length: 50 }, (_, n) => 50 - n), 1);
  const got = await take([long], {}, 1, () => true);
  assert.equal(long.cursors.length, 10);
  assert.deepEqual([got.events, got.more], [[], true]);
});
