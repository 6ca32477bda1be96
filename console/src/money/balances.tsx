/** What users have: totals by currency, as the service adds them up, and one user's by network. */
import { Button, Group, Stack } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Money } from '../kit/show';
import { Small, sums, useAddress } from './parts';

const networks = '/admin/get-member-asset-balances';

const columns: Column<Row<typeof sums>>[] = [
  { key: 'currencyCode', title: 'money.currency' },
  { key: 'balance', title: 'money.balance', show: (s) => <Money amount={s.balance} /> },
  { key: 'available', title: 'money.available', show: (s) => <Money amount={s.available} /> },
  { key: 'locked', title: 'money.locked', show: (s) => <Money amount={s.locked} /> },
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
  { key: 'balance', title: 'money.balance', show: (b) => <Money amount={b.balance} /> },
  { key: 'available', title: 'money.available', show: (b) => <Money amount={b.available} /> },
  { key: 'locked', title: 'money.locked', show: (b) => <Money amount={b.locked} /> },
];

export default function Balances() {
  const [{ userId }] = useAddress();
  return (
    <Stack>
      <List
        path={sums}
        title="money.balances"
        columns={columns}
        filters={filters}
        size={undefined}
        id={(s) => s.currencyCode}
        actions={userId && <Ways userId={userId} />}
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

const ways = [
  { to: '/statement', needs: 'GET /process/get-process-admin', title: 'money.statement' },
  { to: '/blockages', needs: 'GET /blockage/get-blockage-history', title: 'money.blockages' },
  { to: '/adjust', needs: 'POST /admin/transaction/adjust-balance', title: 'money.adjust' },
];

/** From one user's balances to what else there is of that money. */
function Ways({ userId }: { userId: string }) {
  const { t } = useTranslation();
  const may = useMay();
  return (
    <Group gap="xs">
      {ways
        .filter((w) => may(w.needs))
        .map((w) => (
          <Button
            key={w.to}
            component={Link}
            to={`${w.to}?userId=${encodeURIComponent(userId)}` as string}
            size="xs"
            variant="default"
          >
            {t(w.title)}
          </Button>
        ))}
    </Group>
  );
}
