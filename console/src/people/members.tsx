/** The users of companies. */
import { Stack } from '@mantine/core';
import { useState } from 'react';
import { List, type Column, type FilterOf } from '../kit/list';
import { Person } from '../kit/person';
import { Whole } from '../kit/record';
import { Id, Status } from '../kit/show';
import { InsertMember, members, UpdateMember, type Member } from './member';

const columns: Column<Member>[] = [
  { key: 'userId', title: 'audit.user', person: true, show: (m) => <Person id={m.userId} /> },
  { key: 'corporateUserId', title: 'corporate.company', show: (m) => <Id of={m.corporateUserId} short /> },
  { key: 'role', title: 'user.role', show: (m) => <Status of={m.role} /> },
  { key: 'status', title: 'users.status', show: (m) => <Status of={m.status} /> },
  { key: 'email', title: 'users.email', show: (m) => <bdi dir="ltr">{m.email}</bdi> },
  { key: 'id', title: 'user.id', show: (m) => <Id of={m.id} />, hidden: true },
];

const filters: FilterOf<typeof members>[] = [
  { name: 'corporateUserId', title: 'corporate.company' },
  { name: 'userId', title: 'audit.user' },
  { name: 'status', title: 'users.status' },
];

export default function Members() {
  const [open, setOpen] = useState<Member>();
  return (
    <Stack>
      <List
        path={members}
        title="corporate.users"
        columns={columns}
        filters={filters}
        id={(m) => m.id}
        open={setOpen}
        actions={<InsertMember initial={{ status: 'active' }} />}
      />
      <Whole of={open} title="corporate.user" onClose={() => setOpen(undefined)}>
        {open && <UpdateMember of={open} onDone={() => setOpen(undefined)} />}
      </Whole>
    </Stack>
  );
}
