/** The balances of users: totals by currency, as the service adds them up, and one user's balances by network. */
import { useAddress } from '../app/address';
import { Stack } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Money } from '../kit/show';
import { Currency, Owner, Small, sums } from './parts';

const networks = '/admin/get-member-asset-balances';

const columns: Column<Row<typeof sums>>[] = [
  { key: 'currencyCode', title: 'money.currency', show: (s) => <Currency of={s.currencyCode} /> },
  { key: 'balance', title: 'money.balance', card: 'top', end: true, show: (s) => <Money amount={s.balance} /> },
  { key: 'available', title: 'money.available', end: true, show: (s) => <Money amount={s.available} /> },
  { key: 'locked', title: 'money.locked', end: true, show: (s) => <Money amount={s.locked} /> },
  { key: 'currencyId', title: 'money.currencyId', hidden: true },
];

const filters: FilterOf<typeof sums>[] = [
  { name: 'userId', title: 'money.user' },
  { name: 'code', title: 'money.currency' },
];

const byNetwork: Column<Row<typeof networks>>[] = [
  { key: 'currencyCode', title: 'money.currency' },
  { key: 'currencyName', title: 'money.name' },
  { key: 'networkCode', title: 'money.network' },
  { key: 'balance', title: 'money.balance', end: true, show: (b) => <Money amount={b.balance} /> },
  { key: 'available', title: 'money.available', end: true, show: (b) => <Money amount={b.available} /> },
  { key: 'locked', title: 'money.locked', end: true, show: (b) => <Money amount={b.locked} /> },
];

const days = '/balance/get-daily-position';

export default function Balances() {
  const [{ userId }] = useAddress();
  const may = useMay();
  const navigate = useNavigate();
  const open = (s: Row<typeof sums>) => void navigate({ to: '/positions', search: { symbol: s.currencyCode } });
  return (
    <Stack>
      <List
        path={sums}
        title="money.balances"
        columns={columns}
        filters={filters}
        size={undefined}
        id={(s) => s.currencyCode}
        open={!userId && may(`GET ${days}`) ? open : undefined}
        above={userId && <Owner userId={userId} here="/balances" />}
      />
      {userId && <Networks userId={userId} />}
    </Stack>
  );
}

function Networks({ userId }: { userId: string }) {
  const may = useMay();
  const read = useRead(networks, { userId }, { enabled: may(`GET ${networks}`) });
  if (!may(`GET ${networks}`)) return null;
  return (
    <>
      <Problem of={read.error} />
      <Small
        title="money.networks"
        rows={read.data}
        columns={byNetwork}
        id={(b) => `${b.currencyCode} ${b.networkCode}`}
      />
    </>
  );
}
