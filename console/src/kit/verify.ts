/** Verifies the evidence of a challenge in the browser. It imports no other module. */
import type { Schemas } from '../app/api';

type Of = Schemas['Evidence'];

/** The part of the document that is shown. */
export interface Document {
  challengeId: string;
  title: string;
  rows: { key: string; label: string; value: string }[];
}

export type Verdict = 'valid' | 'unsigned' | 'document' | 'signature' | 'unknown';

const raw = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));

const bytes = (text: string) => new TextEncoder().encode(text);

/** The base64url SHA-256 of a text; empty for none. */
async function digestOf(text: string): Promise<string> {
  if (!text) return '';
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes(text)));
  return btoa(String.fromCharCode(...sum))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}

/** The key of a proof; a node of release 0.9 sends it as text. */
const keyOf = (jwk: JsonWebKey | string | null): JsonWebKey | null =>
  typeof jwk === 'string' ? (JSON.parse(jwk) as JsonWebKey) : jwk;

/** The claims of a JWS by a key; null if it is not a signature of the key. */
async function claimsOf(jws: string, jwk: JsonWebKey): Promise<Record<string, unknown> | null> {
  const [head = '', body = '', signature = ''] = jws.split('.');
  const kind = jwk.kty === 'EC' ? { name: 'ECDSA', namedCurve: 'P-256' } : { name: 'Ed25519' };
  const key = await crypto.subtle.importKey('jwk', { ...jwk, key_ops: ['verify'], use: 'sig' }, kind, false, [
    'verify',
  ]);
  const how = jwk.kty === 'EC' ? { name: 'ECDSA', hash: 'SHA-256' } : kind;
  const good = await crypto.subtle.verify(how, key, raw(signature), bytes(`${head}.${body}`));
  return good ? (JSON.parse(new TextDecoder().decode(raw(body))) as Record<string, unknown>) : null;
}

/** Whether a passkey made the signature. Only the command line verifies it. */
const assertion = (jws: string): boolean => jws.startsWith('webauthn:');

/** Verifies that the statement of the service is of exactly these facts. */
async function stated(of: Of): Promise<boolean> {
  const { service } = of;
  if (!service?.jwk) return false;
  const proofs = await Promise.all(
    of.proofs.map(async (p) => ({
      method: p.method,
      methodId: p.methodId,
      decision: p.decision,
      deviceId: p.deviceId,
      at: p.at,
      remembered: p.remembered ?? false,
      jws: await digestOf(p.jws),
      jkt: await digestOf(p.jwk ? JSON.stringify(p.jwk) : ''), // its members have the order of RFC 7638
    })),
  );
  const { policy, outcome, audit } = of;
  const facts = { iss: service.iss, at: service.at, v: of.v, int: of.intentDigest, proofs, policy, outcome, audit };
  return JSON.stringify(await claimsOf(service.jws, service.jwk)) === JSON.stringify(facts);
}

/**
 * Verifies the digest of the document; each signature by its key, for this challenge, document, method and decision;
 * and the statement of the service. Of a passkey it verifies only the latter: the verdict is then at most 'unknown'.
 */
export async function verify(of: Of): Promise<Verdict> {
  const digest = await digestOf(of.document);
  if (digest !== of.intentDigest) return 'document';
  const { challengeId } = JSON.parse(of.document) as Document;
  const signed = of.proofs.filter((p) => p.jws);
  try {
    for (const p of signed) {
      if (assertion(p.jws)) continue;
      const jwk = keyOf(p.jwk);
      const claims = jwk && (await claimsOf(p.jws, jwk));
      if (!claims || claims.cid !== challengeId || claims.iss !== p.deviceId) return 'signature';
      if (claims.int === undefined ? of.policy.intent === 'required' : claims.int !== digest) return 'signature';
      if (of.v > 1 && claims.mid !== p.methodId) return 'signature';
      if (p.method === 'PUSH' && (claims.val === 'DENIED') !== (of.outcome.state === 'DENIED')) return 'signature';
    }
    if (of.v > 1 && !(await stated(of))) return 'signature';
  } catch {
    return 'unknown'; // an algorithm that this browser does not have
  }
  if (signed.some((p) => assertion(p.jws))) return 'unknown';
  return signed.length > 0 ? 'valid' : 'unsigned';
}
