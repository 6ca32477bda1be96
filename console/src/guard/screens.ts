/** The screens of the firewall. */
import type { Screen } from '../app/screen';

export const guard: Screen[] = [
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
];
