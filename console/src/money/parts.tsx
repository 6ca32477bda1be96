/** What the screens of money share: small tables, and how accounts stand. */
import { Anchor, Button, Group, Stack, Table, Text, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQueries } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { ask, type Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import type { Column } from '../kit/list';
import { useRead } from '../kit/read';
import { Diff } from '../kit/record';
import { Id, Money, plain } from '../kit/show';

/** A height for a chart, never shown as an amount and never counted with. */
export function forTheEye(amount: number | string): number {
  return JSON.parse(String(amount)) as number;
}

export type Search = Record<string, string | undefined>;

/** The address of the screen: what it says, and how to change it. */
export function useAddress(): [Search, (next: Search) => void] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  return [search, (next) => void navigate({ to: '.', search: ((old: object) => ({ ...old, ...next })) as never })];
}

/** A table of few rows below another part; it is never cut. */
export function Small<T extends object>({
  title,
  rows,
  columns,
  id,
}: {
  title: string;
  rows?: T[];
  columns: Column<T>[];
  id: (row: T) => string;
}) {
  const { t } = useTranslation();
  return (
    <Stack gap="xs" data-testid={`small-${title}`}>
      <Title order={2} size="h5">
        {t(title)}
      </Title>
      {rows?.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t('list.empty')}
        </Text>
      ) : (
        <Table.ScrollContainer minWidth={400}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                {columns.map((c) => (
                  <Table.Th key={c.key}>{t(c.title)}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows?.map((row, n) => (
                <Table.Tr key={`${id(row)} ${n}`}>
                  {columns.map((c) => (
                    <Table.Td key={c.key}>{c.show ? c.show(row) : plain(row[c.key])}</Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </Stack>
  );
}

const catalogue = '/get-all-currency-network';
type Pair = Schemas['CurrencyNetworkListed'];

/** Each currency on each network, for callers who may read the catalogue; none for others. */
export function usePairs(enabled = true): Pair[] {
  const may = useMay();
  return useRead(catalogue, undefined, { enabled: enabled && may(`GET ${catalogue}`) }).data ?? [];
}

/** Most decimals of an amount of a currency: on one network, or on any. Unknown where the catalogue does not say. */
export function decimalsOf(pairs: Pair[], currencyCode: string, networkCode?: string): number | undefined {
  const all = pairs.filter((p) => p.currencyCode === currencyCode && p.networkCode === (networkCode ?? p.networkCode));
  return all.length > 0 ? Math.max(...all.map((p) => p.decimals)) : undefined;
}

const users = '/admin/list-users';
const ways = [
  { to: '/balances', needs: 'GET /admin/get-member-asset-balances-sum', title: 'money.balances' },
  { to: '/statement', needs: 'GET /process/get-process-admin', title: 'money.statement' },
  { to: '/blockages', needs: 'GET /blockage/get-blockage-history', title: 'money.blockages' },
  { to: '/adjust', needs: 'POST /admin/transaction/adjust-balance', title: 'money.adjust' },
];

/** Whose account it is, and the ways to what else there is of its money. here is the screen that shows it. */
export function Owner({ userId, here, bare = false }: { userId: string; here?: string; bare?: boolean }) {
  const { t } = useTranslation();
  const may = useMay();
  const whole = /^[0-9A-Z]{26}$/.test(userId); // not while it is typed
  const read = useRead(users, { userId }, { enabled: whole && may(`GET ${users}`) });
  const open = ways.filter((w) => !bare && w.to !== here && may(w.needs));
  if (!whole) return null;
  const user = read.data?.[0];
  return (
    <Group gap="xs" data-testid="owner">
      {user && (
        <Anchor component={Link} to={`/users/${userId}` as string} fw={600} size="sm">
          <bdi>{user.fullName || user.email || userId}</bdi>
        </Anchor>
      )}
      {read.data?.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('money.noSuchUser')}
        </Text>
      )}
      {open.map((w) => (
        <Button
          key={w.to}
          component={Link}
          to={w.to as string}
          search={{ userId } as never}
          size="compact-xs"
          variant="default"
        >
          {t(w.title)}
        </Button>
      ))}
    </Group>
  );
}

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** When a transaction was made: its id begins with the milliseconds since 1970 (ULID). */
export function madeAt(id: string): number {
  return [...id.slice(0, 10)].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0);
}

/** What the fields of a change are called. */
export const names: Record<string, string> = {
  balance: 'money.balance',
  available: 'money.available',
  locked: 'money.locked',
  userId: 'money.user',
  currencyCode: 'money.currency',
  networkCode: 'money.network',
  amount: 'money.amount',
  address: 'money.address',
  status: 'money.status',
  reason: 'money.reason',
  uniqueId: 'money.uniqueId',
};

/** What a user has of a currency, over all its networks. */
export interface Holding {
  userId: string;
  code: string;
}

type Sum = Schemas['CurrencySum'];

export const sums = '/admin/get-member-asset-balances-sum';

/** Without such an account yet there is nothing of it. */
const none: Partial<Sum> = {};

/** How these accounts stand, for who may ask; once done, beside how they stood when it was sent. */
export function Standing({
  of,
  sent = false,
  done = false,
  title = 'money.before',
  quiet = false,
}: {
  of: Holding[];
  sent?: boolean;
  done?: boolean;
  title?: string;
  /** Shown once done: until then a preview says more. */
  quiet?: boolean;
}) {
  const { t } = useTranslation();
  const [settled] = useDebouncedValue(JSON.stringify(of), 400); // not one question for each letter that is typed
  const asked = useMay()(`GET ${sums}`) ? (JSON.parse(settled) as Holding[]) : [];
  const one = [...new Map(asked.filter((h) => h.userId && h.code).map((h) => [`${h.userId} ${h.code}`, h])).values()];
  const answers = useQueries({
    queries: one.map(({ userId, code }) => ({
      queryKey: [sums, { userId, code }],
      staleTime: 0,
      queryFn: ({ signal }: { signal: AbortSignal }) => ask<Sum[]>(sums, { query: { userId, code } }, signal),
    })),
  });
  const before = useRef(new Map<string, Partial<Sum>>());
  useEffect(() => {
    if (sent || done) return; // what is read from now on may be what came of it
    one.forEach((h, n) => {
      const seen = answers[n]?.data;
      if (seen) before.current.set(`${h.userId} ${h.code}`, seen[0] ?? none);
    });
  });
  if (one.length === 0 || (quiet && !done)) return null;
  return (
    <Stack gap="xs" data-testid="standing">
      <Text size="sm" fw={600}>
        {t(done ? 'money.changed' : title)}
      </Text>
      {one.map((h, n) => {
        const now = answers[n]?.data?.[0] ?? none;
        return (
          <div key={`${h.userId} ${h.code}`}>
            <Id of={h.userId} short /> <bdi dir="ltr">{h.code}</bdi>
            <Problem of={answers[n]?.error} />
            {done ? (
              <Diff
                before={amounts(before.current.get(`${h.userId} ${h.code}`) ?? none)}
                after={amounts(now)}
                names={names}
                all
              />
            ) : (
              answers[n]?.data && <Amounts of={now} />
            )}
          </div>
        );
      })}
    </Stack>
  );
}

function amounts({ balance, available, locked }: Partial<Sum>) {
  return { balance, available, locked };
}

function Amounts({ of }: { of: Partial<Sum> }) {
  const { t } = useTranslation();
  if (of.balance === undefined)
    return (
      <Text size="sm" c="dimmed">
        {t('money.noAccount')}
      </Text>
    );
  return (
    <Table withTableBorder>
      <Table.Tbody>
        {(['balance', 'available', 'locked'] as const).map((key) => (
          <Table.Tr key={key}>
            <Table.Th>{t(`money.${key}`)}</Table.Th>
            <Table.Td>
              <Money amount={of[key]} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
