/** The hold of a withdrawal: the reason, what is missing and who may give it, and what its owner approved. */
import { Alert, Group, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { total } from '../kit/amount';
import { Evidence } from '../kit/evidence';
import type { Row } from '../kit/list';
import { Person } from '../kit/person';
import { useRead } from '../kit/read';
import { Ago, Coded } from '../kit/show';

export type Withdrawal = Row<'/admin/get-withdrawal-crypto-queue'>;
type Of = { of: Withdrawal };

/** Why a withdrawal is held back from the wallet: the reason, or the rules. */
export function Because({ of: { hold } }: Of) {
  const { t } = useTranslation();
  if (!hold) return t('hold.operator');
  if (hold.rules.length === 0) return t(`hold.${hold.reason}`);
  return <span data-code>{hold.rules.map((r) => r.label).join(', ')}</span>;
}

/** The missing part: approvals, the end of a wait, or an operator. */
export function Missing({ of: { hold } }: Of) {
  const { t } = useTranslation();
  if (hold?.approvals.length) return hold.approvals.map((a) => <div key={a.group}>{t('hold.given', { ...a })}</div>);
  return t(!hold ? 'hold.decision' : hold.reason === 'POLICY' ? 'hold.end' : `hold.after.${hold.reason}`);
}

/** Whether an operator can return the withdrawal to the wallet, or add an approval. */
export const releasable = ({ hold }: Withdrawal) =>
  hold?.reason !== 'DIGEST' && (hold?.reason !== 'POLICY' || hold.approvals.length > 0);

/** The total of several withdrawals: the sum of each currency, and the number of destinations. */
export function AtStake({ of }: { of: Withdrawal[] }) {
  const { t, i18n } = useTranslation();
  const codes = [...new Set(of.map((w) => w.code))];
  const sums = codes.map((code) => `${total(of.filter((w) => w.code === code).map((w) => w.amount))} ${code}`);
  return (
    <Text size="sm" fw={600} data-testid="at-stake">
      {t('hold.sum', {
        count: of.length,
        sums: new Intl.ListFormat(i18n.language).format(sums),
        destinations: new Set(of.map((w) => `${w.network} ${w.address}`)).size,
      })}
    </Text>
  );
}

/** The whole hold, for the drawer of a withdrawal. */
export function HeldCase({ of }: Of) {
  const { t } = useTranslation();
  const { hold } = of;
  return (
    <Alert color="yellow" title={<Because of={of} />} data-testid="held-case">
      <Stack gap={6}>
        {hold && (
          <Group gap="md">
            <Text size="sm">
              {t('hold.since')} <Ago at={hold.since} />
            </Text>
            {hold.until && (
              <Text size="sm">
                {t(hold.approvals.length ? 'hold.expires' : 'hold.ends')} <Ago at={hold.until} />
              </Text>
            )}
          </Group>
        )}
        <Text size="sm" component="div" data-testid="missing">
          <Missing of={of} />
        </Text>
        {!!hold?.approvedBy.length && (
          <Group gap="xs">
            <Text size="sm">{t('hold.approvedBy')}</Text>
            {hold.approvedBy.map((id) => (
              <Person key={id} id={id} bare />
            ))}
          </Group>
        )}
        {hold?.approvals
          .filter((a) => a.given < a.required)
          .map((a) => (
            <Approvers key={a.group} group={a.group} of={of} />
          ))}
        <Requested of={of} />
      </Stack>
    </Alert>
  );
}

const roles = '/admin/user-roles';
const most = 8;

/** The members of a group who may still approve. The service leaves out those who share a device, too. */
function Approvers({ group, of }: Of & { group: string }) {
  const { t } = useTranslation();
  const asked = useMay()(`GET ${roles}`);
  const read = useRead(roles, { roleCode: group, limit: 50 }, { enabled: asked });
  const out = [of.userId, of.initiator.replace('OPERATOR:', ''), ...(of.hold?.approvedBy ?? [])];
  const may = read.data?.filter((m) => !out.includes(m.userId));
  return (
    <Group gap="xs" data-testid="approvers">
      <Text size="sm">{t('hold.may', { group })}</Text>
      {may?.slice(0, most).map((m) => (
        <Person key={m.userId} id={m.userId} bare />
      ))}
      {may && may.length > most && <Text size="sm">+{may.length - most}</Text>}
      {may?.length === 0 && (
        <Text size="sm" fw={600}>
          {t('hold.empty')}
        </Text>
      )}
    </Group>
  );
}

/** The requester of the withdrawal, and the methods by which its owner approved it. */
function Requested({ of }: Of) {
  const { t, i18n } = useTranslation();
  const [kind, name] = of.initiator.split(':');
  if (!kind) return null;
  if (kind !== 'USER')
    return (
      <Group gap="xs">
        <Text size="sm">{t('hold.noOwner')}</Text>
        {kind === 'OPERATOR' ? <Person id={name} bare /> : <Coded of={name} />}
      </Group>
    );
  const methods = of.ownerMethods.map((m) => t(`method.${m}` as 'method.PUSH', { defaultValue: m }));
  return (
    <Group gap="xs">
      <Text size="sm">{t('hold.owner', { methods: new Intl.ListFormat(i18n.language).format(methods) })}</Text>
      <OwnersEvidence of={of} />
    </Group>
  );
}

const audit = '/admin/audit';

/** The evidence of the owner's challenge: the one that the same request started for the same order. */
function OwnersEvidence({ of: { id, userId } }: Of) {
  const may = useMay()(`GET ${audit}`);
  const made = useRead(audit, { target: id, action: 'WITHDRAWAL_REQUEST', limit: 1 }, { enabled: may }).data?.[0];
  const asked = { requestId: made?.requestId, action: 'WITHDRAWAL_START', userId, limit: 10 };
  const started = useRead(audit, asked, { enabled: may && !!made?.requestId });
  const challenge = started.data?.find((e) => e.detail === made?.detail);
  return challenge ? <Evidence id={challenge.target} /> : null;
}
