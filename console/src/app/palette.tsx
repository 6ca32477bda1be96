/** Ctrl-K: opens a screen by name, or finds the pages for a pasted text. */
import { Spotlight, type SpotlightActionData } from '@mantine/spotlight';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { offeredScreens } from './screen';
import { useMay } from './session';

export interface Place {
  /** Key of the kind of text: "palette.user". */
  title: string;
  to: string;
  search?: Record<string, string>;
}

/** A phone number in the form of the service. Numbers in the usual Turkish notation would not be found. */
export function national(text: string): string {
  const digits = text.replaceAll(/[^\d+]/g, '');
  const turkish = /^0?(5\d{9})$/.exec(digits) ?? /^0([1-9]\d{9})$/.exec(digits);
  return turkish ? `+90${turkish[1]}` : digits;
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

/** The pages for a pasted text. No request is sent before the user chooses one. */
export function places(text: string, may: (endpoint: string) => boolean): Place[] {
  const found: Place[] = [];
  const add = (needs: string, title: string, to: string, search?: Record<string, string>) => {
    if (may(needs)) found.push({ title: `palette.${title}`, to, search });
  };
  const users = 'GET /admin/list-users';
  const audit = 'GET /admin/audit';
  const deposits = 'GET /admin/get-waiting-info-transactions';
  const withdrawals = 'GET /admin/get-withdrawal-crypto-queue';
  const is = (look: keyof typeof looks) => looks[look].test(text);
  if (is('id')) {
    const id = text.toUpperCase();
    add(users, 'user', `/users/${id}`);
    add(audit, 'request', '/audit', { requestId: id });
    add(audit, 'target', '/audit', { target: id });
    add(audit, 'audit', '/audit', { userId: id });
    add(withdrawals, 'withdrawal', '/withdrawals', { id });
    add('GET /admin/jobs', 'job', `/jobs/${id}`);
  } else if (is('mail')) {
    add(users, 'mail', '/users', { email: text });
  } else if (is('phone')) {
    add(users, 'phone', '/users', { phoneNumber: national(text) });
  } else if (is('ip')) {
    add('GET /admin/login-history-v2', 'logins', '/users/logins', { ipaddress: text });
    add(audit, 'ip', '/audit', { ip: text });
  } else if (is('address')) {
    const kinds = is('hash') ? ['txId', 'address'] : ['address', 'txId'];
    for (const kind of kinds) {
      add(withdrawals, `${kind}.withdrawal`, '/withdrawals', { [kind]: text });
      add(deposits, `${kind}.deposit`, '/transactions', { [kind === 'address' ? 'toAddress' : kind]: text });
    }
  }
  if (is('name')) add(users, 'name', '/users', { fullName: text });
  return found;
}

const byName = 'go palette.name'; // a screen with that name comes first

/** Both Turkish i's match one letter in a search. */
export function folded(text: string): string {
  return text.toLocaleLowerCase('tr').replaceAll('ı', 'i').normalize('NFD').replaceAll(/\p{M}/gu, '');
}

export function Palette() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const go = (to: string, search: Record<string, string> = {}) => void navigate({ to, search });
  const pasted = places(text.trim(), may).map(
    (place) =>
      ({
        id: `go ${place.title}`,
        label: t(place.title),
        description: text.trim(),
        onClick: () => go(place.to, place.search),
        'data-testid': `go-${place.title}`,
      }) as SpotlightActionData,
  );
  const named = offeredScreens(may)
    .filter((s) => folded(t(s.title)).includes(folded(text.trim())))
    .map((s): SpotlightActionData => ({ id: s.path, label: t(s.title), onClick: () => go(s.path) }));
  return (
    <Spotlight
      shortcut={['mod + K']}
      actions={[...pasted.filter((p) => p.id !== byName), ...named, ...pasted.filter((p) => p.id === byName)]}
      query={text}
      onQueryChange={setText}
      filter={(_, actions) => actions}
      nothingFound={t('palette.nothing')}
      highlightQuery
      limit={12}
      searchProps={{ placeholder: t('palette.hint'), 'aria-label': t('palette.title') }}
    />
  );
}
