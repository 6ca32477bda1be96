/** Home: the pending work that the user may do, and an overview of the accounts. Without any, the own account. */
import { Card, Group, Progress, SimpleGrid, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import type { Searches } from './address';
import { readPage } from './api';
import { deferred } from './deferred';
import { Problem } from './problem';
import { allScreens, offeredScreens } from './screen';
import { Customers } from './search/customers';
import { useMay } from './session';
import { JobBar } from '../kit/job';
import { AnchorLink, CardLink } from './frame/link';
import { useNow } from '../kit/now';
import { useRead } from '../kit/read';
import { Ago, Money } from '../kit/show';
import { Totals } from './totals';
import { useWaiting, type Waiting } from './waiting';
import { numberedLevel } from '../kit/word';
import type { TextKey } from '../text/key';

const Chart = deferred(() => import('../kit/chart'), <Skeleton height={200} />);

export default function Home() {
  const { t, i18n } = useTranslation();
  const may = useMay();
  const { known, waiting } = useWaiting();
  const open = waiting.filter((w) => w.count > 0);
  const clear = waiting.filter((w) => w.count === 0);
  const first = offeredScreens(may)[0];
  const serves = may('GET /admin/list-users');
  if (first?.group === 'own') return <Navigate to={first.path} replace />;
  return (
    <Stack>
      <Title order={1} size="h3">
        {t('home.title')}
      </Title>
      {open.length > 0 && (
        <SimpleGrid cols={{ base: 1, md: 2, lg: 3 }}>
          {open.map((w) => (
            <Pending key={w.title} of={w} />
          ))}
        </SimpleGrid>
      )}
      {known && (clear.length > 0 || (open.length === 0 && !serves)) && (
        <Text size="sm" c="dimmed" data-testid="caught-up">
          {clear.length > 0
            ? t('home.caughtUp', {
                queues: new Intl.ListFormat(i18n.language, { type: 'conjunction' }).format(
                  clear.map((w) => t(w.title)),
                ),
              })
            : t('home.nothing')}
        </Text>
      )}
      {serves && <Customers />}
      {may('GET /admin/jobs') && may('GET /admin/jobs/{id}') && <Running />}
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        {may('GET /user/last-month-user-count-day-by-day') && <LastMonth />}
        {may('GET /user/total-count-by-status') && <Statuses />}
        {may('GET /admin/get-count-of-users-by-level') && <Levels />}
        {may('GET /process/get-provider-balances-total') && <Totals />}
      </SimpleGrid>
    </Stack>
  );
}

/** The number of entries in a card. */
const entries = 3;

/** A queue with its number, the age of the oldest entry, and its oldest entries. The whole card is the link. */
function Pending({ of: w }: { of: Waiting }) {
  const { t } = useTranslation();
  const may = useMay();
  const opens = allScreens().some((s) => s.path === w.to && s.needs.every(may));
  const { data } = useQuery({
    queryKey: [w.path, 'home', w.query],
    refetchInterval: 60_000,
    queryFn: ({ signal }) =>
      readPage<Record<string, string | null>>(
        w.path,
        { order: 'oldest', ...w.query, limit: w.one ? 6 * entries : entries },
        signal,
      ),
  });
  const now = useNow(60_000);
  const late =
    (!!w.lateMs && !!w.oldestAt && now - Date.parse(w.oldestAt) >= w.lateMs) ||
    !!data?.rows.some((row) => w.late?.(row, now));
  const rows = data?.rows.filter((row, n, all) => !w.one || all.findIndex((r) => r[w.one!] === row[w.one!]) === n);
  const inside = (
    <>
      <Group justify="space-between" align="baseline" wrap="nowrap">
        <Text fw={500}>{t(w.title)}</Text>
        <Text fz={24} fw={600} dir="ltr">
          {`${w.count}${w.more ? '+' : ''}`}
        </Text>
      </Group>
      {w.oldestAt && (
        <Text size="sm" c={late ? 'red' : 'dimmed'} fw={late ? 600 : undefined} data-testid="oldest">
          {t('home.oldest')} <Ago at={w.oldestAt} />
        </Text>
      )}
      <Stack gap={2} mt="xs">
        {!rows && <Skeleton height={60} />}
        {rows?.slice(0, entries).map((row, n) => {
          const { name, amount, unit, at } = w.line(row);
          return (
            <Group key={n} justify="space-between" gap="0 10px" data-testid="first">
              <Text size="sm" style={{ overflowWrap: 'break-word' }}>
                <bdi>{name || t('person.noName')}</bdi>
              </Text>
              <Group gap="sm" wrap="nowrap" fz="sm" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
                {amount && <Money amount={amount} unit={unit} />} {at && <Ago at={at} />}
              </Group>
            </Group>
          );
        })}
      </Stack>
    </>
  );
  const looks = {
    withBorder: true,
    'data-testid': `waits-${w.title}`,
    'data-late': late || undefined,
    style: late ? { borderColor: 'var(--mantine-color-red-filled)' } : undefined,
  };
  if (!opens) return <Card {...looks}>{inside}</Card>;
  return (
    <CardLink {...looks} to={w.to} search={w.search ?? w.query} className="opens">
      {inside}
    </CardLink>
  );
}

/** The running jobs, with a button to cancel each. */
function Running() {
  const { t } = useTranslation();
  const jobs = useRead('/admin/jobs', { status: 'running', limit: 5 }, { every: 10_000 });
  if (!jobs.data?.length) return null;
  return (
    <Stack gap="xs" data-testid="running">
      <Title order={2} size="h5">
        {t('home.jobs')}
      </Title>
      {jobs.data.map((job) => (
        <JobBar key={job.id} id={job.id} />
      ))}
    </Stack>
  );
}

function LastMonth() {
  const { t } = useTranslation();
  const read = useRead('/user/last-month-user-count-day-by-day');
  const { times, series } = useMemo(() => {
    const days = read.data ?? [];
    return {
      times: days.map((d) => Date.parse(d.description) / 1000),
      series: [{ name: t('home.registrations'), values: days.map((d) => d.customerCount) }],
    };
  }, [read.data, t]);
  return (
    <Card withBorder>
      <Title order={2} size="h5">
        {t('home.registrations')}
      </Title>
      <Problem of={read.error} />
      {read.data ? (
        <Chart title={t('home.registrations')} times={times} series={series} bars />
      ) : (
        !read.error && <Skeleton height={200} />
      )}
    </Card>
  );
}

interface Share {
  name: string;
  total: number;
  search?: Searches['/users'];
}

/** Parts of a whole as bars, each with its number. */
function Shares({ title, of, error }: { title: TextKey; of?: Share[]; error: unknown }) {
  const { t } = useTranslation();
  const may = useMay();
  const all = (of ?? []).reduce((sum, one) => sum + one.total, 0);
  return (
    <Card withBorder>
      <Title order={2} size="h5">
        {t(title)}
      </Title>
      <Problem of={error} />
      <Table withRowBorders={false}>
        <Table.Tbody>
          {of?.map(({ name, total, search }) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" fw={400} w="35%">
                {search && may('GET /admin/list-users') ? (
                  <AnchorLink to="/users" search={search}>
                    <bdi>{name}</bdi>
                  </AnchorLink>
                ) : (
                  <bdi>{name}</bdi>
                )}
              </Table.Th>
              <Table.Td>
                <Progress value={all ? (total / all) * 100 : 0} aria-label={name} />
              </Table.Td>
              <Table.Td ta="end" w={80} className="money">
                <bdi dir="ltr">{total}</bdi>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}

function Statuses() {
  const { data, error } = useRead('/user/total-count-by-status');
  return (
    <Shares
      title="home.accounts"
      error={error}
      of={data?.map((s) => ({ name: s.statusName, total: s.total, search: { status: s.statusCode } }))}
    />
  );
}

function Levels() {
  const { t } = useTranslation();
  const { data, error } = useRead('/admin/get-count-of-users-by-level');
  return (
    <Shares title="home.levels" error={error} of={data?.map((l) => ({ name: numberedLevel(l, t), total: l.total }))} />
  );
}
