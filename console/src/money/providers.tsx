/** Balances at providers: each account by its latest reading, the total, and one asset over the last 24 hours. */
import { Stack, Text } from '@mantine/core';
import { useQueries, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../app/address';
import { ask, type Schemas } from '../app/api';
import { deferred } from '../app/deferred';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { remembered } from '../app/totals';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Money, Time } from '../kit/show';
import { forTheEye, Small } from './parts';
import { useFocus } from './statement';

const Chart = deferred(() => import('../kit/chart'));

const path = '/process/get-provider-balances';
const total = '/process/get-provider-balances-total';
const readings = '/process/get-provider-balances-of-asset';

type Balance = Row<typeof path>;
type Total = Schemas['ProviderTotal'];

const columns: Column<Balance>[] = [
  { key: 'accountname', title: 'money.account' },
  {
    key: 'assetObject',
    title: 'money.currency',
    show: (b) => b.assetObject.asset,
    text: (b) => b.assetObject.asset,
  },
];
const listed: Column<Balance>[] = [
  ...columns,
  ...(['free', 'locked'] as const).map((name): Column<Balance> => ({
    key: name as 'assetObject',
    title: `money.${name}`,
    end: true,
    show: (b) => <Money amount={b.assetObject[name]} />,
    text: (b) => b.assetObject[name],
  })),
];

const totalColumns: Column<Total>[] = [
  { key: 'asset', title: 'money.currency' },
  { key: 'total', title: 'money.total', end: true, show: (s) => <Money amount={s.total} /> },
  { key: 'free', title: 'money.free', end: true, show: (s) => <Money amount={s.free} /> },
  { key: 'locked', title: 'money.locked', end: true, show: (s) => <Money amount={s.locked} /> },
  { key: 'datetime5min', title: 'money.at', show: (s) => <Time at={s.datetime5min} /> },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'provider', title: 'money.provider' },
  { name: 'account', title: 'money.account' },
];

export default function Providers() {
  const may = useMay();
  const [{ provider, asset }, go] = useAddress();
  useFocus('provider', !provider);
  useEffect(() => {
    if (provider) localStorage.setItem(remembered, provider);
  }, [provider]);
  return (
    <Stack>
      <List
        path={path}
        title="money.providers"
        columns={listed}
        filters={filters}
        needs={['provider']}
        size={undefined}
        id={(b) => `${b.accountname} ${b.assetObject.asset}`}
        open={(b) => go({ asset: b.assetObject.asset, of: b.accountname })}
      />
      {provider && may(`GET ${total}`) && <Totals key={provider} provider={provider} asset={asset} />}
      {provider && asset && may(`GET ${readings}`) && <Readings provider={provider} asset={asset} />}
    </Stack>
  );
}

const slot = 300_000; // a provider is read every five minutes
const hour = 3_600_000;

/** The totals of each instant, and the first failure. */
const together = (all: UseQueryResult<Total | Total[]>[]) => ({
  read: all.map(({ data }) => (Array.isArray(data) ? data : data ? [data] : [])),
  error: all.find((one) => one.error)?.error,
});

/**
 * The totals of each of the last 24 hours, and the newest. The readings carry no time (section 4.9), so the chart
 * requests the totals of an instant: 25 small requests, once.
 */
function Totals({ provider, asset }: { provider: string; asset?: string }) {
  const { t } = useTranslation();
  const [now] = useState(() => Date.now());
  const at = useMemo(() => {
    const last = now - (now % slot) - slot;
    const full = last - (last % hour);
    return [...new Set([...Array.from({ length: 25 }, (_, n) => full - (24 - n) * hour), last])];
  }, [now]);
  const { read, error } = useQueries({
    queries: at.map((datetime5min) => ({
      queryKey: [total, provider, datetime5min],
      staleTime: Infinity,
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        ask<Total | Total[]>(total, { query: { provider, datetime5min } }, signal),
    })),
    combine: together,
  });
  const newest = [...read].reverse().find((one) => one.length > 0) ?? [];
  const drawn = useMemo(() => {
    const of = (n: number) => read[n]?.find((one) => one.asset === asset);
    return {
      times: at.map((ms) => ms / 1000),
      series: (['total', 'free', 'locked'] as const).map((key) => ({
        name: t(`money.${key}`),
        values: at.map((_, n) => {
          const one = of(n);
          return one ? forTheEye(one[key]) : null;
        }),
      })),
    };
  }, [asset, read, at, t]);
  return (
    <>
      <Problem of={error} />
      <Small title="money.totals" rows={newest} columns={totalColumns} id={(s) => s.asset} />
      {asset && newest.length > 0 && (
        <Stack gap="xs">
          <Text fw={600}>{t('money.day24', { asset })}</Text>
          <Chart title={t('money.day24', { asset })} {...drawn} />
        </Stack>
      )}
    </>
  );
}

/** Every reading of the selected account and asset of the last 24 hours, newest first. */
function Readings({ provider, asset }: { provider: string; asset: string }) {
  const [{ of = 'AllAccounts' }] = useAddress();
  const [from] = useState(() => Date.now() - 24 * hour);
  const read = useRead(readings, { provider, asset, account: of, from, limit: 100 });
  return (
    <>
      <Problem of={read.error} />
      <Small
        title="money.readings"
        rows={read.data}
        id={(b) => b.accountname}
        columns={[columns[0]!, ...listed.slice(columns.length)]}
      />
    </>
  );
}
