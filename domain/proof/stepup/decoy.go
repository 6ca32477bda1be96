package stepup

import (
	"context"
	"slices"
	"sync"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/id"
)

// A decoy answers a public start for an account that does not exist or may not be used (D-PWD-01). It is a challenge
// like any other. Its row, its messages (created as discarded), its counts, locks and expiry are written like those
// of a real one. This file holds its replacements for a user: a subject, destinations and a gate.

// Conceal returns the subject of a decoy: a keyed hash of the length of an id that equals no id. It uses the steady
// key, so the decoy of a phone stays the same across rotations.
func (s *Messenger) Conceal(phone string) string {
	return decoySubject(s.Ring.StableHashes("decoy", phone)[0])
}

// stranger returns the account of a decoy whose phone is no longer known: its hint has the phone's length and country
// code.
func stranger(hint string) challenge.Account { return challenge.Account{Phone: hint, Mail: decoyMail} }

// decoyMail replaces the mail address of a user. Nothing is sent to it, and no hint shows it. A text sealed for it is
// as long as one for a person.
const decoyMail = "firstname@example.invalid"

// userGate returns the gate that counts the messages of a challenge.
func (s *Messenger) userGate(k challenge.Kind) UserGate {
	if !k.Owned() {
		return strangersGate{s, k == challenge.Applicant}
	}
	return s.UserGate
}

// strangersGate is the UserGate of decoys and applicants. Their subjects have no owner (D-2FA-32), so a subject that
// a stranger names takes memory only until its challenge commits. The gate reads the rows that a user's owner reads
// for a public start. It allows no message of a decoy. For an applicant it applies the caps to the rows. Concurrent
// starts may exceed them a little, which the bound of starts permits.
type strangersGate struct {
	s         *Messenger
	applicant bool
}

// strangers holds the decoys that are being created: their rows may be missing yet.
type strangers struct {
	mu     sync.Mutex
	recent map[string][]newcomer
	swept  time.Time
}

type newcomer struct {
	challenge.Ref
	at     time.Time
	closes []string // when its row is written
}

// settling is how long a decoy may lack its row before it counts as never created.
const settling = 10 * time.Second

func (d strangersGate) Reserve(ctx context.Context, subject string, r Reservation) (Grant, error) {
	if err := d.DummyCall(ctx); err != nil {
		return Grant{}, err
	}
	now := d.s.Now()
	open, err := d.s.Store.Open(ctx, subject, now)
	if err != nil {
		return Grant{}, err
	}
	send, err := d.count(ctx, subject, now, r.Caps, r.Sendings)
	if err != nil {
		return Grant{}, err
	}
	open = d.s.strangers.with(now, subject, open)
	var states map[string]challenge.State
	if r.MaxOpen > 0 && len(open) >= r.MaxOpen { // as a user's owner does
		if states, err = d.s.Store.States(ctx, idsOf(open)); err != nil {
			return Grant{}, err
		}
	}
	return Grant{Supersede: d.s.strangers.admit(now, subject, open, states, r), Send: send}, nil
}

func (d strangersGate) Send(ctx context.Context, subject string, s Sending, c Caps) (bool, error) {
	if err := d.DummyCall(ctx); err != nil {
		return false, err
	}
	send, err := d.count(ctx, subject, d.s.Now(), c, []Sending{s})
	return err == nil && send[0], err
}

func (d strangersGate) DummyCall(ctx context.Context) error { return d.s.UserGate.DummyCall(ctx) }

// count reads the sent messages, as for a user, and returns which sendings may be sent. A decoy never sends anything.
func (d strangersGate) count(ctx context.Context, subject string, now time.Time, c Caps,
	sendings []Sending) ([]bool, error) {
	var sent []outbox.Sending
	if c != (Caps{}) {
		var err error
		if sent, err = d.s.Outbox.Sendings(ctx, subject, now.Add(-24*time.Hour)); err != nil {
			return nil, err
		}
	}
	send := c.allow(now, sent, sendings)
	for i := range send {
		send[i] = send[i] && d.applicant
	}
	return send, nil
}

// with adds the challenges that may be about to get a row.
func (s *strangers) with(now time.Time, subject string, open []challenge.Ref) []challenge.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.merge(now, subject, open)
}

func (s *strangers) merge(now time.Time, subject string, open []challenge.Ref) []challenge.Ref {
	var all []challenge.Ref
	for _, n := range s.recent[subject] {
		if now.Sub(n.at) < settling && !slices.ContainsFunc(open, func(o challenge.Ref) bool { return o.ID == n.ID }) {
			all = append(all, n.Ref)
		}
	}
	all = append(all, open...)
	slices.SortStableFunc(all, challenge.Ref.Compare)
	return all
}

// admit records a decoy that is about to be created and returns the challenges that make room for it. states holds
// the states of the open ones, if they were read.
func (s *strangers) admit(now time.Time, subject string, open []challenge.Ref, states map[string]challenge.State,
	r Reservation) (supersede []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent == nil {
		s.recent = map[string][]newcomer{}
	}
	if now.Sub(s.swept) >= settling || now.Before(s.swept) {
		s.swept = now
		for k, all := range s.recent {
			if all = slices.DeleteFunc(all, func(n newcomer) bool { return now.Sub(n.at) >= settling }); len(all) > 0 {
				s.recent[k] = all
			} else {
				delete(s.recent, k)
			}
		}
	}
	ended := func(id string) bool {
		state, exists := states[id]
		return exists && state != challenge.Pending
	}
	open = slices.DeleteFunc(s.merge(now, subject, open), func(o challenge.Ref) bool {
		return o.Action != r.Action || ended(o.ID)
	})
	if r.MaxOpen > 0 {
		supersede = challenge.MakeRoom(idsOf(open), s.closers(now, subject), r.MaxOpen)
	}
	s.recent[subject] = slices.DeleteFunc(s.recent[subject], func(n newcomer) bool {
		return ended(n.ID) || slices.Contains(supersede, n.ID)
	})
	s.recent[subject] = append(s.recent[subject], newcomer{challenge.Ref{ID: r.ChallengeID, Action: r.Action,
		CreatedAt: now.UnixMilli(), ExpiresAt: r.ExpiresAt}, now, supersede})
	return supersede
}

// closers returns the newcomers that are about to close other challenges, by the ids of these.
func (s *strangers) closers(now time.Time, subject string) map[string]string {
	all := map[string]string{}
	for _, n := range s.recent[subject] {
		for _, id := range n.closes {
			if now.Sub(n.at) < settling {
				all[id] = n.ID
			}
		}
	}
	return all
}

func idsOf(refs []challenge.Ref) []string {
	ids := make([]string, len(refs))
	for i, r := range refs {
		ids[i] = r.ID
	}
	return ids
}

// countedFor is how long wrong values of a decoy may still count.
const countedFor = 24 * time.Hour

// Subject returns the subject of a public start for a phone, and its former ones, with which its starts are counted.
// The subject is Conceal, except after a rotation of the key. While the phone has open decoys, or wrong values of the
// last day, it keeps its former subject. Otherwise a stranger would see them forgotten, which happens for phones
// without an account only.
func (s *Messenger) Subject(ctx context.Context, phone string) (subject string, former []string, err error) {
	var all []string
	for _, sum := range s.Ring.StableHashes("decoy", phone) {
		all = append(all, decoySubject(sum))
	}
	subject, now := all[0], s.Now()
	for _, f := range all[1:] {
		open, err := s.Store.Open(ctx, f, now)
		if err != nil {
			return "", nil, err
		}
		var spent []int64
		for _, flow := range []challenge.Flow{challenge.FlowReset, challenge.FlowRegister} {
			b, err := s.Store.Budget(ctx, f, flow)
			if err != nil {
				return "", nil, err
			}
			spent = append(spent, b.OTP...)
		}
		since := now.Add(-countedFor).UnixMilli()
		if len(open) > 0 || slices.ContainsFunc(spent, func(at int64) bool { return at > since }) {
			subject = f
		}
	}
	return subject, slices.DeleteFunc(all, func(s string) bool { return s == subject }), nil
}

func decoySubject(sum []byte) string { return challenge.DecoyMark + id.Encode([16]byte(sum))[1:] }
