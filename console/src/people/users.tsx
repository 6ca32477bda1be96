/** The accounts. */
import { Stack } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { looks, national } from '../app/search/palette';
import type { Find } from '../kit/filter';
import { List, type Column, type FilterOf } from '../kit/list';
import { Named } from '../kit/person';
import { Id, Status } from '../kit/show';
import { BulkLevel, Notify, BulkStatus, type User } from './bulk';
import { Standing, useStatuses } from './parts';

const path = '/admin/list-users';

export const userColumns: Column<User>[] = [
  { key: 'userId', title: 'user.id', show: (u) => <Id of={u.userId} short />, hidden: true },
  {
    key: 'fullName',
    title: 'users.fullName',
    card: 'head',
    show: (u) => <Named name={u.fullName} />,
  },
  { key: 'email', title: 'users.email', card: 'start', show: (u) => <bdi dir="ltr">{u.email}</bdi> },
  { key: 'phoneNumber', title: 'users.phone', card: 'none', show: (u) => <bdi dir="ltr">{u.phoneNumber}</bdi> },
  { key: 'status', title: 'users.status', card: 'top', show: (u) => <Standing of={u.status} /> },
  { key: 'kycConfirm', title: 'users.kyc', card: 'none', show: (u) => <Status of={u.kycConfirm} /> },
];

/**
 * The intended email address: a Turkish keyboard writes İ and ı for i, and the service refuses both. In names the
 * service treats all four letters as i.
 */
const cleanMail = (text: string) => text.replaceAll(/[İı]/g, 'i');

/** The search field of the list: the form of the text decides the filter. */
const find: Find = {
  hint: 'users.find',
  names: ['fullName', 'email', 'phoneNumber', 'userId'],
  read: (text) => {
    const mail = /<([^<>\s]+@[^<>\s]+)>/.exec(text)?.[1] ?? text; // "Ayşe <ayse@example.com>", pasted from a mail
    if (looks.id.test(text)) return { userId: text.toUpperCase() };
    if (looks.mail.test(mail)) return { email: cleanMail(mail) };
    return looks.phone.test(text) ? { phoneNumber: national(text) } : { fullName: text };
  },
};

/** The statuses of every installation, for callers who may not read its own ones. */
const common = ['active', 'passive', 'blocked', 'closed'];

/** The actions for selected accounts. */
export const bulk = (users: User[], clear: () => void) => (
  <>
    <BulkStatus users={users} onDone={clear} />
    <BulkLevel users={users} onDone={clear} />
    <Notify users={users} />
  </>
);

export default function Users() {
  const navigate = useNavigate();
  const statuses = useStatuses();
  const filters: FilterOf<typeof path>[] = [
    { name: 'fullName', title: 'users.fullName' },
    { name: 'email', title: 'users.email', clean: cleanMail, hint: 'users.whole' },
    { name: 'phoneNumber', title: 'users.phone', clean: national, hint: 'users.whole' },
    { name: 'userId', title: 'user.id' },
    { name: 'identityNumber', title: 'users.identity' },
    { name: 'taxNumber', title: 'users.tax' },
    { name: 'birthDate', title: 'users.birth', kind: 'date' },
    { name: 'status', title: 'users.status', kind: statuses.length ? statuses : common },
    { name: 'kycConfirm', title: 'users.kyc', kind: 'flag' },
    { name: 'type', title: 'users.type', kind: ['bireysel', 'kurumsal'] },
  ];
  return (
    <Stack>
      <List
        path={path}
        title="users.title"
        columns={userColumns}
        filters={filters}
        find={find}
        fixed={{ isSortedByDate: true }}
        id={(u) => u.userId}
        open={(u) => void navigate({ to: `/users/${u.userId}` })}
        bulk={bulk}
      />
    </Stack>
  );
}
