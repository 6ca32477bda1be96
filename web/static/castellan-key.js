/**
 * The key of a session in a browser (RFC 9449): one ES module, made to be copied with castellan-client.js and
 * castellan-device.js beside it.
 *
 *   const client = new CastellanClient({ key: new SessionKey() });
 *   if (!(await client.resume())) await (await client.login(credentials)).done;  // a reload keeps the session
 *
 * A login uses the stored key, or makes one of P-256. Its private half cannot be read, not even by this page, and the
 * session is bound to it. The client renews the session by proofs of the key, so twelve hours need one login by
 * default. All tabs share the key and the last token in IndexedDB; the token is encrypted there, with another key that
 * cannot be read. A logout deletes the token, and the key unless the service remembers this browser by it. A copied
 * token is not renewed without the key.
 *
 * WebCrypto needs a secure context: https, or this machine. Without one, sessions have no key and end as before.
 */

import { base64url } from './castellan-device.js';

const SIGNING = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' };
const SEALING = { name: 'AES-GCM', length: 256 };

const utf8 = (text) => new TextEncoder().encode(text);
const hash = async (text) => base64url(await crypto.subtle.digest('SHA-256', utf8(text)));

/** The hash of a session's id, which itself is not stored. */
const sessionOf = (token) => hash(claimsOf(token).sid ?? '');

/** The claims of a token, for reading only: nothing here verifies it. */
export function claimsOf(token) {
  try {
    const part = token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/');
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (c) => c.charCodeAt(0))));
  } catch {
    return {};
  }
}

export class SessionKey {
  #slot;
  #pairs = new Map(); // by thumbprint: {keys, jwk, jkt}
  #made; // for the last login
  #left = new Set(); // sessions that were forgotten: a renewal under way stores their tokens no more

  /** @param {string} [slot] for several services or users of one origin */
  constructor(slot = 'session') {
    this.#slot = slot;
  }

  /** Whether this browser can keep a key here. */
  static get available() {
    return !!globalThis.crypto?.subtle && typeof indexedDB !== 'undefined';
  }

  /** The header dpop of a request with a token; of a login without one, by the stored key or a new one. With a nonce, by
   *  that of the last login. undefined if the token is bound to no key that is here.
   *  @param {{method: string, url: string|URL, token?: string, nonce?: string}} request
   *  @returns {Promise<string|undefined>} */
  async proof({ method, url, token = '', nonce }) {
    const pair = token ? await this.#of(token) : nonce ? this.#made : await this.#create();
    if (!pair) return undefined;
    const { origin, pathname } = new URL(url, globalThis.location?.href);
    const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: pair.jwk };
    const claims = {
      htm: method, htu: origin + pathname, iat: Math.floor(Date.now() / 1000), jti: crypto.randomUUID(),
      nonce, ath: token ? await hash(token) : undefined, // what is undefined is left out
    };
    const signed = `${base64url(utf8(JSON.stringify(header)))}.${base64url(utf8(JSON.stringify(claims)))}`;
    return `${signed}.${base64url(await crypto.subtle.sign(SIGNATURE, pair.keys.privateKey, utf8(signed)))}`;
  }

  /** Stores the token of a login or of a renewal with its key, for reloads and for other tabs. With remembered, the key
   *  outlives the session: the service remembers this browser by it. */
  async keep(token, remembered = false) {
    const pair = await this.#of(token);
    if (!pair) return;
    const seal = await crypto.subtle.generateKey(SEALING, false, ['encrypt', 'decrypt']);
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const box = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, seal, utf8(token));
    const session = await sessionOf(token);
    await this.#change((before) => {
      if (this.#left.has(session)) return before;
      const known = remembered || (before?.jkt === pair.jkt && before.remembered);
      return { ...pair, remembered: known, session, seal, iv, box };
    });
  }

  /** Keeps the key beyond its session, because the service remembers this browser by it. */
  async remember() {
    await this.#change((stored) => stored && { ...stored, remembered: true });
  }

  /** The stored token; '' for none. @returns {Promise<string>} */
  async token() {
    const stored = await this.#load();
    if (!stored?.box) return '';
    const { seal, iv, box } = stored;
    return new TextDecoder().decode(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, seal, box));
  }

  /** Deletes the token of a session; without a token, any. Its key goes too, unless this browser is remembered by it.
   *  Those of a later login stay. The memory of this page keeps the key for a logout under way, which it has to sign. */
  async forget(token) {
    const of = token && (await sessionOf(token));
    if (of) this.#left.add(of);
    await this.#change((stored) => {
      if (!stored || (token && stored.session !== of)) return stored;
      const { session, seal, iv, box, ...pair } = stored;
      return pair.remembered ? pair : undefined;
    });
    if (!token) this.#pairs.clear();
  }

  /** The key of the next login: the stored one, by which this browser may be remembered, or a new one. */
  async #create() {
    const { keys, jwk, jkt } = (await this.#load().catch(() => undefined)) ?? (await this.#generate());
    this.#made = { keys, jwk, jkt };
    this.#pairs.set(jkt, this.#made);
    return this.#made;
  }

  async #generate() {
    const keys = await crypto.subtle.generateKey(SIGNING, false, ['sign', 'verify']);
    const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', keys.publicKey);
    const jwk = { crv, kty, x, y }; // the order of RFC 7638
    return { keys, jwk, jkt: await hash(JSON.stringify(jwk)) };
  }

  /** The key to which a token is bound: of this tab, or stored by another one. */
  async #of(token) {
    const jkt = claimsOf(token).cnf?.jkt;
    if (!jkt) return undefined;
    if (!this.#pairs.has(jkt)) {
      const stored = await this.#load();
      if (stored?.jkt !== jkt) return undefined;
      this.#pairs.set(jkt, { keys: stored.keys, jwk: stored.jwk, jkt });
    }
    return this.#pairs.get(jkt);
  }

  /** Replaces what is stored by what to makes of it, in one transaction of all tabs; undefined deletes it. */
  #change(to) {
    return inStore('readwrite', (store) => {
      const reading = store.get(this.#slot);
      reading.onsuccess = () => {
        const next = to(reading.result);
        if (next) store.put(next, this.#slot);
        else store.delete(this.#slot);
      };
      return reading;
    });
  }

  #load() {
    return inStore('readonly', (store) => store.get(this.#slot));
  }
}

// A CryptoKey is stored directly: the database holds a key that works and cannot be read.
function inStore(mode, act) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open('castellan-session', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const transaction = database.transaction('keys', mode);
      let request;
      transaction.oncomplete = () => { database.close(); resolve(request.result); };
      transaction.onabort = () => { database.close(); reject(transaction.error); };
      try {
        request = act(transaction.objectStore('keys'));
      } catch (error) { // such as a key that this browser cannot store
        reject(error);
        transaction.abort();
      }
    };
  });
}
