/** The pending work of the user, by queue: for home and for the numbers in the menu. */
import type { PlainPath, Searches } from './address';
import type { Gets, Schemas } from './api';
import { useRead } from '../kit/read';
import { useMay } from './session';
import type { TextKey } from '../text/key';

/** An entry on home. */
interface Line {
  name?: string | null;
  amount?: string | null;
  unit?: string | null;
  at?: string | number | null;
}

/** A queue is a list: its page, and the query that finds the pending entries. */
interface Pending {
  /** The name in the inbox of the service. */
  queue: Schemas['InboxQueue']['queue'];
  /** Key of its name. */
  title: TextKey;
  path: Gets;
  query: Record<string, string>;
  /** The member by which several rows are one entry. */
  one?: string;
  /** Another queue counts its entries, too. */
  part?: boolean;
  /** The age of the oldest entry from which the card is red, in milliseconds. */
  lateMs?: number;
  /** Whether an entry makes the card red, too. */
  late?: (row: Record<string, unknown>, now: number) => boolean;
  line: (row: Record<string, string | null | undefined>) => Line;
}

/** The screen of the list, and the same filters in its address, where their names differ. */
type Queue = Pending &
  { [P in PlainPath]: { to: P } & ({ search: Searches[P] } | { search?: undefined; query: Searches[P] }) }[PlainPath];

export const queues: Queue[] = [
  {
    queue: 'documents',
    title: 'home.kyc',
    path: '/user/get-documents',
    query: { reason: 'waitingApproval', kycConfirm: 'waitingApproval' },
    to: '/kyc',
    search: {},
    one: 'userId',
    line: (d) => ({ name: d.fullName, at: d.createdAt }),
  },
  {
    queue: 'aml',
    title: 'home.aml',
    path: '/admin/user/get-users-without-aml-confirmed',
    query: { order: 'newest' }, // by account, not by finding
    to: '/aml',
    search: {},
    line: (u) => ({ name: u.fullName }),
  },
  {
    queue: 'deposits',
    title: 'home.transactions',
    path: '/admin/get-waiting-info-transactions',
    query: {},
    to: '/transactions',
    line: (d) => ({ name: sender(d.senderInfo), amount: d.value, unit: d.currencyCode, at: madeAt(d.transactionId) }),
  },
  {
    queue: 'withdrawals',
    title: 'home.withdrawals',
    path: '/admin/get-withdrawal-crypto-queue',
    query: { isActive: 'true' },
    to: '/withdrawals',
    line: (w) => ({ name: w.fullName, amount: w.amount, unit: w.code, at: w.createdAt }),
  },
  {
    queue: 'held',
    title: 'home.held',
    path: '/admin/get-withdrawal-crypto-queue',
    query: { statusCode: '5' },
    to: '/held',
    search: {},
    part: true,
    lateMs: 86_400_000,
    late: (w, now) => expiring(w['hold'], now),
    line: (w) => ({ name: w.fullName, amount: w.amount, unit: w.code, at: heldAt(w.hold) ?? w.createdAt }),
  },
  {
    queue: 'approvals',
    title: 'home.approvals',
    path: '/admin/approvals',
    query: { status: 'PENDING' },
    to: '/approvals',
    line: (a) => ({ name: a.summary, at: a.requestedAt }),
  },
  {
    queue: 'deploys',
    title: 'home.deploys',
    path: '/admin/deploy-request',
    query: { status: 'PENDING' },
    to: '/requests',
    search: {},
    line: (d) => ({ name: d.service_name, at: d.created_at }),
  },
  {
    queue: 'vpn',
    title: 'home.vpn',
    path: '/admin/vpn-request',
    query: { status: 'PENDING' },
    to: '/requests',
    search: {},
    line: (v) => ({ name: [v.name, v.surname].filter(Boolean).join(' ') || v.user_name, at: v.created_at }),
  },
  {
    queue: 'applications',
    title: 'home.corporate',
    path: '/admin/get-corporate-application',
    query: { status: 'PENDING' },
    to: '/corporate',
    line: (a) => ({ name: a.companyName, at: a.createdAt }),
  },
];

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The time of a transaction: its id starts with the milliseconds since 1970 (ULID). */
const madeAt = (id?: string | null) => id && [...id.slice(0, 10)].reduce((ms, d) => ms * 32 + digits.indexOf(d), 0);

export type Waiting = Queue & {
  count: number;
  /** There are more than count. */
  more: boolean;
  /** The creation of the oldest pending entry. */
  oldestAt: string | null;
};

/** The sender of a deposit has a name and a country; it may be unknown. */
const sender = (of: unknown) => (of as { name?: string } | null | undefined)?.name;

/** The beginning of a hold, which an entry may have. */
const heldAt = (of: unknown) => (of as { since?: string } | null | undefined)?.since;

/** Whether half of the time of approvals that are missing has passed, as for the doctor. */
export function expiring(of: unknown, now: number): boolean {
  const hold = of as Schemas['QueuedWithdrawalHold'] | null | undefined;
  return !!hold?.approvals.some(
    (a) => a.given < a.required && 2 * now >= Date.parse(hold.since) + Date.parse(a.expiresAt),
  );
}

/** The address of the inbox. Every write reads it again. */
export const inbox = '/inbox';

/** The queues that the user may see, with their pending entries. Read again every minute, by one request. */
export function useWaiting(): { known: boolean; waiting: Waiting[] } {
  const may = useMay();
  const mine = queues.filter((q) => may(`GET ${q.path}`));
  const { data } = useRead(inbox, undefined, { every: 60_000, enabled: mine.length > 0 && may(`GET ${inbox}`) });
  const waiting = (data?.data ?? []).flatMap((found) => {
    const queue = mine.find((q) => q.queue === found.queue);
    return queue ? [{ ...queue, count: found.count, more: found.more, oldestAt: found.oldestAt ?? null }] : [];
  });
  return { known: !!data || mine.length === 0, waiting };
}
