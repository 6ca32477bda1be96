/** The screens of home, jobs and the cluster. */
import type { Screen } from '../app/screen';

export const system: Screen[] = [
  { path: '/', title: 'home.title', group: 'work', needs: [], load: () => import('./home') },
  { path: '/jobs', title: 'jobs.title', group: 'system', needs: ['GET /admin/jobs'], load: () => import('./jobs') },
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
    group: 'system',
    needs: ['GET /admin/cluster'],
    load: () => import('./cluster'),
  },
  { path: '/setup', title: 'setup.title', group: 'system', needs: ['GET /admin/setup'], load: () => import('./setup') },
];
