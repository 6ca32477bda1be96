/** The file of one account: who it is, and its logins. */
import { Alert, Stack, Tabs, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { read } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { Fact, Facts } from '../kit/record';
import { Id, Status, Time, plain } from '../kit/show';

const logins = '/admin/login-history';

const loginColumns: Column<Row<typeof logins>>[] = [
  { key: 'createdAt', title: 'login.at', show: (l) => <Time at={l.createdAt} /> },
  { key: 'success', title: 'login.success', show: (l) => <Status of={l.success} /> },
  { key: 'ipaddress', title: 'audit.ip', show: (l) => <bdi dir="ltr">{l.ipaddress}</bdi> },
  { key: 'countryName', title: 'login.country' },
  { key: 'deviceBrand', title: 'login.brand' },
  { key: 'deviceModel', title: 'login.model' },
];

export default function User() {
  const { t } = useTranslation();
  const may = useMay();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const user = useQuery({
    queryKey: ['/admin/list-users', id],
    queryFn: async () => (await read('/admin/list-users', { params: { query: { userId: id } } })).data?.[0] ?? null,
  });
  if (user.error) return <Problem of={user.error} />;
  if (user.data === null) return <Alert color="gray">{t('user.none')}</Alert>;
  return (
    <Stack>
      <Title order={1} size="h3"><bdi>{user.data?.fullName ?? '…'}</bdi></Title>
      <Facts>
        <Fact title="user.id"><Id of={id} /></Fact>
        <Fact title="users.email">{plain(user.data?.email)}</Fact>
        <Fact title="users.phone"><bdi dir="ltr">{user.data?.phoneNumber}</bdi></Fact>
        <Fact title="users.status"><Status of={user.data?.status} /></Fact>
        <Fact title="users.kyc"><Status of={user.data?.kycConfirm} /></Fact>
      </Facts>
      <Tabs defaultValue="logins" keepMounted={false}>
        <Tabs.List>
          {may(`GET ${logins}`) && <Tabs.Tab value="logins">{t('user.logins')}</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="logins" pt="md">
          <List path={logins} title="user.logins" columns={loginColumns} fixed={{ userId: id, limit: 100 }} size={undefined}
            id={(l) => l.id} />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}
