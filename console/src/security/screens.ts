/** The screens of roles, second factors, firewall and audit. */
import type { Screen } from '../app/screens';

export const security: Screen[] = [
  { path: '/audit', title: 'audit.title', group: 'security', needs: ['GET /admin/audit'], load: () => import('./audit') },
];
