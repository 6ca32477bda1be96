/** The accounts that were active in the last months, the latest first. */
import { Stack } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { List, type FilterOf } from '../kit/list';
import { bulk, userColumns } from './users';

const path = '/admin/get-active-users';

const filters: FilterOf<typeof path>[] = [
  { name: 'pastMonths', title: 'users.months', kind: ['1', '3', '6', '12', '24'] },
];

export default function Active() {
  const navigate = useNavigate();
  return (
    <Stack>
      <List
        path={path}
        title="users.active"
        columns={userColumns}
        filters={filters}
        id={(u) => u.userId}
        open={(u) => void navigate({ to: `/users/${u.userId}` })}
        bulk={bulk}
      />
    </Stack>
  );
}
