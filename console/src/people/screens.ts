/** The screens of accounts, companies, documents, identity and AML. */
import { IconBuilding, IconIdBadge2, IconUsers } from '@tabler/icons-react';
import type { Listed, Names } from '../app/address';
import type { Screen } from '../app/screen';

declare module '../app/address' {
  interface Searches {
    '/kyc': Listed<'/user/get-documents', 'all'>;
    '/kyc/$id': Names;
    '/aml': Listed<'/admin/user/get-users-without-aml-confirmed'>;
    '/documents': Listed<'/user/get-documents'>;
    '/users': Listed<'/admin/list-users'>;
    '/users/active': Listed<'/admin/get-active-users'>;
    '/users/registered': Listed<'/admin/get-users-by-register-date'>;
    '/users/logins': Listed<'/admin/login-history-v2'>;
    '/users/$id': Names<'tab' | 'kinds'>;
    '/corporate': Listed<'/admin/get-corporate-application'>;
    '/corporate/users': Listed<'/admin/get-corporate-users'>;
    '/options': Listed<'/admin/dropdown-options'>;
    '/agreements': Listed<'/admin/get-agreements', 'job'>;
  }
}

export const people: Screen[] = [
  {
    path: '/kyc',
    title: 'kyc.title',
    family: 'family.checks',
    icon: IconIdBadge2,
    group: 'work',
    needs: ['GET /user/get-documents', 'GET /user/get-kyc-images', 'POST /user/update-kyc'],
    load: () => import('./kyc/queue'),
  },
  {
    path: '/kyc/$id',
    title: 'kyc.case',
    group: 'work',
    needs: ['GET /user/get-documents', 'GET /user/get-kyc-images'],
    inner: true,
    load: () => import('./kyc/case'),
  },
  {
    path: '/aml',
    title: 'aml.title',
    under: '/kyc',
    group: 'work',
    needs: ['GET /admin/user/get-users-without-aml-confirmed'],
    load: () => import('./kyc/aml'),
  },
  {
    path: '/documents',
    title: 'documents.title',
    under: '/kyc',
    group: 'people',
    needs: ['GET /user/get-documents'],
    load: () => import('./kyc/documents'),
  },
  {
    path: '/users',
    title: 'users.title',
    family: 'family.users',
    icon: IconUsers,
    group: 'people',
    needs: ['GET /admin/list-users'],
    load: () => import('./users'),
  },
  {
    path: '/users/active',
    title: 'users.active',
    under: '/users',
    group: 'people',
    needs: ['GET /admin/get-active-users'],
    load: () => import('./active'),
  },
  {
    path: '/users/registered',
    title: 'users.registered',
    under: '/users',
    group: 'people',
    needs: ['GET /admin/get-users-by-register-date'],
    load: () => import('./registered'),
  },
  {
    path: '/users/logins',
    title: 'users.logins',
    under: '/users',
    group: 'people',
    needs: ['GET /admin/login-history-v2'],
    load: () => import('./logins'),
  },
  {
    path: '/users/$id',
    title: 'user.title',
    group: 'people',
    needs: ['GET /admin/list-users'],
    inner: true,
    load: () => import('./user'),
  },
  {
    path: '/corporate',
    title: 'corporate.title',
    family: 'family.corporate',
    icon: IconBuilding,
    group: 'people',
    needs: ['GET /admin/get-corporate-application'],
    load: () => import('./applications'),
  },
  {
    path: '/corporate/users',
    title: 'corporate.users',
    under: '/corporate',
    group: 'people',
    needs: ['GET /admin/get-corporate-users'],
    load: () => import('./members'),
  },
  {
    path: '/options',
    title: 'options.title',
    under: '/contracts',
    group: 'content',
    needs: ['GET /admin/dropdown-options'],
    load: () => import('./options'),
  },
  {
    path: '/agreements',
    title: 'agreement.title',
    under: '/contracts',
    group: 'content',
    needs: ['GET /admin/get-agreements'],
    load: () => import('./agreements'),
  },
];
