/** The screens of the firewall, and of the guard for gateways. */
import { IconShield } from '@tabler/icons-react';
import type { Listed, Names } from '../app/address';
import type { Screen } from '../app/screen';

declare module '../app/address' {
  interface Searches {
    '/firewall': Listed<'/admin/system/waf/rules', 'add'>;
    '/firewall/explain': Names<'resource' | 'service' | 'userId' | 'ip' | 'countryCode' | 'code'>;
    '/gateways': Listed<'/admin/guard/routes'>;
    '/gateways/explain': Names<'host' | 'method' | 'path'>;
  }
}

export const guard: Screen[] = [
  {
    path: '/firewall',
    title: 'firewall.title',
    icon: IconShield,
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
    path: '/gateways',
    title: 'gateway.title',
    under: '/firewall',
    group: 'security',
    needs: ['GET /admin/guard/routes'],
    load: () => import('./routes'),
  },
  {
    path: '/gateways/explain',
    title: 'gatewayWhy.title',
    group: 'security',
    needs: ['POST /admin/guard/explain'],
    inner: true,
    load: () => import('./routeexplain'),
  },
];
