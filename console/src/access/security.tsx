/** The security of the user's own account: password, authenticator app, devices, sessions. */
import { Alert, Badge, Button, Card, Code, Group, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { each, useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { Picture } from '../kit/picture';
import { useRead } from '../kit/read';
import { Id, Status, Time } from '../kit/show';
import { Write } from '../kit/write';

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
              { name: 'password', title: 'own.newPassword', kind: 'secret', required: true },
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

/** The secret and the recovery codes of an authenticator app, shown once after setup or recovery. */
interface Secret {
  base32?: string;
  qrDataUrl?: string;
  recoveryCodes?: string[];
}

function Authenticator() {
  const { t } = useTranslation();
  const may = useMay();
  const profile = useRead('/user/user-profile', undefined, { enabled: may('GET /user/user-profile') });
  const setup = useAct('post', '/auth/totp/setup', ['/user/user-profile']);
  const [secret, setSecret] = useState<Secret>();
  const on = profile.data?.totp;
  return (
    <Card withBorder>
      <Stack>
        <Group justify="space-between">
          <Group>
            <Title order={2} size="h5">
              {t('own.totp')}
            </Title>
            {on !== undefined && (
              <Badge color={on ? 'green' : 'gray'} variant="light" tt="none">
                {t(on ? 'own.totpIsOn' : 'own.totpIsOff')}
              </Badge>
            )}
          </Group>
          <Group gap="xs">
            {on === false && may('POST /auth/totp/setup') && (
              <Button
                size="xs"
                loading={setup.busy}
                data-testid="totp-setup"
                onClick={() => void setup.run(undefined).then((made) => made && setSecret(made as Secret))}
              >
                {t('own.totpSetup')}
              </Button>
            )}
            {on && (
              <Write
                method="post"
                path="/auth/totp/recover"
                title="own.totpRecover"
                onDone={(made) => setSecret(made as Secret)}
                fields={[{ name: 'recoveryCode', title: 'own.recoveryCode', required: true }]}
              />
            )}
            {on && (
              <Write
                method="post"
                path="/auth/totp/deactivate"
                title="own.totpOff"
                fields={[]}
                touches={['/user/user-profile']}
                button={{ color: 'red' }}
              />
            )}
          </Group>
        </Group>
        <Problem of={setup.problem} />
        {secret && (
          <Alert
            color="yellow"
            title={t('own.once')}
            withCloseButton
            closeButtonLabel={t('close')}
            onClose={() => setSecret(undefined)}
          >
            <Stack>
              {secret.qrDataUrl && <Picture address={secret.qrDataUrl} alt={t('own.qr')} style={{ width: 200 }} />}
              <Id of={secret.base32} />
              {secret.recoveryCodes && (
                <>
                  <Text size="sm">{t('own.recoveryCodes')}</Text>
                  <Code block dir="ltr">
                    {secret.recoveryCodes.join('\n')}
                  </Code>
                </>
              )}
            </Stack>
          </Alert>
        )}
      </Stack>
      {setup.view}
    </Card>
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
                  onClick={() =>
                    void each(rows, ({ deviceId }) => remove.run({ deviceId })).then((done) => done && clear())
                  }
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
        bulk={(rows, clear) => (
          <Button
            size="xs"
            color="red"
            loading={end.busy}
            data-testid="end-sessions"
            onClick={() => void each(rows, ({ sessionId }) => end.run({ sessionId })).then((done) => done && clear())}
          >
            {t('own.end')}
          </Button>
        )}
      />
      {end.view}
    </Stack>
  );
}
