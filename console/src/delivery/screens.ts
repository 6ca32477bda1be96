/** The screens of the user's own notifications. */
import type { Listed } from '../app/address';
import type { Screen } from '../app/screen';

declare module '../app/address' {
  interface Searches {
    '/me/notifications': Listed<'/user/notifications'>;
  }
}

export const delivery: Screen[] = [
  {
    path: '/me/notifications',
    title: 'own.notifications',
    under: '/me',
    group: 'own',
    needs: ['GET /user/notifications'],
    load: () => import('./notifications'),
  },
];
