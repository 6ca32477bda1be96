/**
 * Who is logged in. The token is in memory only, shared between tabs by the worker in tokens.ts; it is in no storage,
 * no cookie and no address.
 */
import { useSyncExternalStore } from 'react';

/** How a session ended under somebody's hands: nobody touched the console, or the service refused the token. */
type End = 'idle' | 'over';

export interface Session {
  token: string;
  userId: string;
  /** What the caller may ask, as "GET /admin/list-users"; undefined until it is known. */
  may?: ReadonlySet<string>;
  /** The action of the challenge that a call starts, by endpoint. */
  guards?: ReadonlyMap<string, string>;
  /** Grows when the service refused what the menu offers: somebody changed the permissions. */
  doubts: number;
  /** Set when a session ended under somebody's hands: the screen stays, with the login above it. */
  over?: End;
}

const nobody: Session = { token: '', userId: '', doubts: 0 };
let current = nobody;
const listeners = new Set<() => void>();
let port: MessagePort | undefined;
let touched = Date.now();
let told = 0;

const TELL_MS = 5_000; // so often at most other tabs hear of a touch

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
    touched = Math.max(touched, Date.now());
    const known = same ? { may: current.may, guards: current.guards } : {};
    set({ ...nobody, token, userId, ...known });
    if (from === 'here') port?.postMessage({ token });
    return same;
  },
  permits(may: Iterable<string>, guards: Iterable<[string, string]>) {
    set({ ...current, may: new Set(may), guards: new Map(guards) });
  },
  /** The service refused what the menu offers. */
  doubt() {
    set({ ...current, doubts: current.doubts + 1 });
  },
  /**
   * The service refused the token, or nobody touched the console: what was typed stays below the login. A late answer
   * to an older token ends nothing.
   */
  ended(why: End, token = current.token) {
    if (!token || token !== current.token) return;
    set({ ...current, token: '', over: why });
    port?.postMessage({ end: token, why }); // heard again, it ends nothing any more
  },
  /** Forget everything, in all tabs. */
  leave() {
    const { token } = current;
    set(nobody);
    port?.postMessage({ end: token, why: 'left' });
  },
  /** Somebody is there. */
  touch() {
    touched = Date.now();
    if (touched - told < TELL_MS) return;
    told = touched;
    port?.postMessage({ touched });
  },
  /** When somebody last touched this tab, or, a few seconds late, another one. */
  touched: () => touched,
};

interface Said {
  token?: string;
  end?: string;
  why?: End | 'left';
  touched?: number;
}

/** What happened in some tab, this one included. */
function hear(said: Said) {
  touched = Math.max(touched, said.touched ?? 0);
  if (said.token && said.token !== current.token) session.begin(said.token, 'tab');
  if (said.why === 'left') {
    if (said.end === current.token) set(nobody); // also where the login is above the screen
  } else if (said.why) {
    session.ended(said.why, said.end);
  }
}

/** Joins the tabs; resolves once it is known whether another tab is logged in. */
export function shareTabs(worker: string | undefined): Promise<void> {
  if (!worker || typeof SharedWorker === 'undefined') return Promise.resolve();
  return new Promise((resolve) => {
    const shared = new SharedWorker(worker, { type: 'module', name: 'castellan' });
    const giveUp = setTimeout(resolve, 1000);
    shared.onerror = () => resolve();
    port = shared.port;
    port.onmessage = ({ data }: MessageEvent<Said>) => {
      hear(data);
      clearTimeout(giveUp);
      resolve();
    };
    port.start();
    addEventListener('pagehide', () => port?.postMessage('gone'));
    // A page that the browser kept and shows again has heard nothing meanwhile.
    addEventListener('pageshow', (event) => {
      if (event.persisted) location.reload();
    });
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
