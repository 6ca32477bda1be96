/** The nodes of the cluster: members, the share that each owns, and moved actors. */
import { Alert, Badge, Card, Progress, Stack, Table, Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Problem } from './problem';
import { useRead } from '../kit/read';
import { Fact, Facts } from '../kit/record';
import { Id, plain } from '../kit/show';
import { Wide } from '../kit/wide';

export default function Cluster() {
  const { t } = useTranslation();
  const cluster = useRead('/admin/cluster', undefined, { every: 5000 });
  const c = cluster.data?.data;
  const sound = c?.belongs && !c.members.some((m) => m.leaving);
  return (
    <Stack>
      <Title order={1} size="h3">
        {t('cluster.title')}
      </Title>
      <Problem of={cluster.error} />
      {c && (
        <>
          <Alert color={sound ? 'green' : 'yellow'} data-testid="cluster-health">
            {t(sound ? 'cluster.sound' : c.belongs ? 'cluster.someLeave' : 'cluster.alone', {
              count: c.members.length,
            })}
          </Alert>
          <Facts>
            <Fact title="cluster.node">
              <NodeId of={c.node} />
            </Fact>
            <Fact title="cluster.handedOver">{c.handedOver}</Fact>
            <Fact title="cluster.moved">{c.moved}</Fact>
            <Fact title="cluster.lapses">{c.lapses}</Fact>
          </Facts>
          <Card withBorder>
            <Title order={2} size="h5">
              {t('cluster.members')}
            </Title>
            <Wide label={t('cluster.members')} minWidth={0}>
              <Table data-testid="members" className="stacks">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{t('cluster.member')}</Table.Th>
                    <Table.Th>{t('cluster.address')}</Table.Th>
                    <Table.Th>{t('cluster.version')}</Table.Th>
                    <Table.Th>{t('cluster.state')}</Table.Th>
                    <Table.Th>{t('cluster.share')}</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {c.members.map((m) => (
                    <Table.Tr key={m.id}>
                      <Table.Td data-label={t('cluster.member')}>
                        <NodeId of={m.id} short />
                      </Table.Td>
                      <Table.Td data-label={t('cluster.address')}>
                        {m.address === alone ? plain(null) : <bdi dir="ltr">{m.address}</bdi>}
                      </Table.Td>
                      <Table.Td data-label={t('cluster.version')}>
                        <bdi dir="ltr">{plain(m.version)}</bdi>
                      </Table.Td>
                      <Table.Td data-label={t('cluster.state')}>
                        <Badge color={m.leaving ? 'yellow' : 'green'} variant="light" tt="none" miw="max-content">
                          {t(m.leaving ? 'cluster.leaving' : 'cluster.serving')}
                        </Badge>
                      </Table.Td>
                      <Table.Td data-label={t('cluster.share')}>
                        <Share of={m.share} name={m.id} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Wide>
          </Card>
          <Card withBorder>
            <Title order={2} size="h5">
              {t('cluster.activations')}
            </Title>
            {Object.keys(c.activations).length === 0 && (
              <Text size="sm" c="dimmed">
                {t('cluster.noActivations')}
              </Text>
            )}
            <Table>
              <Table.Tbody>
                {Object.entries(c.activations).map(([kind, count]) => (
                  <Table.Tr key={kind}>
                    <Table.Th scope="row">
                      <bdi title={kind}>{t(`actor.${kind}`, { defaultValue: kind })}</bdi>
                    </Table.Th>
                    <Table.Td data-end className="money">
                      {String(count)}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Card>
        </>
      )}
    </Stack>
  );
}

/** The id and the address of a node that is not in a cluster. */
const alone = 'nonhost';

/** A node by its id; a node without a cluster by a word. */
function NodeId({ of, short }: { of: string; short?: boolean }) {
  const { t } = useTranslation();
  return of === alone ? t('cluster.local') : <Id of={of} short={short} />;
}

/** The share of a node in percent. A fraction comes as text (app/api.ts), and this value is only displayed. */
function Share({ of, name }: { of: number | string; name: string }) {
  const percent = Math.round((JSON.parse(String(of)) as number) * 100);
  return (
    <>
      <bdi dir="ltr">{percent} %</bdi>
      <Progress value={percent} aria-label={name} />
    </>
  );
}
