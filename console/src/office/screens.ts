/** The screens of approvals, staff requests and published content. */
import type { Screen } from '../app/screen';

export const office: Screen[] = [
  {
    path: '/approvals',
    title: 'approvals.title',
    group: 'work',
    needs: ['GET /admin/approvals'],
    load: () => import('./approvals'),
  },
  {
    path: '/requests',
    title: 'request.title',
    group: 'work',
    needs: ['GET /admin/deploy-request'],
    load: () => import('./requests'),
  },
  {
    path: '/contracts',
    title: 'contract.title',
    group: 'content',
    needs: ['GET /admin/get-contracts'],
    load: () => import('./contracts'),
  },
  {
    path: '/contracts/$id',
    title: 'contract.one',
    group: 'content',
    needs: ['GET /admin/get-contract-details'],
    inner: true,
    load: () => import('./contract'),
  },
  // Every user reads announcements; the screen is for the users who write them.
  {
    path: '/announcements',
    title: 'announcement.title',
    group: 'content',
    needs: ['POST /announcement/update'],
    load: () => import('./announcements'),
  },
  {
    path: '/mailings',
    title: 'mailing.title',
    group: 'content',
    needs: ['POST /admin/send-notification'],
    load: () => import('./mailings'),
  },
  {
    path: '/cdn',
    title: 'cdn.title',
    group: 'content',
    needs: ['POST /admin/cdn/upload'],
    load: () => import('./cdn'),
  },
];
