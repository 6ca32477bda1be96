/** The screens of accounts. */
import type { Screen } from '../app/screens';

export const user: Screen[] = [
  { path: '/users', title: 'users.title', group: 'people', needs: ['GET /admin/list-users'], load: () => import('./users') },
  { path: '/users/$id', title: 'user.title', group: 'people', needs: ['GET /admin/list-users'], inner: true,
    load: () => import('./user') },
];
