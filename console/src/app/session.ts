/**
 * Who is logged in. The token is in memory only, shared between tabs by the worker in tokens.ts; it is in no storage,
 * no cookie and no address.
 */
import { useSyncExternalStore } from 'react';
import type { Refusal } from './api';

export interface Session {
  token: string;
  userId: string;
  /** What the caller may ask, as "GET /admin/list-users"; undefined until it is known. */
  may?: ReadonlySet<string>;
  /** Set when a session ended under somebody's hands: the screen stays, with the login above it. */
  over?: Refusal | 'idle';
}

let current: Session = { token: '', userId: '' };
const listeners = new Set<() => void>();
let port: MessagePort | undefined;

function set(next: Session) {
  current = next;
  for (const listener of listeners) listener();
}

function claims(token: string): { sub?: string } {
  try {
    const part = token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/');
    return JSON.parse(atob(part));
  } catch {
    return {};
  }
}

export const session = {
  now: () => current,
  /** A login succeeded here, or in another tab. Whoever was logged in before loses his screens to a stranger. */
  begin(token: string, from: 'here' | 'tab' = 'here') {
    const userId = claims(token).sub ?? '';
    const same = current.userId === userId;
    set({ token, userId, may: same ? current.may : undefined });
    if (from === 'here') port?.postMessage({ token });
    return same;
  },
  permits(may: Iterable<string>) {
    set({ ...current, may: new Set(may) });
  },
  /** The service refused the token, or nobody touched the console: what was typed stays below the login. */
  ended(why: Refusal | 'idle') {
    if (!current.token) return;
    set({ ...current, token: '', over: why });
    port?.postMessage({ token: '' });
  },
  /** Forget everything. */
  leave() {
    set({ token: '', userId: '' });
    port?.postMessage({ token: '' });
  },
};

/** Joins the tabs; resolves once it is known whether another tab is logged in. */
export function shareTabs(worker: string | undefined): Promise<void> {
  if (!worker || typeof SharedWorker === 'undefined') return Promise.resolve();
  return new Promise((resolve) => {
    const shared = new SharedWorker(worker, { type: 'module', name: 'castellan' });
    const giveUp = setTimeout(resolve, 1000);
    shared.onerror = () => resolve();
    port = shared.port;
    port.onmessage = ({ data }: MessageEvent<{ token: string }>) => {
      if (data.token && data.token !== current.token) session.begin(data.token, 'tab');
      if (!data.token && current.token) set({ token: '', userId: current.userId, over: 'idle' });
      clearTimeout(giveUp);
      resolve();
    };
    port.start();
    addEventListener('pagehide', () => port?.postMessage('gone'));
  });
}

export function useSession(): Session {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, session.now);
}

/** Whether the caller may ask for an endpoint, as "POST /admin/roles". */
export function useMay(): (endpoint: string) => boolean {
  const { may } = useSession();
  return (endpoint) => may?.has(endpoint) ?? false;
}
