/** The queue of identities that wait for a decision: one row a case. */
import { Badge, Button, Group } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Id, Status, Time } from '../kit/show';
import { fixed, forgetSkipped, gather, path, size, useQueue, type Case } from './cases';
import { usePending } from './pending';

const columns: Column<Row<typeof path>>[] = [
  { key: 'userId', title: 'documents.owner', show: (d) => <Owner of={d.userId} /> },
  { key: 'createdAt', title: 'kyc.since', show: (d) => <Time at={(d as Case).all.at(-1)?.createdAt} /> },
  { key: 'name', title: 'kyc.documents', show: (d) => <Documents of={d as Case} /> },
  { key: 'type', title: 'documents.type', hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'userId', title: 'documents.owner' },
  { name: 'type', title: 'documents.type' },
];

function Owner({ of }: { of: string }) {
  const { t } = useTranslation();
  const { waiting, settled, failed } = usePending();
  return (
    <Group gap="xs">
      <Id of={of} />
      {waiting.some((d) => d.userId === of) && <Status of={t('kyc.waiting')} />}
      {settled.has(of) && <Status of={t('kyc.settled')} />}
      {failed.has(of) && (
        <Badge color="red" variant="light" tt="none">
          {t('kyc.failed')}
        </Badge>
      )}
    </Group>
  );
}

function Documents({ of }: { of: Case }) {
  return (
    <Group gap={4}>
      {of.all.map((d) => (
        <Badge key={d.id} variant="default" tt="none">
          <bdi>{d.name}</bdi>
        </Badge>
      ))}
    </Group>
  );
}

export default function Queue() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const queue = useQueue();
  const { waiting, settled } = usePending();
  useEffect(forgetSkipped, []);
  const first = queue.find((id) => !settled.has(id) && !waiting.some((d) => d.userId === id));
  const go = (id: string) => navigate({ to: `/kyc/${id}` as string });
  return (
    <List
      path={path}
      title="kyc.title"
      columns={columns}
      filters={filters}
      fixed={fixed}
      size={size}
      gather={gather}
      id={(d) => d.userId}
      open={(d) => go(d.userId)}
      empty="kyc.empty"
      actions={
        <Button size="xs" disabled={!first} onClick={() => first && go(first)} data-testid="kyc-begin">
          {t('kyc.begin')}
        </Button>
      }
    />
  );
}
