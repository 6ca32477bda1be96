/** A long operation: progress, remaining time, failures, and a button to cancel it. */
import { Alert, Button, Group, List, Progress, Skeleton, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { sentence } from '../app/sentence';
import { useMay } from '../app/session';
import { Person } from './person';
import { useRead } from './read';
import { Id, Status, ulid } from './show';

const over = new Set(['done', 'failed', 'cancelled']);

/** Whether a job still can be cancelled. */
export const runs = ({ status }: { status: string }) => !over.has(status);

/** The kinds of jobs; each has its name in kit.json. */
export const jobTypes = [
  'accounting-integration',
  'add-users',
  'archive-audit',
  'fetch-balances',
  'fetch-rates',
  'send-bulk-sms',
  'send-notification',
  'sum-days',
  'sweep-files',
  'terms-of-service',
  'update-status-transaction',
  'verify-ledger',
] as const;

/** The name of a kind of job. */
export function JobType({ of }: { of: string }) {
  const { t } = useTranslation();
  return <bdi title={of}>{t(`job.${of}`, { defaultValue: of })}</bdi>;
}

export function JobBar({ id }: { id: string }) {
  const { t } = useTranslation();
  const may = useMay();
  const job = useRead('/admin/jobs/{id}', undefined, {
    places: { id },
    every: (j) => !over.has(j?.status ?? '') && 1000,
  });
  const cancel = useAct('post', '/admin/jobs/{id}/cancel', ['/admin/jobs/{id}', '/admin/jobs']);
  const j = job.data;
  if (!j) return job.error ? <Problem of={job.error} /> : <Skeleton height={100} />;
  const known = j.done + j.failed + j.unknown + j.skipped;
  return (
    <Alert color={j.status === 'failed' ? 'red' : 'gray'} data-testid="job">
      <Stack gap="xs">
        <Group justify="space-between">
          <Group gap="xs">
            <Status of={j.status} />
            <Text size="sm">
              <JobType of={j.type} />
            </Text>
            <Id of={j.id} short />
          </Group>
          {!over.has(j.status) && may('POST /admin/jobs/{id}/cancel') && (
            <Button
              size="compact-xs"
              variant="default"
              loading={cancel.busy}
              onClick={() => void cancel.run(undefined, { id })}
            >
              {t('jobs.cancel', { count: 1 })}
            </Button>
          )}
        </Group>
        <Progress
          value={j.total ? (known / j.total) * 100 : 0}
          animated={j.status === 'running'}
          aria-label={t('jobs.progress')}
        />
        <Text size="sm">
          {t('jobs.far', { done: j.done, total: j.total, failed: j.failed, unknown: j.unknown, skipped: j.skipped })}
        </Text>
        {j.error && (
          <Text size="sm" fw={500}>
            <bdi lang="en">{sentence(j.error, 'en')}</bdi>
          </Text>
        )}
        {j.failures && <Failures of={j.failures} />}
        {j.unknown > 0 && over.has(j.status) && (
          <Text size="sm">
            {t('jobs.resend')} <Id of={`castellan jobs resend ${j.id}`} />
          </Text>
        )}
        <Problem of={cancel.problem} />
      </Stack>
      {cancel.view}
    </Alert>
  );
}

/** A failed item: the account, or the id of another item. */
const Failed = ({ of }: { of: string }) => (ulid.test(of) ? <Person id={of} bare /> : <Id of={of} short />);

/** The reasons for failures, and the first failed items of each. */
function Failures({ of }: { of: Schemas['JobFailure'][] }) {
  const { t } = useTranslation();
  return (
    <List size="sm" data-testid="failures">
      {of.map((f) => (
        <List.Item key={f.reason + f.text}>
          <bdi dir="ltr">{f.count}</bdi> × <bdi title={f.reason}>{f.text || t('jobs.other')}</bdi>
          <Group gap="xs" className="sentence">
            {f.first.map((id) => (
              <Failed key={id} of={id} />
            ))}
          </Group>
        </List.Item>
      ))}
    </List>
  );
}
