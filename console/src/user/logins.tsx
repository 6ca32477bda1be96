/** The logins from one address, over all accounts. */
import { Stack } from '@mantine/core';
import { useState } from 'react';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Whole } from '../kit/record';
import { Status, Time } from '../kit/show';
import { Address, lists, Neighbours, Person } from './parts';

const path = '/admin/login-history-v2';
export type Login = Row<typeof path>;

export const loginColumns: Column<Login>[] = [
  { key: 'createdAt', title: 'login.at', show: (l) => <Time at={l.createdAt} /> },
  { key: 'success', title: 'login.success', show: (l) => <Status of={l.success} /> },
  { key: 'ipaddress', title: 'audit.ip', show: (l) => <Address of={l.ipaddress} /> },
  { key: 'countryName', title: 'login.country' },
  { key: 'deviceBrand', title: 'login.brand' },
  { key: 'deviceModel', title: 'login.model' },
  { key: 'deviceDesc', title: 'users.client', hidden: true },
];

const columns: Column<Login>[] = [
  { key: 'userId', title: 'audit.user', show: (l) => <Person id={l.userId} /> },
  ...loginColumns,
];

const filters: FilterOf<typeof path>[] = [{ name: 'ipaddress', title: 'audit.ip' }];

export default function Logins() {
  const [open, setOpen] = useState<Login>();
  return (
    <Stack>
      <Neighbours of={lists} title="users.lists" />
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
      <Whole of={open} title="story.login" onClose={() => setOpen(undefined)} />
    </Stack>
  );
}
