package keyring

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/sorting"
)

// ErrOpen reports that a sealed value cannot be opened: it was changed, its associated data differ, or no key fits.
var ErrOpen = errors.New("keyring: the sealed value cannot be decrypted")

const (
	// rereadGap is the minimum time between two reads of the store caused by unknown key ids. Ids come from clients,
	// which must not control the load of the database.
	rereadGap     = time.Second
	rereadTimeout = 2 * time.Second
)

// Ring is a process's view of the keys. Its methods work on one immutable view, which a Keeper replaces as a whole.
// They are safe for concurrent use and never wait, except for an unknown key id.
type Ring struct {
	now    func() time.Time
	view   atomic.Pointer[view]
	jwks   atomic.Pointer[jwks]
	reload func(context.Context) error

	mu       sync.Mutex // one reread at a time
	rereadAt time.Time
}

// view holds all keys at one instant, for each purpose the newest first.
type view struct {
	byID                      map[string]*key
	signing, sealing, hashing []*key
	audit                     *key
}

func newView(keys []*key) (*view, error) {
	v := &view{byID: make(map[string]*key, len(keys))}
	sorting.Func(keys, func(a, b *key) int { return cmp.Compare(b.Seq, a.Seq) })
	for _, k := range keys {
		v.byID[k.ID] = k
		switch k.Purpose {
		case Signing:
			v.signing = append(v.signing, k)
		case Sealing:
			v.sealing = append(v.sealing, k)
		case Hashing:
			v.hashing = append(v.hashing, k)
		case Auditing:
			v.audit = k // ends with the oldest: the chain has one permanent key
		}
	}
	if v.signing == nil || v.sealing == nil || v.hashing == nil || v.audit == nil {
		return nil, errors.New("keyring: the store lacks a key of one of the purposes")
	}
	return v, nil
}

func (v *view) find(id string, p Purpose) *key {
	if k := v.byID[id]; k != nil && k.Purpose == p {
		return k
	}
	return nil
}

// holds reports whether all records are known.
func (v *view) holds(records []Record) bool {
	return !slices.ContainsFunc(records, func(r Record) bool { return v.find(r.ID, r.Purpose) == nil })
}

// find is view.find with one rate-limited reread if the id is unknown: the key may be newer than the view.
func (r *Ring) find(id string, p Purpose) (*key, error) {
	if k := r.view.Load().find(id, p); k != nil || !wellFormed(id) {
		return k, nil
	}
	err := r.reread()
	if k := r.view.Load().find(id, p); k != nil {
		return k, nil
	}
	return nil, err
}

// reread reads the keys again, unless that was tried less than rereadGap ago. Callers that arrive during a read wait
// for it, because it may bring the key they need.
func (r *Ring) reread() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if age := now.Sub(r.rereadAt); age >= 0 && age < rereadGap {
		return nil
	}
	r.rereadAt = now
	ctx, cancel := context.WithTimeout(context.Background(), rereadTimeout)
	defer cancel()
	return r.reload(ctx)
}

// Seal encrypts plain under the newest sealing key and binds it to ad. ad identifies the place of the value, such as
// its row; Open needs the same ad. The result is the id of the key, the nonce and the ciphertext.
//
// Nonces are random, so a key should seal at most 2^32 values. At a hundred a second that means a rotation every
// sixteen months.
func (r *Ring) Seal(plain, ad []byte) []byte {
	k := r.view.Load().sealing[0]
	out := make([]byte, IDLen, IDLen+len(plain)+k.aead.Overhead())
	copy(out, k.ID)
	// #nosec G407: the cipher (NewGCMWithRandomNonce) generates the nonce itself.
	return k.aead.Seal(out, nil, plain, ad)
}

// Open decrypts a value that Seal made with the same ad. Every error is ErrOpen; if the store could not be read for an
// unknown key, the error also wraps the store's error.
func (r *Ring) Open(sealed, ad []byte) ([]byte, error) {
	if len(sealed) < IDLen {
		return nil, ErrOpen
	}
	k, err := r.find(string(sealed[:IDLen]), Sealing)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: look for its key: %w", ErrOpen, err)
	case k == nil:
		return nil, fmt.Errorf("%w: there is no sealing key %q", ErrOpen, sealed[:IDLen])
	}
	plain, err := k.aead.Open(nil, nil, sealed[IDLen:], ad)
	if err != nil {
		return nil, ErrOpen // the library's error adds nothing
	}
	return plain, nil
}

// Stale reports whether sealed was made under another key than Seal uses now, so that it should be sealed again.
func (r *Ring) Stale(sealed []byte) bool {
	return !bytes.HasPrefix(sealed, []byte(r.view.Load().sealing[0].ID))
}

// Sum is a keyed hash and the id of its key. Without the key it reveals nothing about the hashed parts, so it may be
// stored and sent.
type Sum struct {
	Key string
	Sum []byte
}

// Hash hashes parts under the hashing key in use. The domain separates uses: the same parts give different sums in
// different domains.
func (r *Ring) Hash(domain string, parts ...string) Sum {
	k := current(r.view.Load().hashing, r.now())
	return Sum{k.ID, k.sum(domain, parts)}
}

// Hashes hashes parts under every hashing key that has not ended, newest first: the possible values of a stored sum
// that is looked up.
func (r *Ring) Hashes(domain string, parts ...string) []Sum {
	keys, now := r.view.Load().hashing, r.now()
	out := make([]Sum, 0, len(keys))
	for _, k := range keys {
		if !k.ended(now) {
			out = append(out, Sum{k.ID, k.sum(domain, parts)})
		}
	}
	return out
}

// HashWith hashes parts under the key of a stored sum; false if the key does not exist or has ended.
func (r *Ring) HashWith(id, domain string, parts ...string) ([]byte, bool) {
	k, _ := r.find(id, Hashing)
	if k == nil || k.ended(r.now()) {
		return nil, false
	}
	return k.sum(domain, parts), true
}

// Matches reports whether stored is the hash of parts. It compares in constant time.
func (r *Ring) Matches(stored Sum, domain string, parts ...string) bool {
	sum, ok := r.HashWith(stored.Key, domain, parts...)
	return ok && len(stored.Sum) == sha256.Size && hmac.Equal(sum, stored.Sum)
}

// Audit returns the key of the audit chain.
func (r *Ring) Audit() []byte { return bytes.Clone(r.view.Load().audit.secret) }

// current returns the newest key that is in use at now and not yet retired. No key may be in use if this clock is
// behind or the older keys were ended by force. Then it returns the oldest live key, which other nodes have known
// longest.
func current(keys []*key, now time.Time) *key {
	oldest := keys[0]
	for _, k := range keys {
		if k.ended(now) {
			continue
		}
		if !now.Before(k.NotBefore) {
			return k
		}
		oldest = k
	}
	return oldest
}

func (k *key) ended(now time.Time) bool {
	return !k.RetiredAt.IsZero() && !now.Before(k.RetiredAt)
}
