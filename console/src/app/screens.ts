/**
 * The list of all screens. The menu, the palette and the routes are built from it. A screen is loaded when it is
 * opened.
 */
import { IconClock, IconInbox, IconListSearch, IconServer } from '@tabler/icons-react';
import { access } from '../access/screens';
import { delivery } from '../delivery/screens';
import { guard } from '../guard/screens';
import { money } from '../money/screens';
import { office } from '../office/screens';
import { people } from '../people/screens';
import type { Screen } from './screen';

const app: Screen[] = [
  {
    path: '/',
    title: 'home.title',
    icon: IconInbox,
    group: 'work',
    needs: [],
    load: () => import('./home'),
  },
  {
    path: '/jobs',
    title: 'jobs.title',
    icon: IconClock,
    group: 'system',
    needs: ['GET /admin/jobs'],
    load: () => import('./jobs'),
  },
  {
    path: '/jobs/$id',
    title: 'jobs.job',
    group: 'system',
    needs: ['GET /admin/jobs/{id}'],
    inner: true,
    load: () => import('./job'),
  },
  {
    path: '/cluster',
    title: 'cluster.title',
    family: 'family.system',
    icon: IconServer,
    group: 'system',
    needs: ['GET /admin/cluster'],
    load: () => import('./cluster'),
  },
  {
    path: '/setup',
    title: 'setup.title',
    under: '/cluster',
    group: 'system',
    needs: ['GET /admin/setup'],
    load: () => import('./setup'),
  },
  {
    path: '/parameters',
    title: 'parameter.title',
    under: '/cluster',
    group: 'system',
    needs: ['GET /admin/get-parameters'],
    load: () => import('./parameters'),
  },
];

const audit: Screen = {
  path: '/audit',
  title: 'audit.title',
  icon: IconListSearch,
  group: 'security',
  needs: ['GET /admin/audit'],
  load: () => import('./audit'),
};

/** In the order of the menu, within each group. */
export const screens: Screen[] = [...app, ...people, ...access, ...guard, ...office, ...money, ...delivery, audit];
