/** One change for several accounts. */
import { Alert, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { useLevels, useStatuses } from './parts';
import type { User } from './users';

interface Chosen {
  users: User[];
  onDone: () => void;
}

const named = (u: User) => <bdi>{u.fullName || u.email || u.userId}</bdi>;
const touches = ['/admin/list-users', '/admin/get-active-users', '/admin/get-users-by-register-date'];

export function BulkStatus({ users, onDone }: Chosen) {
  const { t } = useTranslation();
  const statuses = useStatuses();
  const [chosen, setChosen] = useState<string | null>(null);
  const [reason, setReason] = useState('');
  const status = chosen ?? statuses[0]?.value ?? '';
  return (
    <Bulk
      method="post"
      path="/admin/user/close-user-authentication"
      title="user.status"
      rows={users}
      name={named}
      touches={touches}
      onDone={onDone}
      body={(u) => ({ userId: u.userId, status, ...(reason ? { closedUserReason: reason } : {}) })}
    >
      {statuses.length ? (
        <Select label={t('users.status')} data={statuses} value={status} onChange={setChosen} allowDeselect={false} />
      ) : (
        <TextInput label={t('users.status')} value={status} onChange={(e) => setChosen(e.currentTarget.value)} />
      )}
      <TextInput label={t('user.reason')} value={reason} onChange={(e) => setReason(e.currentTarget.value)} />
      <Alert color="yellow">{t('user.status.effect')}</Alert>
    </Bulk>
  );
}

export function BulkLevel({ users, onDone }: Chosen) {
  const { t } = useTranslation();
  const levels = useLevels();
  const [chosen, setChosen] = useState<string | null>(null);
  const level = chosen ?? levels[0]?.value ?? '';
  if (levels.length === 0) return null;
  return (
    <Bulk
      method="post"
      path="/level/update-level"
      title="user.level"
      rows={users}
      name={named}
      touches={touches}
      onDone={onDone}
      body={(u) => ({ userId: u.userId, levelId: level })}
    >
      <Select label={t('user.level.name')} data={levels} value={level} onChange={setChosen} allowDeselect={false} />
    </Bulk>
  );
}
