// The browser refutes evidence whose document, signature or device was changed.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { verify } from 'castellan-console/kit/verify';

type Of = Parameters<typeof verify>[0];

const text = (value: string) => Buffer.from(value).toString('base64url');
const document = '{"challengeId":"c1","rows":[],"title":"Pay 12"}';
const digest = createHash('sha256').update(document).digest('base64url');

async function evidence(kind: 'EC' | 'OKP', claims: object = { cid: 'c1', iss: 'd1', int: digest }): Promise<Of> {
  const by = kind === 'EC' ? { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } : { name: 'Ed25519' };
  const keys = (await crypto.subtle.generateKey(by, true, ['sign', 'verify'])) as CryptoKeyPair;
  const signed = `${text('{}')}.${text(JSON.stringify(claims))}`;
  const signature = await crypto.subtle.sign(by, keys.privateKey, Buffer.from(signed));
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', keys.publicKey);
  const proof = {
    method: 'PUSH',
    deviceId: 'd1',
    jws: `${signed}.${Buffer.from(signature).toString('base64url')}`,
    jwk: JSON.stringify({ kty, crv, x, y }),
    at: 1,
  };
  const policy = { id: 1, required: 1, methods: ['PUSH'], intent: 'required' };
  const outcome = { state: 'SUCCESS', detail: '' };
  return { v: 1, document, intentDigest: digest, proofs: [proof], policy, outcome, audit: null } as unknown as Of;
}

for (const kind of ['EC', 'OKP'] as const)
  test(`evidence signed by a key of ${kind}`, async () => {
    const of = await evidence(kind);
    assert.equal(await verify(of), 'valid');
    assert.equal(await verify({ ...of, document: of.document.replace('12', '13') }), 'document');
    const [proof] = of.proofs;
    assert.ok(proof);
    assert.equal(await verify({ ...of, proofs: [{ ...proof, deviceId: 'd2' }] }), 'signature');
    const other = (await evidence(kind)).proofs[0];
    assert.ok(other);
    assert.equal(await verify({ ...of, proofs: [{ ...proof, jwk: other.jwk }] }), 'signature');
    assert.equal(await verify({ ...of, proofs: [{ ...proof, jwk: '{"kty":"none"}' }] }), 'unknown');
    assert.equal(await verify({ ...of, proofs: [] }), 'unsigned');
  });

test('a signature of another challenge or document', async () => {
  assert.equal(await verify(await evidence('EC', { cid: 'c2', iss: 'd1', int: digest })), 'signature');
  assert.equal(await verify(await evidence('EC', { cid: 'c1', iss: 'd1', int: 'x' })), 'signature');
  assert.equal(await verify(await evidence('EC', { cid: 'c1', iss: 'd1' })), 'signature');
});
