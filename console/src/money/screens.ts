/** The screens of balances, transactions and providers. */
import type { Screen } from '../app/screen';

export const money: Screen[] = [
  {
    path: '/approvals',
    title: 'approvals.title',
    group: 'work',
    needs: ['GET /admin/approvals'],
    load: () => import('./approvals'),
  },
  {
    path: '/transactions',
    title: 'money.transactions',
    group: 'work',
    needs: ['GET /admin/get-waiting-info-transactions'],
    load: () => import('./transactions'),
  },
  {
    path: '/withdrawals',
    title: 'money.withdrawals',
    group: 'work',
    needs: ['GET /admin/get-withdrawal-crypto-queue'],
    load: () => import('./withdrawals'),
  },
  {
    path: '/balances',
    title: 'money.balances',
    group: 'money',
    needs: ['GET /admin/get-member-asset-balances-sum'],
    load: () => import('./balances'),
  },
  {
    path: '/statement',
    title: 'money.statement',
    group: 'money',
    needs: ['GET /process/get-process-admin'],
    load: () => import('./statement'),
  },
  {
    path: '/adjust',
    title: 'money.adjust',
    group: 'money',
    needs: ['POST /admin/transaction/adjust-balance'],
    load: () => import('./adjust'),
  },
  {
    path: '/blockages',
    title: 'money.blockages',
    group: 'money',
    needs: ['GET /blockage/get-blockage-history'],
    load: () => import('./blockages'),
  },
  {
    path: '/positions',
    title: 'money.positions',
    group: 'money',
    needs: ['GET /balance/get-daily-position'],
    load: () => import('./positions'),
  },
  {
    path: '/providers',
    title: 'money.providers',
    group: 'money',
    needs: ['GET /process/get-provider-balances'],
    load: () => import('./providers'),
  },
];
