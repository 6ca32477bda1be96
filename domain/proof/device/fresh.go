package device

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
	"castellan/domain/kit/keyring"
)

// Freshness of proofs (D-AUTH-06).
const (
	maxSkew   = 300 * time.Second // between the clocks of service and client
	remember  = 600 * time.Second // how long a jti is remembered
	nonceLife = 5 * time.Minute
)

// Fresh accepts each signed proof of a kind once, while it is fresh, on any node. All fields are required.
type Fresh struct {
	Ring   *keyring.Ring
	Domain string // separates the hashes of the kinds of proofs
	// Code and Text are the refusal of a stale proof.
	Code fault.Code
	Text string
}

// Once is what a proof says about its own freshness.
type Once struct {
	ID       string // jti
	IssuedAt int64  // seconds
	Nonce    string // issued by the service; "" for none
}

// Use checks the age of a subject's proof and returns the writes that use up the proof, or the nonce that it names.
// A unit with them fails with commit.ErrFenced if one was used before. The error is that of Stale.
func (f Fresh) Use(now time.Time, subject string, o Once) (writes []commit.Write, err error) {
	see := See{At: now, Until: now.Add(remember)}
	var ids []string
	if o.Nonce != "" {
		_, until, mine := openTicket(f.Ring, f.Domain+" nonce", subject, o.Nonce, 0)
		if !mine || !now.Before(until) {
			return nil, f.Stale(now, subject)
		}
		ids, see.Until = f.seen("nonce", subject, o.Nonce), until
	} else {
		if skew := now.Sub(time.Unix(o.IssuedAt, 0)); skew > maxSkew || skew < -maxSkew {
			return nil, f.Stale(now, subject)
		}
		// A proof of a fast clock stays fresh for longer.
		if fresh := time.Unix(o.IssuedAt, 0).Add(maxSkew + time.Second); fresh.After(see.Until) {
			see.Until = fresh
		}
		ids = f.seen("jti", subject, o.ID)
	}
	for _, see.ID = range ids {
		writes = append(writes, see)
	}
	return writes, nil
}

// seen returns the keys under which a proof or a nonce is remembered. A replaced hashing key adds another one, so
// that no used value becomes valid again.
func (f Fresh) seen(what, subject, value string) (keys []string) {
	for _, sum := range f.Ring.StableHashes(f.Domain+" "+what, subject, value) {
		keys = append(keys, hex.EncodeToString(sum))
	}
	return keys
}

// Stale refuses a proof for its age and issues a nonce for another signature (the mechanism of RFC 9449, section 8).
func (f Fresh) Stale(now time.Time, subject string) error {
	refusal := fault.New(f.Code, "%s", f.Text)
	refusal.Nonce = newTicket(f.Ring, now.Add(nonceLife), f.Domain+" nonce", subject, nil)
	return refusal
}

// A ticket, such as a nonce, consists of its end, some randomness, a carried value, and a keyed hash of these, of its
// purpose and of its subject. It needs no row before it is used, so any node accepts it.
const (
	ticketEnd    = 8  // bytes, ms
	ticketRandom = 12 // bytes
)

// newTicket returns a random text that this service recognises until the end of its life.
func newTicket(ring *keyring.Ring, until time.Time, purpose, subject string, carried []byte) string {
	b := make([]byte, ticketEnd+ticketRandom)
	binary.BigEndian.PutUint64(b, uint64(until.UnixMilli()))
	rand.Read(b[ticketEnd:]) // crypto/rand.Read never fails
	b = append(b, carried...)
	return jose.Encode(append(b, ring.Hash(purpose, subject, string(b)).Sum...))
}

// openTicket reads a ticket with a carried value of a length, and its end. false: it was not issued for the purpose and
// the subject.
func openTicket(ring *keyring.Ring, purpose, subject, ticket string, carried int) (value []byte, until time.Time,
	mine bool) {
	b := decode(ticket)
	head := ticketEnd + ticketRandom + carried
	if len(b) <= head || jose.Encode(b) != ticket {
		return nil, until, false
	}
	for _, h := range ring.Hashes(purpose, subject, string(b[:head])) {
		mine = subtle.ConstantTimeCompare(h.Sum, b[head:]) == 1 || mine
	}
	return b[ticketEnd+ticketRandom : head], time.UnixMilli(int64(binary.BigEndian.Uint64(b))), mine
}
