/** The screens of balances, transactions, currencies and providers. */
import {
  IconArrowDownCircle,
  IconArrowUpCircle,
  IconBuildingBank,
  IconCoins,
  IconScale,
  IconWallet,
} from '@tabler/icons-react';
import type { Listed, Names } from '../app/address';
import type { Screen } from '../app/screen';

declare module '../app/address' {
  interface Searches {
    '/transactions': Listed<'/admin/get-waiting-info-transactions'>;
    '/withdrawals': Listed<'/admin/get-withdrawal-crypto-queue'>;
    '/held': Listed<'/admin/get-withdrawal-crypto-queue'>;
    '/balances': Listed<'/admin/get-member-asset-balances-sum'>;
    '/statement': Listed<'/process/get-process-admin'>;
    '/adjust': Names<'userId'>;
    '/blockages': Listed<'/blockage/get-blockage-history'>;
    '/positions': Listed<'/balance/get-daily-position'>;
    '/providers': Listed<'/process/get-provider-balances', 'asset' | 'of'>;
    '/currencies': Listed<'/admin/currency/get-all', 'tab'>;
    '/rates': Listed<'/admin/get-last-rates-by-date'>;
    '/fees': Names<'tab'>;
    '/accounting': Names<'job'>;
    '/levels': Names;
    '/policy': Listed<'/admin/money/rules'>;
    '/me/addresses': Names;
  }
}

export const money: Screen[] = [
  {
    path: '/transactions',
    title: 'money.transactions',
    icon: IconArrowDownCircle,
    group: 'work',
    needs: ['GET /admin/get-waiting-info-transactions'],
    load: () => import('./transactions'),
  },
  {
    path: '/withdrawals',
    title: 'money.withdrawals',
    icon: IconArrowUpCircle,
    group: 'work',
    needs: ['GET /admin/get-withdrawal-crypto-queue'],
    load: () => import('./withdrawals'),
  },
  {
    path: '/held',
    title: 'hold.title',
    under: '/withdrawals',
    group: 'work',
    needs: ['GET /admin/get-withdrawal-crypto-queue'],
    load: () => import('./held'),
  },
  {
    path: '/balances',
    title: 'money.balances',
    family: 'family.balances',
    icon: IconWallet,
    group: 'money',
    needs: ['GET /admin/get-member-asset-balances-sum'],
    load: () => import('./balances'),
  },
  {
    path: '/statement',
    title: 'money.statement',
    under: '/balances',
    group: 'money',
    needs: ['GET /process/get-process-admin'],
    load: () => import('./statement'),
  },
  {
    path: '/adjust',
    title: 'money.adjust',
    family: 'family.adjust',
    icon: IconScale,
    group: 'money',
    needs: ['POST /admin/transaction/adjust-balance'],
    load: () => import('./adjust'),
  },
  {
    path: '/blockages',
    title: 'money.blockages',
    under: '/adjust',
    group: 'money',
    needs: ['GET /blockage/get-blockage-history'],
    load: () => import('./blockages'),
  },
  {
    path: '/positions',
    title: 'money.positions',
    under: '/balances',
    group: 'money',
    needs: ['GET /balance/get-daily-position'],
    load: () => import('./positions'),
  },
  {
    path: '/providers',
    title: 'money.providers',
    family: 'family.providers',
    icon: IconBuildingBank,
    group: 'money',
    needs: ['GET /process/get-provider-balances'],
    load: () => import('./providers'),
  },
  {
    path: '/currencies',
    title: 'currency.title',
    family: 'family.currencies',
    icon: IconCoins,
    group: 'money',
    needs: ['GET /admin/currency/get-all'],
    load: () => import('./currencies'),
  },
  {
    path: '/rates',
    title: 'rate.title',
    under: '/currencies',
    group: 'money',
    needs: ['GET /admin/get-last-rates-by-date'],
    load: () => import('./rates'),
  },
  {
    path: '/fees',
    title: 'fees.title',
    under: '/currencies',
    group: 'money',
    needs: ['GET /admin/get-parameters'],
    load: () => import('./fees'),
  },
  {
    path: '/accounting',
    title: 'accounting.title',
    under: '/providers',
    group: 'money',
    needs: ['POST /integration/begin-accounting-integration'],
    load: () => import('./accounting'),
  },
  {
    path: '/levels',
    title: 'levels.title',
    under: '/currencies',
    group: 'people',
    needs: ['GET /admin/levels'],
    load: () => import('./levels'),
  },
  {
    path: '/policy',
    title: 'policy.title',
    under: '/firewall',
    group: 'security',
    needs: ['GET /admin/money/rules'],
    load: () => import('./policy'),
  },
  {
    path: '/me/addresses',
    title: 'own.addresses',
    under: '/me',
    group: 'own',
    needs: ['GET /asset/withdrawal-addresses'],
    load: () => import('./addresses'),
  },
];
