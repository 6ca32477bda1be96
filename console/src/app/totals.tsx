/**
 * The total balance of a provider's accounts, by the latest readings. The service lists no providers: the provider is
 * the one that the user opened last, and without one the card is not shown.
 */
import { Card, Group, Table, Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Problem } from './problem';
import { allScreens } from './screen';
import { useMay } from './session';
import { AnchorLink } from './frame/link';
import { useNow } from '../kit/now';
import { useRead } from '../kit/read';
import { Money } from '../kit/show';

/** The provider that the user opened last, in the storage of the browser. */
export const remembered = 'castellan.provider';
const slot = 300_000;

export function Totals() {
  const { t } = useTranslation();
  const may = useMay();
  const provider = localStorage.getItem(remembered) ?? '';
  // The previous slot: the readings of the current one may still be incomplete.
  const datetime5min = useNow(slot) - slot;
  const { data, error } = useRead(
    '/process/get-provider-balances-total',
    { provider, datetime5min },
    { enabled: provider !== '' },
  );
  const totals = Array.isArray(data) ? data : data ? [data] : [];
  const page = allScreens().find((s) => s.path === '/providers' && s.needs.every(may));
  if (!provider) return null;
  return (
    <Card withBorder data-testid="totals">
      <Group justify="space-between" align="start">
        <Title order={2} size="h5">
          {t('home.providers')}
        </Title>
        {page && (
          <AnchorLink to="/providers" search={{ provider }}>
            {t('open')}
          </AnchorLink>
        )}
      </Group>
      <Text size="sm" c="dimmed">
        <bdi dir="ltr">{provider}</bdi>
      </Text>
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
