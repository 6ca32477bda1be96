/** The accounts by registration date, with the number per day. */
import { Card, Skeleton, Stack, Title } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useTexts } from '../app/address';
import { deferred } from '../app/deferred';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Time } from '../kit/show';
import { bulk, userColumns } from './users';

const Chart = deferred(() => import('../kit/chart'), <Skeleton height={200} />);
const path = '/admin/get-users-by-register-date';
const counts = '/admin/get-user-counts-by-register-date';
const dayMs = 86_400_000;

const columns: Column<Row<typeof path>>[] = [
  { key: 'createdAt', title: 'users.since', card: 'end', show: (u) => <Time at={u.createdAt} /> },
  ...(userColumns as Column<Row<typeof path>>[]),
];

const filters: FilterOf<typeof path>[] = [
  { name: 'beginDate', title: 'list.from', kind: 'date' },
  { name: 'endDate', title: 'list.to', kind: 'date' },
];

/** A day of UTC, as 2026-11-22. */
const day = (at: number) => new Date(at).toISOString().slice(0, 10);

export default function Registered() {
  const navigate = useNavigate();
  const may = useMay();
  const search = useTexts();
  const [now] = useState(() => Date.now());
  const range = { beginDate: search.beginDate ?? day(now - 29 * dayMs), endDate: search.endDate ?? day(now) };
  return (
    <Stack>
      <List
        path={path}
        title="users.registered"
        columns={columns}
        filters={filters}
        fixed={range}
        id={(u) => u.userId}
        open={(u) => void navigate({ to: `/users/${u.userId}` })}
        bulk={bulk}
        above={may(`GET ${counts}`) && <Days {...range} />}
      />
    </Stack>
  );
}

/** The registrations of each day of a range. The service leaves out days without any. */
function Days({ beginDate, endDate }: { beginDate: string; endDate: string }) {
  const { t } = useTranslation();
  const read = useRead(counts, { beginDate, endDate });
  const { times, series } = useMemo(() => {
    const known = new Map((read.data ?? []).map((d) => [d.description, d.customerCount]));
    const days: number[] = [];
    for (let at = Date.parse(beginDate); at <= Date.parse(endDate) && days.length < 3660; at += dayMs) days.push(at);
    return {
      times: days.map((at) => at / 1000),
      series: [{ name: t('users.registered'), values: days.map((at) => known.get(day(at)) ?? 0) }],
    };
  }, [read.data, beginDate, endDate, t]);
  return (
    <Card withBorder>
      <Title order={2} size="h5">
        {t('users.perDay')}
      </Title>
      <Problem of={read.error} />
      {read.data && <Chart title={t('users.perDay')} times={times} series={series} bars={times.length < 100} />}
    </Card>
  );
}
