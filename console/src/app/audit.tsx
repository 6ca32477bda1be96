/**
 * The audit, newest first: actor, action, target, origin and outcome of each entry; and whether the trail is intact.
 */
import { Alert, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from './problem';
import { useMay } from './session';
import { List, type Column, type FilterOf } from '../kit/list';
import { useRead } from '../kit/read';
import { Whole } from '../kit/record';
import { Id, Status, Time } from '../kit/show';
import { Act, Brief, Detail, Links, Target, type Entry } from './entry';

const path = '/admin/audit';

const columns: Column<Entry>[] = [
  { key: 'at', title: 'audit.at', card: 'start', show: (e) => <Time at={e.at} exact /> },
  { key: 'action', title: 'audit.action', card: 'head', show: (e) => <Act of={e.action} /> },
  { key: 'outcome', title: 'audit.outcome', card: 'top', show: (e) => <Status of={e.outcome} /> },
  { key: 'detail', title: 'audit.detail', show: (e) => <Detail of={e.detail} /> },
  { key: 'actorId', title: 'audit.actor', show: (e) => <Brief of={e.actorId} /> },
  { key: 'userId', title: 'audit.user', show: (e) => <Brief of={e.userId} /> },
  { key: 'ip', title: 'audit.ip', show: (e) => <bdi dir="ltr">{e.ip}</bdi> },
  { key: 'target', title: 'audit.target', show: (e) => <Target of={e} />, hidden: true },
  { key: 'requestId', title: 'audit.request', show: (e) => <Id of={e.requestId} short />, hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'userId', title: 'audit.user' },
  { name: 'actorId', title: 'audit.actor' },
  { name: 'action', title: 'audit.action' },
  { name: 'ip', title: 'audit.ip' },
  { name: 'target', title: 'audit.target' },
  { name: 'requestId', title: 'audit.request' },
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

/** A checkpoint is made every minute. It is verified when this is read. */
function Chain() {
  const { t } = useTranslation();
  const chain = useRead('/admin/audit/chain', undefined, { every: 60_000 });
  const c = chain.data;
  if (!c) return <Problem of={chain.error} />;
  return (
    <Alert color={c.holds ? (c.at ? 'green' : 'gray') : 'red'} py={4} data-testid="chain" data-holds={c.holds}>
      <Text size="sm" component="div">
        {t(c.holds ? (c.at ? 'audit.holds' : 'audit.noCheckpoint') : 'audit.broken', { counter: c.counter })}
        {c.at && (
          <>
            {' · '}
            <Time at={c.at} />
          </>
        )}
        {c.problem && (
          <>
            {' · '}
            <bdi dir="ltr">{c.problem}</bdi>
          </>
        )}
      </Text>
    </Alert>
  );
}
