/**
 * Passkeys in a browser: one ES module, made to be copied with castellan-client.js beside it.
 *
 *   const flow = await enroll(client);
 *   …                                              // complete the flow as any other (action DEVICE_ADD)
 *   await approve(flow, method);                   // a PUSH with method.webauthn: the browser asks its user
 *   const flow = await login(client);              // in place of identifier and password
 *   login(client, { autofill: true, signal });     // waits for a passkey chosen in an input with autocomplete webauthn
 *
 * WebAuthn needs a secure context and a domain: https, or http://localhost.
 *
 * @typedef {import('./castellan-client.js').CastellanClient} CastellanClient
 * @typedef {import('./castellan-client.js').Flow} Flow
 */

const OFFER_MS = 8 * 60_000; // the service accepts an answer for ten minutes
const PAUSE_MS = 5_000; // after a failure

/** Whether this browser has passkeys on this page. An address, such as 127.0.0.1, is no domain. @returns {boolean} */
export const supported = () => globalThis.isSecureContext && typeof globalThis.PublicKeyCredential === 'function'
  && !/^[\d.]+$|:/.test(globalThis.location.hostname);

/** Whether this browser offers passkeys in the autofill of an input. @returns {Promise<boolean>} */
export async function offersAutofill() {
  return supported() && Boolean(await PublicKeyCredential.isConditionalMediationAvailable?.());
}

/** Whether the user closed the browser's question, or another question took its place. @param {any} error */
export const dismissed = (error) => ['NotAllowedError', 'AbortError'].includes(error?.name);

function encode(buffer) {
  const binary = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join('');
  return btoa(binary).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

function decode(text) {
  return Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
}

const named = (list = []) => list.map((one) => ({ ...one, id: decode(one.id) }));

function answer(credential, response) {
  const id = encode(credential.rawId);
  return {
    id, rawId: id, type: credential.type, response, clientExtensionResults: credential.getClientExtensionResults(),
    authenticatorAttachment: credential.authenticatorAttachment ?? undefined,
  };
}

/** The AuthenticationResponseJSON for request options.
 *  @param {any} options @param {object} [more] @returns {Promise<any>} */
async function get(options, more = {}) {
  const allowCredentials = named(options.allowCredentials);
  const publicKey = { ...options, challenge: decode(options.challenge), allowCredentials };
  const got = /** @type {any} */ (await navigator.credentials.get({ publicKey, ...more }));
  const { clientDataJSON, authenticatorData, signature, userHandle } = got.response;
  return answer(got, {
    clientDataJSON: encode(clientDataJSON), authenticatorData: encode(authenticatorData), signature: encode(signature),
    userHandle: userHandle ? encode(userHandle) : undefined,
  });
}

/** Creates a passkey for the account of the client's session. @param {CastellanClient} client
 *  @returns {Promise<any>} its RegistrationResponseJSON: the attestation of POST /auth/devices */
export async function attest(client) {
  const headers = { 'x-auth': client.xAuth };
  const { data } = await client.request('POST', '/auth/devices/passkey', { body: {}, headers });
  return create(data.data.publicKey);
}

/** The RegistrationResponseJSON for creation options. @param {any} options @returns {Promise<any>} */
export async function create(options) {
  const publicKey = {
    ...options, challenge: decode(options.challenge), user: { ...options.user, id: decode(options.user.id) },
    excludeCredentials: named(options.excludeCredentials),
  };
  const made = /** @type {any} */ (await navigator.credentials.create({ publicKey }));
  return answer(made, {
    clientDataJSON: encode(made.response.clientDataJSON), attestationObject: encode(made.response.attestationObject),
    transports: made.response.getTransports?.() ?? [],
  });
}

/** The texts of a new passkey, from this browser. */
export function about() {
  const { brands = [], platform } = /** @type {any} */ (navigator).userAgentData ?? {};
  return { brand: brands.at(-1)?.brand || 'Browser', model: platform || 'Web', description: '', platform: 'passkey' };
}

/** Creates a passkey and starts its registration. @param {CastellanClient} client
 *  @param {{brand: string, model: string, description: string, platform: string}} [texts] @returns {Promise<Flow>} */
export async function enroll(client, texts = about()) {
  const attestation = await attest(client);
  return client.start('POST', '/auth/devices', { ...texts, attestation });
}

/** Approves a push of a flow with a passkey. @param {Flow} flow @param {any} method @returns {Promise<any>} */
export async function approve(flow, method) {
  const assertion = await get(method.webauthn);
  const header = encode(new TextEncoder().encode(JSON.stringify(assertion)));
  return flow.complete(method.id, method.name, 'APPROVED', { 'webauthn-assertion': header });
}

/** Logs in with a passkey. The flow is done at once if the policy lets a passkey suffice.
 *  @param {CastellanClient} client @param {{autofill?: boolean, signal?: AbortSignal}} [how]
 *  @returns {Promise<Flow>} */
export async function login(client, { autofill = false, signal } = {}) {
  const { data } = await client.request('POST', '/auth/login/passkey', { body: {}, signal });
  const { publicKey, ticket } = data.data;
  const assertion = await get(publicKey, { signal, mediation: autofill ? 'conditional' : undefined });
  return client.start('POST', '/auth/login', { ticket, assertion }, { xAuth: '' });
}

/** Offers the passkeys of this browser in the autofill of the inputs whose autocomplete has webauthn, until one was used
 *  or the returned function is called. A browser without autofill offers nothing.
 *  @param {CastellanClient} client @param {(flow: Flow) => void} begun @param {(error: unknown) => void} failed
 *  @returns {() => void} */
export function offer(client, begun, failed) {
  let over = false, abort = new AbortController(), wait = PAUSE_MS, told = false;
  const run = async () => {
    if (!(await offersAutofill())) return;
    while (!over) {
      abort = new AbortController();
      const renew = setTimeout(() => abort.abort(), OFFER_MS);
      try {
        const flow = await login(client, { autofill: true, signal: abort.signal });
        if (!over) begun(flow);
        return;
      } catch (error) {
        if (over) return;
        if (abort.signal.aborted) continue;
        if (!dismissed(error) && !told) failed(error); // repetitions stay silent
        await new Promise((resolve) => setTimeout(resolve, Math.max(wait, (error.retryAfter ?? 0) * 1000)));
        if (dismissed(error)) continue;
        [told, wait] = [true, Math.min(2 * wait, OFFER_MS)];
      } finally {
        clearTimeout(renew);
      }
    }
  };
  void run();
  return () => {
    over = true;
    abort.abort();
  };
}
