/** The contracts. They are created at the command line; their sections are edited here. */
import { useNavigate } from '@tanstack/react-router';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Status, Time } from '../kit/show';

const path = '/admin/get-contracts';
type Contract = Row<typeof path>;

const columns: Column<Contract>[] = [
  { key: 'name', title: 'contract.name' },
  { key: 'code', title: 'contract.code', show: (c) => <bdi dir="ltr">{c.code}</bdi> },
  { key: 'version', title: 'contract.version' },
  { key: 'isActive', title: 'contract.active', show: (c) => <Status of={c.isActive} /> },
  { key: 'createdAt', title: 'contract.created', show: (c) => <Time at={c.createdAt} /> },
];

const filters: FilterOf<typeof path>[] = [{ name: 'code', title: 'contract.code' }];

export default function Contracts() {
  const navigate = useNavigate();
  const may = useMay();
  return (
    <List
      path={path}
      title="contract.title"
      columns={columns}
      filters={filters}
      size={undefined}
      id={(c) => String(c.id)}
      empty="contract.none"
      {...(may('GET /admin/get-contract-details')
        ? { open: (c: Contract) => void navigate({ to: `/contracts/${c.id}` }) }
        : {})}
    />
  );
}
