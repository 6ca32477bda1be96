/**
 * Deposits and withdrawals per day, over the accounts of all users. For one currency the days are also drawn as a
 * chart.
 */
import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../app/address';
import { readPage } from '../app/api';
import { deferred } from '../app/deferred';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Day, Money } from '../kit/show';
import { forTheEye } from './parts';

const Chart = deferred(() => import('../kit/chart'));

const path = '/balance/get-daily-position';
type Position = Row<typeof path>;

const columns: Column<Position>[] = [
  { key: 'date', title: 'money.day', show: (d) => <Day of={d.date} />, text: (d) => d.date.slice(0, 10) },
  { key: 'symbol', title: 'money.currency', card: 'top' },
  { key: 'deposit', title: 'money.deposit', end: true, show: (d) => <Money amount={d.deposit} /> },
  { key: 'withdrawal', title: 'money.out', end: true, show: (d) => <Money amount={d.withdrawal} /> },
  { key: 'net', title: 'money.net', end: true, show: (d) => <Money amount={d.net} /> },
  { key: 'balance', title: 'money.balance', end: true, show: (d) => <Money amount={d.balance} /> },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'symbol', title: 'money.currency' },
  { name: 'startDate', title: 'list.from', kind: 'date' },
  { name: 'endDate', title: 'list.to', kind: 'date' },
];

export default function Positions() {
  const [{ symbol }] = useAddress();
  return (
    <Stack>
      <List
        path={path}
        title="money.positions"
        columns={columns}
        filters={filters}
        id={(d) => `${d.date} ${d.symbol}`}
      />
      {symbol && <Drawn />}
    </Stack>
  );
}

/** The days of the list. The query is the same, so there is one request. */
function Drawn() {
  const { t } = useTranslation();
  const [search] = useAddress();
  const asked: Record<string, unknown> = { limit: 100 };
  for (const name of ['symbol', 'startDate', 'endDate', 'cursor']) if (search[name]) asked[name] = search[name];
  const page = useQuery({ queryKey: [path, asked], queryFn: ({ signal }) => readPage<Position>(path, asked, signal) });
  const drawn = useMemo(() => {
    const days = [...(page.data?.rows ?? [])].reverse();
    return {
      times: days.map((d) => Date.parse(d.date) / 1000),
      series: (
        [
          ['balance', 'money.balance'],
          ['deposit', 'money.deposit'],
          ['withdrawal', 'money.out'],
        ] as const
      ).map(([key, name]) => ({ name: t(name), values: days.map((d) => forTheEye(d[key])) })),
    };
  }, [page.data, t]);
  return <Chart title={t('money.positions')} {...drawn} />;
}
