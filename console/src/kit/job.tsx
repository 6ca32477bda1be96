/** A long operation: progress, remaining time, failures, and a button to cancel it. */
import { Alert, Badge, Button, Group, List, Progress, Skeleton, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { sentence } from '../app/sentence';
import { useMay } from '../app/session';
import type { Column } from './fields';
import { useNow } from './now';
import { Person } from './person';
import { useRead } from './read';
import { Ago, Id, Nothing, spanOf, Status, Time, Titled, ulid } from './show';

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
  'hold-queued',
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

type Job = Schemas['Job'];

/** The kind of a job, and its subject below. */
function JobName({ of }: { of: Job }) {
  return <Titled name={<JobType of={of.type} />} below={of.subject} />;
}

/** The kind and the subject of a job, as text. */
const jobText = (j: Job) => [j.type, j.subject].filter(Boolean).join(': ');

/** The duration of a finished job in seconds, as text. */
const seconds = (j: Job) =>
  j.startedAt && j.finishedAt ? String((Date.parse(j.finishedAt) - Date.parse(j.startedAt)) / 1000) : '';

/** The user who started a job, or the schedule, or the command line. */
export function Starter({ of }: { of: Job }) {
  const { t } = useTranslation();
  if (of.actorId === 'schedule' || of.actorId === 'operator') return t(`jobs.${of.actorId}`);
  return of.actorId ? <Person id={of.actorId} bare /> : <Nothing />;
}

const stuckAfterMs = 10 * 60_000;

/** A running job takes a step every few seconds. */
const useStuck = (of?: Job) => {
  const now = useNow(60_000);
  return of?.status === 'running' && now - Date.parse(of.updatedAt) > stuckAfterMs;
};

/** The status of a job, and a warning for a running job that has taken no step for ten minutes. */
function JobStatus({ of }: { of: Job }) {
  const { t } = useTranslation();
  const stuck = useStuck(of);
  return (
    <Group gap={4} wrap="nowrap">
      <Status of={of.status} />
      {stuck && (
        <Badge color="yellow" variant="light" tt="none" miw="max-content" data-testid="stuck">
          {t('jobs.stuck')}
        </Badge>
      )}
    </Group>
  );
}

/** The items of a job with an outcome. */
const settled = (j: Job) => j.done + j.failed + j.unknown + j.skipped;

const portion = (j: Job) => (j.total ? Math.min(100, (settled(j) / j.total) * 100) : 0);

/** The progress of a job, and below it its failures. */
function Far({ of }: { of: Job }) {
  const { t } = useTranslation();
  const bad = [
    of.failed > 0 && t('jobs.someFailed', { count: of.failed }),
    of.unknown > 0 && t('jobs.someUnknown', { count: of.unknown }),
  ].filter(Boolean);
  if (of.total === 0 && over.has(of.status) && !of.error) return <Nothing />;
  return (
    <div className="far">
      <bdi dir="ltr" className="money">
        {of.done} / {of.total}
      </bdi>
      {!over.has(of.status) && <Progress value={portion(of)} size="sm" aria-label={t('jobs.progress')} />}
      {(bad.length > 0 || of.error) && (
        <Text size="xs" c="var(--mantine-color-error)">
          <bdi>{bad.join(' · ')}</bdi>
          {of.error && (
            <>
              {bad.length > 0 && ' · '}
              <bdi lang="en">{sentence(of.error, 'en')}</bdi>
            </>
          )}
        </Text>
      )}
    </div>
  );
}

/** Milliseconds in the largest fitting unit: 45 sec, 12 min, 3 hr. */
function spell(ms: number, language: string): string {
  const [unit, length] = spanOf(ms) ?? (['second', 1000] as const);
  const format = { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: 0 } as const;
  return new Intl.NumberFormat(language, format).format(Math.max(1, ms / length));
}

/** How long a finished job took. */
export function Took({ of }: { of: Job }) {
  const { i18n } = useTranslation();
  if (!of.startedAt || !of.finishedAt) return <Nothing />;
  return <bdi>{spell(Date.parse(of.finishedAt) - Date.parse(of.startedAt), i18n.language)}</bdi>;
}

/** The remaining time of a running job, by its pace so far; undefined before it is known. */
function remaining(j: Job): number | undefined {
  const known = settled(j);
  if (j.status !== 'running' || !j.startedAt || known === 0 || known >= j.total) return undefined;
  return ((j.total - known) / known) * (Date.parse(j.updatedAt) - Date.parse(j.startedAt));
}

/** The columns of a list of jobs. */
export const jobColumns: Column<Job>[] = [
  { key: 'type', title: 'jobs.job', show: (j) => <JobName of={j} />, text: jobText },
  { key: 'status', title: 'jobs.status', card: 'top', show: (j) => <JobStatus of={j} /> },
  { key: 'done', title: 'jobs.progress', show: (j) => <Far of={j} />, text: (j) => `${j.done}/${j.total}` },
  { key: 'failed', title: 'jobs.failed', end: true, hidden: true },
  { key: 'unknown', title: 'jobs.unknown', end: true, hidden: true },
  { key: 'skipped', title: 'jobs.skipped', end: true, hidden: true },
  { key: 'actorId', title: 'jobs.by', card: 'start', show: (j) => <Starter of={j} /> },
  { key: 'startedAt', title: 'jobs.started', card: 'end', show: (j) => <Time at={j.startedAt} /> },
  { key: 'updatedAt', title: 'jobs.took', card: 'none', show: (j) => <Took of={j} />, text: seconds },
  { key: 'finishedAt', title: 'jobs.finished', show: (j) => <Time at={j.finishedAt} />, hidden: true },
  { key: 'error', title: 'jobs.error', hidden: true },
  { key: 'id', title: 'jobs.id', show: (j) => <Id of={j.id} short />, hidden: true },
];

export function JobBar({ id }: { id: string }) {
  const { t, i18n } = useTranslation();
  const may = useMay();
  const job = useRead('/admin/jobs/{id}', undefined, {
    places: { id },
    every: (j) => !over.has(j?.status ?? '') && 1000,
  });
  const cancel = useAct('post', '/admin/jobs/{id}/cancel', ['/admin/jobs/{id}', '/admin/jobs']);
  const j = job.data;
  const stuck = useStuck(j);
  if (!j) return job.error ? <Problem of={job.error} /> : <Skeleton height={100} />;
  const left = stuck ? undefined : remaining(j);
  return (
    <Alert color={j.status === 'failed' ? 'red' : stuck ? 'yellow' : 'gray'} data-testid="job">
      <Stack gap="xs">
        <Group justify="space-between">
          <Group gap="xs">
            <Status of={j.status} />
            <Text size="sm">
              <JobType of={j.type} />
              {j.subject && (
                <>
                  {' · '}
                  <bdi>{j.subject}</bdi>
                </>
              )}
            </Text>
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
        <Progress value={portion(j)} animated={j.status === 'running' && !stuck} aria-label={t('jobs.progress')} />
        <Text size="sm">
          {t('jobs.far', { done: j.done, total: j.total, failed: j.failed, unknown: j.unknown, skipped: j.skipped })}
          {left !== undefined && ` · ${t('jobs.left', { time: spell(left, i18n.language) })}`}
        </Text>
        {stuck && (
          <Text size="sm" fw={500}>
            {t('jobs.stuckSince')} <Ago at={j.updatedAt} />
          </Text>
        )}
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
