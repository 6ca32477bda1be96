/**
 * The part of home for users who serve customers: a search, the recent customers, the blocked and new accounts, and the
 * refused logins.
 */
import { Button, Card, Group, SimpleGrid, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { placeOf, type Place } from '../address';
import type { Schemas } from '../api';
import { Problem } from '../problem';
import { personOf } from './palette';
import { useRecent } from './recent';
import { useMay, useSession } from '../session';
import { AnchorLink } from '../frame/link';
import { Named, Person } from '../../kit/person';
import { useRead } from '../../kit/read';
import { Ago } from '../../kit/show';
import type { TextKey } from '../../text/key';

const path = '/admin/list-users';
type User = Schemas['UserListItem'];

/** The number of accounts in a card. */
const shown = 5;

export function Customers() {
  const { userId = '' } = useSession();
  const may = useMay();
  const recent = useRecent(userId);
  return (
    <SimpleGrid cols={{ base: 1, md: 2, lg: 3 }} data-testid="customers">
      <Find>{recent.length > 0 && <Accounts title="home.recent" of={recent} />}</Find>
      <Newest title="home.blocked" empty="home.noBlocked" search={{ status: 'blocked' }} />
      <Newest title="home.newest" empty="list.empty" search={{}} />
      {may(`GET ${refusals}`) && <Refusals />}
    </SimpleGrid>
  );
}

/** The form of the text decides the filter of the list, as in the list itself. */
function Find({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  return (
    <Card withBorder style={{ alignSelf: 'start' }}>
      <form
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = text.trim();
          if (!wanted) return;
          void navigate({ to: '/users', search: { ...(personOf(wanted) ?? { fullName: wanted }) } });
        }}
      >
        <Group gap="xs" align="end" wrap="nowrap">
          <TextInput
            flex={1}
            label={t('home.find')}
            placeholder={t('users.find')}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            data-testid="find-customer"
          />
          <Button type="submit" px="sm" aria-label={t('home.find')}>
            <IconSearch size={16} aria-hidden />
          </Button>
        </Group>
      </form>
      {children}
    </Card>
  );
}

/** A card with its list: a title, the link to the whole list, and a text for a list without entries. */
function Part({
  title,
  all,
  problem,
  count,
  empty,
  children,
}: {
  title: TextKey;
  /** The whole list; undefined if the user may not read it. */
  all?: Place;
  problem: unknown;
  /** undefined until it is known. */
  count?: number;
  empty: TextKey;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  return (
    <Card withBorder data-testid={title}>
      <Group justify="space-between" align="baseline">
        <Title order={2} size="h5">
          {t(title)}
        </Title>
        {all && (
          <AnchorLink {...all} size="sm">
            {t('home.all')}
          </AnchorLink>
        )}
      </Group>
      <Problem of={problem} />
      {count === undefined && !problem && <Skeleton height={120} mt="xs" />}
      {count === 0 && (
        <Text size="sm" c="dimmed" mt="xs">
          {t(empty)}
        </Text>
      )}
      {children}
    </Card>
  );
}

/** The newest accounts for a filter. */
function Newest({ title, empty, search }: { title: TextKey; empty: TextKey; search: { status?: string } }) {
  const { data, error } = useRead(path, { ...search, isSortedByDate: true, limit: shown });
  return (
    <Part title={title} all={placeOf('/users', search)} problem={error} count={data?.length} empty={empty}>
      {data && <Accounts of={data} />}
    </Part>
  );
}

const refusals = '/admin/refused-logins';

/** The last refused logins over all accounts. The audit has all of them with their requests. */
function Refusals() {
  const { t } = useTranslation();
  const may = useMay();
  const { data, error } = useRead(refusals, { limit: shown }, { every: 60_000 });
  return (
    <Part
      title="home.refusals"
      all={may('GET /admin/audit') ? placeOf('/audit', { action: 'LOGIN' }) : undefined}
      problem={error}
      count={data?.length}
      empty="home.noRefusals"
    >
      <Stack gap={6} mt="sm">
        {data?.map((l) => (
          <Group key={l.id} justify="space-between" gap="xs" wrap="nowrap" fz="sm" data-testid="refusal">
            <span className="sentence">
              {l.userId ? <Person id={l.userId} bare /> : t('home.stranger')}
              {l.reason && <> · {t(`login.cause.${l.reason}`, { attempt: l.attempt, limit: l.attemptLimit })}</>} ·{' '}
              <bdi dir="ltr">{l.ipaddress}</bdi>
            </span>
            <Text size="sm" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
              <Ago at={l.createdAt} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Part>
  );
}

function Accounts({ title, of }: { title?: TextKey; of: User[] }) {
  const { t } = useTranslation();
  return (
    <Stack gap={6} mt="sm">
      {title && (
        <Text size="sm" c="dimmed">
          {t(title)}
        </Text>
      )}
      {of.map((u) => (
        <Named key={u.userId} name={u.fullName} contact={u.email || u.phoneNumber} id={u.userId} to={u.userId} />
      ))}
    </Stack>
  );
}
