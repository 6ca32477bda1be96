/**
 * The session is bound to a key of this browser (RFC 9449), which no script can read. It is renewed before its token
 * expires, and a reload continues it. All tabs share the key and the last token, which is encrypted, in IndexedDB.
 */
import { CastellanClient } from '../../../../web/static/castellan-client.js';
import { SessionKey } from '../../../../web/static/castellan-key.js';
import { claims } from '../../claims';
import { base } from '../page';
import { session } from '../session';

/** Undefined where the browser has no WebCrypto: such a session ends with its token. */
export const sessionKey = SessionKey.available ? new SessionKey('console') : undefined;

const LOOK_MS = 5_000;
const LOCK = 'castellan-renewal';

/** A client with the token and the language of this moment. */
export function client(): CastellanClient {
  const c = new CastellanClient({
    baseUrl: `${location.origin}${base}`,
    headers: { 'accept-language': document.documentElement.lang },
    key: sessionKey,
  });
  c.xAuth = session.now().token;
  c.skew = session.now().skew;
  return c;
}

/** The header dpop of a request, for a service where each request needs a proof; undefined for none. */
export function proof(method: string, url: string, nonce?: string): Promise<string | undefined> {
  const { token } = session.now();
  return token && sessionKey ? sessionKey.proof({ method, url, token, nonce }) : Promise.resolve(undefined);
}

/** The token after which the service renews the session no more. It may still be good, up to its end. */
let final = '';

/** The token whose renewal the service refused last. */
let refused = '';

/** The token that has expired by the clock of the service. */
let late = '';

/** The token is late, or has less than a fifth of its life left, and its session can be renewed. */
function due(token: string): boolean {
  const { iat = 0, exp = 0, cnf } = claims(token);
  return !!cnf && token !== final && (token === late || endOf(token) - Date.now() < (exp - iat) * 200);
}

/** The end of a token by the clock of this machine. */
const endOf = (token: string) => (claims(token).exp ?? 0) * 1000 + session.now().skew;

let renewing: Promise<void> | undefined;

/** Renews the session if that is due. A failure leaves the token, which may still be good. */
export function fresh(): Promise<void> {
  if (!sessionKey || !due(session.now().token)) return Promise.resolve();
  renewing ??= renew().finally(() => (renewing = undefined));
  return renewing;
}

/**
 * Renews the session of a token that the service refused as expired: this machine stalled, or its clock is behind.
 * Resolves to whether the session has another token now.
 */
export async function revive(token: string): Promise<boolean> {
  if (token === session.now().token) late = token;
  await fresh();
  const now = session.now().token;
  return now !== '' && now !== token;
}

/** One tab renews; the others get the token from it. */
async function renew(): Promise<void> {
  await navigator.locks.request(LOCK, async () => {
    const { token } = session.now();
    if (!due(token)) return; // another tab has renewed
    const c = client();
    try {
      const { sessionEndsAt } = await c.renewSession();
      session.renewed(token, c.xAuth, Date.parse(sessionEndsAt));
    } catch (error) {
      const { status, code } = error as { status?: number; code?: string };
      if (status === 401) refused = token;
      if (code === 'TOKEN_REVOKED') session.ended('over', token);
      if (code !== 'TOKEN_EXPIRED') return;
      final = token;
      if (Date.now() < endOf(token)) session.renewed(token, token, endOf(token), 'here', session.now().skew);
      else session.ended('over', token);
    }
  });
}

/** Continues the session that this browser has kept, if no other tab has it. A failure shows the login. */
export async function resume(): Promise<void> {
  if (session.now().token || !sessionKey) return;
  const c = client();
  const kept = await c.resume().catch(() => undefined);
  if (kept && !session.now().token) {
    session.begin(c.xAuth);
    session.renewed(c.xAuth, c.xAuth, Date.parse(kept.sessionEndsAt));
  }
}

/**
 * Renews the session if that is due. A token that ends without a successor ends the session on the screen: no request
 * may follow whose refusal would show that.
 */
async function look(): Promise<void> {
  await fresh();
  const { token } = session.now();
  const { exp = 0, cnf } = claims(token);
  if (exp && (!cnf || token === refused) && Date.now() >= endOf(token)) session.ended('over', token);
}

/** Deletes the key where the session has ended, and renews while the user is logged in. */
export function keepSession(): void {
  let last = session.now().token;
  session.subscribe(() => {
    const { token } = session.now();
    if (last && !token) void sessionKey?.forget(last).catch(() => undefined);
    last = token;
  });
  setInterval(() => void look(), LOOK_MS);
}
