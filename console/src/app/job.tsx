/** One job: its progress and its result. */
import { Stack, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useId } from './address';
import { JobBar, JobType, Starter, Took } from '../kit/job';
import { useRead } from '../kit/read';
import { Fact, Facts, Copies } from '../kit/record';
import { Id, Time } from '../kit/show';

export default function Job() {
  const { t } = useTranslation();
  const id = useId();
  const job = useRead('/admin/jobs/{id}', undefined, { places: { id } });
  return (
    <Stack>
      <Title order={1} size="h3">
        {job.data ? <JobType of={job.data.type} /> : t('jobs.job')}
      </Title>
      <JobBar id={id} />
      {job.data && (
        <>
          <Facts>
            <Fact title="jobs.by">
              <Starter of={job.data} />
            </Fact>
            <Fact title="jobs.started">
              <Time at={job.data.startedAt} />
            </Fact>
            <Fact title="jobs.lastStep">
              <Time at={job.data.updatedAt} />
            </Fact>
            <Fact title="jobs.finished">
              <Time at={job.data.finishedAt} />
            </Fact>
            <Fact title="jobs.took">
              <Took of={job.data} />
            </Fact>
            <Fact title="jobs.id">
              <Id of={id} short />
            </Fact>
          </Facts>
          <Copies of={job.data} />
        </>
      )}
    </Stack>
  );
}
