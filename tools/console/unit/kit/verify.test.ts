// The browser refutes evidence of which a fact was changed.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { verify } from 'castellan-console/kit/verify';

type Of = Parameters<typeof verify>[0];

const text = (value: string) => Buffer.from(value).toString('base64url');
const document = '{"challengeId":"c1","rows":[],"title":"Pay 12"}';
const digest = createHash('sha256').update(document).digest('base64url');

type Kind = 'EC' | 'OKP';

const sha256 = (value: string) => createHash('sha256').update(value).digest('base64url');

/** A JWS of claims by a new key. */
async function signed(kind: Kind, claims: object) {
  const by = kind === 'EC' ? { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } : { name: 'Ed25519' };
  const keys = (await crypto.subtle.generateKey(by, true, ['sign', 'verify'])) as CryptoKeyPair;
  const input = `${text('{}')}.${text(JSON.stringify(claims))}`;
  const signature = await crypto.subtle.sign(by, keys.privateKey, Buffer.from(input));
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', keys.publicKey);
  return {
    jws: `${input}.${Buffer.from(signature).toString('base64url')}`,
    jwk: { crv, kty, x, y },
  };
}

const right = { cid: 'c1', iss: 'd1', int: digest, mid: 'm1', val: 'APPROVED' };

async function evidence(kind: Kind, claims: object = right, prefix = ''): Promise<Of> {
  const p = {
    method: 'PUSH',
    methodId: 'm1',
    decision: 'APPROVED',
    deviceId: 'd1',
    at: 1,
  };
  const by = await signed(kind, claims);
  by.jws = prefix + by.jws;
  const policy = { id: 1, required: 1, methods: ['PUSH'], intent: 'required' };
  const outcome = { state: 'SUCCESS', detail: '' };
  const audit = { id: '01.0/1', hash: '00' };
  const proof = {
    ...p,
    remembered: false,
    jws: sha256(by.jws),
    jkt: sha256(JSON.stringify(by.jwk)),
  };
  const facts = {
    iss: 'castellan',
    at: 2,
    v: 2,
    int: digest,
    proofs: [proof],
    policy,
    outcome,
    audit,
  };
  const service = {
    iss: 'castellan',
    at: 2,
    kid: 'k',
    ...(await signed('OKP', facts)),
  };
  return {
    v: 2,
    document,
    intentDigest: digest,
    proofs: [{ ...p, ...by }],
    policy,
    outcome,
    audit,
    service,
  } as unknown as Of;
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
    assert.equal(await verify({ ...of, proofs: [{ ...proof, jwk: { kty: 'none' } }] }), 'unknown');
    const old = {
      ...of,
      v: 1,
      proofs: [{ ...proof, jwk: JSON.stringify(proof.jwk) }],
    } as unknown as Of;
    assert.equal(await verify(old), 'valid');
    assert.equal(await verify({ ...of, v: 1, proofs: [] }), 'unsigned');
  });

test('the assertion of a passkey is not verified, and the statement is', async () => {
  const of = await evidence('EC', right, 'webauthn:');
  assert.equal(await verify(of), 'unknown');
  assert.equal(await verify({ ...of, outcome: { state: 'FAILURE', detail: '' } }), 'signature');
});

test('a fact that the service did not sign', async () => {
  const of = await evidence('EC');
  const [proof] = of.proofs;
  assert.ok(proof);
  const audit = { id: '01.0/2', hash: '00' };
  for (const change of [
    { outcome: { state: 'FAILURE', detail: '' } },
    { policy: { ...of.policy, required: 0 } },
    { proofs: [{ ...proof, at: 2 }] },
    { proofs: [] },
    { audit },
    { service: null },
    { service: (await evidence('EC')).service },
  ])
    assert.equal(await verify({ ...of, ...change } as Of), 'signature');
});

test('a signature of another challenge, document, method or decision', async () => {
  for (const other of [{ cid: 'c2' }, { int: 'x' }, { int: undefined }, { mid: 'm2' }, { val: 'DENIED' }])
    assert.equal(await verify(await evidence('EC', { ...right, ...other })), 'signature');
});
