/** The journal of a period, made and delivered by a job. The same period gives the same job. */
import { Alert, Group, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Id } from '../kit/show';
import { Write } from '../kit/write';
import { JobScreen, said, useJob } from '../kit/sheets';

const path = '/integration/begin-accounting-integration';

export default function Accounting() {
  const { t } = useTranslation();
  const [, follow] = useJob();
  return (
    <JobScreen
      title="accounting.title"
      empty="accounting.none"
      next={{ title: 'accounting.begin', form: 'accounting.begin', needs: `POST ${path}` }}
      kinds={['accounting-integration']}
      actions={
        <Write
          method="post"
          path={path}
          title="accounting.begin"
          touches={['/admin/jobs']}
          button={{ variant: 'filled' }}
          fields={[
            { name: 'startDate', title: 'accounting.start', kind: 'date', required: true },
            { name: 'endDate', title: 'accounting.end', kind: 'date', required: true, help: 'accounting.endHelp' },
            { name: 'invoiceDate', title: 'accounting.invoice', kind: 'date', required: true },
          ]}
          before={() => <Alert color="gray">{t('accounting.lead')}</Alert>}
          onDone={(answer) => follow(said<{ id: string }>(answer).id)}
        />
      }
    >
      {(job) => (
        <Group gap="xs">
          <Text size="sm">{t('accounting.files')}</Text>
          <Id of={`accounting/${job}.csv`} />
          <Id of={`accounting/${job}.json`} />
        </Group>
      )}
    </JobScreen>
  );
}
