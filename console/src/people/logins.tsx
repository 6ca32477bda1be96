/** The logins from one address, over all accounts. */
import { Alert, Stack } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Person } from '../kit/person';
import { Whole } from '../kit/record';
import { plain, Status, Time } from '../kit/show';
import { Why } from '../kit/why';
import { Address } from './parts';

const path = '/admin/login-history-v2';
export type Login = Row<typeof path>;

export const loginColumns: Column<Login>[] = [
  { key: 'createdAt', title: 'login.at', show: (l) => <Time at={l.createdAt} /> },
  { key: 'success', title: 'audit.outcome', show: (l) => <Outcome of={l} /> },
  { key: 'ipaddress', title: 'audit.ip', show: (l) => <Address of={l.ipaddress} /> },
  { key: 'countryName', title: 'login.country' },
  {
    key: 'deviceBrand',
    title: 'login.brand',
    show: (l) => plain(l.deviceBrand || (l.deviceModel ? '' : l.deviceDesc)),
  },
  { key: 'deviceModel', title: 'login.model' },
  { key: 'deviceDesc', title: 'users.client', hidden: true },
];

function Outcome({ of }: { of: Login }) {
  const { t } = useTranslation();
  return (
    <Status of={of.success ? 'success' : 'refused'} name={t(of.success ? 'story.login' : 'story.login.refused')} />
  );
}

/** The possible reasons for a refused login. The service does not name the reason, so that strangers learn nothing. */
export function Refused({ of }: { of: Login }) {
  const { t } = useTranslation();
  if (of.success) return null;
  return (
    <Alert color="gray" title={t('story.login.refused')} data-testid="refused">
      {t('story.login.why')}
      <Why action="LOGIN" resource="POST /auth/login" userId={of.userId || undefined} ip={of.ipaddress} />
    </Alert>
  );
}

const columns: Column<Login>[] = [
  { key: 'userId', title: 'audit.user', show: (l) => <Person id={l.userId} /> },
  ...loginColumns,
];

const filters: FilterOf<typeof path>[] = [{ name: 'ipaddress', title: 'audit.ip' }];

export default function Logins() {
  const [open, setOpen] = useState<Login>();
  return (
    <Stack>
      <List
        path={path}
        title="users.logins"
        columns={columns}
        filters={filters}
        needs={['ipaddress']}
        size={undefined}
        id={(l) => l.id}
        open={setOpen}
      />
      <Whole of={open} title="story.login" onClose={() => setOpen(undefined)}>
        {open && <Refused of={open} />}
      </Whole>
    </Stack>
  );
}
