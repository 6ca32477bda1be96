/**
 * Ctrl-K: opens a screen by name, finds the pages for a pasted text and the person it belongs to, and starts actions.
 * It sends no request while nothing is typed.
 */
import { useDebouncedValue } from '@mantine/hooks';
import { Spotlight, type SpotlightActionData, type SpotlightActionGroupData } from '@mantine/spotlight';
import { useNavigate, useRouterState } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Named } from '../../kit/person';
import { useRead, type Answer } from '../../kit/read';
import { Status } from '../../kit/show';
import { placeOf, type Path, type Place, type Searches } from '../address';
import { deferred } from '../deferred';
import { remember, useRecent } from './recent';
import { offeredScreens } from '../screen';
import { useMay, useSession } from '../session';
import { Shortcuts } from './shortcuts';
import type { TextKey } from '../../text/key';

const users = '/admin/list-users';
const lifting = 'POST /admin/user/close-user-authentication';
const Lift = deferred(() => import('./lift'), <></>);
type User = Answer<typeof users>[number];

interface Found extends Place {
  /** Key of the kind of text: "palette.user". */
  title: TextKey;
}

/** A phone number in the form of the service. Numbers in the usual Turkish notation would not be found. */
export function national(text: string): string {
  const digits = text.replaceAll(/[^\d+]/g, '');
  const turkish = /^0?(5\d{9})$/.exec(digits) ?? /^0([1-9]\d{9})$/.exec(digits);
  return turkish ? `+90${turkish[1]}` : digits;
}

/** The email address of a text: "Ayşe <ayse@example.com>" is the form that mail clients copy. */
export function mailIn(text: string): string {
  return /<([^<>\s]+@[^<>\s]+)>\s*$/.exec(text)?.[1] ?? text;
}

/** The forms of pasted texts. */
export const looks = {
  id: /^[0-9A-HJKMNP-TV-Z]{26}$/i,
  mail: /^[^\s@]+@[^\s@]+$/,
  phone: /^[+\d][\d\s()-]{7,}$/,
  ip: /^(\d{1,3}(\.\d{1,3}){3}|(?=.*:.*:)[\da-f:]+(\d{1,3}(\.\d{1,3}){3})?)$/i,
  name: /^\p{L}[\p{L}\p{M}\s.'’-]+$/u,
  hash: /^((0x)?[\da-f]{64}|[1-9A-HJ-NP-Za-km-z]{80,90})$/i,
  /** No network has shorter addresses; the service's own addresses contain colons. */
  address: /^[\w:+/=-]{24,128}$/,
};

/** The filter of the list of users for a text that belongs to one person. */
export function personOf(text: string): { userId?: string; email?: string; phoneNumber?: string } | undefined {
  if (looks.id.test(text)) return { userId: text.toUpperCase() };
  if (looks.mail.test(mailIn(text))) return { email: mailIn(text).replaceAll(/[İı]/g, 'i') };
  if (looks.phone.test(text) && !looks.ip.test(text)) return { phoneNumber: national(text) };
  return undefined;
}

/** The pages for a pasted text. */
export function places(text: string, may: (endpoint: string) => boolean): Found[] {
  const found: Found[] = [];
  const add = <P extends Path>(needs: string, title: TextKey, to: P, search?: Searches[P], id?: string) => {
    if (may(needs)) found.push({ title, ...placeOf(to, search, id) });
  };
  const audit = 'GET /admin/audit';
  const deposits = 'GET /admin/get-waiting-info-transactions';
  const withdrawals = 'GET /admin/get-withdrawal-crypto-queue';
  const is = (look: keyof typeof looks) => looks[look].test(text);
  if (is('id')) {
    const id = text.toUpperCase();
    add(`GET ${users}`, 'palette.user', '/users/$id', {}, id);
    add(audit, 'palette.request', '/audit', { requestId: id });
    add(audit, 'palette.target', '/audit', { target: id });
    add(audit, 'palette.audit', '/audit', { userId: id });
    add(withdrawals, 'palette.withdrawal', '/withdrawals', { id });
    add('GET /admin/jobs', 'palette.job', '/jobs/$id', {}, id);
  } else if (looks.mail.test(mailIn(text))) {
    add(`GET ${users}`, 'palette.mail', '/users', { email: mailIn(text) });
  } else if (is('phone')) {
    add(`GET ${users}`, 'palette.phone', '/users', { phoneNumber: national(text) });
  } else if (is('ip')) {
    add('GET /admin/login-history-v2', 'palette.logins', '/users/logins', { ipaddress: text });
    add(audit, 'palette.ip', '/audit', { ip: text });
  } else if (is('address')) {
    const kinds = is('hash') ? (['txId', 'address'] as const) : (['address', 'txId'] as const);
    for (const kind of kinds) {
      add(withdrawals, `palette.${kind}.withdrawal`, '/withdrawals', { [kind]: text });
      add(deposits, `palette.${kind}.deposit`, '/transactions', { [kind === 'address' ? 'toAddress' : kind]: text });
    }
  }
  if (is('name')) add(`GET ${users}`, 'palette.name', '/users', { fullName: text });
  return found;
}

const byName = 'go palette.name'; // a screen with that name comes first

/** Both Turkish i's match one letter in a search. */
export function folded(text: string): string {
  return text.toLocaleLowerCase('tr').replaceAll('ı', 'i').normalize('NFD').replaceAll(/\p{M}/gu, '');
}

/** The person of the typed text, after a pause in typing. */
function useFound(text: string): User[] {
  const may = useMay();
  const [settled] = useDebouncedValue(text, 300);
  const of = settled === text ? personOf(text) : undefined;
  const read = useRead(users, { ...of, limit: 3 }, { enabled: of !== undefined && may(`GET ${users}`) });
  return (of && read.data) || [];
}

/** Keeps the customer of the open page, from the answer that the page reads. It sends no request of its own. */
function useVisits() {
  const { userId = '' } = useSession();
  const id = useRouterState({ select: (s) => /^\/users\/([0-9A-Z]{26})$/.exec(s.location.pathname)?.[1] ?? '' });
  const user = useRead(users, { userId: id }, { enabled: false }).data?.[0];
  useEffect(() => {
    if (user) remember(userId, user);
  }, [user, userId]);
  return useRecent(userId);
}

export function Palette() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const [query, setQuery] = useState('');
  const [lifted, setLifted] = useState<User>();
  const text = query.trim();
  const found = useFound(text);
  const visited = useVisits();
  const recent = visited.filter((u) => !found.some((f) => f.userId === u.userId));
  const go = ({ to, search = {} }: Place) => void navigate({ to, search });
  const matches = (label: string) => folded(label).includes(folded(text));
  const action = (id: string, label: string, onClick: () => void, description?: string) =>
    ({ id, label, description, onClick, 'data-testid': id.replaceAll(' ', '-') }) as SpotlightActionData;

  const person = (u: User) =>
    ({
      id: `person ${u.userId}`,
      children: (
        <span className="found">
          <Named name={u.fullName} contact={u.email || u.phoneNumber} />
          <Status of={u.status} />
        </span>
      ),
      onClick: () => go(placeOf('/users/$id', {}, u.userId)),
      'data-testid': `person-${u.userId}`,
    }) as SpotlightActionData;
  const pasted = places(text, may).map((p) => action(`go ${p.title}`, t(p.title), () => go(p), text));
  const named = offeredScreens(may)
    .filter((s) => matches(t(s.title)))
    .map((s) => action(s.path, t(s.title), () => go({ to: s.path })));
  const acts = (
    [
      { needs: 'POST /admin/transaction/adjust-balance', title: 'palette.act.adjust', ...placeOf('/adjust') },
      { needs: 'POST /admin/system/waf/rules', title: 'palette.act.rule', ...placeOf('/firewall', { add: 'rule' }) },
    ] satisfies (Found & { needs: string })[]
  )
    .filter(({ needs, title }) => may(needs) && matches(t(title)))
    .map(({ title, ...place }) => action(`act ${title}`, t(title), () => go(place)));
  const about = found.flatMap((u) => {
    const name = u.fullName || u.email || u.userId;
    const of: SpotlightActionData[] = [];
    if (may(lifting) && u.status !== 'active')
      of.push(action('act palette.act.lift', t('palette.act.lift', { name }), () => setLifted(u)));
    if (may('POST /admin/transaction/adjust-balance'))
      of.push(
        action('act palette.act.adjustOf', t('palette.act.adjustOf', { name }), () =>
          go(placeOf('/adjust', { userId: u.userId })),
        ),
      );
    return of;
  });
  const group = (title: TextKey, actions: SpotlightActionData[]): SpotlightActionGroupData[] =>
    actions.length > 0 ? [{ group: t(title), actions }] : [];
  const known = group(
    'palette.recent',
    recent.filter((u) => matches(`${u.fullName} ${u.email} ${u.phoneNumber}`)).map(person),
  );
  return (
    <>
      <Shortcuts />
      <Spotlight
        shortcut={['mod + K']}
        actions={[
          ...(text ? [] : known),
          ...group('palette.people', found.map(person)),
          ...group(
            'palette.screens',
            [...pasted.filter((p) => p.id !== byName), ...named, ...pasted.filter((p) => p.id === byName)].slice(0, 12),
          ),
          ...group('palette.actions', [...about, ...acts]),
          ...(text ? known : []),
        ]}
        query={query}
        onQueryChange={setQuery}
        filter={(_, actions) => actions}
        nothingFound={t('palette.nothing')}
        highlightQuery
        scrollable
        maxHeight="60vh"
        attributes={{ content: { 'aria-label': t('palette.title') } }}
        searchProps={{ placeholder: t('palette.hint'), 'aria-label': t('palette.title') }}
      />
      {lifted && <Lift user={lifted} onClose={() => setLifted(undefined)} />}
    </>
  );
}
