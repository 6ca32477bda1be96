/** What the rules come to for one request, rule by rule. */
import { Alert, Anchor, Group, Stack, Table, Text, Title } from '@mantine/core';
import { Link, useSearch } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { useAnswer } from '../kit/answer';
import { Nothing, Status } from '../kit/show';
import { Question } from './question';

export default function FirewallExplain() {
  const { t } = useTranslation();
  const may = useMay();
  const { resource, userId, ip, countryCode } = useSearch({ strict: false }) as Record<string, string>;
  const answer = useAnswer('/admin/system/waf/explain', resource ? { resource, userId, ip, countryCode } : undefined);
  const x = answer.data;
  const rules = [...(x?.rules ?? [])].sort((a, b) => rank(a.matched, a.reason) - rank(b.matched, b.reason));
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          {t('firewallWhy.title')}
        </Title>
        {may('GET /admin/system/waf/rules') && (
          <Anchor component={Link} to={'/firewall' as string} size="sm">
            {t('firewall.title')}
          </Anchor>
        )}
      </Group>
      <Text size="sm" c="dimmed">
        {t('firewallWhy.lead')}
      </Text>
      <Question
        fields={[
          { name: 'resource', title: 'explain.resource', required: true },
          { name: 'userId', title: 'explain.user' },
          { name: 'ip', title: 'explain.ip' },
          { name: 'countryCode', title: 'explain.country' },
        ]}
      />
      <Problem of={answer.error} />
      {x && (
        <>
          <Alert color={x.decision === 'ALLOW' ? 'green' : 'red'} data-testid="decision">
            <Group gap="xs">
              <Status of={x.decision} />
              <Text size="sm">
                {x.decidedBy ? t('firewallWhy.by', { label: x.decidedBy }) : t('firewallWhy.byNone')}
              </Text>
            </Group>
          </Alert>
          {rules.length === 0 ? (
            <Text size="sm">{t('firewallWhy.noRules')}</Text>
          ) : (
            <Table.ScrollContainer
              minWidth={600}
              scrollAreaProps={{
                viewportProps: { tabIndex: 0, role: 'region', 'aria-label': t('firewallWhy.reason') },
              }}
            >
              <Table striped>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{t('firewall.label')}</Table.Th>
                    <Table.Th>{t('firewall.type')}</Table.Th>
                    <Table.Th>{t('firewallWhy.matched')}</Table.Th>
                    <Table.Th>{t('firewallWhy.reason')}</Table.Th>
                    <Table.Th>{t('firewallWhy.used')}</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {rules.map((r) => (
                    <Table.Tr key={r.label} data-testid="verdict">
                      <Table.Td>
                        <bdi>{r.label}</bdi>
                      </Table.Td>
                      <Table.Td>{t(`firewall.type.${r.type}`)}</Table.Td>
                      <Table.Td>
                        <Status of={r.matched} />
                      </Table.Td>
                      <Table.Td>{t(`firewallWhy.${r.reason}`)}</Table.Td>
                      <Table.Td>
                        {r.used === null ? (
                          <Nothing />
                        ) : (
                          <bdi dir="ltr">{t('firewallWhy.count', { used: r.used, limit: r.limit })}</bdi>
                        )}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          )}
        </>
      )}
    </Stack>
  );
}

/** What decided stands first, then what would have played a part. */
function rank(matched: boolean, reason: string): number {
  return reason === 'DECIDES' || reason === 'OVER_LIMIT' ? 0 : matched ? 1 : 2;
}
