/** The screens of roles, second factors, firewall and audit. */
import type { Screen } from '../app/screen';

export const security: Screen[] = [
  {
    path: '/mfa',
    title: 'mfa.title',
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
    path: '/firewall',
    title: 'firewall.title',
    group: 'security',
    needs: ['GET /admin/system/waf/rules'],
    load: () => import('./firewall'),
  },
  {
    path: '/firewall/explain',
    title: 'firewallWhy.title',
    group: 'security',
    needs: ['POST /admin/system/waf/explain'],
    inner: true,
    load: () => import('./firewallexplain'),
  },
  {
    path: '/roles',
    title: 'roles.title',
    group: 'security',
    needs: ['GET /admin/roles'],
    load: () => import('./roles'),
  },
  {
    path: '/service-keys',
    title: 'serviceKeys.title',
    group: 'security',
    needs: ['GET /admin/service-keys'],
    load: () => import('./servicekeys'),
  },
  {
    path: '/audit',
    title: 'audit.title',
    group: 'security',
    needs: ['GET /admin/audit'],
    load: () => import('./audit'),
  },
];
