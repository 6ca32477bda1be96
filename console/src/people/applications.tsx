/** The applications of companies. */
import { Stack } from '@mantine/core';
import { useState } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { Button } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Whole } from '../kit/record';
import { Coded, Id, Status, Time } from '../kit/show';
import { InsertMember } from './member';

const path = '/admin/get-corporate-application';
type Application = Row<typeof path>;
const columns: Column<Application>[] = [
  { key: 'companyName', title: 'corporate.company' },
  { key: 'taxNumber', title: 'users.tax', card: 'start', show: (a) => <Coded of={a.taxNumber} /> },
  { key: 'status', title: 'users.status', card: 'top', show: (a) => <Status of={a.status} /> },
  { key: 'createdAt', title: 'corporate.since', card: 'end', show: (a) => <Time at={a.createdAt} /> },
  { key: 'id', title: 'user.id', show: (a) => <Id of={a.id} />, hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'companyName', title: 'corporate.company' },
  { name: 'taxNumber', title: 'users.tax' },
  { name: 'status', title: 'users.status', kind: ['PENDING', 'APPROVED', 'REJECTED'] },
  { name: 'id', title: 'user.id' },
];

export default function Applications() {
  const [open, setOpen] = useState<Application>();
  return (
    <Stack>
      <List path={path} title="corporate.title" columns={columns} filters={filters} id={(a) => a.id} open={setOpen} />
      <Whole of={open} title="corporate.application" onClose={() => setOpen(undefined)}>
        {open && <Next of={open} />}
      </Whole>
    </Stack>
  );
}

/** The next steps for an application: add a user of the company, or open the accounts with its tax number. */
function Next({ of }: { of: Application }) {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  return (
    <>
      <InsertMember initial={{ status: 'active', role: 'owner' }} />
      {may('GET /admin/list-users') && (
        <Button
          size="xs"
          variant="default"
          w="fit-content"
          onClick={() => void navigate({ to: '/users', search: { taxNumber: of.taxNumber } })}
        >
          {t('corporate.accounts')}
        </Button>
      )}
    </>
  );
}
