/** The agreements as one account sees them, and publishing a new version, which a job mails. */
import { Alert } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { JobBar } from '../kit/job';
import { useMay, useSession } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Whole } from '../kit/record';
import { Coded, Status, Time } from '../kit/show';
import { Write } from '../kit/write';
import { said, useJob } from '../kit/sheets';

const path = '/admin/get-agreements';
const publish = '/admin/terms-of-service';
type Agreement = Row<typeof path>;

const columns: Column<Agreement>[] = [
  { key: 'name', title: 'agreement.name' },
  { key: 'version', title: 'agreement.version', show: (a) => <Coded of={a.version} /> },
  { key: 'description', title: 'agreement.description' },
  { key: 'isAcceptRequired', title: 'agreement.required', show: (a) => <Status of={a.isAcceptRequired} /> },
  { key: 'createdAt', title: 'agreement.created', show: (a) => <Time at={a.createdAt} /> },
  { key: 'acceptedAt', title: 'agreement.accepted', show: (a) => <Time at={a.acceptedAt} /> },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'userId', title: 'agreement.account' },
  { name: 'version', title: 'agreement.version' },
];

export default function Agreements() {
  const { t } = useTranslation();
  const may = useMay();
  const { userId } = useSession();
  const [open, setOpen] = useState<Agreement>();
  const [job, follow] = useJob();
  return (
    <>
      <List
        path={path}
        title="agreement.title"
        columns={columns}
        filters={filters}
        fixed={{ userId }}
        size={undefined}
        id={(a) => String(a.id)}
        open={setOpen}
        above={job && may('GET /admin/jobs/{id}') && <JobBar id={job} />}
        actions={
          <Write
            method="post"
            path={publish}
            title="agreement.publish"
            touches={[path]}
            button={{ variant: 'filled' }}
            fixed={{ userId }}
            fields={[
              { name: 'name', title: 'agreement.name', required: true, help: 'agreement.nameHelp' },
              { name: 'description', title: 'agreement.description', kind: 'area', required: true },
              { name: 'version', title: 'agreement.version', help: 'agreement.versionHelp' },
              {
                name: 'base64String',
                title: 'agreement.file',
                kind: 'file',
                required: true,
                accept: '.pdf,.doc,.docx,.txt',
              },
              { name: 'isAcceptRequired', title: 'agreement.required', kind: 'flag' },
              { name: 'sendEmail', title: 'agreement.mail', kind: 'flag' },
            ]}
            before={(values) => values.sendEmail === true && <Alert color="yellow">{t('agreement.mailHelp')}</Alert>}
            onDone={(answer) => follow(said<{ id: string | null }>(answer).id)}
          />
        }
      />
      <Whole of={open} title="agreement.one" onClose={() => setOpen(undefined)} />
    </>
  );
}
