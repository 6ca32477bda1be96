package issuer

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
)

const (
	// Every is the shortest time between two requests for the keys of an issuer, also if tokens name unknown keys.
	Every = time.Minute
	// Kept is how long the last keys are used while the issuer does not answer.
	Kept = time.Hour
	// maxKeys bounds the keys of an issuer.
	maxKeys = 64
)

// keys are the published keys of an issuer.
type keys struct {
	of    Issuer
	fetch Fetch
	now   func() time.Time

	turn chan struct{} // holds one token; its holder may ask the issuer

	mu     sync.Mutex
	known  map[string]jose.Key
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
func (k *keys) find(ctx context.Context, kid string) (jose.Key, error) {
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
			return jose.Key{}, ctx.Err()
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
func (k *keys) look(kid string) (found jose.Key, due bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	due = k.asking || k.asked.IsZero() || now.Sub(k.asked) >= Every
	if k.good.IsZero() || now.Sub(k.good) >= Kept {
		return jose.Key{}, due, fault.New(fault.Unavailable, "the keys of the issuer cannot be read").After(Every)
	}
	found, ok := k.known[kid]
	if !ok {
		return jose.Key{}, due, refused()
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
	var read map[string]jose.Key
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
func parseKeys(body []byte) (map[string]jose.Key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || set.Keys == nil {
		return nil, fmt.Errorf("issuer: not a JWK set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("issuer: %d keys, at most %d are read", len(set.Keys), maxKeys)
	}
	all, seen := map[string]jose.Key{}, map[string]bool{}
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
func parseKey(raw []byte) (kid string, k jose.Key, ok bool) {
	all, ok := jose.Members(raw)
	if !ok {
		return "", k, false
	}
	kid = jose.Text(all["kid"])
	k, err := jose.ParseKey(raw)
	for name, want := range map[string]string{"use": "sig", "alg": k.Alg()} {
		if v, sent := all[name]; sent && jose.Text(v) != want {
			return kid, jose.Key{}, false
		}
	}
	return kid, k, kid != "" && err == nil
}
