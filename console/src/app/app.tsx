/** What a login opens: the routes, what was read, and the login above them when a session ended. */
import '@mantine/notifications/styles.css';
import '@mantine/spotlight/styles.css';
import { Modal } from '@mantine/core';
import { useIdle } from '@mantine/hooks';
import { ModalsProvider } from '@mantine/modals';
import { notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { useEffect } from 'react';
import { client, Refusal } from './api';
import { Login } from './login';
import { loadPermissions } from './permissions';
import { router } from './router';
import { session, useSession } from './session';

const IDLE_MS = 15 * 60_000;

/** What failed on the way is asked again; what the service refused is not. */
function again(failures: number, error: unknown): boolean {
  const { status } = Refusal.of(error);
  return failures < 2 && (status === 0 || status >= 500);
}

const queries = new QueryClient({
  defaultOptions: { queries: { staleTime: 10_000, refetchOnWindowFocus: false, retry: again } },
});

export default function Screens() {
  const { token, may } = useSession();
  const idle = useIdle(IDLE_MS, { initialState: false });
  useEffect(() => {
    // The next one here may be somebody else.
    return () => {
      queries.clear();
      notifications.clean();
    };
  }, []);
  useEffect(() => {
    if (!idle || !session.now().token) return;
    void client()
      .logout()
      .catch(() => undefined);
    session.ended('idle');
  }, [idle]);
  useEffect(() => {
    if (token && !may) void loadPermissions();
  }, [token, may]);
  const begun = (same: boolean) => {
    if (same) {
      void queries.invalidateQueries();
    } else {
      queries.clear();
      void router.navigate({ to: '/' });
    }
  };
  return (
    <QueryClientProvider client={queries}>
      <ModalsProvider>
        <RouterProvider router={router} />
        <Modal
          opened={!token}
          onClose={() => session.leave()}
          centered
          overlayProps={{ blur: 12 }}
          closeOnClickOutside={false}
        >
          {!token && <Login onDone={begun} />}
        </Modal>
      </ModalsProvider>
    </QueryClientProvider>
  );
}
