/** The security of the user's own account: password, authenticator app, devices, sessions. */
import { Button, Card, Group, Stack, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Status, Time } from '../kit/show';
import { Write } from '../kit/write';
import { Authenticator } from './authenticator';

const sessions = '/auth/sessions';
const devices = '/auth/devices';

export default function Security() {
  const { t } = useTranslation();
  return (
    <Stack gap="xl">
      <Title order={1} size="h3">
        {t('own.security')}
      </Title>
      <Card withBorder>
        <Group justify="space-between">
          <Title order={2} size="h5">
            {t('own.password')}
          </Title>
          <Write
            method="post"
            path="/auth/password"
            title="own.changePassword"
            touches={[sessions]}
            fields={[
              { name: 'oldPassword', title: 'own.oldPassword', kind: 'secret', required: true },
              { name: 'password', title: 'own.newPassword', kind: 'secret', required: true, help: 'own.passwordRule' },
              { name: 'passwordVerify', title: 'own.again', kind: 'secret', required: true },
            ]}
          />
        </Group>
      </Card>
      <Authenticator />
      <Devices />
      <Sessions />
    </Stack>
  );
}

const deviceColumns: Column<Row<typeof devices>>[] = [
  { key: 'brand', title: 'own.brand' },
  { key: 'model', title: 'own.model' },
  { key: 'platform', title: 'own.platform' },
  { key: 'description', title: 'own.description' },
  { key: 'createdAt', title: 'own.since', show: (d) => <Time at={d.createdAt} /> },
  { key: 'lastUsedAt', title: 'own.lastUsed', show: (d) => <Time at={d.lastUsedAt} /> },
];

function Devices() {
  const { t } = useTranslation();
  const may = useMay();
  const remove = useAct('delete', devices, [devices]);
  if (!may(`GET ${devices}`)) return null;
  return (
    <Stack>
      <Problem of={remove.problem} />
      <List
        path={devices}
        title="own.devices"
        inside
        columns={deviceColumns}
        size={undefined}
        id={(d) => d.deviceId}
        empty="own.noDevices"
        bulk={
          may(`DELETE ${devices}`)
            ? (rows, clear) => (
                <Button
                  size="xs"
                  color="red"
                  loading={remove.busy}
                  onClick={async () => {
                    for (const { deviceId } of rows) if (!(await remove.run({ deviceId }))) return;
                    clear();
                  }}
                >
                  {t('own.remove')}
                </Button>
              )
            : undefined
        }
      />
      {remove.view}
    </Stack>
  );
}

const sessionColumns: Column<Row<typeof sessions>>[] = [
  { key: 'current', title: 'own.thisOne', show: (s) => <Status of={s.current} /> },
  { key: 'ip', title: 'own.ip', show: (s) => <bdi dir="ltr">{s.ip}</bdi> },
  { key: 'countryName', title: 'own.country' },
  { key: 'deviceBrand', title: 'own.brand' },
  { key: 'deviceModel', title: 'own.model' },
  { key: 'deviceDesc', title: 'own.description', hidden: true },
  { key: 'createdAt', title: 'own.since', show: (s) => <Time at={s.createdAt} /> },
  { key: 'lastSeenAt', title: 'own.lastUsed', show: (s) => <Time at={s.lastSeenAt} /> },
];

function Sessions() {
  const { t } = useTranslation();
  const end = useAct('delete', sessions, [sessions]);
  const known = useRead(sessions);
  async function endAll(rows: Row<typeof sessions>[]) {
    for (const { sessionId } of rows) if (!(await end.run({ sessionId }))) return false;
    return true;
  }
  const others = known.data?.some((s) => !s.current) && (
    <Button
      size="xs"
      variant="default"
      loading={end.busy}
      data-testid="end-others"
      onClick={async () => {
        const { data } = await known.refetch(); // a session may have begun since
        await endAll((data ?? []).filter((s) => !s.current));
      }}
    >
      {t('own.endOthers')}
    </Button>
  );
  return (
    <Stack>
      <Problem of={end.problem} />
      <List
        path={sessions}
        title="own.sessions"
        inside
        columns={sessionColumns}
        size={undefined}
        id={(s) => s.sessionId}
        actions={others}
        bulk={(rows, clear) => (
          <Button
            size="xs"
            color="red"
            loading={end.busy}
            data-testid="end-sessions"
            onClick={async () => {
              if (await endAll(rows)) clear();
            }}
          >
            {t('own.end')}
          </Button>
        )}
      />
      {end.view}
    </Stack>
  );
}
