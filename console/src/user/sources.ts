/** The lists that know something of one person, with an instant for each thing. */
import { readPage, type Gets } from '../app/api';
import type { Row } from '../kit/list';
import type { Event, Source } from './merge';

const size = 50;

interface Kind<P extends Gets> {
  kind: string;
  path: P;
  query: (id: string) => Record<string, string>;
  event: (row: Row<P>) => { id: string; at: string };
}

const of = <P extends Gets>(kind: Kind<P>) => kind as unknown as Kind<never>;

/** Kinds of events, as they stand beside each other in the filter. */
export const kinds = [
  of({
    kind: 'login',
    path: '/admin/login-history',
    query: (userId) => ({ userId }),
    event: (l) => ({ id: l.id, at: l.createdAt }),
  }),
  of({ kind: 'audit', path: '/admin/audit', query: (userId) => ({ userId }), event: (e) => ({ id: e.id, at: e.at }) }),
  of({ kind: 'act', path: '/admin/audit', query: (actorId) => ({ actorId }), event: (e) => ({ id: e.id, at: e.at }) }),
  of({
    kind: 'movement',
    path: '/admin/audit',
    query: (userId) => ({ userId, action: 'LEDGER_TRANSFER' }),
    event: (e) => ({ id: e.id, at: e.at }),
  }),
  of({
    kind: 'mail',
    path: '/admin/get-email-change-history',
    query: (userId) => ({ userId }),
    event: (m) => ({ id: String(m.id), at: m.createdAt }),
  }),
  of({
    kind: 'document',
    path: '/user/get-documents',
    query: (userId) => ({ userId }),
    event: (d) => ({ id: d.id, at: d.createdAt }),
  }),
  of({
    kind: 'blockage',
    path: '/blockage/get-blockage-history',
    query: (userId) => ({ userId }),
    event: (b) => ({ id: b.id, at: b.createdAt }),
  }),
  of({
    kind: 'role',
    path: '/admin/user-roles',
    query: (userId) => ({ userId }),
    event: (r) => ({ id: r.roleCode, at: r.createdAt }),
  }),
];

/** Lists that come in one piece: the logins, of which the service tells the last ones, and the roles of an account. */
const steps = [size, 250, 1000];

export function source({ kind, path, query, event }: (typeof kinds)[number], id: string): Source {
  const events = (rows: object[]): Event[] =>
    rows.map((record) => {
      const { id: own, at } = event(record as never);
      return { kind, id: own, at: Date.parse(at), record };
    });
  if (kind === 'login') {
    return {
      kind,
      page: async (cursor, last, signal) => {
        const step = cursor === '' ? 0 : (JSON.parse(cursor) as number);
        const limit = steps[step]!;
        const all = events((await readPage<object>(path, { ...query(id), limit }, signal)).rows);
        const seen = all.findIndex((one) => one.id === last) + 1; // those before were shown, or are too new
        return {
          events: all.slice(seen),
          next: all.length === limit && step + 1 < steps.length ? String(step + 1) : '',
        };
      },
    };
  }
  return {
    kind,
    page: async (cursor, _, signal) => {
      const read = await readPage<object>(path, { ...query(id), limit: size, ...(cursor ? { cursor } : {}) }, signal);
      const rows = events(read.rows);
      if (kind === 'role') rows.sort((a, b) => b.at - a.at);
      return { events: rows, next: read.next };
    },
  };
}
