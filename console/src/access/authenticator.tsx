/** The authenticator app of the user's own account: setup, recovery and removal. */
import { Alert, Badge, Button, Card, Code, CopyButton, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { Picture } from '../kit/picture';
import { useRead } from '../kit/read';
import { Id } from '../kit/show';
import { Write } from '../kit/write';
import { Headed } from './headed';

/** The secret and the recovery codes of an authenticator app, shown once after setup or recovery. */
interface Secret {
  base32?: string;
  qrDataUrl?: string;
  recoveryCodes?: string[];
}

export function Authenticator() {
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
            <Headed title="own.totp" lead="own.totpLead" />
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
              {secret.recoveryCodes && <RecoveryCodes codes={secret.recoveryCodes.join('\n')} />}
            </Stack>
          </Alert>
        )}
      </Stack>
      {setup.view}
    </Card>
  );
}

/** The recovery codes, one a line. While they are shown, the browser prints them and nothing else (style.css). */
function RecoveryCodes({ codes }: { codes: string }) {
  const { t } = useTranslation();
  return (
    <>
      <Text size="sm">{t('own.recoveryCodes')}</Text>
      <Code block dir="ltr" className="printed">
        {codes}
      </Code>
      <Group gap="xs">
        <CopyButton value={codes}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {t(copied ? 'copied' : 'copy')}
            </Button>
          )}
        </CopyButton>
        <Button size="xs" variant="default" onClick={() => print()} data-testid="print-codes">
          {t('own.print')}
        </Button>
      </Group>
    </>
  );
}
