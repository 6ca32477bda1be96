/** Links from an audit entry to its subjects, and to the explanation of a refusal. */
import { Group, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { actName } from './actname';
import { placeOf, type Path, type Searches } from './address';
import { useMay } from './session';
import { Evidence } from '../kit/evidence';
import { AnchorLink } from './frame/link';
import type { Row } from '../kit/list';
import { Person } from '../kit/person';
import { useRead } from '../kit/read';
import { useSaid } from '../text/said';
import { Coded, Id, Nothing, ulid } from '../kit/show';
import { Why } from '../kit/why';
import type { TextKey } from '../text/key';

export type Entry = Row<'/admin/audit'>;

/** The name of an action. Its code, by which the list is filtered, is shown on hover. */
export function Act({ of }: { of: string }) {
  const { t } = useTranslation();
  return (
    <bdi title={of} data-action={of}>
      {actName(of, t)}
    </bdi>
  );
}

/** The target of an entry, if the account or the actor does not say it already. */
export function Target({ of: { target, userId, actorId } }: { of: Entry }) {
  if (target === userId || target === actorId) return <Nothing />;
  return ulid.test(target) ? <Id of={target} short /> : <Coded of={target} />;
}

/** The name alone, so that the detail of the entry is in sight. The account has the contact data. */
export const Brief = ({ of }: { of: string }) => (
  <span className="brief">
    <Person id={of} />
  </span>
);

/** Two lines of the detail; the entry shows all of it. */
export function Detail({ of }: { of: string }) {
  const said = useSaid();
  const text = said(of).trim();
  if (!text) return <Nothing />;
  if (/^[0-9a-f]{64}$/.test(of)) return <Id of={of} short />; // the hash of a transfer
  return (
    <Text
      size="sm"
      lineClamp={2}
      style={{ overflowWrap: 'anywhere' }}
      title={of}
      data-cut="meant"
      data-code // the service words it for the record
    >
      <bdi>{text}</bdi>
    </Text>
  );
}

export function Links({ entry: e, onLeave }: { entry: Entry; onLeave: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const link = <P extends Path>(title: TextKey, to: P, search?: Searches[P], id?: string) => (
    <AnchorLink key={title} {...placeOf(to, search, id)} size="sm" onClick={onLeave} data-testid={`to-${title}`}>
      {t(title)}
    </AnchorLink>
  );
  const day = e.at.slice(0, 10);
  const users = may('GET /admin/list-users');
  return (
    <Stack gap="xs" data-testid="links">
      <Group gap="md">
        {ulid.test(e.userId) && users && link('audit.toUser', '/users/$id', {}, e.userId)}
        {ulid.test(e.actorId) && e.actorId !== e.userId && users && link('audit.toActor', '/users/$id', {}, e.actorId)}
        {e.requestId && link('audit.allOfRequest', '/audit', { requestId: e.requestId })}
        {e.ip && link('audit.allOfIp', '/audit', { ip: e.ip })}
        {e.ip && may('GET /admin/login-history-v2') && link('audit.loginsOfIp', '/users/logins', { ipaddress: e.ip })}
        {e.target && e.target !== e.userId && link('audit.allOfTarget', '/audit', { target: e.target })}
        {e.userId && link('audit.allOfUser', '/audit', { userId: e.userId })}
        {e.actorId && link('audit.allOfActor', '/audit', { actorId: e.actorId, from: day, to: day })}
        {link('audit.allOfAction', '/audit', { action: e.action })}
        {e.action.startsWith('FIREWALL_RULE') &&
          may('GET /admin/system/waf/rules') &&
          link('audit.toRules', '/firewall')}
      </Group>
      <Proof entry={e} />
      <WhyEntry entry={e} />
    </Stack>
  );
}

/** The evidence of an entry that is the outcome of a challenge, or the use of its grant. */
function Proof({ entry: e }: { entry: Entry }) {
  const guarded = useGuarded();
  const challenge = ulid.test(e.target) && (guarded.has(e.action) || e.action === 'GUARD_PASS');
  return challenge ? <Evidence id={e.target} /> : null;
}

/** The actions of challenges. */
function useGuarded(): Set<string> {
  const may = useMay();
  const actions = useRead('/admin/system/mfa/actions', undefined, { enabled: may('GET /admin/system/mfa/actions') });
  return new Set(['DEVICE_ADD', 'DEVICE_REMOVE', ...(actions.data?.map((a) => a.actionCode) ?? [])]);
}

/** The inputs for the explanation of an entry: its challenge, or the endpoint that was refused. */
function WhyEntry({ entry: e }: { entry: Entry }) {
  const guarded = useGuarded();
  const who = { userId: (ulid.test(e.userId) ? e.userId : e.actorId) || undefined, ip: e.ip || undefined };
  if (e.action === 'DENIED' || e.action === 'CALL') {
    const code = e.outcome === 'refused' ? e.detail : undefined;
    return <Why {...who} userId={e.actorId || undefined} resource={e.target} code={code} />;
  }
  if (e.action === 'LOGIN') return <Why {...who} action="LOGIN" resource="POST /auth/login" />;
  return guarded.has(e.action) ? <Why {...who} action={e.action} /> : null;
}
