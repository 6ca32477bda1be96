/** The screens of approvals, staff requests and published content. */
import { IconChecks, IconFileText, IconSend, IconSpeakerphone } from '@tabler/icons-react';
import type { Listed, Names } from '../app/address';
import type { Screen } from '../app/screen';

declare module '../app/address' {
  interface Searches {
    '/approvals': Listed<'/admin/approvals'>;
    '/requests': Listed<'/admin/deploy-request' | '/admin/vpn-request', 'tab'>;
    '/contracts': Listed<'/admin/get-contracts'>;
    '/contracts/$id': Names;
    '/announcements': Names;
    '/mailings': Names<'job'>;
    '/cdn': Names;
  }
}

export const office: Screen[] = [
  {
    path: '/approvals',
    title: 'approvals.title',
    family: 'family.approvals',
    icon: IconChecks,
    group: 'work',
    needs: ['GET /admin/approvals'],
    load: () => import('./approvals'),
  },
  {
    path: '/requests',
    title: 'request.title',
    under: '/approvals',
    group: 'work',
    needs: ['GET /admin/deploy-request'],
    load: () => import('./requests'),
  },
  {
    path: '/contracts',
    title: 'contract.title',
    family: 'family.contracts',
    icon: IconFileText,
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
    family: 'family.announcements',
    icon: IconSpeakerphone,
    group: 'content',
    needs: ['POST /announcement/update'],
    load: () => import('./announcements'),
  },
  {
    path: '/mailings',
    title: 'mailing.title',
    icon: IconSend,
    group: 'content',
    needs: ['POST /admin/send-notification'],
    load: () => import('./mailings'),
  },
  {
    path: '/cdn',
    title: 'cdn.title',
    under: '/announcements',
    group: 'content',
    needs: ['POST /admin/cdn/upload'],
    load: () => import('./cdn'),
  },
];
