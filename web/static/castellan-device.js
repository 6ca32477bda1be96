/**
 * A device that approves or denies, in a browser or any runtime with WebCrypto: one ES module, made to be copied with
 * castellan-client.js beside it.
 *
 *   const device = await Device.create({ audience: 'https://id.example.com' });
 *   const flow = await device.enroll(client, { brand: 'Acme', model: 'Web', description: '', platform: 'web' });
 *   …                                              // complete the flow as any other (action DEVICE_ADD)
 *   device.deviceId = (await flow.done).data.deviceId;
 *   await saveDevice(device);                      // IndexedDB; the private key cannot be read, not even by this page
 *
 *   const device = await loadDevice();             // another day
 *   for (const item of await device.ongoing(client)) await device.answer(client, item, 'APPROVED');
 *
 * Each request carries a proof in the header device-signature: a compact JWS over method, target, the body's hash and a
 * text that is never used again. For an answer it also covers the challenge, its method, the decision and the intent:
 * the title and the values that the owner of the account read. The service trusts only the public key from the
 * enrolment; no session is needed to answer.
 *
 * WebCrypto needs a secure context: https, or this machine. The owner can clear IndexedDB, and some browsers clear it
 * after weeks without a visit; such a device is enrolled again, and the old one removed.
 */

const KEY = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' }; // WebCrypto gives r and s in 64 bytes, as a JWS needs them
const DEVICES = '/auth/devices';
const ONGOING = '/auth/2fa/challenge/ongoing';
const COMPLETE = '/auth/2fa/challenge/complete';
const ALARM = '/auth/devices/alarm';

const utf8 = (text) => new TextEncoder().encode(text);

/** base64url without padding. @param {ArrayBuffer|Uint8Array} bytes */
export function base64url(bytes) {
  const binary = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join('');
  return btoa(binary).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

async function hash(text) {
  return base64url(await crypto.subtle.digest('SHA-256', utf8(text)));
}

/** The canonical JSON (RFC 8785) of a value of objects, arrays, strings and integers. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)}}`;
}

/** The digest of an intent, which the claim int signs. It is computed here, so it covers what the page shows.
 *  @param {object} intent  as in an item of ongoing */
export const intentDigest = (intent) => hash(canonical(intent));

export class Device {
  /** Created by create and loadDevice. @param {CryptoKeyPair} keys */
  constructor({ keys, audience, deviceId = '', owner = '' }) {
    this.keys = keys;
    /** The service's public base URL (http.public_url), without a trailing slash: proofs name it. */
    this.audience = audience.replace(/\/+$/, '');
    /** The service's id of the device; empty until the enrolment is complete. */
    this.deviceId = deviceId;
    /** The page's own note on the owner of the device. */
    this.owner = owner;
  }

  /** A new device with a key of P-256 whose private half cannot be exported. @param {{audience: string, owner?: string}} about */
  static async create(about) {
    return new Device({ ...about, keys: await crypto.subtle.generateKey(KEY, false, ['sign', 'verify']) });
  }

  /** The public key as a JWK: its required members in the order of RFC 7638. */
  async publicKey() {
    const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', this.keys.publicKey);
    return { crv, kty, x, y };
  }

  /** RFC 7638: the name of the key until the device has an id. */
  async thumbprint() {
    return hash(JSON.stringify(await this.publicKey()));
  }

  /** The header device-signature of one request.
   *  @param {{method: string, target: string, body?: string, name?: string, challengeId?: string, methodId?: string,
   *    value?: string, intent?: string, nonce?: string}} request  target: path with the raw query, as sent. body: the very text that is
   *    sent. name: the signer, if it is not the device's id. nonce: the service's, after a refusal with a nonce */
  async proof({ method, target, body, name = this.deviceId, challengeId, methodId, value, intent, nonce }) {
    const header = { alg: 'ES256', typ: 'device-signature+jwt', kid: name };
    const claims = {
      iss: name, aud: this.audience, htm: method, htu: target, iat: Math.floor(Date.now() / 1000),
      jti: crypto.randomUUID(), nonce, // what is undefined is left out
      bh: body ? await hash(body) : undefined, cid: challengeId, mid: methodId, val: value, int: intent,
    };
    const signed = `${base64url(utf8(JSON.stringify(header)))}.${base64url(utf8(JSON.stringify(claims)))}`;
    return `${signed}.${base64url(await crypto.subtle.sign(SIGNATURE, this.keys.privateKey, utf8(signed)))}`;
  }

  /** Begins the enrolment with the account that the client is logged in to. The outcome of the flow has the deviceId.
   *  @param {import('./castellan-client.js').CastellanClient} client
   *  @param {{brand: string, model: string, description: string, platform: string, pushTarget?: object}} about
   *  @returns {Promise<import('./castellan-client.js').Flow>}  @throws {CastellanError} */
  async enroll(client, about) {
    const body = JSON.stringify({ publicKey: await this.publicKey(), ...about });
    const name = await this.thumbprint();
    return this.#signed(client, { method: 'POST', path: DEVICES, body, name }, (headers) => client.start('POST', DEVICES, body, { headers }));
  }

  /** The challenges that wait for an answer (section 2.1 of the interface): {body, data: {challengeId, methodId,
   *  actionTitle, numberMatching?, params: {expire, infoTable, …}}, intent: {title, rows: [{key, label, value}], …},
   *  intentDigest}. Show the title and all rows of intent: answer signs them.  @throws {CastellanError} */
  async ongoing(client) {
    const path = `${ONGOING}?intent=true&deviceId=${encodeURIComponent(this.deviceId)}`;
    const { data } = await this.#signed(client, { method: 'GET', path }, (headers) => client.request('GET', path, { headers }));
    return data;
  }

  /** Answers an item of ongoing, and signs its intent.
   *  @param {'APPROVED'|'DENIED'|string} value  with numberMatching: APPROVED:<number>
   *  @returns {Promise<object>} execResult reports the success, without the data that only the starter receives
   *  @throws {CastellanError} OTP_INVALID (a wrong number; attemptsLeft), CHALLENGE_CLOSED, METHOD_ALREADY_COMPLETED, … */
  async answer(client, { data: { challengeId, methodId }, intent }, value) {
    const body = JSON.stringify({ challengeId, methodId, method: 'PUSH', value, deviceId: this.deviceId });
    const signed = intent && (await intentDigest(intent));
    const request = { method: 'POST', path: COMPLETE, body, challengeId, methodId, value, intent: signed };
    const { data } = await this.#signed(client, request, (headers) => client.request('POST', COMPLETE, { body, headers }));
    return data;
  }

  /** Reports that the owner did not start a challenge: ends all sessions of the account, closes all of its challenges and
   *  notifies the owner. Deny the challenge first, so that the denial is evident. @returns {Promise<number>} how many
   *  sessions ended  @throws {CastellanError} */
  async alarm(client, challengeId) {
    const body = JSON.stringify({ challengeId });
    const { data } = await this.#signed(client, { method: 'POST', path: ALARM, body }, (headers) => client.request('POST', ALARM, { body, headers }));
    return data.data.ended;
  }

  // A refusal with a nonce means that only the time was wrong: this device's clock is off. The request is signed again,
  // once.
  async #signed(client, { path, ...request }, send) {
    const { pathname, search } = new URL(client.baseUrl + path, globalThis.location?.href);
    const target = pathname + search;
    const headers = async (nonce) => ({ 'device-signature': await this.proof({ ...request, target, nonce }) });
    try {
      return await send(await headers());
    } catch (error) {
      if (!error.nonce) throw error;
      return send(await headers(error.nonce));
    }
  }
}

/** The stored device, if there is one. @param {string} [slot] for a page with several devices @returns {Promise<Device|undefined>} */
export async function loadDevice(slot = 'device') {
  const stored = await inStore('readonly', (store) => store.get(slot));
  return stored && new Device(stored);
}

/** Stores the device and replaces another one. @param {Device} device */
export async function saveDevice({ keys, audience, deviceId, owner }, slot = 'device') {
  await inStore('readwrite', (store) => store.put({ keys, audience, deviceId, owner }, slot));
}

/** Deletes the key permanently; remove the device from the account's list separately. */
export async function forgetDevice(slot = 'device') {
  await inStore('readwrite', (store) => store.delete(slot));
}

// A CryptoKey is stored directly: the database holds a key that works and cannot be read.
function inStore(mode, act) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open('castellan-device', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('devices');
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const transaction = database.transaction('devices', mode);
      const request = act(transaction.objectStore('devices'));
      transaction.oncomplete = () => { database.close(); resolve(request.result); };
      transaction.onabort = () => { database.close(); reject(transaction.error); };
    };
  });
}
