/**
 * Every screen: its address, its place in the menu, and the endpoints without which it is no use. The menu, the
 * palette and the routes come from here, and so does the test that asks where each endpoint is used. A screen is
 * loaded when it is opened.
 */
import type { ComponentType } from 'react';

export interface Screen {
  path: string;
  /** Key of its name. */
  title: string;
  group: 'work' | 'people' | 'money' | 'content' | 'security' | 'system' | 'own';
  /** It is shown to those who may ask for all of these. */
  needs: string[];
  load: () => Promise<{ default: ComponentType }>;
  /** Not in the menu: it is reached from another screen. */
  inner?: boolean;
}

export const screens: Screen[] = [
  { path: '/', title: 'home.title', group: 'work', needs: [], load: () => import('../system/home') },
  { path: '/users', title: 'users.title', group: 'people', needs: ['GET /admin/list-users'], load: () => import('../user/users') },
  { path: '/users/$id', title: 'user.title', group: 'people', needs: ['GET /admin/list-users'], inner: true,
    load: () => import('../user/user') },
  { path: '/audit', title: 'audit.title', group: 'security', needs: ['GET /admin/audit'], load: () => import('../system/audit') },
  { path: '/jobs', title: 'jobs.title', group: 'system', needs: ['GET /admin/jobs'], load: () => import('../system/jobs') },
];
