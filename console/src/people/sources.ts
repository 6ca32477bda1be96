/** The lists with events of one account, and the time of each event. */
import { readPage, type Gets } from '../app/api';
import type { Row } from '../kit/list';
import type { Event, EventKind, Source } from './merge';

const size = 50;

interface Kind<P extends Gets> {
  kind: EventKind;
  path: P;
  query: (id: string) => Record<string, string>;
  event: (row: Row<P>) => { id: string; at: string };
}

const of = <P extends Gets>({ kind, path, query, event }: Kind<P>) => ({
  kind,
  path,
  page: async (id: string, cursor: string, signal?: AbortSignal) => {
    const read = await readPage<Row<P>>(path, { ...query(id), limit: size, ...(cursor ? { cursor } : {}) }, signal);
    const events = read.rows.map((record): Event => {
      const { id: own, at } = event(record);
      return { kind, id: own, at: Date.parse(at), record };
    });
    if (kind === 'role') events.sort((a, b) => b.at - a.at); // these come without pages, ordered by code
    return { events, next: read.next };
  },
});

/** The kinds of events, in the order of the filter. */
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

export const source = ({ kind, page }: (typeof kinds)[number], id: string): Source => ({
  kind,
  page: (cursor, signal) => page(id, cursor, signal),
});
