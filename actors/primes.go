package actors

import (
	"sync"
	"time"

	"castellan/domain/challenge"
)

// Primes keeps the challenges that were just committed until somebody needs
// them, so that their first step need not read them. Most challenges get one
// answer within half a minute and none before: an actor for each of them from
// the start would only lie there. What is kept is bounded in number and time,
// may be forgotten at any moment, and is taken once: the row is the truth, and
// whoever takes a challenge owns it from then on.
//
// Whose a challenge is outlasts its being taken: that never changes.
//
// It is in two halves. When the younger is full, or a while has passed, it
// becomes the older one, and what that held is forgotten.
type Primes struct {
	mu         sync.Mutex
	young, old half
	turn       *time.Timer // armed while something is kept
}

type half struct {
	states map[string]primed
	owners map[string]string // the user's id, "" of a decoy; of every challenge that came
}

type primed struct {
	state   challenge.Challenge
	command []byte // sealed; nil where the action has none, or it must be read
}

const (
	maxPrimes = 8192 // of a half
	primeLife = 45 * time.Second
)

// put keeps the state of a challenge that was just made.
func (p *Primes) put(c challenge.Challenge, command []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.young.owners) >= maxPrimes {
		p.rotate()
	}
	if p.young.owners == nil {
		p.young = half{map[string]primed{}, map[string]string{}}
	}
	p.young.states[c.ID], p.young.owners[c.ID] = primed{c, command}, c.UserID
	if p.turn == nil {
		p.turn = time.AfterFunc(primeLife, p.tick)
	}
}

// take returns what is kept of a challenge, and forgets it.
func (p *Primes) take(id string) (primed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range []half{p.young, p.old} {
		if s, ok := h.states[id]; ok {
			delete(h.states, id)
			return s, true
		}
	}
	return primed{}, false
}

// owner tells whose a challenge is, and whether nobody has taken it yet: then it
// is as it was made.
func (p *Primes) owner(id string) (userID string, untouched, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range []half{p.young, p.old} {
		if userID, ok = h.owners[id]; ok {
			_, untouched = h.states[id]
			return userID, untouched, true
		}
	}
	return "", false, false
}

// Clear forgets everything: after a change of who owns what, somebody else may
// have moved any of it on.
func (p *Primes) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.young, p.old = half{}, half{}
}

func (p *Primes) rotate() { p.young, p.old = half{}, p.young }

func (p *Primes) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rotate()
	if p.turn = nil; len(p.old.owners) > 0 {
		p.turn = time.AfterFunc(primeLife, p.tick)
	}
}
