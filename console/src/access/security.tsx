/** The security of the user's own account: password, authenticator app, devices, sessions. */
import { Alert, Badge, Button, Card, Group, Stack, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { actName } from '../app/actname';
import { deviceName } from '../app/client';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { Bulk } from '../kit/bulk';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { plain, Status, Time } from '../kit/show';
import { Write } from '../kit/write';
import { Authenticator } from './authenticator';
import { Headed, Lead } from './headed';
import { AddPasskey } from './passkeys';
import type { TextKey } from '../text/key';

const sessions = '/auth/sessions';
const devices = '/auth/devices';
const remembered = '/auth/remembered';

export default function Security() {
  const { t } = useTranslation();
  return (
    <Stack gap="xl">
      <Title order={1} size="h3">
        {t('own.security')}
      </Title>
      <Weak />
      <Card withBorder>
        <Group justify="space-between">
          <Headed title="own.password" lead="own.passwordRule" />
          <Write
            method="post"
            path="/auth/password"
            title="own.changePassword"
            touches={[sessions, remembered]}
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
      <Remembered />
    </Stack>
  );
}

/** A warning for an account that has only codes by SMS and mail. */
function Weak() {
  const { t } = useTranslation();
  const may = useMay();
  const profile = useRead('/user/user-profile', undefined, { enabled: may('GET /user/user-profile') });
  const registered = useRead(devices, undefined, { enabled: may(`GET ${devices}`) });
  if (profile.data?.totp !== false || registered.data?.length !== 0) return null;
  return (
    <Alert color="yellow" title={t('own.weakTitle')} data-testid="weak">
      {t('own.weak')}
    </Alert>
  );
}

/** A device or browser, with a mark for the one that shows this page. */
function Here({ name, here, mark = 'own.thisOne' }: { name: string; here: boolean; mark?: TextKey }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs">
      {plain(name)}
      {here && (
        <Badge color="green" variant="light" tt="none" miw="max-content">
          {t(mark)}
        </Badge>
      )}
    </Group>
  );
}

const deviceColumns: Column<Row<typeof devices>>[] = [
  { key: 'brand', title: 'own.brand' },
  { key: 'model', title: 'own.model' },
  { key: 'kind', title: 'own.kind', show: (d) => <Kind of={d.kind} /> },
  { key: 'platform', title: 'own.platform', hidden: true },
  { key: 'description', title: 'own.description' },
  { key: 'createdAt', title: 'own.since', show: (d) => <Time at={d.createdAt} /> },
  { key: 'lastUsedAt', title: 'own.lastUsed', show: (d) => <Time at={d.lastUsedAt} /> },
];

function Kind({ of }: { of?: string }) {
  const { t } = useTranslation();
  return t(of === 'PASSKEY' ? 'own.passkey' : 'own.device');
}

function Devices() {
  const may = useMay();
  if (!may(`GET ${devices}`)) return null;
  return (
    <List
      path={devices}
      title="own.devices"
      inside
      columns={deviceColumns}
      size={undefined}
      id={(d) => d.deviceId}
      empty="own.noDevices"
      above={<Lead of="own.devicesLead" />}
      actions={<AddPasskey />}
      bulk={(rows, clear) => (
        <Bulk
          method="delete"
          path={devices}
          title="own.remove"
          rows={rows}
          name={(d) => `${d.brand} ${d.model}`}
          body={({ deviceId }) => ({ deviceId })}
          touches={[devices, remembered]}
          onDone={clear}
          button={{ color: 'red' }}
        />
      )}
    />
  );
}

const sessionColumns: Column<Row<typeof sessions>>[] = [
  {
    key: 'deviceBrand',
    title: 'login.brand',
    show: (s) => <Here name={deviceName(s)} here={s.current} />,
    text: deviceName,
  },
  { key: 'current', title: 'own.thisOne', show: (s) => <Status of={s.current} />, hidden: true },
  { key: 'ip', title: 'own.ip', show: (s) => <bdi dir="ltr">{s.ip}</bdi> },
  { key: 'countryName', title: 'own.country' },
  { key: 'deviceDesc', title: 'own.description', hidden: true },
  { key: 'createdAt', title: 'own.since', show: (s) => <Time at={s.createdAt} /> },
  { key: 'lastSeenAt', title: 'own.lastUsed', show: (s) => <Time at={s.lastSeenAt} /> },
];

function Sessions() {
  const { t } = useTranslation();
  const end = useAct('delete', sessions, [sessions]);
  const current = useRead(sessions, undefined, { enabled: false }); // read when the button needs it
  const endOthers = async () => {
    const { data = [] } = await current.refetch();
    for (const { sessionId } of data.filter((s) => !s.current)) if (!(await end.run({ sessionId }))) return;
  };
  return (
    <Stack>
      <Problem of={end.problem ?? current.error} />
      <List
        path={sessions}
        title="own.sessions"
        inside
        columns={sessionColumns}
        size={undefined}
        id={(s) => s.sessionId}
        actions={
          <Button
            size="xs"
            variant="default"
            loading={end.busy}
            data-testid="end-others"
            onClick={() => void endOthers()}
          >
            {t('own.endOthers')}
          </Button>
        }
        bulk={(rows, clear) => (
          <Bulk
            method="delete"
            path={sessions}
            title="own.end"
            rows={rows}
            name={(s) => [s.ip, s.countryName, s.deviceBrand, s.deviceModel].filter(Boolean).join(' · ')}
            body={({ sessionId }) => ({ sessionId })}
            touches={[sessions]}
            onDone={clear}
            button={{ color: 'red' }}
          />
        )}
      />
      {end.view}
    </Stack>
  );
}

const rememberedColumns: Column<Row<typeof remembered>>[] = [
  {
    key: 'deviceDesc',
    title: 'login.brand',
    show: (b) => <Here name={deviceName(b)} here={b.current} mark="own.thisBrowser" />,
    text: deviceName,
  },
  { key: 'current', title: 'own.thisOne', show: (b) => <Status of={b.current} />, hidden: true },
  { key: 'actionCode', title: 'own.rememberedFor', show: (b) => <Name of={b.actionCode} /> },
  { key: 'method', title: 'own.rememberedMethod', show: (b) => <Name of={b.method} /> },
  { key: 'ip', title: 'own.ip', show: (b) => <bdi dir="ltr">{b.ip}</bdi> },
  { key: 'createdAt', title: 'own.since', show: (b) => <Time at={b.createdAt} /> },
  { key: 'lastUsedAt', title: 'own.lastUsed', show: (b) => <Time at={b.lastUsedAt} /> },
  { key: 'expiresAt', title: 'own.rememberedUntil', show: (b) => <Time at={b.expiresAt} /> },
];

/** The name of a method or an action. */
function Name({ of }: { of: string }) {
  const { t } = useTranslation();
  return t(`method.${of}`, { defaultValue: actName(of, t) });
}

/** The browsers whose key counts as one method. */
function Remembered() {
  const may = useMay();
  if (!may(`GET ${remembered}`)) return null;
  return (
    <List
      path={remembered}
      title="own.remembered"
      inside
      columns={rememberedColumns}
      size={undefined}
      id={(b) => b.id}
      empty="own.noneRemembered"
      above={<Lead of="own.rememberedLead" />}
      bulk={(rows, clear) => (
        <Bulk
          method="delete"
          path={remembered}
          title="own.forget"
          rows={rows}
          name={(b) => [b.ip, deviceName(b)].filter(Boolean).join(' · ')}
          body={({ id }) => ({ id })}
          touches={[remembered]}
          onDone={clear}
          button={{ color: 'red' }}
        />
      )}
    />
  );
}
