/** The nodes of the cluster: members, the share that each owns, and moved actors. */
import { Alert, Badge, Card, Progress, Stack, Table, Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from './api';
import { Problem } from './problem';
import { useRead } from '../kit/read';
import { Fact, Facts } from '../kit/record';
import { Id, plain, Time } from '../kit/show';
import { Wide } from '../kit/wide';

export default function Cluster() {
  const { t } = useTranslation();
  const cluster = useRead('/admin/cluster', undefined, { every: 5000 });
  const c = cluster.data?.data;
  const silent = c?.members.filter((m) => m.silentMs).length ?? 0;
  const sound = c?.belongs && !silent && !c.members.some((m) => m.leaving);
  const health = silent ? 'cluster.someSilent' : 'cluster.someLeave';
  return (
    <Stack>
      <Title order={1} size="h3">
        {t('cluster.title')}
      </Title>
      <Problem of={cluster.error} />
      {c && (
        <>
          <Alert color={sound ? 'green' : 'yellow'} data-testid="cluster-health">
            {t(sound ? 'cluster.sound' : c.belongs ? health : 'cluster.alone', {
              count: silent || c.members.length,
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
                    <Table.Th>{t('cluster.limits')}</Table.Th>
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
                        <Badge
                          color={m.leaving || m.silentMs ? 'yellow' : 'green'}
                          variant="light"
                          tt="none"
                          miw="max-content"
                        >
                          {t(m.silentMs ? 'cluster.silent' : m.leaving ? 'cluster.leaving' : 'cluster.serving', {
                            seconds: tenths(m.silentMs ?? 0),
                          })}
                        </Badge>
                      </Table.Td>
                      <Table.Td data-label={t('cluster.share')}>
                        <Share of={m.share} name={m.id} />
                      </Table.Td>
                      <Table.Td data-label={t('cluster.limits')} data-testid="limits">
                        {m.limits ? <Limits of={m.limits} /> : plain(null)}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Wide>
          </Card>
          {c.pauses.length > 0 && (
            <Card withBorder>
              <Title order={2} size="h5">
                {t('cluster.pauses')}
              </Title>
              <Table data-testid="pauses">
                <Table.Tbody>
                  {c.pauses.map((p) => (
                    <Table.Tr key={p.began + p.member}>
                      <Table.Th scope="row">
                        <NodeId of={p.member} short />
                      </Table.Th>
                      <Table.Td>
                        <Time at={p.began} exact />
                      </Table.Td>
                      <Table.Td>
                        {t(p.gone ? 'cluster.silentAndGone' : 'cluster.silent', { seconds: tenths(p.lastedMs) })}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Card>
          )}
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

/** Milliseconds as seconds, for a text. */
const tenths = (ms: number) => (ms / 1000).toFixed(1);

/** The id and the address of a node that is not in a cluster. */
const alone = 'nonhost';

/** A node by its id; a node without a cluster by a word. */
function NodeId({ of, short }: { of: string; short?: boolean }) {
  const { t } = useTranslation();
  return of === alone ? t('cluster.local') : <Id of={of} short={short} />;
}

/** The part of a node in the rate limits: counters, shards, and what it decided for a silent member. */
function Limits({ of }: { of: Schemas['ClusterLimits'] }) {
  const { t } = useTranslation();
  return (
    <>
      <Text size="sm">{t('cluster.keys', { ...of })}</Text>
      <Text size="xs" c={of.unsettled ? 'yellow.8' : 'dimmed'}>
        {t('cluster.shards', { ...of })}
      </Text>
      {of.asReplica > 0 && (
        <Text size="xs" c="dimmed">
          {t('cluster.asReplica', { ...of })}
        </Text>
      )}
    </>
  );
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
