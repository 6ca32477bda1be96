/** Which policy guards an action for somebody, and which methods a challenge would offer. */
import { Alert, Anchor, Group, Stack, Table, Text, Title } from '@mantine/core';
import { Link, useSearch } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { useAnswer } from '../kit/answer';
import { useRead } from '../kit/read';
import { Fact, Facts } from '../kit/record';
import { Id, Status, Time, plain } from '../kit/show';
import { Question } from './question';

export default function MfaExplain() {
  const { t } = useTranslation();
  const may = useMay();
  const { actionCode, userId, ip } = useSearch({ strict: false }) as Record<string, string>;
  const actions = useRead('/admin/system/mfa/actions', undefined, { enabled: may('GET /admin/system/mfa/actions') });
  const answer = useAnswer('/admin/system/mfa/explain', actionCode ? { actionCode, userId, ip } : undefined);
  const x = answer.data;
  const enough = x && x.offered.length >= x.required;
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          {t('mfaWhy.title')}
        </Title>
        {may('GET /admin/system/mfa/policies') && (
          <Anchor component={Link} to={'/mfa' as string} size="sm">
            {t('mfa.title')}
          </Anchor>
        )}
      </Group>
      <Text size="sm" c="dimmed">
        {t('mfaWhy.lead')}
      </Text>
      <Question
        fields={[
          {
            name: 'actionCode',
            title: 'explain.action',
            required: true,
            options: actions.data?.map((a) => a.actionCode) ?? [],
          },
          { name: 'userId', title: 'explain.user' },
          { name: 'ip', title: 'explain.ip' },
        ]}
      />
      <Problem of={answer.error} />
      {x && (
        <>
          <Alert color={enough ? 'green' : 'red'} data-testid="decision">
            {t(enough ? 'mfaWhy.starts' : 'mfaWhy.refused', { required: x.required, offered: x.offered.length })}
          </Alert>
          <Facts>
            <Fact title="mfaWhy.policy">
              {x.policyId === null ? <Text size="sm">{t('mfaWhy.builtIn')}</Text> : <Id of={x.policyId} />}
            </Fact>
            <Fact title="mfaWhy.entity">{plain(x.entityType)}</Fact>
            <Fact title="mfaWhy.offered">{plain(x.offered.join(', '))}</Fact>
            <Fact title="mfaWhy.missing">{plain(x.missing.join(', '))}</Fact>
          </Facts>
          {x.candidates.length > 0 && (
            <Table.ScrollContainer
              minWidth={600}
              scrollAreaProps={{
                viewportProps: { tabIndex: 0, role: 'region', 'aria-label': t('firewallWhy.reason') },
              }}
            >
              <Table striped>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{t('mfa.name')}</Table.Th>
                    <Table.Th>{t('mfaWhy.entity')}</Table.Th>
                    <Table.Th>{t('mfa.expireAt')}</Table.Th>
                    <Table.Th>{t('firewallWhy.reason')}</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {x.candidates.map((c) => (
                    <Table.Tr key={c.policyId} data-testid="verdict">
                      <Table.Td>
                        <bdi>{c.name}</bdi>
                      </Table.Td>
                      <Table.Td>
                        <Status of={c.entityType} /> {c.entityId && <Id of={c.entityId} short />}
                      </Table.Td>
                      <Table.Td>{c.expireAt ? <Time at={c.expireAt} /> : t('firewall.never')}</Table.Td>
                      <Table.Td>{t(`mfaWhy.${c.verdict}`)}</Table.Td>
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
