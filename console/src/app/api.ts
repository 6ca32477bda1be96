/**
 * The client of the service: typed reads by openapi-fetch, writes by the client module that integrators copy too,
 * because any write may start a challenge. The types are generated from docs/openapi.json, so tsc fails when a field
 * leaves the interface.
 */
import createClient from 'openapi-fetch';
import type { PathsWithMethod } from 'openapi-typescript-helpers';
import { CastellanError, type Flow, type Outcome } from '../../../web/static/castellan-client.js';
import type { components, paths } from '../api';
import { base } from './page';
import { client, fresh, proof, revive } from './login/renewal';
import { session } from './session';

export { client };

export type Schemas = components['schemas'];
export type Field = Schemas['FieldProblem'];
type Problem = Schemas['Problem'];
export type Gets = PathsWithMethod<paths, 'get'>;

/** A refusal of the service, or no answer (status 0). Its fields are those of RFC 9457. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId = '',
    readonly errors: Field[] = [],
    readonly retryAfter = 0,
    readonly asked = '', // "GET /admin/…", for the explanation
    readonly attemptsLeft?: number, // of a wrong code
  ) {
    super(message);
  }

  /** A challenge that ended without success, for example by a rejection on the device. */
  static outcome({ code = '', message = '' }: Outcome, asked = ''): Refusal {
    return new Refusal(200, code, message, '', [], 0, asked);
  }

  /** A refusal by the service, whose body may have been written by something between. */
  static async answered(response: Response, asked = ''): Promise<Refusal> {
    const none: Partial<Problem> = {};
    const problem = await (response.clone().json() as Promise<Partial<Problem>>).catch(() => none);
    return new Refusal(
      response.status,
      problem.code ?? `HTTP_${response.status}`,
      problem.message ?? response.statusText,
      problem.requestId ?? response.headers.get('x-request-id') ?? '',
      problem.errors ?? [],
      Number(response.headers.get('retry-after')) || 0,
      asked,
    );
  }

  static of(error: unknown, asked = ''): Refusal {
    if (error instanceof Refusal) return error;
    if (error instanceof CastellanError) {
      const e = error as CastellanError & {
        status: number;
        code: string;
        requestId?: string;
        errors: Field[];
        retryAfter: number;
        attemptsLeft?: number;
      };
      return new Refusal(e.status, e.code, e.message, e.requestId, e.errors, e.retryAfter, asked, e.attemptsLeft);
    }
    return new Refusal(0, 'NETWORK', error instanceof Error ? error.message : String(error), '', [], 0, asked);
  }
}

/** parse is JSON.parse with the source of each number (ECMAScript 2026, JSON.parse source text access). */
const parse = JSON.parse as (
  text: string,
  revive: (key: string, value: unknown, at: { source?: string }) => unknown,
) => unknown;

/**
 * Amounts are JSON numbers, and a number of JavaScript has 53 bits. A number that has a fraction, an exponent or more
 * than 15 digits therefore reaches the screens as text, exactly as the service wrote it. Browsers without the source
 * of numbers (before Chromium 114, Firefox 135, Safari 18.4) show the JavaScript number.
 */
async function exact(response: Response): Promise<Response | undefined> {
  if (!response.headers.get('content-type')?.includes('json')) return undefined;
  const text = await response.text();
  const amounts = /\d[.eE]|\d{16}/.test(text);
  const kept = amounts
    ? JSON.stringify(
        parse(text, (_, value, { source } = {}) =>
          typeof value === 'number' && source && /[.eE]|\d{16}/.test(source) ? source : value,
        ),
      )
    : text;
  const headers = new Headers(response.headers);
  headers.delete('content-length');
  return new Response(kept || null, { status: response.status, statusText: response.statusText, headers });
}

/** Reports what a refusal means for the session of the request. */
function refused({ status, code }: Refusal, token: string) {
  if (status === 401) session.ended('over', token);
  if (code === 'FORBIDDEN') session.doubt();
}

/** "GET /admin/jobs/…", without the base path of the service. */
function key({ method, url }: Request): string {
  return `${method} ${new URL(url).pathname.slice(base.length)}`;
}

/** Sets the token of this moment and its proof. */
async function authorize(headers: Headers, { method, url }: Request, nonce?: string) {
  headers.set('x-auth', session.now().token);
  const signed = await proof(method, url, nonce);
  if (signed) headers.set('dpop', signed);
}

/** Sends a read again, with the token of this moment and a new proof. */
async function repeat(request: Request, nonce?: string): Promise<Response> {
  const headers = new Headers(request.headers);
  await authorize(headers, request, nonce);
  return fetch(request.url, { headers, cache: 'no-store', credentials: 'omit', signal: request.signal });
}

const reader = createClient<paths>({ baseUrl: `${location.origin}${base}`, cache: 'no-store', credentials: 'omit' });

reader.use({
  async onRequest({ request }) {
    await fresh();
    if (!session.now().token) throw new Refusal(401, 'UNAUTHENTICATED', ''); // no requests while the login is shown
    request.headers.set('accept-language', document.documentElement.lang);
    await authorize(request.headers, request);
    return request;
  },
  async onResponse({ response, request }) {
    const nonce = response.headers.get('dpop-nonce');
    // Only the clock of this machine is wrong.
    if (nonce && request.method === 'GET') response = await repeat(request, nonce);
    if (response.ok) return exact(response);
    let token = request.headers.get('x-auth') ?? '';
    let refusal = await Refusal.answered(response, key(request));
    if (refusal.code === 'TOKEN_EXPIRED' && request.method === 'GET' && (await revive(token))) {
      token = session.now().token;
      response = await repeat(request);
      if (response.ok) return exact(response);
      refusal = await Refusal.answered(response, key(request));
    }
    refused(refusal, token);
    throw refusal;
  },
  onError({ error, request }) {
    return Refusal.of(error, key(request));
  },
});

/** Reads a path. Throws a refusal. */
export const read = reader.GET;

/** Reads a path of which only the type of the answer is known. Throws a refusal. */
export async function ask<T>(path: Gets, params: Record<string, unknown>, signal?: AbortSignal): Promise<T> {
  const asked = reader.GET as (path: string, init: unknown) => Promise<{ data?: unknown }>;
  return (await asked(path, { params, signal })).data as T;
}

/** One page of a list, and the cursor of the next page ('' at the end). */
export interface Page<T> {
  rows: T[];
  next: string;
}

/** Reads a page of a list. The cursor comes from the Link header of the previous page (RFC 8288). */
export async function readPage<T>(path: Gets, query: Record<string, unknown>, signal?: AbortSignal): Promise<Page<T>> {
  const asked = reader.GET as (path: string, init: unknown) => Promise<{ data?: unknown; response: Response }>;
  const { data, response } = await asked(path, { params: { query }, signal });
  const link = /<([^>]*)>;\s*rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  const next = link ? (new URL(link, location.origin).searchParams.get('cursor') ?? '') : '';
  return { rows: (data ?? []) as T[], next };
}

/** The body of a write; undefined for a write without a body. */
export type Body<P extends keyof paths, M extends string> =
  paths[P] extends Record<M, { requestBody?: infer B }>
    ? NonNullable<B> extends { content: { 'application/json': infer J } }
      ? J
      : undefined
    : undefined;
export type Writes<M extends 'post' | 'patch' | 'delete'> = PathsWithMethod<paths, M>;

/**
 * Starts a write. The flow is done at once unless the service requires a challenge first. The key makes a repeated
 * request the same request (D-EXT-02): the caller creates one key for one intention. places fill {names} in the path.
 * otp is the code of the authenticator, where the service requires it besides the session (D-AUTH-08).
 */
export async function start<M extends 'post' | 'patch' | 'delete', P extends Writes<M> & keyof paths>(
  method: M,
  path: P,
  body: Body<P, M>,
  { key, places = {}, otp }: { key?: string; places?: Record<string, string>; otp?: string } = {},
): Promise<Flow> {
  const asked = `${method.toUpperCase()} ${String(path)}`;
  await fresh();
  const { token } = session.now();
  try {
    const to = String(path).replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(places[name] ?? ''));
    return await client().start(method.toUpperCase(), to, body ?? {}, {
      headers: { ...(key ? { 'idempotency-key': key } : {}), ...(otp ? { otp } : {}) },
    });
  } catch (error) {
    const refusal = Refusal.of(error, asked);
    refused(refusal, token);
    throw refusal;
  }
}
