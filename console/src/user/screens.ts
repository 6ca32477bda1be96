/** The screens of accounts and of companies. */
import type { Screen } from '../app/screen';

export const user: Screen[] = [
  {
    path: '/users',
    title: 'users.title',
    group: 'people',
    needs: ['GET /admin/list-users'],
    load: () => import('./users'),
  },
  {
    path: '/users/active',
    title: 'users.active',
    group: 'people',
    needs: ['GET /admin/get-active-users'],
    inner: true,
    load: () => import('./active'),
  },
  {
    path: '/users/registered',
    title: 'users.registered',
    group: 'people',
    needs: ['GET /admin/get-users-by-register-date'],
    inner: true,
    load: () => import('./registered'),
  },
  {
    path: '/users/logins',
    title: 'users.logins',
    group: 'people',
    needs: ['GET /admin/login-history-v2'],
    inner: true,
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
    group: 'people',
    needs: ['GET /admin/get-corporate-application'],
    load: () => import('./applications'),
  },
  {
    path: '/levels',
    title: 'levels.title',
    group: 'people',
    needs: ['GET /admin/levels'],
    load: () => import('./levels'),
  },
  {
    path: '/corporate/users',
    title: 'corporate.users',
    group: 'people',
    needs: ['GET /admin/get-corporate-users'],
    inner: true,
    load: () => import('./members'),
  },
];
