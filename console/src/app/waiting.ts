/** The pending work of the user, by queue: for home and for the numbers in the menu. */
import { useQueries } from '@tanstack/react-query';
import { readPage, type Gets } from './api';
import { useMay } from './session';

/** A queue is a list: its page, and the query that finds the pending entries. */
export interface Queue {
  /** Key of its name. */
  title: string;
  path: Gets;
  query: Record<string, string>;
  /** The screen of the list. */
  to: string;
  /** The same filters in the address of the screen, where their names differ. */
  search?: Record<string, string>;
}

export const queues: Queue[] = [
  {
    title: 'home.kyc',
    path: '/user/get-documents',
    query: { reason: 'waitingApproval', kycConfirm: 'waitingApproval' },
    to: '/kyc',
    search: {},
  },
  { title: 'home.aml', path: '/admin/user/get-users-without-aml-confirmed', query: {}, to: '/aml' },
  { title: 'home.transactions', path: '/admin/get-waiting-info-transactions', query: {}, to: '/transactions' },
  {
    title: 'home.withdrawals',
    path: '/admin/get-withdrawal-crypto-queue',
    query: { isActive: 'true' },
    to: '/withdrawals',
  },
  { title: 'home.approvals', path: '/admin/approvals', query: { status: 'PENDING' }, to: '/approvals' },
  { title: 'home.deploys', path: '/admin/deploy-request', query: {}, to: '/requests' },
  { title: 'home.vpn', path: '/admin/vpn-request', query: {}, to: '/requests' },
  { title: 'home.corporate', path: '/admin/get-corporate-application', query: { status: 'PENDING' }, to: '/corporate' },
];

const most = 100;

export interface Waiting extends Queue {
  count: number;
  /** There are more than count. */
  more: boolean;
}

/** The queues that the user may see, with the number of pending entries. Read again every minute. */
export function useWaiting(): Waiting[] {
  const may = useMay();
  const mine = queues.filter((q) => may(`GET ${q.path}`));
  const pages = useQueries({
    queries: mine.map(({ path, query }) => ({
      queryKey: [path, 'waiting', query],
      refetchInterval: 60_000,
      queryFn: ({ signal }: { signal: AbortSignal }) => readPage<unknown>(path, { ...query, limit: most }, signal),
    })),
  });
  return mine.map((q, n) => ({ ...q, count: pages[n]?.data?.rows.length ?? 0, more: !!pages[n]?.data?.next }));
}
