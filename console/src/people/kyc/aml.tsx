/** The accounts with AML findings. One or several are cleared after a review. */
import { Group, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useMay } from '../../app/session';
import { Bulk } from '../../kit/bulk';
import { List, type Column, type Row } from '../../kit/list';
import { Id, plain, Status, Time } from '../../kit/show';

const path = '/admin/user/get-users-without-aml-confirmed';
type Found = Row<typeof path>;

const columns: Column<Found>[] = [
  { key: 'fullName', title: 'users.fullName', show: (u) => <bdi>{u.fullName}</bdi> },
  { key: 'email', title: 'users.email', show: (u) => (u.email ? <bdi dir="ltr">{u.email}</bdi> : plain(u.email)) },
  { key: 'amlStatus', title: 'aml.status', show: (u) => <Status of={u.amlStatus} /> },
  { key: 'createdAt', title: 'aml.since', show: (u) => <Time at={u.createdAt} /> },
  { key: 'userId', title: 'user.id', show: (u) => <Id of={u.userId} short /> },
];

function Name({ of }: { of: Found }) {
  return (
    <Group gap="xs">
      <bdi>{of.fullName}</bdi>
      <Status of={of.amlStatus} />
      <Id of={of.userId} short />
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
