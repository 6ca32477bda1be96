/** The current rates or those of a past time, and the rate of any pair. */
import { Button, Group, Paper, Stack, Text, TextInput, Title } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useTexts } from '../app/address';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Money, Time } from '../kit/show';

const path = '/admin/get-last-rates-by-date';
type Rate = Row<typeof path>;

const columns: Column<Rate>[] = [
  { key: 'base', title: 'rate.base', show: (r) => <bdi dir="ltr">{r.base}</bdi> },
  { key: 'quote', title: 'rate.quote', show: (r) => <bdi dir="ltr">{r.quote}</bdi> },
  {
    key: 'rate',
    end: true,
    title: 'rate.rate',
    show: (r) => <Money amount={r.rate} />,
  },
  { key: 'date', title: 'rate.since', show: (r) => <Time at={r.date} /> },
];

const filters: FilterOf<typeof path>[] = [{ name: 'date', title: 'rate.date', kind: 'date' }];

// The service subtracts two hours from the date (D-CUR-08). For the current rates the request adds two hours.
const shift = 2 * 3600 * 1000;

export default function Rates() {
  const { t } = useTranslation();
  const may = useMay();
  const [now] = useState(() => new Date(Date.now() + shift).toISOString());
  const { date } = useTexts();
  return (
    <Stack>
      <List
        path={path}
        title="rate.title"
        columns={columns}
        filters={filters}
        fixed={{ date: now }}
        size={undefined}
        id={(r) => `${r.base} ${r.quote}`}
      />
      {date && (
        <Text size="sm" c="dimmed">
          {t('rate.moved')}
        </Text>
      )}
      {may('GET /rates/get-currency-rates') && <Pair />}
    </Stack>
  );
}

function Pair() {
  const { t } = useTranslation();
  const [typed, setTyped] = useState({ base: 'USD', quote: 'TRY' });
  const [asked, setAsked] = useState<{ base: string; quote: string }>();
  const rate = useRead('/rates/get-currency-rates', asked, { enabled: !!asked });
  return (
    <Paper withBorder p="md">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setAsked({ ...typed });
        }}
      >
        <Stack>
          <Title order={2} size="h4">
            {t('rate.pair')}
          </Title>
          <Group align="end">
            {(['base', 'quote'] as const).map((name) => (
              <TextInput
                key={name}
                label={t(`rate.${name}`)}
                dir="ltr"
                w={120}
                value={typed[name]}
                data-testid={`rate-${name}`}
                onChange={(event) => {
                  const { value } = event.currentTarget;
                  setTyped((old) => ({ ...old, [name]: value }));
                }}
              />
            ))}
            <Button type="submit" variant="default" loading={rate.isFetching} data-testid="rate-ask">
              {t('rate.ask')}
            </Button>
          </Group>
          <Problem of={rate.error} />
          {rate.data && (
            <Text data-testid="rate-answer">
              <bdi dir="ltr">
                <Money amount={1} unit={rate.data.base} /> = <Money amount={rate.data.rate} unit={rate.data.quote} />
              </bdi>
            </Text>
          )}
        </Stack>
      </form>
    </Paper>
  );
}
