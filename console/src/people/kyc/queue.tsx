/** The queue of identity checks: one row per case. */
import { Badge, Button, Group, Switch, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { useTexts } from '../../app/address';
import { List, type Column, type FilterOf, type Row } from '../../kit/list';
import { Named } from '../../kit/person';
import { Ago, dateFormat, Id, inUTC, Status } from '../../kit/show';
import { everything, forgetSkipped, gather, identities, path, size, useQueue, type Case } from './cases';
import { Verdict } from './facts';
import { usePending } from './pending';

const columns: Column<Row<typeof path>>[] = [
  { key: 'fullName', title: 'users.fullName', show: (d) => <Owner of={d} /> },
  { key: 'createdAt', title: 'kyc.since', show: (d) => <Since at={d.createdAt} /> },
  { key: 'name', title: 'kyc.documents', show: (d) => <Documents of={d as Case} /> },
  { key: 'kycConfirm', title: 'kyc.state', show: (d) => <Verdict of={d.kycConfirm} />, hidden: true },
  { key: 'userId', title: 'user.id', show: (d) => <Id of={d.userId} short />, hidden: true },
];

const filters: FilterOf<typeof path>[] = [{ name: 'userId', title: 'user.id' }];

/** The start and the length of the wait. */
function Since({ at }: { at: string }) {
  const { i18n } = useTranslation();
  return (
    <Group gap="xs" wrap="nowrap">
      <time dateTime={at} title={inUTC(at)}>
        <bdi>{dateFormat(i18n.language).format(new Date(at))}</bdi>
      </time>
      <Text size="sm" c="dimmed">
        <Ago at={at} />
      </Text>
    </Group>
  );
}

function Owner({ of: { userId: of, fullName: name, kycConfirm } }: { of: Row<typeof path> }) {
  const { t } = useTranslation();
  const { waiting, settled, failed } = usePending();
  return (
    <Group gap="xs">
      <Named name={name} />
      {kycConfirm !== 'waitingApproval' && <Verdict of={kycConfirm} />}
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
  const search = useTexts();
  const queue = useQueue();
  const { waiting, settled } = usePending();
  useEffect(forgetSkipped, []);
  const first = queue.find((id) => !settled.has(id) && !waiting.some((d) => d.userId === id));
  const go = (id: string) => void navigate({ to: `/kyc/${id}` });
  return (
    <List
      path={path}
      title="kyc.title"
      columns={columns}
      filters={filters}
      fixed={search.all ? everything : identities}
      size={size}
      gather={gather}
      id={(d) => d.userId}
      open={(d) => go(d.userId)}
      empty="kyc.empty"
      actions={
        <>
          <Switch
            size="xs"
            label={t('kyc.all')}
            checked={!!search.all}
            data-testid="kyc-all"
            onChange={(event) =>
              void navigate({ to: '.', search: { all: event.currentTarget.checked ? 'true' : undefined } })
            }
          />
          <Button size="xs" disabled={!first} onClick={() => first && go(first)} data-testid="kyc-begin">
            {t('kyc.begin')}
          </Button>
        </>
      }
    />
  );
}
