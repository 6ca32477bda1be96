/** The screens of currencies, contracts, announcements and the rest of the back office. */
import type { Screen } from '../app/screen';

export const content: Screen[] = [
  {
    path: '/requests',
    title: 'request.title',
    group: 'work',
    needs: ['GET /admin/deploy-request'],
    load: () => import('./requests'),
  },
  {
    path: '/currencies',
    title: 'currency.title',
    group: 'money',
    needs: ['GET /admin/currency/get-all'],
    load: () => import('./currencies'),
  },
  {
    path: '/rates',
    title: 'rate.title',
    group: 'money',
    needs: ['GET /admin/get-last-rates-by-date'],
    load: () => import('./rates'),
  },
  {
    path: '/fees',
    title: 'fees.title',
    group: 'money',
    needs: ['GET /admin/get-parameters'],
    load: () => import('./fees'),
  },
  {
    path: '/accounting',
    title: 'accounting.title',
    group: 'money',
    needs: ['POST /integration/begin-accounting-integration'],
    load: () => import('./accounting'),
  },
  {
    path: '/contracts',
    title: 'contract.title',
    group: 'content',
    needs: ['GET /admin/get-contracts'],
    load: () => import('./contracts'),
  },
  {
    path: '/contracts/$id',
    title: 'contract.one',
    group: 'content',
    needs: ['GET /admin/get-contract-details'],
    inner: true,
    load: () => import('./contract'),
  },
  // Announcements are read by everybody; the screen is for those who write them.
  {
    path: '/announcements',
    title: 'announcement.title',
    group: 'content',
    needs: ['POST /announcement/update'],
    load: () => import('./announcements'),
  },
  {
    path: '/agreements',
    title: 'agreement.title',
    group: 'content',
    needs: ['GET /admin/get-agreements'],
    load: () => import('./agreements'),
  },
  {
    path: '/mailings',
    title: 'mailing.title',
    group: 'content',
    needs: ['POST /admin/send-notification'],
    load: () => import('./mailings'),
  },
  {
    path: '/cdn',
    title: 'cdn.title',
    group: 'content',
    needs: ['POST /admin/cdn/upload'],
    load: () => import('./cdn'),
  },
  {
    path: '/parameters',
    title: 'parameter.title',
    group: 'system',
    needs: ['GET /admin/get-parameters'],
    load: () => import('./parameters'),
  },
];
