/** The accounts. */
import { useNavigate } from '@tanstack/react-router';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Status } from '../kit/show';

const path = '/admin/list-users';
type User = Row<typeof path>;

const columns: Column<User>[] = [
  { key: 'fullName', title: 'users.fullName' },
  { key: 'email', title: 'users.email', show: (u) => <bdi dir="ltr">{u.email}</bdi> },
  { key: 'phoneNumber', title: 'users.phone', show: (u) => <bdi dir="ltr">{u.phoneNumber}</bdi> },
  { key: 'status', title: 'users.status', show: (u) => <Status of={u.status} /> },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'fullName', title: 'users.fullName' },
  { name: 'email', title: 'users.email' },
  { name: 'phoneNumber', title: 'users.phone' },
  { name: 'kycConfirm', title: 'users.kyc', kind: 'flag' },
  { name: 'type', title: 'users.type', kind: ['bireysel', 'kurumsal'] },
];

export default function Users() {
  const navigate = useNavigate();
  return <List path={path} title="users.title" columns={columns} filters={filters} fixed={{ isSortedByDate: true }}
    id={(u) => u.userId} open={(u) => navigate({ to: `/users/${u.userId}` as string })} />;
}
