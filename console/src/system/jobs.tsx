/** The background jobs: how far each is, what failed, and the way to stop one. */
import { Button, Progress } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Id, Status, Time } from '../kit/show';

const path = '/admin/jobs';
type Job = Row<typeof path>;

const statuses = ['queued', 'running', 'paused', 'cancelled', 'done', 'failed'] as const;

const columns: Column<Job>[] = [
  { key: 'id', title: 'jobs.id', show: (j) => <Id of={j.id} short /> },
  { key: 'type', title: 'jobs.type' },
  { key: 'status', title: 'jobs.status', show: (j) => <Status of={j.status} /> },
  { key: 'done', title: 'jobs.done', show: (j) => <Far job={j} /> },
  { key: 'failed', title: 'jobs.failed' },
  { key: 'unknown', title: 'jobs.unknown' },
  { key: 'skipped', title: 'jobs.skipped', hidden: true },
  { key: 'startedAt', title: 'jobs.started', show: (j) => <Time at={j.startedAt} /> },
  { key: 'finishedAt', title: 'jobs.finished', show: (j) => <Time at={j.finishedAt} /> },
  { key: 'error', title: 'jobs.error' },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'type', title: 'jobs.type' },
  { name: 'status', title: 'jobs.status', kind: statuses },
];

function Far({ job }: { job: Job }) {
  const { t } = useTranslation();
  const part = job.total ? Math.min(100, (job.done / job.total) * 100) : 0;
  return (
    <>
      <bdi dir="ltr">{job.done} / {job.total}</bdi>
      {job.status === 'running' && <Progress value={part} size="sm" animated aria-label={t('jobs.done')} />}
    </>
  );
}

export default function Jobs() {
  const { t } = useTranslation();
  const may = useMay();
  const cancel = useAct('post', '/admin/jobs/{id}/cancel', [path]);
  return (
    <>
      <Problem of={cancel.problem} />
      {cancel.view}
      <List path={path} title="jobs.title" columns={columns} filters={filters} id={(j) => j.id}
        bulk={may('POST /admin/jobs/{id}/cancel') ? (jobs, clear) => (
          <Button size="xs" color="red" loading={cancel.busy} onClick={async () => {
            for (const { id } of jobs) await cancel.run(undefined as never, { id });
            clear();
          }}>{t('jobs.cancel')}</Button>
        ) : undefined} />
    </>
  );
}
