/** The part of home for users who serve customers: a search, the recent customers, and the blocked and new accounts. */
import { Button, Card, Group, SimpleGrid, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api';
import { Problem } from '../problem';
import { personOf } from './palette';
import { useRecent } from './recent';
import { useSession } from '../session';
import { AnchorLink } from '../frame/link';
import { Named } from '../../kit/person';
import { useRead } from '../../kit/read';
import type { TextKey } from '../../text/key';

const path = '/admin/list-users';
type User = Schemas['UserListItem'];

/** The number of accounts in a card. */
const shown = 5;

export function Customers() {
  const { userId = '' } = useSession();
  const recent = useRecent(userId);
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} data-testid="customers">
      <Find>{recent.length > 0 && <Accounts title="home.recent" of={recent} />}</Find>
      <Newest title="home.blocked" empty="home.noBlocked" search={{ status: 'blocked' }} />
      <Newest title="home.newest" empty="list.empty" search={{}} />
    </SimpleGrid>
  );
}

/** The form of the text decides the filter of the list, as in the list itself. */
function Find({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  return (
    <Card withBorder>
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

/** The newest accounts for a filter. */
function Newest({ title, empty, search }: { title: TextKey; empty: TextKey; search: { status?: string } }) {
  const { t } = useTranslation();
  const { data, error } = useRead(path, { ...search, isSortedByDate: true, limit: shown });
  return (
    <Card withBorder data-testid={title}>
      <Group justify="space-between" align="baseline">
        <Title order={2} size="h5">
          {t(title)}
        </Title>
        <AnchorLink to="/users" search={search} size="sm">
          {t('home.all')}
        </AnchorLink>
      </Group>
      <Problem of={error} />
      {!data && !error && <Skeleton height={120} mt="xs" />}
      {data?.length === 0 && (
        <Text size="sm" c="dimmed" mt="xs">
          {t(empty)}
        </Text>
      )}
      {data && <Accounts of={data} />}
    </Card>
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
