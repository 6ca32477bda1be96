/** The accounts with AML findings. One or several are cleared after a review. */
import { Group, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useMay } from '../../app/session';
import { Bulk } from '../../kit/bulk';
import { List, type Column, type Row } from '../../kit/list';
import { Named } from '../../kit/person';
import { Id, Status, Time } from '../../kit/show';

const path = '/admin/user/get-users-without-aml-confirmed';
type Found = Row<typeof path>;

const columns: Column<Found>[] = [
  { key: 'fullName', title: 'users.fullName', show: (u) => <Named name={u.fullName} contact={u.email} /> },
  { key: 'amlStatus', title: 'aml.status', card: 'top', show: (u) => <Status of={u.amlStatus} /> },
  { key: 'createdAt', title: 'aml.since', show: (u) => <Time at={u.createdAt} /> },
  { key: 'userId', title: 'user.id', show: (u) => <Id of={u.userId} short />, hidden: true },
];

function Name({ of }: { of: Found }) {
  return (
    <Group gap="xs">
      <Named name={of.fullName} contact={of.email} />
      <Status of={of.amlStatus} />
    </Group>
  );
}

export default function Aml() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  return (
    <List
      path={path}
      title="aml.title"
      columns={columns}
      id={(u) => u.userId}
      empty="aml.empty"
      open={may('GET /admin/list-users') ? (u) => void navigate({ to: `/users/${u.userId}` }) : undefined}
      bulk={
        may('POST /admin/user/update-user-aml-confirmed')
          ? (rows, clear) => (
              <Bulk
                method="post"
                path="/admin/user/update-user-aml-confirmed"
                title="aml.confirm"
                rows={rows}
                name={(u) => <Name of={u} />}
                body={(u) => ({ userId: u.userId })}
                touches={[path]}
                onDone={clear}
              >
                <Text size="sm">{t('aml.lead')}</Text>
              </Bulk>
            )
          : undefined
      }
    />
  );
}
