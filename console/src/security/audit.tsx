/** The audit, newest first: who did what to whom, from where, and how it ended; and whether the trail is whole. */
import { Alert, Anchor, Group, Stack } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Whole } from '../kit/record';
import { Id, Status, Time } from '../kit/show';
import { Why } from '../kit/why';

const path = '/admin/audit';
type Entry = Row<typeof path>;

const columns: Column<Entry>[] = [
  { key: 'at', title: 'audit.at', show: (e) => <Time at={e.at} /> },
  { key: 'action', title: 'audit.action' },
  {
    key: 'outcome',
    title: 'audit.outcome',
    show: (e) => <Status of={e.outcome === 'refused' ? 'FAILURE' : 'SUCCESS'} />,
  },
  { key: 'actorId', title: 'audit.actor', show: (e) => <Id of={e.actorId} short /> },
  { key: 'userId', title: 'audit.user', show: (e) => <Id of={e.userId} short /> },
  { key: 'target', title: 'audit.target' },
  { key: 'detail', title: 'audit.detail' },
  { key: 'ip', title: 'audit.ip', show: (e) => <bdi dir="ltr">{e.ip}</bdi> },
  { key: 'requestId', title: 'audit.request', show: (e) => <Id of={e.requestId} short />, hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'userId', title: 'audit.user' },
  { name: 'actorId', title: 'audit.actor' },
  { name: 'action', title: 'audit.action' },
  { name: 'from', title: 'list.from', kind: 'date' },
  { name: 'to', title: 'list.to', kind: 'date' },
];

export default function Audit() {
  const may = useMay();
  const [open, setOpen] = useState<Entry>();
  return (
    <Stack>
      <List
        path={path}
        title="audit.title"
        columns={columns}
        filters={filters}
        id={(e) => e.id}
        open={setOpen}
        actions={may('GET /admin/audit/chain') && <Chain />}
      />
      <Whole of={open} title="audit.entry" onClose={() => setOpen(undefined)}>
        {open && <Links entry={open} onLeave={() => setOpen(undefined)} />}
      </Whole>
    </Stack>
  );
}

/** A checkpoint is made every minute; what it says is proved when this is read. */
function Chain() {
  const { t } = useTranslation();
  const chain = useRead('/admin/audit/chain', undefined, { every: 60_000 });
  const c = chain.data;
  if (!c) return <Problem of={chain.error} />;
  return (
    <Alert color={c.holds ? (c.at ? 'green' : 'gray') : 'red'} py={4} data-testid="chain" data-holds={c.holds}>
      <Group gap="xs">
        {t(c.holds ? (c.at ? 'audit.holds' : 'audit.noCheckpoint') : 'audit.broken', { counter: c.counter })}
        {c.at && <Time at={c.at} />}
        {c.problem && <bdi dir="ltr">{c.problem}</bdi>}
      </Group>
    </Alert>
  );
}

const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** From an entry to all that it is about. */
function Links({ entry: e, onLeave }: { entry: Entry; onLeave: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const link = (title: string, to: string, search: Record<string, string> = {}) => (
    <Anchor key={title} component={Link} to={to} search={search as never} size="sm" onClick={onLeave}>
      {t(title)}
    </Anchor>
  );
  const actions = useRead('/admin/system/mfa/actions', undefined, { enabled: may('GET /admin/system/mfa/actions') });
  const guarded = new Set(['DEVICE_ADD', 'DEVICE_REMOVE', ...(actions.data?.map((a) => a.actionCode) ?? [])]);
  const day = e.at.slice(0, 10);
  return (
    <Stack gap="xs" data-testid="links">
      <Group gap="md">
        {ulid.test(e.userId) && may('GET /admin/list-users') && link('audit.toUser', `/users/${e.userId}`)}
        {ulid.test(e.actorId) &&
          e.actorId !== e.userId &&
          may('GET /admin/list-users') &&
          link('audit.toActor', `/users/${e.actorId}`)}
        {e.userId && link('audit.allOfUser', '/audit', { userId: e.userId })}
        {e.actorId && link('audit.allOfActor', '/audit', { actorId: e.actorId, from: day, to: day })}
        {link('audit.allOfAction', '/audit', { action: e.action })}
        {e.action.startsWith('FIREWALL_RULE') &&
          may('GET /admin/system/waf/rules') &&
          link('audit.toRules', '/firewall')}
      </Group>
      <Why {...inputs(e, guarded)} />
    </Stack>
  );
}

/** What an explanation of the entry asks for: its challenge, or the endpoint that was refused. */
function inputs(e: Entry, guarded: ReadonlySet<string>) {
  const who = { userId: (ulid.test(e.userId) ? e.userId : e.actorId) || undefined, ip: e.ip || undefined };
  if (e.action === 'DENIED' || e.action === 'CALL')
    return { ...who, userId: e.actorId || undefined, resource: e.target };
  if (e.action === 'LOGIN') return { ...who, action: 'LOGIN', resource: 'POST /auth/login' };
  return guarded.has(e.action) ? { ...who, action: e.action } : {};
}
