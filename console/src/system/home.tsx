/** Home: the work that waits for the caller, as far as he may do it, and the accounts at a glance. */
import { Anchor, Card, Group, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { read, readPage, type Gets } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';

/** Work is what waits in a list: its page, and the question that finds it. */
const waiting: { title: string; path: Gets; query: Record<string, unknown>; to: string }[] = [
  { title: 'home.jobs', path: '/admin/jobs', query: { status: 'running' }, to: '/jobs' },
];
const most = 100;

export default function Home() {
  const { t } = useTranslation();
  const may = useMay();
  return (
    <Stack>
      <Title order={1} size="h3">{t('home.title')}</Title>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
        {waiting.filter((w) => may(`GET ${w.path}`)).map((w) => <Waiting key={w.title} {...w} />)}
      </SimpleGrid>
      {may('GET /user/total-count-by-status') && <Statuses />}
    </Stack>
  );
}

function Waiting({ title, path, query, to }: (typeof waiting)[number]) {
  const { t } = useTranslation();
  const page = useQuery({
    queryKey: [path, 'waiting', query],
    queryFn: ({ signal }) => readPage<unknown>(path, { ...query, limit: most }, signal),
  });
  const n = page.data?.rows.length ?? 0;
  return (
    <Card withBorder>
      <Text size="sm" c="dimmed">{t(title)}</Text>
      <Group justify="space-between">
        <Text fz={28} fw={700}>{page.data ? `${n}${page.data.next ? '+' : ''}` : '–'}</Text>
        <Anchor component={Link} to={to as string}>{t('open')}</Anchor>
      </Group>
      <Problem of={page.error} />
    </Card>
  );
}

function Statuses() {
  const { t } = useTranslation();
  const path = '/user/total-count-by-status';
  const counts = useQuery({ queryKey: [path], queryFn: async () => (await read(path, {})).data ?? [] });
  return (
    <Card withBorder>
      <Title order={2} size="h5">{t('home.accounts')}</Title>
      <Problem of={counts.error} />
      <Table>
        <Table.Tbody>
          {Object.entries(counts.data ?? {}).map(([n, one]) => (
            <Table.Tr key={n}>
              {Object.entries(one as object).map(([key, value]) => <Table.Td key={key}><bdi>{String(value)}</bdi></Table.Td>)}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}
