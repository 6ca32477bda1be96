package keyring

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"castellan/domain/kit/fault"
)

// HashGrace is the minimum time for which a leaked hashing key continues beside its successor. It covers the longest
// window in which values are counted or stored by their keyed hash: a day, for the limits of a destination and for
// idempotency keys. One more hour covers clock differences and operations begun at its end.
const HashGrace = 25 * time.Hour

// StableHash hashes parts to a long-lived identifier: values that are counted, found or derived by their hash must not
// change when keys rotate. So the oldest hashing key makes it, unless that key was replaced as leaked (Replace): then
// its successor makes it from its beginning on.
func (r *Ring) StableHash(domain string, parts ...string) string {
	return hex.EncodeToString(r.StableHashes(domain, parts...)[0])
}

// StableHashes returns the possible long-lived sums of parts: first that of the steady key, then those of replaced keys
// that have not ended. For nodes whose clock is ahead the successor's sum is included. Look up values under all sums,
// and add up counts over all sums. Unless keys were replaced there is one sum.
func (r *Ring) StableHashes(domain string, parts ...string) [][]byte {
	keys := r.view.Load().stableKeys(r.now())
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = k.sum(domain, parts)
	}
	return out
}

// Former returns the sums of StableHashes except the first, as text.
func (r *Ring) Former(domain string, parts ...string) (out []string) {
	for _, sum := range r.StableHashes(domain, parts...)[1:] {
		out = append(out, hex.EncodeToString(sum))
	}
	return out
}

// stableKeys returns the keys of StableHashes.
func (v *view) stableKeys(now time.Time) []*key {
	var steady *key
	for _, k := range slices.Backward(v.hashing) { // from the oldest on
		switch {
		case k.ended(now) || now.Before(k.NotBefore):
		case steady == nil, !steady.RetiredAt.IsZero() && (k.RetiredAt.IsZero() || k.RetiredAt.After(steady.RetiredAt)):
			steady = k
		}
	}
	if steady == nil { // this clock is behind
		steady = current(v.hashing, now)
	}
	out, ends := []*key{steady}, map[int64]bool{steady.RetiredAt.UnixMilli(): true}
	for _, k := range slices.Backward(v.hashing) {
		// Of the keys that were replaced together, only the oldest was steady.
		if !k.ended(now) && !ends[k.RetiredAt.UnixMilli()] {
			ends[k.RetiredAt.UnixMilli()] = true
			out = append(out, k)
		}
	}
	return out
}

// Replace makes a new key in place of a leaked one.
//
// The tokens of the older signing keys end when the new one comes into use, after Notice. Older hashing keys make no
// values from then on and end after grace, at least HashGrace. Until then values made with them are found and counted,
// and long-lived identifiers are known under both keys. Afterwards nothing verifies with them: codes and secrets stored
// under them are void.
//
// INVALID_FIELD for the other purposes: values sealed under a leaked key were readable, and no new key undoes that.
func (k *Keeper) Replace(ctx context.Context, p Purpose, grace time.Duration) (Rotation, error) {
	if p != Signing && p != Hashing {
		return Rotation{}, fault.New(fault.InvalidField,
			"values made with keys of this purpose cannot be protected by a new key")
	}
	if p == Hashing && grace < HashGrace {
		return Rotation{}, fault.New(fault.InvalidField,
			"the grace must be %s or more: daily counters would be reset", HashGrace)
	}
	if p == Signing {
		grace = 0
	}
	return k.succeed(ctx, p, Notice, grace)
}

// Restore replaces the signing key at once after a restore from a backup: every token ends, and the old keys verify
// evidence only. The tokens of a deployment that serves also end, so no node may run.
func (k *Keeper) Restore(ctx context.Context) (Rotation, error) {
	return k.succeed(ctx, Signing, 0, 0)
}

// succeed adds a key that comes into use after notice. All others of the purpose end a grace later.
func (k *Keeper) succeed(ctx context.Context, p Purpose, notice, grace time.Duration) (Rotation, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	records, err := k.load(ctx)
	if err != nil {
		return Rotation{}, fmt.Errorf("rotate keys: %w", err)
	}
	now := k.now().Truncate(time.Millisecond)
	end := now.Add(notice + grace)
	var seq int64
	var retired []Record
	done := Rotation{Until: end}
	for _, r := range records {
		if r.Purpose != p {
			continue
		}
		seq = max(seq, r.Seq)
		if r.RetiredAt.IsZero() || r.RetiredAt.After(end) {
			r.RetiredAt = end
			retired = append(retired, r)
			done.Ended = append(done.Ended, r.ID)
		}
	}
	next := newKey(k.master, p, seq+1, now, now.Add(notice))
	done.ID, done.From = next.ID, next.NotBefore
	return done, k.follow(ctx, next, retired)
}

// Serves describes what each key does at now, by its id.
func (r *Ring) Serves(now time.Time) map[string]string {
	v, out := r.view.Load(), map[string]string{}
	signer, hasher, steady := current(v.signing, now), current(v.hashing, now), v.stableKeys(now)[0]
	for _, k := range v.byID {
		switch {
		case k.Purpose == Auditing:
			out[k.ID] = "chains the audit trail"
		case k.ended(now):
			out[k.ID] = "expired"
		case now.Before(k.NotBefore):
			out[k.ID] = "published, not in use yet"
		case k == v.sealing[0]:
			out[k.ID] = "seals"
		case k.Purpose == Sealing:
			out[k.ID] = "opens"
		case k == signer:
			out[k.ID] = "signs"
		case k.Purpose == Signing:
			out[k.ID] = "verifies"
		case k == hasher && k == steady:
			out[k.ID] = "hashes codes; steady"
		case k == steady:
			out[k.ID] = "verifies; steady"
		case k == hasher:
			out[k.ID] = "hashes codes"
		case k.RetiredAt.IsZero():
			out[k.ID] = "verifies"
		default:
			out[k.ID] = "replaced; counts and verifies older values"
		}
	}
	return out
}
