/** The background jobs: progress, failures, and a button to cancel. */
import type { TFunction } from 'i18next';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { jobColumns, jobTypes, JobType, runs } from '../kit/job';
import { List, type FilterOf } from '../kit/list';
import { Time } from '../kit/show';

const path = '/admin/jobs';

const statuses = ['queued', 'running', 'paused', 'cancelled', 'done', 'failed'] as const;

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
      columns={jobColumns}
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
