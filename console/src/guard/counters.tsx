/** The fullest counters of a rate limit on all nodes. A counter is reset with a reason. */
import { Alert, Group, Progress, Stack, Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { Person } from '../kit/person';
import { useRead } from '../kit/read';
import { Coded, shortOf, ulid } from '../kit/show';
import { Write } from '../kit/write';

const path = '/admin/system/waf/counters';
const reset = '/admin/system/waf/counters/reset';
const most = 20;

export function Counters({ label }: { label: string }) {
  const { t, i18n } = useTranslation();
  const may = useMay()(`GET ${path}`);
  const read = useRead(path, { label, least: '0', limit: most }, { every: 5000, enabled: may });
  if (!may) return null;
  const { items = [], silent = [] } = read.data ?? {};
  return (
    <Stack gap="xs" data-testid="counters">
      <Title order={3} size="h5">
        {t('counters.title')}
      </Title>
      <Problem of={read.error} />
      {silent.length > 0 && (
        <Alert color="yellow" data-testid="silent">
          {t('counters.silent', { nodes: new Intl.ListFormat(i18n.language).format(silent.map(shortOf)) })}
        </Alert>
      )}
      {read.data && items.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('counters.none')}
        </Text>
      )}
      {items.map((c) => (
        <Counter key={c.entity} of={c} />
      ))}
      {items.length === most && (
        <Text size="xs" c="dimmed">
          {t('counters.first', { count: most })}
        </Text>
      )}
    </Stack>
  );
}

function Counter({ of: c }: { of: Schemas['FirewallCounter'] }) {
  const { t, i18n } = useTranslation();
  const country = c.country && new Intl.DisplayNames(i18n.language, { type: 'region' }).of(c.country);
  const share = Math.min(100, (c.used / c.limit) * 100);
  return (
    <div data-testid="counter">
      <Group justify="space-between" gap="xs">
        <Text size="sm" component="div">
          {ulid.test(c.entity) ? <Person id={c.entity} bare /> : <Coded of={c.entity} />}
          {country && (
            <Text span size="sm" c="dimmed">
              {' '}
              · {country}
            </Text>
          )}
        </Text>
        <Group gap="xs">
          <Text size="sm" c={c.refused ? 'red' : undefined} className="money">
            <bdi dir="ltr">{`${c.used} / ${c.limit}`}</bdi>
          </Text>
          <Write
            method="post"
            path={reset}
            title="counters.reset"
            touches={[path]}
            fixed={{ label: c.label, entity: c.entity }}
            fields={[{ name: 'reason', title: 'counters.reason', kind: 'area', required: true }]}
            before={() => <Text size="sm">{t('counters.lead', { entity: c.entity })}</Text>}
          />
        </Group>
      </Group>
      <Progress value={share} color={c.refused ? 'red' : share >= 80 ? 'yellow' : 'blue'} aria-label={c.entity} />
      <Text size="xs" c="dimmed">
        {c.refused
          ? t('counters.refused', { seconds: Math.ceil(c.retryMs / 1000) })
          : t('counters.empty', { seconds: Math.ceil(c.resetMs / 1000) })}
        {c.phase === 'acting' && ` · ${t('counters.acting')}`}
      </Text>
    </div>
  );
}
