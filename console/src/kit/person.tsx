/** A person in a row: initials, the name, and below it the contact data for callers who may read them. */
import { Anchor, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { ask, type Schemas } from '../app/api';
import { useMay, useSession } from '../app/session';
import { Coded, Nothing, shortOf, ulid } from './show';

const path = '/admin/user-names';
type Name = Schemas['UserName'];

/** The most ids of one request: its target must stay below 2048 bytes, with commas of three. */
const most = 60;

interface Batch {
  ids: Set<string>;
  answer: Promise<Map<string, Name>>;
}
let batch: Batch | undefined;

/** The name of an account. All ids that are asked for within one tick are one request. */
async function nameOf(id: string): Promise<Name | null> {
  if (!batch || batch.ids.size >= most) batch = gather();
  batch.ids.add(id);
  return (await batch.answer).get(id) ?? null;
}

function gather(): Batch {
  const ids = new Set<string>();
  const answer = new Promise((tick) => setTimeout(tick)).then(async () => {
    if (batch?.ids === ids) batch = undefined;
    const { data } = await ask<{ data: Name[] }>(path, { query: { ids: [...ids].sort().join(',') } });
    return new Map(data.map((name) => [name.userId, name]));
  });
  return { ids, answer };
}

/**
 * The person of an id: name and contact data, and a link to the account for callers who may open it. Without permission
 * for names it is the short id. An actor without an account, such as the command line, has its word. bare is the name
 * alone, for a sentence.
 */
export function Person({ id, bare = false }: { id?: string | null; bare?: boolean }) {
  const { t } = useTranslation();
  const may = useMay();
  const own = useSession().userId === id;
  const known = ulid.test(id ?? '');
  const named = useQuery({
    queryKey: [path, id],
    enabled: known && may(`GET ${path}`),
    staleTime: 300_000,
    queryFn: () => nameOf(id ?? ''),
  });
  if (!id) return <Nothing />;
  if (id === 'operator') return t('person.operator');
  if (!known) return <Coded of={id} />;
  const to = may('GET /admin/list-users') ? id : undefined;
  const person = named.data;
  const short = own ? t('person.you') : <bdi dir="ltr">{shortOf(id)}</bdi>;
  if (person && bare)
    return to ? <ToAccount id={to}>{person.fullName || short}</ToAccount> : <bdi>{person.fullName || short}</bdi>;
  if (person) return <Named name={person.fullName} contact={person.email ?? person.phoneNumber} id={id} to={to} />;
  if (named.isLoading) return <Skeleton component="span" className="loads" title={id} aria-busy data-testid="person" />;
  return (
    <span title={id} data-testid="person" data-code={!own || undefined}>
      {to ? <ToAccount id={to}>{short}</ToAccount> : short}
    </span>
  );
}

/** A link to an account. */
export function ToAccount({ id, children }: { id: string; children: ReactNode }) {
  return (
    <Anchor component={Link} to={`/users/${id}`} inherit onClick={(event) => event.stopPropagation()}>
      {children}
    </Anchor>
  );
}

/** The first letters of the first and the last word of a name. */
export function initials(name: string): string {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const ends = words.length > 1 ? [words[0], words.at(-1)] : words;
  return ends.map((word) => [...(word ?? '')][0]?.toLocaleUpperCase() ?? '').join('');
}

/** A person whose name the list has. The name links to the account named by to. */
export function Named({
  name,
  contact,
  id,
  to,
}: {
  name?: string | null;
  contact?: string | null;
  id?: string;
  to?: string;
}) {
  const { t } = useTranslation();
  const shown = <bdi className={name ? 'name' : 'name unnamed'}>{name || t('person.noName')}</bdi>;
  return (
    <span className="person" data-testid={id ? 'person' : 'customer'} title={id}>
      <span className="initials" aria-hidden>
        {initials(name ?? '') || '?'}
      </span>
      <span className="about">
        {to ? <ToAccount id={to}>{shown}</ToAccount> : shown}
        {contact && (
          <bdi dir="ltr" className="contact" title={contact} data-cut="meant">
            {contact}
          </bdi>
        )}
      </span>
    </span>
  );
}
