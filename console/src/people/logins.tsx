/** The logins from one address, over all accounts. */
import { Alert, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { deviceName } from '../app/client';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Person, ToAccount } from '../kit/person';
import { Whole } from '../kit/record';
import { plain, Status, Time } from '../kit/show';
import { Why } from '../kit/why';
import { Address } from './parts';

const path = '/admin/login-history-v2';
export type Login = Row<typeof path>;

export const loginColumns: Column<Login>[] = [
  { key: 'createdAt', title: 'login.at', show: (l) => <Time at={l.createdAt} exact /> },
  { key: 'success', title: 'audit.outcome', card: 'top', show: (l) => <Outcome of={l} /> },
  { key: 'reason', title: 'login.reason', show: (l) => (l.reason ? <Cause of={l} /> : plain(null)) },
  { key: 'ipaddress', title: 'audit.ip', show: (l) => <Address of={l.ipaddress} /> },
  { key: 'countryName', title: 'login.country' },
  {
    key: 'deviceBrand',
    title: 'login.brand',
    show: (l) => plain(deviceName(l)),
    text: deviceName,
  },
  { key: 'deviceDesc', title: 'users.client', hidden: true },
];

function Outcome({ of }: { of: Login }) {
  const { t } = useTranslation();
  return (
    <Status of={of.success ? 'success' : 'refused'} name={t(of.success ? 'story.login' : 'story.login.refused')} />
  );
}

/** The cause of a refused login, as the service stored it; nothing for a completed one and for earlier lines. */
export function Cause({ of }: { of: Login }) {
  const { t } = useTranslation();
  if (!of.reason) return null;
  return (
    <span data-testid="cause">
      {t(`login.cause.${of.reason}`, { attempt: of.attempt, limit: of.attemptLimit })}
      {of.lockedUntil && (
        <>
          {' · '}
          {t('login.cause.locked')} <Time at={of.lockedUntil} exact />
        </>
      )}
    </span>
  );
}

const standing = 'POST /admin/user/close-user-authentication';

/**
 * The cause of a refused login with its remedy, and the way to a second person for operators who may not apply it. Only
 * operators read it: the client gets one answer for all causes.
 */
export function Refused({ of }: { of: Login }) {
  const { t } = useTranslation();
  const may = useMay();
  if (of.success) return null;
  return (
    <Alert
      color={of.reason ? 'yellow' : 'gray'}
      title={of.reason ? <Cause of={of} /> : t('story.login.refused')}
      data-testid="refused"
    >
      {of.reason ? (
        <Text size="sm">
          {t(`login.remedy.${of.reason}`)} {of.lockedUntil && t('login.remedy.locked')}{' '}
          {of.reason === 'status' &&
            (may(standing) && of.userId ? (
              <ToAccount id={of.userId}>{t('login.toAccount')}</ToAccount>
            ) : (
              t('login.ask')
            ))}
        </Text>
      ) : (
        t('story.login.why')
      )}
      <Why action="LOGIN" resource="POST /auth/login" userId={of.userId || undefined} ip={of.ipaddress} />
    </Alert>
  );
}

const columns: Column<Login>[] = [
  { key: 'userId', title: 'audit.user', person: true, show: (l) => <Person id={l.userId} /> },
  ...loginColumns,
];

const filters: FilterOf<typeof path>[] = [{ name: 'ipaddress', title: 'audit.ip' }];

export default function Logins() {
  const [open, setOpen] = useState<Login>();
  return (
    <Stack>
      <List
        path={path}
        title="users.logins"
        columns={columns}
        filters={filters}
        needs={['ipaddress']}
        size={undefined}
        id={(l) => l.id}
        open={setOpen}
      />
      <Whole of={open} title="story.login" onClose={() => setOpen(undefined)}>
        {open && <Refused of={open} />}
      </Whole>
    </Stack>
  );
}
