/** One change for several accounts. */
import { Alert, Button, Group, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { openScreen } from '../app/screen';
import { useMay } from '../app/session';
import { Bulk } from '../kit/bulk';
import { beginDraft } from '../kit/draft';
import type { Row } from '../kit/list';
import { Standing, useLevels, useStatuses } from './parts';

export type User = Row<'/admin/list-users'>;

interface Chosen {
  users: User[];
  onDone: () => void;
}

const named = (u: User, to?: string) => (
  <Group gap="xs">
    {u.fullName && <bdi>{u.fullName}</bdi>}
    <bdi dir="ltr">{u.email || u.userId}</bdi>
    <Standing of={u.status} />
    {to && to !== u.status && (
      <>
        → <Standing of={to} />
      </>
    )}
  </Group>
);
const touches = ['/admin/list-users', '/admin/get-active-users', '/admin/get-users-by-register-date'];

export function BulkStatus({ users, onDone }: Chosen) {
  const { t } = useTranslation();
  const statuses = useStatuses();
  const [chosen, setChosen] = useState<string | null>(null);
  const [reason, setReason] = useState('');
  const status = chosen ?? ''; // no default: active would reopen closed accounts
  return (
    <Bulk
      method="post"
      path="/admin/user/close-user-authentication"
      title="user.status"
      rows={users}
      name={(u) => named(u, status)}
      ready={status !== ''}
      touches={touches}
      onDone={onDone}
      body={(u) => ({ userId: u.userId, status, ...(reason ? { closedUserReason: reason } : {}) })}
    >
      {statuses.length ? (
        <Select
          label={t('users.status')}
          data={statuses}
          value={chosen}
          onChange={setChosen}
          allowDeselect={false}
          required
          data-testid="bulk-status"
        />
      ) : (
        <TextInput label={t('users.status')} value={status} onChange={(e) => setChosen(e.currentTarget.value)} />
      )}
      <TextInput label={t('user.reason')} value={reason} onChange={(e) => setReason(e.currentTarget.value)} />
      {status && <Alert color="yellow">{t(status === 'active' ? 'user.status.opens' : 'user.status.effect')}</Alert>}
    </Bulk>
  );
}

export function BulkLevel({ users, onDone }: Chosen) {
  const { t } = useTranslation();
  const levels = useLevels();
  const [chosen, setChosen] = useState<string | null>(null);
  const level = chosen ?? '';
  if (levels.length === 0) return null;
  return (
    <Bulk
      method="post"
      path="/level/update-level"
      title="user.level"
      rows={users}
      name={(u) => named(u)}
      ready={level !== ''}
      touches={touches}
      onDone={onDone}
      body={(u) => ({ userId: u.userId, levelId: level })}
    >
      <Select
        label={t('user.level.name')}
        data={levels}
        value={chosen}
        onChange={setChosen}
        allowDeselect={false}
        required
      />
    </Bulk>
  );
}

/** Opens the form of a notification with the selected accounts. */
export function Notify({ users }: { users: User[] }) {
  const { t } = useTranslation();
  const may = useMay();
  if (!may('POST /admin/send-notification')) return null;
  return (
    <Button
      size="xs"
      variant="default"
      data-testid="bulk-notify"
      onClick={() => {
        beginDraft('mailing.notify', { memberId: users.map((u) => u.userId) });
        openScreen('/mailings?form=mailing.notify');
      }}
    >
      {t('mailing.notify')}
    </Button>
  );
}
