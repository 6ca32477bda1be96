/** Home: the pending work that the user may do, and an overview of the accounts. Without any, the own account. */
import { Anchor, Card, Group, Progress, SimpleGrid, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import { Link, Navigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { deferred } from './deferred';
import { Problem } from './problem';
import { allScreens, offeredScreens } from './screen';
import { useMay } from './session';
import { JobBar } from '../kit/job';
import { useRead } from '../kit/read';
import { Totals } from './totals';
import { useWaiting, type Waiting } from './waiting';

const Chart = deferred(() => import('../kit/chart'), <Skeleton height={200} />);

export default function Home() {
  const { t } = useTranslation();
  const may = useMay();
  const shown = useWaiting();
  const first = offeredScreens(may)[0];
  if (first?.group === 'own') return <Navigate to={first.path} replace />;
  return (
    <Stack>
      <Title order={1} size="h3">
        {t('home.title')}
      </Title>
      {shown.length === 0 && <Text>{t('home.nothing')}</Text>}
      <SimpleGrid cols={{ base: 2, md: 3, xl: 5 }}>
        {shown.map((w) => (
          <Pending key={w.title} of={w} />
        ))}
      </SimpleGrid>
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

/** The number of pending entries of a queue. */
function Pending({ of: w }: { of: Waiting }) {
  const { t } = useTranslation();
  const may = useMay();
  const opens = allScreens().some((s) => s.path === w.to && s.needs.every(may));
  return (
    <Card withBorder data-testid={`waits-${w.title}`}>
      <Text size="sm" c="dimmed">
        {t(w.title)}
      </Text>
      <Group justify="space-between" align="end">
        <Text fz={28} fw={600} dir="ltr">
          {`${w.count}${w.more ? '+' : ''}`}
        </Text>
        {opens && (
          <Anchor
            component={Link}
            to={w.to}
            search={(w.search ?? w.query) as never}
            aria-label={`${t('open')}: ${t(w.title)}`}
          >
            {t('open')}
          </Anchor>
        )}
      </Group>
    </Card>
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
  search?: Record<string, string>;
}

/** Parts of a whole as bars, each with its number. */
function Shares({ title, of, error }: { title: string; of?: Share[]; error: unknown }) {
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
                  <Anchor component={Link} to={'/users'} search={search as never}>
                    <bdi>{name}</bdi>
                  </Anchor>
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
  const { data, error } = useRead('/admin/get-count-of-users-by-level');
  return (
    <Shares
      title="home.levels"
      error={error}
      of={data?.map((l) => ({ name: `${l.levelId} · ${l.levelLabel}`, total: l.total }))}
    />
  );
}
