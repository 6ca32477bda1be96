package stepup

import (
	"context"
	"slices"
	"sync"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/delivery/outbox"
)

// A decoy answers a public start for an account that does not exist or may not
// be used (D-PWD-01). It is a challenge like any other: its row, its messages
// (born discarded), its counts, locks and expiry are written as those of a real
// one are. What stands in this file is what it has in place of a user: a
// subject, destinations, and a desk.

// Conceal is the subject of a decoy: a keyed hash of the length of an id, which
// no id is equal to. The steady key makes it, so that the decoy of a phone stays
// the same across rotations.
func (s *Messenger) Conceal(phone string) string {
	return decoySubject(s.Ring.Steadies("decoy", phone)[0])
}

// stranger is the account of a decoy whose phone is no longer known: its
// hint has the phone's length and country code.
func stranger(hint string) challenge.Account { return challenge.Account{Phone: hint, Mail: decoyMail} }

// decoyMail stands where the mail address of a user would. Nothing is sent to it,
// and no hint shows it. A text that is sealed for it is as long as one for a person.
const decoyMail = "firstname@example.invalid"

// userGate is where the messages of a challenge are counted.
func (s *Messenger) userGate(k challenge.Kind) UserGate {
	if !k.Owned() {
		return strangersGate{s, k == challenge.Applicant}
	}
	return s.UserGate
}

// strangersGate is the UserGate of decoys and applicants. Their subjects have no owner
// (D-2FA-32): nothing that strangers can name takes room for longer than a challenge takes
// to commit. It reads the rows that a user's owner reads for a public start. Of a decoy it
// lets nothing out; of an applicant what the caps let out by the rows. Starts at the same
// moment may exceed them a little, which the bound of starts allows.
type strangersGate struct {
	s         *Messenger
	applicant bool
}

// strangers are the decoys that are being made: their rows may not be there yet.
type strangers struct {
	mu     sync.Mutex
	recent map[string][]newcomer
	swept  time.Time
}

type newcomer struct {
	challenge.Ref
	at time.Time
}

// settling is how long a decoy may be without a row before it is taken for one
// that was never made.
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
		ids := make([]string, len(open))
		for i, o := range open {
			ids[i] = o.ID
		}
		if states, err = d.s.Store.States(ctx, ids); err != nil {
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

// count reads the messages sent, as for a user, and says which of the sendings go out. Of a
// decoy nothing was sent, and nothing is.
func (d strangersGate) count(ctx context.Context, subject string, now time.Time, c Caps,
	sendings []Sending) ([]bool, error) {
	var sent []outbox.Sending
	if c != (Caps{}) {
		var err error
		if sent, err = d.s.Outbox.Sendings(ctx, subject, now.Add(-24*time.Hour)); err != nil {
			return nil, err
		}
	}
	send := c.let(now, sent, sendings)
	for i := range send {
		send[i] = send[i] && d.applicant
	}
	return send, nil
}

// with adds to the challenges that have rows those that may be about to.
func (s *strangers) with(now time.Time, subject string, open []challenge.Ref) []challenge.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.merge(now, subject, open)
}

func (s *strangers) merge(now time.Time, subject string, open []challenge.Ref) []challenge.Ref {
	for _, n := range s.recent[subject] {
		if now.Sub(n.at) < settling && !slices.ContainsFunc(open, func(o challenge.Ref) bool { return o.ID == n.ID }) {
			open = append(open, n.Ref)
		}
	}
	return open
}

// admit notes a decoy that is about to be made and names those that make room.
// states are those of the open ones, where somebody looked.
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
	for ; r.MaxOpen > 0 && len(open) >= r.MaxOpen; open = open[1:] {
		supersede = append(supersede, open[0].ID)
	}
	s.recent[subject] = slices.DeleteFunc(s.recent[subject], func(n newcomer) bool {
		return ended(n.ID) || slices.Contains(supersede, n.ID)
	})
	s.recent[subject] = append(s.recent[subject], newcomer{challenge.Ref{ID: r.ChallengeID, Action: r.Action,
		CreatedAt: now.UnixMilli(), ExpiresAt: r.ExpiresAt}, now})
	return supersede
}
