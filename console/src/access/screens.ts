/** The screens of roles, MFA, service keys and the user's own security. */
import { IconKey, IconLock, IconUserCircle } from '@tabler/icons-react';
import type { Listed, Names } from '../app/address';
import type { Screen } from '../app/screen';

declare module '../app/address' {
  interface Searches {
    '/mfa': Names<'tab'>;
    '/mfa/explain': Names<'actionCode' | 'userId' | 'ip'>;
    '/roles': Names<'tab'>;
    '/service-keys': Listed<'/admin/service-keys'>;
    '/me': Names;
    '/me/account': Names;
    '/me/countries': Names;
  }
}

export const access: Screen[] = [
  {
    path: '/mfa',
    title: 'mfa.title',
    icon: IconLock,
    group: 'security',
    needs: ['GET /admin/system/mfa/policies'],
    load: () => import('./mfa'),
  },
  {
    path: '/mfa/explain',
    title: 'mfaWhy.title',
    group: 'security',
    needs: ['POST /admin/system/mfa/explain'],
    inner: true,
    load: () => import('./mfaexplain'),
  },
  {
    path: '/roles',
    title: 'roles.title',
    family: 'family.access',
    icon: IconKey,
    group: 'security',
    needs: ['GET /admin/roles'],
    load: () => import('./roles'),
  },
  {
    path: '/service-keys',
    title: 'serviceKeys.title',
    under: '/roles',
    group: 'security',
    needs: ['GET /admin/service-keys'],
    load: () => import('./servicekeys'),
  },
  {
    path: '/me',
    title: 'own.security',
    family: 'family.own',
    icon: IconUserCircle,
    group: 'own',
    needs: ['GET /auth/sessions'],
    load: () => import('./security'),
  },
  {
    path: '/me/account',
    title: 'own.account',
    under: '/me',
    group: 'own',
    needs: ['GET /user/user-profile'],
    load: () => import('./account'),
  },
  {
    path: '/me/countries',
    title: 'own.countries',
    under: '/me',
    group: 'own',
    needs: ['GET /user/geofilter/countries'],
    load: () => import('./countries'),
  },
];
