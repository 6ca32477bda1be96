/** One job: its progress and its result. */
import { Stack, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useId } from './address';
import { JobBar, JobType } from '../kit/job';
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
        {t('jobs.job')}
      </Title>
      <JobBar id={id} />
      {job.data && (
        <>
          <Facts>
            <Fact title="jobs.id">
              <Id of={id} />
            </Fact>
            <Fact title="jobs.type">
              <JobType of={job.data.type} />
            </Fact>
            <Fact title="jobs.started">
              <Time at={job.data.startedAt} />
            </Fact>
            <Fact title="jobs.finished">
              <Time at={job.data.finishedAt} />
            </Fact>
          </Facts>
          <Copies of={job.data} />
        </>
      )}
    </Stack>
  );
}
