/**
 * The callbacks of a service client: one ES module without dependencies, for servers (Node 20, Deno, Bun, workers).
 *
 *   const event = await callback(request.headers, body, { service: 'shop', baseUrl: 'https://id.example.com' });
 *
 * `body` has the bytes or the text as received. The message must be for `service`, the name of the key, and signed by a
 * key of the JWKS. The same event may arrive more than once, with the same webhook-id.
 */

const MAX_AGE_MS = 300_000;

/** @typedef {{id: string, reference: string, status: string}} Data */

/** @typedef {{type: string, aud: string, timestamp: string, data: Data}} GuardEvent */

/** @typedef {{service: string, baseUrl: string, fetch?: typeof globalThis.fetch, now?: () => number}} Options */

/** Verifies a callback. It rejects if the message is not for the service, not signed by a key of baseUrl, or more than
 *  five minutes from now. The names of headers are in lower case.
 *
 *  @type {(headers: Headers | Record<string, string>, body: Uint8Array | string, options: Options) =>
 *    Promise<GuardEvent>} */
export async function callback(headers, body, { service, baseUrl, fetch = globalThis.fetch, now = Date.now }) {
  if (!service) throw new TypeError('service is the name of your key');
  const of = (name) => (typeof headers.get === 'function' ? headers.get(name) : headers[name]) ?? '';
  const stamp = of('webhook-timestamp');
  if (!/^\d{1,12}$/.test(stamp) || Math.abs(now() - Number(stamp) * 1000) > MAX_AGE_MS) {
    throw new Error('the callback is too old, or has no time');
  }
  const answer = await fetch(`${baseUrl.replace(/\/+$/, '')}/.well-known/jwks.json`);
  if (!answer.ok) throw new Error(`the keys cannot be read: HTTP ${answer.status}`);
  const { keys } = await answer.json();
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const head = new TextEncoder().encode(`${of('webhook-id')}.${stamp}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  const jwk = keys.find((k) => k.kid === of('webhook-key-id') && k.kty === 'OKP' && k.crv === 'Ed25519');
  if (!jwk || !(await verifies(jwk, of('webhook-signature'), signed))) {
    throw new Error(`the callback is not signed by a key of ${baseUrl}`);
  }
  const event = JSON.parse(new TextDecoder().decode(bytes));
  if (event.aud !== service || (of('webhook-aud') && of('webhook-aud') !== service)) {
    throw new Error(`the callback is not for ${service}`);
  }
  return event;
}

async function verifies({ kty, crv, x }, signatures, signed) {
  const key = await crypto.subtle.importKey('jwk', { kty, crv, x }, { name: 'Ed25519' }, false, ['verify']);
  for (const one of signatures.split(' ')) {
    if (!one.startsWith('v1a,')) continue;
    try {
      const signature = Uint8Array.from(atob(one.slice('v1a,'.length)), (c) => c.charCodeAt(0));
      if (await crypto.subtle.verify({ name: 'Ed25519' }, key, signature, signed)) return true;
    } catch {
      // not base64: it verifies nothing
    }
  }
  return false;
}
