package issuer

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"sync"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/members"
	"castellan/domain/proof/device"
)

const (
	// Every is the shortest time between two requests for the keys of an issuer, also if tokens name unknown keys.
	Every = time.Minute
	// Kept is how long the last keys are used while the issuer does not answer.
	Kept = time.Hour
	// maxKeys bounds the keys of an issuer.
	maxKeys = 64
	// minRSABits and maxRSABits bound the keys of RS256. Longer ones cost more time than a request may.
	minRSABits, maxRSABits = 2048, 8192
)

// rs256 is RSA with PKCS #1 v1.5 and SHA-256.
const rs256 = "RS256"

// key is a public key with the one algorithm that it is used with.
type key struct {
	device device.Key
	rsa    *rsa.PublicKey
}

// verify reports whether sig is the signature of signed. The key determines the algorithm, and the token must name it.
func (k key) verify(alg string, signed, sig []byte) bool {
	if k.rsa == nil {
		return k.device.Verify(alg, signed, sig)
	}
	sum := sha256.Sum256(signed)
	return alg == rs256 && rsa.VerifyPKCS1v15(k.rsa, crypto.SHA256, sum[:], sig) == nil
}

// keys are the published keys of an issuer.
type keys struct {
	of    Issuer
	fetch Fetch
	now   func() time.Time

	turn chan struct{} // holds one token; its holder may ask the issuer

	mu     sync.Mutex
	known  map[string]key
	asking bool
	asked  time.Time // when the issuer was last asked
	good   time.Time // when it last answered
}

func newKeys(of Issuer, fetch Fetch, now func() time.Time) *keys {
	k := &keys{of: of, fetch: fetch, now: now, turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// find returns the key of a kid. It asks the issuer if the keys are older than Every, or if there is no such key, but
// at most once in that time. A caller whose key is known does not wait while another one asks.
//
// Errors: UNAUTHENTICATED for a kid that the issuer does not publish; UNAVAILABLE if it has not answered for Kept.
func (k *keys) find(ctx context.Context, kid string) (key, error) {
	found, due, err := k.look(kid)
	if !due {
		return found, err
	}
	select {
	case <-k.turn:
	default:
		if err == nil {
			return found, nil
		}
		select {
		case <-k.turn:
		case <-ctx.Done():
			return key{}, ctx.Err()
		}
	}
	defer func() { k.turn <- struct{}{} }()
	if found, due, err = k.look(kid); !due {
		return found, err
	}
	k.ask(ctx)
	found, _, err = k.look(kid)
	return found, err
}

// look returns what is known, and whether the issuer may be asked now or is being asked.
func (k *keys) look(kid string) (found key, due bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	due = k.asking || k.asked.IsZero() || now.Sub(k.asked) >= Every
	if k.good.IsZero() || now.Sub(k.good) >= Kept {
		return key{}, due, fault.New(fault.Unavailable, "the keys of the issuer cannot be read").After(Every)
	}
	found, ok := k.known[kid]
	if !ok {
		return key{}, due, refused()
	}
	return found, due, nil
}

// ask reads the keys of the issuer. If that fails, the known keys stay.
func (k *keys) ask(ctx context.Context) {
	k.mu.Lock()
	k.asking, k.asked = true, k.now()
	k.mu.Unlock()
	// The caller may leave; those that wait still need the answer. Fetch has a time limit.
	body, err := k.fetch(context.WithoutCancel(ctx), k.of.JWKSURL)
	var read map[string]key
	if err == nil {
		read, err = parseKeys(body)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asking = false; err == nil {
		k.known, k.good = read, k.asked
	}
}

// parseKeys reads a JWK set. Keys of other kinds, for other uses and too short ones are left out. A kid that two keys
// share belongs to neither. An error means that the document is no set.
func parseKeys(body []byte) (map[string]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || set.Keys == nil {
		return nil, fmt.Errorf("issuer: not a JWK set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("issuer: %d keys, at most %d are read", len(set.Keys), maxKeys)
	}
	all, seen := map[string]key{}, map[string]bool{}
	for _, raw := range set.Keys {
		kid, k, ok := parseKey(raw)
		if kid != "" && seen[kid] {
			delete(all, kid)
			continue
		}
		seen[kid] = true
		if ok {
			all[kid] = k
		}
	}
	return all, nil
}

// parseKey reads a JWK that can verify signatures.
func parseKey(raw []byte) (kid string, k key, ok bool) {
	all, ok := members.Of(raw)
	if !ok {
		return "", k, false
	}
	kid = text(all["kid"])
	alg, use := "", "sig"
	if v, sent := all["use"]; sent {
		use = text(v)
	}
	if text(all["kty"]) == "RSA" {
		alg = rs256
		k.rsa = parseRSA(all)
	} else if parsed, err := device.ParseKey(raw); err == nil {
		alg, k.device = parsed.Alg(), parsed
	}
	if v, sent := all["alg"]; sent && text(v) != alg {
		return kid, key{}, false
	}
	return kid, k, kid != "" && use == "sig" && (k.rsa != nil || k.device.Alg() != "")
}

// parseRSA reads an RSA key; nil if it is too short, too long or malformed.
func parseRSA(all map[string]json.RawMessage) *rsa.PublicKey {
	if _, private := all["d"]; private {
		return nil
	}
	n, err1 := base64.RawURLEncoding.DecodeString(text(all["n"]))
	e, err2 := base64.RawURLEncoding.DecodeString(text(all["e"]))
	if err1 != nil || err2 != nil || len(e) == 0 || len(e) > 4 || len(n) > maxRSABits/8+1 {
		return nil
	}
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := public.N.BitLen(); bits < minRSABits || bits > maxRSABits || public.E < 3 || public.E%2 == 0 ||
		public.N.Bit(0) == 0 || public.E > 1<<31-1 {
		return nil
	}
	return public
}
