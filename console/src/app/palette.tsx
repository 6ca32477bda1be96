/** Ctrl-K: a screen by its name, or anything that was pasted, which leads to the page where it belongs. */
import { Spotlight, type SpotlightActionData } from '@mantine/spotlight';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { screens } from './screens';
import { useMay } from './session';

export interface Place {
  /** Key of what it is: "palette.user". */
  title: string;
  to: string;
  search?: Record<string, string>;
}

/** A phone number as the service has it. As people in Turkey say theirs it would be found nowhere. */
export function national(text: string): string {
  const digits = text.replaceAll(/[^\d+]/g, '');
  const turkish = /^0?(5\d{9})$/.exec(digits) ?? /^0([1-9]\d{9})$/.exec(digits);
  return turkish ? `+90${turkish[1]}` : digits;
}

/** Where a pasted text may belong. Nothing is asked before somebody chooses. */
export function places(text: string, may: (endpoint: string) => boolean): Place[] {
  const found: Place[] = [];
  const users = may('GET /admin/list-users');
  if (/^[0-9A-HJKMNP-TV-Z]{26}$/i.test(text)) {
    if (users) found.push({ title: 'palette.user', to: `/users/${text.toUpperCase()}` });
    if (may('GET /admin/audit'))
      found.push({ title: 'palette.audit', to: '/audit', search: { userId: text.toUpperCase() } });
    if (may('GET /admin/jobs')) found.push({ title: 'palette.job', to: `/jobs/${text.toUpperCase()}` });
  }
  if (users && /^[^\s@]+@[^\s@]+$/.test(text))
    found.push({ title: 'palette.mail', to: '/users', search: { email: text } });
  if (users && /^[+\d][\d\s()-]{7,}$/.test(text)) {
    found.push({ title: 'palette.phone', to: '/users', search: { phoneNumber: national(text) } });
  }
  if (users && /^\p{L}[\p{L}\p{M}\s.'’-]+$/u.test(text))
    found.push({ title: 'palette.name', to: '/users', search: { fullName: text } });
  return found;
}

const byName = 'go palette.name'; // a screen with that name comes first

/** Small letters of both Turkish i's are one for a search. */
export function folded(text: string): string {
  return text.toLocaleLowerCase('tr').replaceAll('ı', 'i').normalize('NFD').replaceAll(/\p{M}/gu, '');
}

export function Palette() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const go = (to: string, search: Record<string, string> = {}) => navigate({ to, search: search as never });
  const pasted = places(text.trim(), may).map((place): SpotlightActionData => ({
    id: `go ${place.title}`,
    label: t(place.title),
    description: text.trim(),
    onClick: () => go(place.to, place.search),
  }));
  const named = screens
    .filter((s) => !s.inner && s.needs.every(may))
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
