/** The background jobs: progress, failures, and a button to cancel. */
import type { TFunction } from 'i18next';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { Far, JobName, jobText, jobTypes, JobStatus, JobType, runs, seconds, Starter, Took } from '../kit/job';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Id, Time } from '../kit/show';

const path = '/admin/jobs';
type Job = Row<typeof path>;

const statuses = ['queued', 'running', 'paused', 'cancelled', 'done', 'failed'] as const;

const columns: Column<Job>[] = [
  { key: 'type', title: 'jobs.job', show: (j) => <JobName of={j} />, text: jobText },
  { key: 'status', title: 'jobs.status', show: (j) => <JobStatus of={j} /> },
  { key: 'done', title: 'jobs.progress', show: (j) => <Far of={j} />, text: (j) => `${j.done}/${j.total}` },
  { key: 'failed', title: 'jobs.failed', end: true, hidden: true },
  { key: 'unknown', title: 'jobs.unknown', end: true, hidden: true },
  { key: 'skipped', title: 'jobs.skipped', end: true, hidden: true },
  { key: 'actorId', title: 'jobs.by', show: (j) => <Starter of={j} /> },
  { key: 'startedAt', title: 'jobs.started', show: (j) => <Time at={j.startedAt} /> },
  { key: 'updatedAt', title: 'jobs.took', show: (j) => <Took of={j} />, text: seconds },
  { key: 'finishedAt', title: 'jobs.finished', show: (j) => <Time at={j.finishedAt} />, hidden: true },
  { key: 'error', title: 'jobs.error', hidden: true },
  { key: 'id', title: 'jobs.id', show: (j) => <Id of={j.id} short />, hidden: true },
];

const filters = (t: TFunction): FilterOf<typeof path>[] => [
  { name: 'type', title: 'jobs.type', kind: jobTypes.map((value) => ({ value, label: t(`job.${value}`) })) },
  { name: 'status', title: 'jobs.status', kind: statuses },
];

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
                <JobType of={j.type} /> {j.subject} <Time at={j.startedAt} />
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
