/** The background jobs: progress, failures, and a button to cancel. */
import type { TFunction } from 'i18next';
import { Progress } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { jobTypes, JobType, runs } from '../kit/job';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Id, Status, Time } from '../kit/show';

const path = '/admin/jobs';
type Job = Row<typeof path>;

const statuses = ['queued', 'running', 'paused', 'cancelled', 'done', 'failed'] as const;

const columns: Column<Job>[] = [
  { key: 'type', title: 'jobs.type', show: (j) => <JobType of={j.type} /> },
  { key: 'status', title: 'jobs.status', show: (j) => <Status of={j.status} /> },
  { key: 'done', title: 'jobs.done', show: (j) => <Far job={j} /> },
  { key: 'failed', title: 'jobs.failed', end: true },
  { key: 'unknown', title: 'jobs.unknown', end: true },
  { key: 'skipped', title: 'jobs.skipped', hidden: true },
  { key: 'startedAt', title: 'jobs.started', show: (j) => <Time at={j.startedAt} /> },
  { key: 'finishedAt', title: 'jobs.finished', show: (j) => <Time at={j.finishedAt} /> },
  { key: 'error', title: 'jobs.error' },
  { key: 'id', title: 'jobs.id', show: (j) => <Id of={j.id} short />, hidden: true },
];

const filters = (t: TFunction): FilterOf<typeof path>[] => [
  { name: 'type', title: 'jobs.type', kind: jobTypes.map((value) => ({ value, label: t(`job.${value}`) })) },
  { name: 'status', title: 'jobs.status', kind: statuses },
];

function Far({ job }: { job: Job }) {
  const { t } = useTranslation();
  const part = job.total ? Math.min(100, (job.done / job.total) * 100) : 0;
  return (
    <>
      <bdi dir="ltr" className="money">
        {job.done} / {job.total}
      </bdi>
      {job.status === 'running' && <Progress value={part} size="sm" animated aria-label={t('jobs.done')} />}
    </>
  );
}

export default function Jobs() {
  const navigate = useNavigate();
  const { t } = useTranslation();
  return (
    <List
      path={path}
      title="jobs.title"
      columns={columns}
      filters={filters(t)}
      id={(j) => j.id}
      open={(j) => void navigate({ to: `/jobs/${j.id}` })}
      bulk={(jobs, clear) =>
        jobs.some(runs) && (
          <Bulk
            method="post"
            path="/admin/jobs/{id}/cancel"
            title="jobs.cancel"
            rows={jobs.filter(runs)}
            name={(j) => (
              <>
                <JobType of={j.type} /> <Time at={j.startedAt} />
              </>
            )}
            body={() => undefined}
            places={({ id }) => ({ id })}
            touches={[path]}
            onDone={clear}
            button={{ color: 'red' }}
          />
        )
      }
    />
  );
}
