/**
 * One account: its data, its changes, and its lists. The head takes up to seven requests at once, beside those of the
 * open tab.
 */
import './user.css';
import { Alert, Badge, Group, Stack, Tabs, Text, Title } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useId, useTexts } from '../app/address';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { initials } from '../kit/person';
import { useRead } from '../kit/read';
import { Fact, Facts } from '../kit/record';
import { Ago, Id, Money, plain } from '../kit/show';
import { Actions } from './actions';
import { SecondFactors, security } from './factors';
import { Links } from './links';
import { Cause } from './logins';
import { queuePath } from '../money/withdrawals';
import {
  Acts,
  Audit,
  Balances,
  Blockages,
  Documents,
  Limits,
  Logins,
  Mails,
  Roles,
  Statement,
  sums,
  Withdrawals,
} from './tabs';
import { Standing } from './parts';
import { Story } from './story';
import { numberedLevel } from '../kit/word';

interface Tab {
  name: string;
  /** One of these permissions is enough. */
  needs: readonly string[];
  show: (id: string) => ReactNode;
}

const tabs = [
  {
    name: 'story',
    needs: ['GET /admin/audit', 'GET /admin/login-history', 'GET /admin/get-email-change-history'],
    show: (id) => <Story id={id} />,
  },
  { name: 'logins', needs: ['GET /admin/login-history'], show: (id) => <Logins id={id} /> },
  { name: 'balances', needs: [`GET ${sums}`], show: (id) => <Balances id={id} /> },
  { name: 'statement', needs: ['GET /process/get-process-admin'], show: (id) => <Statement id={id} /> },
  { name: 'withdrawals', needs: [`GET ${queuePath}`], show: (id) => <Withdrawals id={id} /> },
  { name: 'blockages', needs: ['GET /blockage/get-blockage-history'], show: (id) => <Blockages id={id} /> },
  { name: 'documents', needs: ['GET /user/get-documents'], show: (id) => <Documents id={id} /> },
  { name: 'mails', needs: ['GET /admin/get-email-change-history'], show: (id) => <Mails id={id} /> },
  { name: 'limits', needs: ['GET /admin/user/limit-info'], show: (id) => <Limits id={id} /> },
  { name: 'roles', needs: ['GET /admin/user-roles'], show: (id) => <Roles id={id} /> },
  { name: 'links', needs: ['GET /admin/user/link'], show: (id) => <Links id={id} /> },
  { name: 'audit', needs: ['GET /admin/audit'], show: (id) => <Audit id={id} /> },
  { name: 'acts', needs: ['GET /admin/audit'], show: (id) => <Acts id={id} /> },
] as const satisfies readonly Tab[];

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
      <div className="customer">
        <span className="initials" aria-hidden>
          {initials(user?.fullName ?? '') || '?'}
        </span>
        <div className="who">
          <Title order={1} size="h3">
            <bdi>{user?.fullName || user?.email || id}</bdi>
          </Title>
          <Group gap={6}>
            <Standing of={user?.status} />
            {user && (
              <Badge color={user.kycConfirm ? 'green' : 'gray'} variant="light" tt="none" data-testid="kyc">
                {t(user.kycConfirm ? 'user.kyc.confirmed' : 'user.kyc.open')}
              </Badge>
            )}
            {may('GET /admin/user/limit-info') && <Level id={id} />}
            <Id of={id} short />
          </Group>
        </div>
        {user && <Actions user={user} />}
      </div>
      <Facts>
        <Fact title="users.email">
          <bdi dir="ltr">{plain(user?.email)}</bdi>
        </Fact>
        <Fact title="users.phone">
          <bdi dir="ltr">{plain(user?.phoneNumber)}</bdi>
        </Fact>
        {may('GET /admin/login-history') && <LastLogins id={id} />}
        {may(`GET ${security}`) && <SecondFactors id={id} />}
        {may(`GET ${sums}`) && <MainBalances id={id} />}
        {may('GET /admin/kyc-case') && <OpenCases id={id} />}
      </Facts>
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
  const { t } = useTranslation();
  const { data } = useRead('/admin/user/limit-info', { userId: id });
  if (!data) return null;
  return (
    <Badge color="gray" variant="light" tt="none" title={t('user.level.name')}>
      {numberedLevel(data, t)}
    </Badge>
  );
}

const newest = 50;

/** The last completed and the last refused login among the newest ones. */
function LastLogins({ id }: { id: string }) {
  const { t } = useTranslation();
  const { data } = useRead('/admin/login-history', { userId: id, limit: newest });
  const none = data && data.length < newest; // the history has no further login
  const good = data?.find((l) => l.success);
  const bad = data?.find((l) => !l.success);
  return (
    <>
      <Fact title="user.lastLogin">{none && !good ? t('user.never') : <Ago at={good?.createdAt} />}</Fact>
      <Fact title="user.lastRefused">
        {none && !bad ? t('user.never') : <Ago at={bad?.createdAt} />} {bad?.reason && <Cause of={bad} />}
      </Fact>
    </>
  );
}

/** The currencies with a balance, in the order of the service. Amounts of different currencies are not added up. */
function MainBalances({ id }: { id: string }) {
  const { t } = useTranslation();
  const { data } = useRead(sums, { userId: id });
  const held = data?.filter((s) => /[1-9]/.test(String(s.balance))) ?? [];
  return (
    <Fact title="money.balances">
      {held.length === 0 && (data ? t('user.noBalance') : plain(null))}
      {held.slice(0, most).map((s) => (
        <div key={s.currencyCode}>
          <Money amount={s.balance} unit={s.currencyCode} />
        </div>
      ))}
      {held.length > most && (
        <Text size="xs" c="dimmed">
          +{held.length - most}
        </Text>
      )}
    </Fact>
  );
}
const most = 3;

/** The decisions that wait: identity, address and AML. */
function OpenCases({ id }: { id: string }) {
  const { t } = useTranslation();
  const { data } = useRead('/admin/kyc-case', { userId: id });
  const open =
    data &&
    [
      data.kycConfirm === 'waitingApproval' && t('user.open.kyc'),
      data.addressConfirmed === 'waitingApproval' && t('user.open.address'),
      data.amlStatus &&
        data.amlStatus !== 'notRisky' &&
        `${t('aml.title')}: ${t(`state.${data.amlStatus}`, { defaultValue: data.amlStatus })}`,
    ].filter(Boolean);
  return <Fact title="user.open">{open?.length ? open.join(', ') : plain(open && t('user.open.none'))}</Fact>;
}
