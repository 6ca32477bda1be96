/**
 * The session of the user. The token is in memory and shared between tabs by the worker in tokens.ts. It is in no
 * cookie, no address and no storage, except that renewal.ts keeps it encrypted for a reload.
 */
import { useCallback, useSyncExternalStore } from 'react';
import { claims, endsToken, type Cause } from '../claims';

/** The cause of a session's end during use. */
type End = Exclude<Cause, 'left'>;

export interface Session {
  token: string;
  userId: string;
  /**
   * The end of the session, in milliseconds since 1970; 0 if it is not known. A session that is renewed ends later than
   * its token, and its first renewal says when.
   */
  ends: number;
  /** How far the clock of this machine is ahead of the service's, in milliseconds. */
  skew: number;
  /** The permissions of the caller, as "GET /admin/list-users"; undefined until they are read. */
  may?: ReadonlySet<string>;
  /** The action of the challenge that a call starts, by endpoint. */
  guards?: ReadonlyMap<string, string>;
  /** Increases when the service refused a call that the menu offers, because the permissions changed. */
  doubts: number;
  /** Set when a session ended during use: the screen stays, with the login above it. */
  over?: End;
}

const signedOut: Session = { token: '', userId: '', ends: 0, skew: 0, doubts: 0 };
let current = signedOut;
const listeners = new Set<() => void>();
let port: MessagePort | undefined;
let touched = Date.now();
let told = 0;

const TELL_MS = 5_000; // the shortest interval between touches that other tabs receive

function set(next: Session) {
  current = next;
  for (const listener of listeners) listener();
}

/** The clock of this machine beside that of a new token. */
const skewOf = (token: string) => Date.now() - (claims(token).iat ?? 0) * 1000;

export const session = {
  now: () => current,
  /** Calls listener after each change. Returns the function that ends it. */
  subscribe: (listener: () => void) => {
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  },
  /** A login succeeded in this or another tab. Another user does not get the screens of the previous one. */
  begin(token: string, from: 'here' | 'tab' = 'here', skew = skewOf(token)) {
    const { sub: userId = '', exp = 0, cnf } = claims(token);
    const same = current.userId === userId;
    touched = Math.max(touched, Date.now());
    const known = same ? { may: current.may, guards: current.guards } : {};
    set({ ...signedOut, token, userId, ends: cnf ? 0 : exp * 1000, skew, ...known });
    if (from === 'here') port?.postMessage({ token, skew });
    return same;
  },
  /** The session of a token has a new one, until it ends. That is no activity of the user. */
  renewed(old: string, token: string, ends: number, from: 'here' | 'tab' = 'here', skew = skewOf(token)) {
    if (old !== current.token) return; // it ended meanwhile
    set({ ...current, token, ends, skew });
    if (from === 'here') port?.postMessage({ token, old, ends, skew });
  },
  permits(may: Iterable<string>, guards: Iterable<[string, string]>) {
    set({ ...current, may: new Set(may), guards: new Map(guards) });
  },
  /** The service refused a call that the menu offers. */
  doubt() {
    set({ ...current, doubts: current.doubts + 1 });
  },
  /**
   * The service refused the token, or there was no activity: the input stays below the login. A late answer for an
   * older token ends nothing.
   */
  ended(why: End, token = current.token) {
    if (!current.token || !endsToken(token, why, current.token)) return;
    set({ ...current, token: '', over: why });
    port?.postMessage({ end: token, why }); // a repeated message ends nothing
  },
  /** Forgets everything, in all tabs. */
  leave() {
    const { token } = current;
    set(signedOut);
    port?.postMessage({ end: token, why: 'left' });
  },
  /** Records activity of the user. */
  touch() {
    touched = Date.now();
    if (touched - told < TELL_MS) return;
    told = touched;
    port?.postMessage({ touched });
  },
  /** The time of the last activity in this tab or, a few seconds late, in another. */
  touched: () => touched,
};

interface Said {
  token?: string;
  /** The token that a renewal replaced; without it, token is that of a login. */
  old?: string;
  ends?: number;
  skew?: number;
  end?: string;
  why?: Cause;
  touched?: number;
}

/** Handles a message from any tab, including this one. */
function hear(said: Said) {
  touched = Math.max(touched, said.touched ?? 0);
  const left = !current.token && !current.over; // another tab renewed the session before it heard of the logout
  if (said.token && !(left && said.old !== undefined)) {
    const renews = said.old !== undefined && said.old === current.token;
    if (said.token !== current.token && !renews) session.begin(said.token, 'tab', said.skew);
    if (said.ends) session.renewed(current.token, said.token, said.ends, 'tab', said.skew);
  }
  if (said.why === 'left') {
    if (endsToken(said.end ?? '', 'left', current.token)) set(signedOut); // also while the login is above the screen
  } else if (said.why) {
    session.ended(said.why, said.end);
  }
}

/** Joins the tabs. Resolves once it is clear whether another tab is logged in. */
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
    // A page restored from the browser's cache missed the messages in between.
    addEventListener('pageshow', (event) => {
      if (event.persisted) location.reload();
    });
  });
}

export function useSession(): Session {
  return useSyncExternalStore(session.subscribe, session.now);
}

/** Returns a function that reports whether the caller may call an endpoint, as "POST /admin/roles". */
export function useMay(): (endpoint: string) => boolean {
  const { may } = useSession();
  return useCallback((endpoint) => may?.has(endpoint) ?? false, [may]);
}
