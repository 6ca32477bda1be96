/** One account: its data, its changes, and its lists. */
import { Alert, Anchor, Group, Stack, Tabs, Title } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useId, useTexts } from '../app/address';
import { Problem } from '../app/problem';
import { allScreens } from '../app/screen';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';
import { Copies, Fact, Facts } from '../kit/record';
import { Id, Status, plain } from '../kit/show';
import { Actions } from './actions';
import { Acts, Audit, Documents, Limits, Logins, Mails, Roles } from './tabs';
import { Standing } from './parts';
import { Story } from './story';

interface Tab {
  name: string;
  /** One of these permissions is enough. */
  needs: string[];
  show: (id: string) => ReactNode;
}

const tabs: Tab[] = [
  {
    name: 'story',
    needs: ['GET /admin/audit', 'GET /admin/login-history', 'GET /admin/get-email-change-history'],
    show: (id) => <Story id={id} />,
  },
  { name: 'logins', needs: ['GET /admin/login-history'], show: (id) => <Logins id={id} /> },
  { name: 'documents', needs: ['GET /user/get-documents'], show: (id) => <Documents id={id} /> },
  { name: 'mails', needs: ['GET /admin/get-email-change-history'], show: (id) => <Mails id={id} /> },
  { name: 'limits', needs: ['GET /admin/user/limit-info'], show: (id) => <Limits id={id} /> },
  { name: 'roles', needs: ['GET /admin/user-roles'], show: (id) => <Roles id={id} /> },
  { name: 'audit', needs: ['GET /admin/audit'], show: (id) => <Audit id={id} /> },
  { name: 'acts', needs: ['GET /admin/audit'], show: (id) => <Acts id={id} /> },
];

/** Other screens that can be filtered by one account. */
const beside = ['/kyc/$id', '/balances', '/statement', '/transactions', '/withdrawals', '/blockages', '/adjust'];

export default function User() {
  const { t } = useTranslation();
  const may = useMay();
  const id = useId();
  const { tab } = useTexts();
  const navigate = useNavigate();
  const read = useRead('/admin/list-users', { userId: id });
  const user = read.data?.[0];
  const open = tabs.filter((one) => one.needs.some(may));
  const at = open.find((one) => one.name === tab) ?? open[0];
  if (read.error) return <Problem of={read.error} />;
  if (read.data && !user)
    return (
      <Alert color="gray" title={t('user.title')}>
        {t('user.none')}
      </Alert>
    );
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          <bdi>{user?.fullName || user?.email || id}</bdi>
        </Title>
        <Copies of={user ?? {}} />
      </Group>
      <Facts>
        <Fact title="user.id">
          <Id of={id} />
        </Fact>
        <Fact title="users.email">
          <bdi dir="ltr">{plain(user?.email)}</bdi>
        </Fact>
        <Fact title="users.phone">
          <bdi dir="ltr">{plain(user?.phoneNumber)}</bdi>
        </Fact>
        <Fact title="users.status">
          <Standing of={user?.status} />
        </Fact>
        <Fact title="users.kyc">
          <Status of={user?.kycConfirm} />
        </Fact>
        {may('GET /admin/user/limit-info') && <Level id={id} />}
      </Facts>
      {user && <Actions user={user} />}
      <Beside id={id} />
      {at && (
        <Tabs
          value={at.name}
          keepMounted={false}
          onChange={(to) => void navigate({ to: '.', search: { tab: to ?? undefined } })}
        >
          <Tabs.List>
            {open.map((one) => (
              <Tabs.Tab key={one.name} value={one.name} data-testid={`tab-${one.name}`}>
                {t(`user.tab.${one.name}`)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {open.map((one) => (
            <Tabs.Panel key={one.name} value={one.name} pt="md">
              {one.show(id)}
            </Tabs.Panel>
          ))}
        </Tabs>
      )}
    </Stack>
  );
}

function Level({ id }: { id: string }) {
  const { data } = useRead('/admin/user/limit-info', { userId: id });
  return <Fact title="user.level.name">{plain(data && `${data.levelId} · ${data.levelLabel}`)}</Fact>;
}

function Beside({ id }: { id: string }) {
  const { t } = useTranslation();
  const may = useMay();
  const shown = allScreens().filter((s) => beside.includes(s.path) && s.needs.every(may));
  if (shown.length === 0) return null;
  return (
    <Group component="nav" gap="md" aria-label={t('user.beside')}>
      {shown.map((s) => (
        <Anchor
          key={s.path}
          component={Link}
          size="sm"
          to={s.path.replace('$id', id)}
          search={(s.path.includes('$id') ? {} : { userId: id }) as never}
        >
          {t(s.title)}
        </Anchor>
      ))}
    </Group>
  );
}
