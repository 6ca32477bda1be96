/** The screens of one's own account and security. */
import type { Screen } from '../app/screen';

export const own: Screen[] = [
  { path: '/me', title: 'own.security', group: 'own', needs: ['GET /auth/sessions'], load: () => import('./security') },
  {
    path: '/me/account',
    title: 'own.account',
    group: 'own',
    needs: ['GET /user/user-profile'],
    load: () => import('./account'),
  },
  {
    path: '/me/countries',
    title: 'own.countries',
    group: 'own',
    needs: ['GET /user/geofilter/countries'],
    load: () => import('./countries'),
  },
  {
    path: '/me/addresses',
    title: 'own.addresses',
    group: 'own',
    needs: ['GET /asset/withdrawal-addresses'],
    load: () => import('./addresses'),
  },
  {
    path: '/me/notifications',
    title: 'own.notifications',
    group: 'own',
    needs: ['GET /user/notifications'],
    load: () => import('./notifications'),
  },
];
