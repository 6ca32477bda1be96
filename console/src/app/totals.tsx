/**
 * The total balance of a provider's accounts, by the latest readings. The service lists no providers, so the user
 * types the name.
 */
import { Anchor, Card, Group, Table, Text, TextInput, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from './problem';
import { allScreens } from './screen';
import { useMay } from './session';
import { useNow } from '../kit/now';
import { useRead } from '../kit/read';
import { Money } from '../kit/show';

const remembered = 'castellan.provider';
const slot = 300_000;

export function Totals() {
  const { t } = useTranslation();
  const may = useMay();
  const [provider, setProvider] = useState(() => localStorage.getItem(remembered) ?? '');
  // The previous slot: the readings of the current one may still be incomplete.
  const datetime5min = useNow(slot) - slot;
  const { data, error } = useRead(
    '/process/get-provider-balances-total',
    { provider, datetime5min },
    { enabled: provider !== '' },
  );
  const totals = Array.isArray(data) ? data : data ? [data] : [];
  const page = allScreens().find((s) => s.path === '/providers' && s.needs.every(may));
  const choose = (name: string) => {
    localStorage.setItem(remembered, name);
    setProvider(name);
  };
  return (
    <Card withBorder data-testid="totals">
      <Group justify="space-between" align="start">
        <Title order={2} size="h5">
          {t('home.providers')}
        </Title>
        {page && (
          <Anchor component={Link} to={'/providers'} search={(provider ? { provider } : {}) as never}>
            {t('open')}
          </Anchor>
        )}
      </Group>
      <TextInput
        size="xs"
        w={200}
        label={t('home.provider')}
        defaultValue={provider}
        dir="ltr"
        data-testid="provider"
        onBlur={(event) => choose(event.currentTarget.value.trim())}
        onKeyDown={(event) => {
          if (event.key === 'Enter') choose(event.currentTarget.value.trim());
        }}
      />
      <Problem of={error} />
      {data && totals.length === 0 && (
        <Text size="sm" c="dimmed" mt="xs">
          {t('home.unread')}
        </Text>
      )}
      <Table withRowBorders={false}>
        <Table.Tbody>
          {totals.map((one) => (
            <Table.Tr key={one.asset}>
              <Table.Th scope="row" fw={400}>
                <bdi dir="ltr">{one.asset}</bdi>
              </Table.Th>
              <Table.Td ta="end">
                <Money amount={one.total} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}
