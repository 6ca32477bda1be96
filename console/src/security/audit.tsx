/** The audit, newest first: who did what to whom, from where, and how it ended. */
import { Code, Drawer } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Id, Status, Time } from '../kit/show';

const path = '/admin/audit';
type Entry = Row<typeof path>;

const columns: Column<Entry>[] = [
  { key: 'at', title: 'audit.at', show: (e) => <Time at={e.at} /> },
  { key: 'action', title: 'audit.action' },
  { key: 'outcome', title: 'audit.outcome', show: (e) => <Status of={e.outcome} /> },
  { key: 'actorId', title: 'audit.actor', show: (e) => <Id of={e.actorId} short /> },
  { key: 'userId', title: 'audit.user', show: (e) => <Id of={e.userId} short /> },
  { key: 'target', title: 'audit.target' },
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
  const { t } = useTranslation();
  const [open, setOpen] = useState<Entry>();
  return (
    <>
      <List path={path} title="audit.title" columns={columns} filters={filters} id={(e) => e.id} open={setOpen} />
      <Drawer opened={!!open} onClose={() => setOpen(undefined)} title={t('audit.entry')} position="right">
        <Code block dir="ltr">{JSON.stringify(open, null, 2)}</Code>
      </Drawer>
    </>
  );
}
