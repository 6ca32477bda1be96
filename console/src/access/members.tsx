/** The assignments of roles to accounts. */
import { Group } from '@mantine/core';
import { Bulk } from '../kit/bulk';
import { List, type Column, type Row } from '../kit/list';
import { Person } from '../kit/person';
import { useRead } from '../kit/read';
import { Coded, Time } from '../kit/show';
import { Write } from '../kit/write';

const path = '/admin/user-roles';
type Member = Row<typeof path>;

export function Members() {
  const roles = useRead('/admin/roles');
  const columns: Column<Member>[] = [
    {
      key: 'userId',
      title: 'audit.user',
      show: (m) => <Person id={m.userId} />,
    },
    { key: 'roleCode', title: 'roles.role', show: (m) => <Coded of={m.roleCode} /> },
    { key: 'createdAt', title: 'roles.at', show: (m) => <Time at={m.createdAt} /> },
  ];
  const choices = (roles.data ?? []).filter((r) => r.code !== 'user').map((r) => ({ value: r.code, label: r.name }));
  return (
    <List
      path={path}
      title="roles.members"
      columns={columns}
      id={(m) => `${m.userId} ${m.roleCode}`}
      filters={[
        { name: 'userId', title: 'audit.user' },
        { name: 'roleCode', title: 'roles.role', kind: choices.map((c) => c.value) },
      ]}
      actions={
        <Write
          method="post"
          path={path}
          title="roles.give"
          touches={[path]}
          fields={[
            { name: 'userId', title: 'audit.user', required: true },
            { name: 'roleCode', title: 'roles.role', required: true, kind: choices },
          ]}
        />
      }
      bulk={(rows, clear) => (
        <Bulk
          method="delete"
          path={path}
          title="roles.take"
          rows={rows}
          touches={[path]}
          onDone={clear}
          name={(m) => (
            <Group gap="md">
              <Person id={m.userId} /> <Coded of={m.roleCode} />
            </Group>
          )}
          body={(m) => ({ userId: m.userId, roleCode: m.roleCode })}
        />
      )}
    />
  );
}
