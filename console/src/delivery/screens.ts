/** The screens of the user's own notifications. */
import type { Screen } from '../app/screen';

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
