/** Shared parts of the money screens: small tables, and the balances of accounts. */
import { Group, Stack, Table, Text, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQueries } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { ask, type Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { AnchorLink, ButtonLink } from '../app/frame/link';
import { alignedBy, type Column } from '../kit/list';
import { Person } from '../kit/person';
import { useRead } from '../kit/read';
import { Diff } from '../kit/record';
import { Decimals, decimalsIn, Money, plain, Titled } from '../kit/show';
import { Wide } from '../kit/wide';
import type { TextKey } from '../text/key';

/** A height for a chart, never shown as an amount and never used in calculations. */
export function forTheEye(amount: number | string): number {
  return JSON.parse(String(amount)) as number;
}

/** A small table below another part, without pages. */
export function Small<T extends object>({
  title,
  rows,
  columns,
  id,
}: {
  title: TextKey;
  rows?: T[];
  columns: Column<T>[];
  id: (row: T) => string;
}) {
  const { t } = useTranslation();
  const ends = alignedBy(columns, rows ?? []);
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
        <Wide label={t(title)} minWidth={400}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                {columns.map((c) => (
                  <Table.Th key={c.key} data-end={c.end || undefined}>
                    {t(c.title)}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows?.map((row, n) => (
                <Table.Tr key={`${id(row)} ${n}`}>
                  {columns.map((c) => (
                    <Table.Td key={c.key} data-end={c.end || undefined}>
                      <Decimals value={ends.get(c.key) ?? 0}>{c.show ? c.show(row) : plain(row[c.key])}</Decimals>
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Wide>
      )}
    </Stack>
  );
}

const catalogue = '/get-all-currency-network';
type Pair = Schemas['CurrencyNetworkListed'];

/** The links of currencies and networks, for callers who may read the catalogue; empty for others. */
export function usePairs(enabled = true): Pair[] {
  const may = useMay();
  return useRead(catalogue, undefined, { enabled: enabled && may(`GET ${catalogue}`) }).data ?? [];
}

/** A currency by its code, and its name below. */
export function Currency({ of }: { of: string }) {
  const name = usePairs().find((p) => p.currencyCode === of)?.currencyName;
  return <Titled name={of} below={name === of ? undefined : name} />;
}

/**
 * The most decimals of an amount of a currency: on one network, or on any. Undefined where the catalogue has no value.
 */
export function decimalsOf(pairs: Pair[], currencyCode: string, networkCode?: string): number | undefined {
  const all = pairs.filter((p) => p.currencyCode === currencyCode && p.networkCode === (networkCode ?? p.networkCode));
  return all.length > 0 ? Math.max(...all.map((p) => p.decimals)) : undefined;
}

const users = '/admin/list-users';
/** The screens whose search has the owner. */
type Way = '/balances' | '/statement' | '/blockages' | '/adjust';
const ways: { to: Way; needs: string; title: TextKey }[] = [
  { to: '/balances', needs: 'GET /admin/get-member-asset-balances-sum', title: 'money.balances' },
  { to: '/statement', needs: 'GET /process/get-process-admin', title: 'money.statement' },
  { to: '/blockages', needs: 'GET /blockage/get-blockage-history', title: 'money.blockages' },
  { to: '/adjust', needs: 'POST /admin/transaction/adjust-balance', title: 'money.adjust' },
];

/** The owner of an account, with links to the owner's other money screens. here is the current screen. */
export function Owner({ userId, here, bare = false }: { userId: string; here?: string; bare?: boolean }) {
  const { t } = useTranslation();
  const may = useMay();
  const whole = /^[0-9A-Z]{26}$/.test(userId); // not while the user types
  const read = useRead(users, { userId }, { enabled: whole && may(`GET ${users}`) });
  const open = ways.filter((w) => !bare && w.to !== here && may(w.needs));
  if (!whole) return null;
  const user = read.data?.[0];
  return (
    <Group gap="xs" data-testid="owner">
      {user && (
        <AnchorLink to="/users/$id" params={{ id: userId }} fw={600} size="sm">
          <bdi>{user.fullName || user.email || userId}</bdi>
        </AnchorLink>
      )}
      {read.data?.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('money.noSuchUser')}
        </Text>
      )}
      {open.map((w) => (
        <ButtonLink key={w.to} to={w.to} search={{ userId }} size="compact-xs" variant="default">
          {t(w.title)}
        </ButtonLink>
      ))}
    </Group>
  );
}

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The time of a transaction: its id starts with the milliseconds since 1970 (ULID). */
export function madeAt(id: string): number {
  return [...id.slice(0, 10)].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0);
}

/** Keys of the names of the changed fields. */
export const names: Record<string, TextKey> = {
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
  type: 'money.blockType',
};

/** The balance of a user in a currency, over all networks. */
export interface Holding {
  userId: string;
  code: string;
}

type Sum = Schemas['CurrencySum'];

export const sums = '/admin/get-member-asset-balances-sum';

/** Used while the user has no account in the currency. */
const none: Partial<Sum> = {};

/** The balances of accounts, for users who may read them. After the write, the balances before it are shown too. */
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
  title?: TextKey;
  /** Shown only after the write: before it, a preview says more. */
  quiet?: boolean;
}) {
  const { t } = useTranslation();
  const [settled] = useDebouncedValue(JSON.stringify(of), 400); // no request for each typed character
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
    if (sent || done) return; // later reads may already include the change
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
      {/* eslint-disable-next-line react-hooks/refs -- it is read after the write, and no longer changes then */}
      {one.map((h, n) => {
        const now = answers[n]?.data?.[0] ?? none;
        return (
          <div key={`${h.userId} ${h.code}`}>
            {one.length > 1 && <Person id={h.userId} />} <bdi dir="ltr">{h.code}</bdi>
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
  const keys = ['balance', 'available', 'locked'] as const;
  if (of.balance === undefined)
    return (
      <Text size="sm" c="dimmed">
        {t('money.noAccount')}
      </Text>
    );
  return (
    <Table withTableBorder>
      <Table.Tbody>
        {keys.map((key) => (
          <Table.Tr key={key}>
            <Table.Th>{t(`money.${key}`)}</Table.Th>
            <Table.Td data-end>
              <Decimals value={Math.max(...keys.map((one) => decimalsIn(of[one])))}>
                <Money amount={of[key]} />
              </Decimals>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
