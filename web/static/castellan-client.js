/**
 * The second factor in a browser: one ES module without dependencies, made to be copied.
 *
 *   const client = new CastellanClient({ baseUrl: 'https://id.example.com' });
 *   const flow = await client.login({ countryCode: '90', phoneNumber: '5550001122', password });
 *   flow.methods;                                  // the methods to answer, with deadlines
 *   await flow.complete(flow.methods[0].id, 'SMS', '123456');   // until flow.done settles
 *   const { success, data, headers } = await flow.done;         // LOGIN: data.sessionKey, headers['x-auth']
 *
 * A challenge has one outcome, which arrives by three paths: the answer of the last completion, the socket /2fa, and
 * the result endpoint. A Flow watches all three and reports the outcome once, whichever path is first. It listens on the
 * socket and falls back to long polling automatically if the socket does not open or breaks.
 *
 * The service answers the socket's sub-protocol p-auth, as browsers demand. The answer headers p-auth, x-auth, ot-auth and retry-after must be readable: across origins the service has to
 * list yours (http.cors_origins). Browsers need AbortSignal.any (2023 or later).
 *
 * With a key (castellan-key.js), sessions are bound to it, and the client renews them by itself (RFC 9449).
 *
 * @typedef {{success: boolean, data?: object, headers: Record<string, string>, code?: string, message?: string}} Outcome
 *
 * @typedef {{id: string, name: 'SMS'|'MAIL'|'TOTP'|'PUSH', hint?: string, matchNumber?: string, webauthn?: object,
 *   lifetime: number, expiresAt: number, renewAt: number, complete: boolean}} Method  Times are this machine's epoch ms,
 *   lifetime is ms; renewAt 0: never. Show matchNumber beside a PUSH: the device requires it.
 *   webauthn: a passkey may approve the PUSH (castellan-passkey.js).
 */

const COMPLETE = '/auth/2fa/challenge/complete';
const RENEW = '/auth/2fa/challenge/renew';
const RESULT = '/auth/2fa/challenge/result';
const LOGIN = '/auth/login';
const RENEWAL = '/auth/sessions/renew';
const RENEWAL_PAUSE_MS = 30_000; // between two renewals of its own: a wrong clock must not cause more
const RENEW_CUTOFF_MS = 120_000; // the service renews nothing in the last two minutes of a challenge
const GRACE_MS = 120_000; // how long a p-auth outlives its challenge by default
const REQUEST_MS = 40_000; // longer than any wait that the service promises
const OPEN_MS = 5_000; // a socket that has not opened by then is given up
const LINGER_MS = 3_000; // after the outcome the socket may still deliver its copy; then it is closed
const REOPEN_LIMIT = 3;

/** A refusal of the service (RFC 9457 problem). `code` is the stable contract, `message` is localized text. `attemptsLeft`
 *  comes with OTP_INVALID. `retryAfter` is in seconds (0: not given). `nonce` requires a new signature of the device.
 *  A missing answer has the code NETWORK and the status 0. */
export class CastellanError extends Error {
  /** @type {number} */
  status;
  /** @type {string} */
  code;
  /** @type {string|undefined} */
  field;
  /** @type {{field: string, message: string}[]} */
  errors;
  /** @type {number|undefined} */
  attemptsLeft;
  /** @type {string|undefined} */
  requestId;
  /** @type {number} */
  retryAfter;

  /** @param {number} status  @param {any} problem  @param {number} [retryAfter]  @param {any} [cause] */
  constructor(status, problem, retryAfter = 0, cause = undefined) {
    super(problem?.message || problem?.detail || problem?.title || `HTTP ${status}`, { cause });
    const { code = `HTTP_${status}`, field, errors = [], attemptsLeft, requestId } = problem ?? {};
    Object.assign(this, { name: 'CastellanError', status, code, field, errors, attemptsLeft, requestId, retryAfter });
  }
}

export class CastellanClient {
  #fetch; #renewing; #renewedAt = 0;

  /** @param {{baseUrl?: string, fetch?: typeof fetch, headers?: Record<string, string>,
   *    key?: import('./castellan-key.js').SessionKey}} [options]
   *  headers are sent with every request (accept-language, for instance). */
  constructor({ baseUrl = globalThis.location?.origin, fetch = globalThis.fetch, headers = {}, key } = {}) {
    this.key = key;
    this.baseUrl = String(baseUrl).replace(/\/+$/, '');
    this.headers = headers;
    /** @type {string} the session credential; set by a flow whose outcome carries one. Kept in memory only. */
    this.xAuth = '';
    /** How far this machine's clock is ahead of the service's, in ms; known from the last token. */
    this.skew = 0;
    this.#fetch = fetch.bind(globalThis);
  }

  /** @param {{countryCode?: string, phoneNumber?: string, email?: string, password: string}} credentials
   *  @returns {Promise<Flow>} */
  login(credentials) {
    return this.start('POST', LOGIN, credentials, { xAuth: '' });
  }

  /** Starts any operation that answers {challenge}. An unguarded operation has run: its flow is already done.
   *  @param {object|string} [body] for GET: query parameters; a string is sent unchanged
   *  @returns {Promise<Flow>} */
  async start(method, path, body, { xAuth = this.xAuth, headers: more = {} } = {}) {
    const { data, headers } = await this.request(method, path, { body, headers: xAuth ? { 'x-auth': xAuth, ...more } : more });
    return new Flow(this, data, headers);
  }

  /** @returns {Promise<object[]>} the caller's sessions, the present one marked `current` */
  async sessions() {
    return (await this.request('GET', '/auth/sessions', { headers: { 'x-auth': this.xAuth } })).data;
  }

  /** @param {{sessionId: string}|{all: true}} which  @returns {Promise<number>} how many ended */
  async endSession(which) {
    const headers = { 'x-auth': this.xAuth };
    return (await this.request('DELETE', '/auth/sessions', { body: which, headers })).data.data?.ended ?? 0;
  }

  /** @returns {Promise<object[]>} the caller's remembered browsers; `current` marks those with this session's key */
  async remembered() {
    return (await this.request('GET', '/auth/remembered', { headers: { 'x-auth': this.xAuth } })).data;
  }

  /** @param {{id: string}|{all: true}} which  @returns {Promise<number>} how many browsers were forgotten */
  async forget(which) {
    const headers = { 'x-auth': this.xAuth };
    return (await this.request('DELETE', '/auth/remembered', { body: which, headers })).data.data?.ended ?? 0;
  }

  async logout() {
    await this.request('POST', '/auth/logout', { body: {}, headers: { 'x-auth': this.xAuth } });
    await this.key?.forget(this.xAuth);
    this.xAuth = '';
  }

  /**
   * Sends a request to an upstream behind the guard for gateways. If a challenge is required, `ask` gets its flow and
   * shows it. After the outcome the same request is sent again with the grant. A body is bound by its digest.
   *
   * @param {string} url  @param {RequestInit} init as for fetch; a body is a string
   * @param {(flow: Flow) => void} ask
   * @returns {Promise<Response>} the answer of the upstream, or a refusal. It rejects with a TypeError if an answer is
   *   lost: after the approval, the upstream may have acted.
   * @throws {CastellanError} if the challenge ends without a grant: denied, expired, or closed by `flow.close()`
   */
  async guarded(url, init = {}, ask = () => {}) {
    const headers = new Headers(init.headers);
    const own = !headers.has('x-auth');
    if (init.body && !headers.has('content-digest')) headers.set('content-digest', await digestOf(init.body));
    const send = async (nonce) => {
      if (own && this.key && this.xAuth) await this.#fresh();
      if (own && this.xAuth) headers.set('x-auth', this.xAuth);
      const token = headers.get('x-auth');
      const at = { method: init.method ?? 'GET', url: new URL(url, globalThis.location?.href) };
      const dpop = token && (await this.key?.proof({ ...at, token, nonce }));
      if (dpop) headers.set('dpop', dpop);
      const answer = await this.#fetch(url, { cache: 'no-store', credentials: 'omit', ...init, headers });
      const refused = dpop && !nonce && answer.status === 401; // any other answer may be that of an effect
      const given = refused && answer.headers.get('dpop-nonce'); // only the clock of this machine is wrong
      return given ? send(given) : answer;
    };
    const first = await send();
    const problem = first.status === 401 ? parse(await first.clone().text()) : undefined;
    if (problem?.code !== 'CHALLENGE_REQUIRED') return first;
    const flow = new Flow(this, problem, first.headers);
    ask(flow);
    const { success, data, code = 'DENIED', message } = await flow.done;
    if (!success) throw new CastellanError(403, { code, message: message ?? 'the request was denied' });
    headers.set('castellan-grant', data.grant);
    return send();
  }

  /** Renews the session, which must be bound to the key. request does it itself in the last fifth of the token's life.
   *  @returns {Promise<{expiresAt: string, sessionEndsAt: string}>}
   *  @throws {CastellanError} TOKEN_EXPIRED and TOKEN_REVOKED need a login */
  renewSession() {
    this.#renewing ??= this.#renew().finally(() => { this.#renewing = undefined; });
    return this.#renewing;
  }

  async #renew() {
    this.#renewedAt = Date.now();
    const { data, headers } = await this.request('POST', RENEWAL, { headers: { 'x-auth': this.xAuth } });
    this.took(headers.get('x-auth'));
    await this.key.keep(this.xAuth).catch(() => {}); // then a reload needs a login
    return data.data;
  }

  /** Takes a new token of the session. */
  took(token) {
    [this.xAuth, this.skew] = [token, Date.now() - (read(token).iat ?? 0) * 1000];
  }

  /** Takes the session that this browser has kept, after a reload. The answer is that of renewSession, or undefined.
   *  @throws {CastellanError} NETWORK, and whatever may pass */
  async resume() {
    this.xAuth = (await this.key?.token()) || '';
    if (!this.xAuth) return undefined;
    return this.renewSession().catch(async (error) => {
      if (error.status !== 401) throw error;
      await this.key.forget(this.xAuth);
      this.xAuth = '';
    });
  }

  // A failure leaves the token, which may still be good.
  async #fresh() {
    const { iat = 0, exp = 0, cnf } = read(this.xAuth);
    const late = exp * 1000 + this.skew - Date.now() < (exp - iat) * 200;
    const due = cnf && late && Date.now() - this.#renewedAt > RENEWAL_PAUSE_MS;
    if (due || this.#renewing) await this.renewSession().catch(() => {});
  }

  /** One request; a string body is sent unchanged. @throws {CastellanError}
   *  @returns {Promise<{data: any, headers: Headers}>} */
  async request(method, path, options = {}) {
    const token = options.headers?.['x-auth'] ?? '';
    if (!this.key || !(token || path === LOGIN)) return this.#send(method, path, options);
    const headers = { ...options.headers };
    if (token && token === this.xAuth && path !== RENEWAL) {
      await this.#fresh();
      headers['x-auth'] = this.xAuth || token;
    }
    const url = new URL(this.baseUrl + path, globalThis.location?.href);
    const signed = async (nonce) => {
      const dpop = await this.key.proof({ method, url, token: headers['x-auth'], nonce });
      return this.#send(method, path, { ...options, headers: dpop ? { ...headers, dpop } : headers });
    };
    return signed().catch((error) => {
      if (!error.keyNonce || error.status !== 401) throw error;
      return signed(error.keyNonce); // only the clock of this machine is wrong
    });
  }

  async #send(method, path, { body, headers = {}, signal } = {}) {
    const timeout = AbortSignal.timeout(REQUEST_MS);
    const init = {
      method, cache: 'no-store', credentials: 'omit', headers: { ...this.headers, ...headers },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    };
    if (body && method === 'GET') {
      path += (path.includes('?') ? '&' : '?') + new URLSearchParams(body);
    } else if (body) {
      init.headers['content-type'] = 'application/json';
      init.body = typeof body === 'string' ? body : JSON.stringify(body);
    }
    let response, data;
    try {
      response = await this.#fetch(this.baseUrl + path, init);
      const text = await response.text();
      // A truncated success must not pass for an empty one: the outcome could be in it.
      data = response.ok ? JSON.parse(text || '{}') : parse(text) ?? {};
    } catch (cause) {
      throw new CastellanError(0, { code: 'NETWORK', message: 'the service could not be reached' }, 0, cause);
    }
    if (!response.ok) {
      const error = new CastellanError(response.status, data, Number(response.headers.get('retry-after')) || 0);
      error.nonce = response.headers.get('device-signature-nonce') ?? '';
      error.keyNonce = response.headers.get('dpop-nonce') ?? '';
      throw error;
    }
    return { data, headers: response.headers };
  }
}

/**
 * One challenge from its start to its outcome. Events (CustomEvent, see `detail`):
 *   method     {methodId, method, via}        a method was completed, once per method
 *   done       {...Outcome, via}              via: 'complete', 'socket', 'result' or 'start'
 *   closed     CastellanError                 ended without an outcome; `done` rejects with the same
 *   error      CastellanError                 a path failed temporarily; the flow goes on
 *   transport  {name, code?}                  'socket', 'lost' or 'poll'; code is the socket's close code
 *   message    the socket's frame as sent, including repetitions
 */
export class Flow extends EventTarget {
  #client; #socket; #resolve; #reject; #ending;
  #remember; #over = false; #polling = false; #inFlight = 0; #reopened = 0;
  #abort = new AbortController();

  /** Created by CastellanClient.start. */
  constructor(client, data, headers) {
    super();
    this.#client = client;
    this.openedAt = Date.now();
    /** @type {Promise<Outcome>} */
    this.done = new Promise((resolve, reject) => { this.#resolve = resolve; this.#reject = reject; });
    this.done.catch(() => {}); // a client that listens to 'closed' instead must not get an unhandled rejection
    /** @type {Record<string, any>|undefined} the challenge as the service sent it */
    this.challenge = data.challenge;
    /** @type {{key: string, label: string, value: string}[]} what the user approves, of a request behind a gateway */
    this.rows = (data.challenge && data.rows) || [];
    this.pAuth = headers.get('p-auth') ?? '';
    /** @type {Method[]} */
    this.methods = [];
    if (data.challenge && data.execResult) { // a passkey or a remembered browser completed the challenge
      this.#finish({ ...data.execResult, headers: tokens(headers) }, 'start');
    } else if (!data.challenge) {
      this.#finish({ success: true, data, headers: tokens(headers) }, 'start');
    } else {
      if (!this.pAuth) throw new Error('the answer has no readable p-auth header: is this origin allowed by the service?');
      this.expiresAt = this.openedAt + data.challenge.expire * 1000;
      this.#take(data.challenge.methodList);
      if (data.challenge.status === 'COMPLETED') this.#poll(); // this browser is remembered
      else this.#listen();
    }
  }

  /** Has this browser remembered for challenge.rememberDays days by the last `complete`. @param {boolean} on */
  rememberBrowser(on) {
    this.#remember = on || undefined;
  }

  /** Answers one method. Resolves with the service's answer; the outcome is reported by `done` as well.
   *  @param {Record<string, string>} [headers] such as that of a passkey
   *  @throws {CastellanError} OTP_INVALID (attemptsLeft), METHOD_LOCKED, METHOD_EXPIRED, RATE_LIMITED (retryAfter), … */
  async complete(methodId, method, value, headers = {}) {
    this.#inFlight++;
    try {
      const { data, headers: got } = await this.#post(COMPLETE, { methodId, method, value, remember: this.#remember },
        headers);
      if (value !== 'DENIED') this.#methodDone(methodId, method, 'complete');
      if (data.execResult) this.#finish({ ...data.execResult, headers: tokens(got) }, 'complete');
      return data;
    } catch (error) {
      // Only the result endpoint can decide whether such a refusal hides an outcome, which another method may have
      // produced.
      if (['CHALLENGE_CLOSED', 'CHALLENGE_EXPIRED', 'TOKEN_EXPIRED'].includes(error.code)) this.#poll();
      throw error;
    } finally {
      if (--this.#inFlight === 0 && this.#ending) this.#end(this.#ending);
    }
  }

  /** Requests a new code (SMS and MAIL) and moves the deadlines in `methods`.
   *  @throws {CastellanError} RENEW_TOO_EARLY (retryAfter), RENEW_CLOSED, RENEW_NOT_SUPPORTED, … */
  async renew(methodId, method) {
    const { data } = await this.#post(RENEW, { methodId, method });
    this.#take(data.challenge.methodList);
    return data.challenge;
  }

  /** The present state for a renew button. @param {Method} method @returns {'none'|'early'|'open'|'closed'} */
  renewal(method, now = Date.now()) {
    if (!method.renewAt) return 'none';
    if (method.complete || this.#over || this.expiresAt - now < RENEW_CUTOFF_MS) return 'closed';
    return now < method.renewAt ? 'early' : 'open';
  }

  /** Stops listening. The challenge itself goes on until it expires. */
  close() {
    this.#inFlight = 0;
    this.#end(new CastellanError(0, { code: 'ABANDONED', message: 'closed by the caller' }));
    this.#socket?.close(1000);
  }

  #post(path, body, more = {}) {
    return this.#client.request('POST', path, { body, headers: { 'p-auth': this.pAuth, ...more } });
  }

  // `expire` counts from the answer that carries it; `renewStart` always counts from the start of the challenge.
  #take(list) {
    const now = Date.now();
    for (const { id, name, hint, expire, renewStart, matchNumber, webauthn, completed = false } of list) {
      const known = this.methods.find((m) => m.id === id);
      if (known) known.expiresAt = now + expire * 1000;
      else this.methods.push({
        id, name, hint, matchNumber, webauthn, complete: completed,
        lifetime: expire * 1000, expiresAt: now + expire * 1000, renewAt: renewStart > 0 ? this.openedAt + renewStart * 1000 : 0,
      });
    }
  }

  #listen() {
    const address = new URL(`${this.#client.baseUrl}/2fa`, globalThis.location?.href);
    address.protocol = address.protocol.replace('http', 'ws');
    let opened = false;
    // The sub-protocol carries the token: a browser can set no header here, and a query would end in access logs.
    let socket;
    try { socket = this.#socket = new WebSocket(address, ['p-auth', this.pAuth]); } catch { return void this.#poll(); }
    const giveUp = setTimeout(() => socket.close(), OPEN_MS);
    socket.onopen = () => { opened = true; clearTimeout(giveUp); this.#emit('transport', { name: 'socket' }); };
    socket.onmessage = (event) => this.#frame(event.data);
    socket.onclose = ({ code }) => { clearTimeout(giveUp); this.#lost(code, opened); };
  }

  #lost(code, opened) {
    if (this.#over) return;
    this.#emit('transport', { name: 'lost', code });
    if (code === 4401) { // p-auth has expired: no path answers any more
      this.#end(new CastellanError(401, { code: 'TOKEN_EXPIRED', message: 'the challenge is over' }));
    } else if (opened && ![4410, 4429].includes(code) && this.#reopened++ < REOPEN_LIMIT) {
      // 1012 (a node restarts) or a lost link: reconnect after a random delay; the service replays the missed events.
      setTimeout(() => this.#over || this.#listen(), this.#reopened * (250 + 500 * Math.random()));
    } else { // never opened, 4429 (too many sockets), or 4410: expired or closed, and the result says which
      this.#poll();
    }
  }

  #frame(text) {
    const frame = parse(text);
    if (frame?.challengeId !== this.challenge.challengeId) return;
    this.#emit('message', frame);
    for (const item of frame.data ?? []) {
      if (frame.event === 'METHOD_COMPLETE') this.#methodDone(item.methodId, item.method, 'socket');
      if (frame.event === 'ACTION_COMPLETE') {
        this.#finish({ ...item, headers: item.headers ?? {} }, 'socket');
        this.#socket.close(1000);
      }
    }
  }

  async #poll() {
    if (this.#polling || this.#over) return;
    this.#polling = true;
    this.#emit('transport', { name: 'poll' });
    for (let failures = 0; !this.#over;) {
      const asked = Date.now();
      try {
        const { data, headers } = await this.#client.request('GET', RESULT, {
          headers: { 'p-auth': this.pAuth, prefer: 'wait=25' }, signal: this.#abort.signal,
        });
        this.#finish({ ...data.execResult, headers: tokens(headers) }, 'result');
      } catch (error) {
        if (this.#over) return;
        const pending = error.code === 'CHALLENGE_NOT_COMPLETED';
        const passing = pending || error.status === 0 || error.status === 429 || error.status >= 500;
        if (!passing || (!pending && asked > this.expiresAt + GRACE_MS)) return void this.#end(error);
        failures = pending ? 0 : failures + 1;
        if (!pending) this.#emit('error', error);
        const held = pending && Date.now() - asked > 1000; // the service held the request: send it again at once
        if (!held) await pause(Math.max(error.retryAfter, Math.min(2 ** failures, 15)) * 1000, this.#abort.signal);
      }
    }
  }

  #methodDone(methodId, name, via) {
    const method = this.methods.find((m) => m.id === methodId);
    if (!method || method.complete) return;
    method.complete = true;
    this.#emit('method', { methodId, method: name, via });
  }

  #finish(outcome, via) {
    if (this.#over) return;
    this.#over = true;
    const token = outcome.headers['x-auth'];
    if (token) this.#client.took(token);
    if (token) this.#client.key?.keep(token, this.#remember).catch(() => {}); // then a reload needs a login
    else if (this.#remember) this.#client.key?.remember().catch(() => {});
    this.#resolve(outcome);
    this.#emit('done', { ...outcome, via });
    this.#abort.abort();
    setTimeout(() => this.#socket?.close(1000), LINGER_MS);
  }

  #end(error) {
    if (this.#over) return;
    this.#ending = error;
    if (this.#inFlight) return; // a completion under way may still return the outcome
    this.#over = true;
    this.#reject(error);
    this.#emit('closed', error);
    this.#abort.abort();
    this.#socket?.close(1000);
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

function tokens(headers) {
  return Object.fromEntries(['x-auth', 'ot-auth'].map((n) => [n, headers.get(n)]).filter(([, token]) => token));
}

// Content-Digest of RFC 9530.
async function digestOf(body) {
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body)));
  return `sha-256=:${btoa(String.fromCharCode(...sum))}:`;
}

function read(token) {
  return parse(atob((token.split('.')[1] ?? '').replace(/-/g, '+').replace(/_/g, '/'))) ?? {};
}

function parse(text) {
  try { return JSON.parse(text); } catch { return undefined; }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
