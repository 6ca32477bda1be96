/** The console after the login: the routes, the query cache, and the login above them when a session ended. */
import '@mantine/notifications/styles.css';
import '@mantine/spotlight/styles.css';
import { ModalsProvider } from '@mantine/modals';
import { notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { client, Refusal } from './api';
import { Lock } from './login/lock';
import { watch } from './login/idle';
import { routerOf } from './router';
import { provideScreens } from './screen';
import { screens } from './screens';
import { session, useSession } from './session';
import '../kit/draft'; // removes drafts at logout, also when no form was opened

const router = routerOf(screens);
provideScreens(screens, (to) => void router.navigate({ to: to }));

/** Failed requests are retried; refusals of the service are not. */
function again(failures: number, error: unknown): boolean {
  const { status } = Refusal.of(error);
  return failures < 2 && (status === 0 || status >= 500);
}

/** always: without a network a query fails and the screen shows it, instead of waiting silently. */
const memory = () =>
  new QueryClient({
    defaultOptions: {
      queries: { staleTime: 10_000, refetchOnWindowFocus: false, retry: again, networkMode: 'always' },
      mutations: { networkMode: 'always' },
    },
  });

/** Created again for each user (main.tsx), so that no user sees the data of another. */
export default function Screens() {
  const { token } = useSession();
  const live = !!token; // a renewal replaces the token, and reads nothing again
  const [queries] = useState(memory);
  useEffect(() => () => notifications.clean(), []);
  useEffect(() => {
    if (live) void queries.invalidateQueries();
  }, [live, queries]);
  useEffect(
    () =>
      watch(() => {
        void client()
          .logout()
          .catch(() => undefined);
        session.ended('idle');
      }),
    [],
  );
  return (
    <QueryClientProvider client={queries}>
      <ModalsProvider>
        <RouterProvider router={router} />
        {!token && <Lock onStranger={() => void router.navigate({ to: '/' })} />}
      </ModalsProvider>
    </QueryClientProvider>
  );
}
