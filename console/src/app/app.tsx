/** What a login opens: the routes, what was read, and the login above them when a session ended. */
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

const router = routerOf(screens);
provideScreens(screens, (to) => void router.navigate({ to: to as never }));

/** What failed on the way is asked again; what the service refused is not. */
function again(failures: number, error: unknown): boolean {
  const { status } = Refusal.of(error);
  return failures < 2 && (status === 0 || status >= 500);
}

/** always: without a network a question fails, and the screen says so; it does not wait in silence. */
const memory = () =>
  new QueryClient({
    defaultOptions: {
      queries: { staleTime: 10_000, refetchOnWindowFocus: false, retry: again, networkMode: 'always' },
      mutations: { networkMode: 'always' },
    },
  });

/** Each person gets these anew (main.tsx): nobody sees what another one has read. */
export default function Screens() {
  const { token } = useSession();
  const [queries] = useState(memory);
  useEffect(() => () => notifications.clean(), []);
  useEffect(() => {
    if (token) void queries.invalidateQueries();
  }, [token, queries]);
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
