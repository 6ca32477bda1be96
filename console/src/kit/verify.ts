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

/** Verifies the digest of the document, and each signature by its key, for this challenge and this document. */
export async function verify(of: Of): Promise<Verdict> {
  const bytes = new TextEncoder().encode(of.document);
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  const digest = btoa(String.fromCharCode(...sum))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
  if (digest !== of.intentDigest) return 'document';
  const { challengeId } = JSON.parse(of.document) as Document;
  const signed = of.proofs.filter((p) => p.jws);
  for (const p of signed) {
    const [head = '', body = '', signature = ''] = p.jws.split('.');
    try {
      const jwk = JSON.parse(p.jwk) as JsonWebKey;
      const kind = jwk.kty === 'EC' ? { name: 'ECDSA', namedCurve: 'P-256' } : { name: 'Ed25519' };
      const key = await crypto.subtle.importKey('jwk', { ...jwk, key_ops: ['verify'], use: 'sig' }, kind, false, [
        'verify',
      ]);
      const how = jwk.kty === 'EC' ? { name: 'ECDSA', hash: 'SHA-256' } : kind;
      const good = await crypto.subtle.verify(how, key, raw(signature), new TextEncoder().encode(`${head}.${body}`));
      const claims = JSON.parse(new TextDecoder().decode(raw(body))) as Record<string, unknown>;
      if (!good || claims.cid !== challengeId || claims.iss !== p.deviceId) return 'signature';
      if (claims.int === undefined ? of.policy.intent === 'required' : claims.int !== digest) return 'signature';
    } catch {
      return 'unknown'; // an algorithm that this browser does not have
    }
  }
  return signed.length > 0 ? 'valid' : 'unsigned';
}
