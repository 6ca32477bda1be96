package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"runtime"
	"sync"
	"time"

	"castellan/domain/kit/fault"
)

// HasherOptions size a Hasher. A zero Params, Slots or Wait means its default.
type HasherOptions struct {
	Params Params        // DefaultParams
	Slots  int           // hashes at once; one less than the processors, at least 1
	Queue  int           // callers that may wait for a slot; known ones have an eighth more
	Wait   time.Duration // the longest wait for a slot, since Caller.Since; 5 s
	Idle   time.Duration // after it an unused hasher gives its memory back; 1 min
}

// Hasher hashes in a fixed number of slots. Callers first get a place
// (Admit), which costs nothing and fails at once when too many are waiting;
// their hashes then run as the turns of places say. It holds slots × memory at
// most, and none when it has been idle. It is safe for concurrent use.
type Hasher struct {
	params     Params
	slots      int
	wait, idle time.Duration
	dummy      string

	mu      sync.Mutex
	places  places
	running int
	refused int64
	arenas  []*arena // of idle slots
	release *time.Timer
}

// Caller is who asks for a place.
type Caller struct {
	// Site shares its places and its turns (client.Site). "" is work of the service
	// itself, or of a network that the operator vouches for: it is never displaced.
	Site string
	// Known tells that the account knows the caller: by a session, a token or a good
	// login from its prefix.
	Known bool
	// Since is when the caller began to wait; zero: each wait is counted by itself.
	Since time.Time
}

// NewHasher returns a hasher; it fails when the parameters are not valid.
func NewHasher(o HasherOptions) (*Hasher, error) {
	if o.Params == (Params{}) {
		o.Params = DefaultParams()
	}
	if err := o.Params.Validate(); err != nil {
		return nil, err
	}
	if o.Slots <= 0 {
		o.Slots = max(1, runtime.GOMAXPROCS(0)-1)
	}
	if o.Wait <= 0 {
		o.Wait = 5 * time.Second
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	// The dummy verifies like any other hash and no password has its tag.
	dummy := stored{params: o.Params, salt: random(saltBytes), tag: random(tagBytes)}
	return &Hasher{params: o.Params, slots: o.Slots, wait: o.Wait, idle: o.Idle, dummy: dummy.String(),
		places: newPlaces(o.Slots + max(0, o.Queue))}, nil
}

// Slots is the number of hashes that run at once.
func (h *Hasher) Slots() int { return h.slots }

// Waiting is the number of callers that were admitted and are not hashing,
// for metrics.
func (h *Hasher) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.places.admitted - h.running
}

// Running is the number of hashes that run now.
func (h *Hasher) Running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running
}

// Refused counts the callers for whom there was no place, or no slot in time.
func (h *Hasher) Refused() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// Place is a caller's place in the queue. Every hash of the caller waits its own turn.
// It must be left.
type Place struct {
	h    *Hasher
	who  Caller
	held bool // until it is left or another caller takes it; under Hasher.mu
}

// Full refuses a caller of a site for which there would be no place even if its account
// knew it. Ask before anything that costs: it costs nothing and keeps nothing.
//
// Errors: OVERLOADED.
func (h *Hasher) Full(site string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.places.free(true) && h.places.displaceable(Caller{Site: site, Known: true}) == nil {
		h.refused++
		return h.overloaded()
	}
	return nil
}

// Admit takes a place. When none is free it takes that of another caller, whose wait for
// a slot then ends with OVERLOADED: of the newest one of the site that holds the most
// places, if that site then still holds as many as the caller's.
//
// Errors: OVERLOADED.
func (h *Hasher) Admit(who Caller) (*Place, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	displaced, ok := h.places.admit(who)
	if !ok {
		h.refused++
		return nil, h.overloaded()
	}
	if displaced != nil {
		displaced.place.held = false
		displaced.slot <- nil
	}
	return &Place{h: h, who: who, held: true}, nil
}

// Leave gives the place up. A second call does nothing, nor does one of no place.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	if p.held {
		p.h.places.leave(p.who)
		p.held = false
	}
}

// Verify reports whether password has the stored hash phc, and whether that
// hash was made with other parameters than the present ones. An empty phc
// stands for an account that does not exist: the same work is done and the
// answer is no.
//
// Errors: OVERLOADED when no slot came free in time, the error of ctx, and an
// internal one for a malformed phc; in none of these cases was the password
// judged.
func (p *Place) Verify(ctx context.Context, password, phc string) (right, stale bool, err error) {
	missing := phc == ""
	if missing {
		phc = p.h.dummy
	}
	want, err := parse(phc)
	if err != nil {
		return false, false, err
	}
	normal, ok := Normalize(password)
	got, err := p.h.run(ctx, p, normal, want.salt, want.params, uint32(len(want.tag)))
	if err != nil {
		return false, false, err
	}
	right = subtle.ConstantTimeCompare(got, want.tag) == 1 && ok && !missing
	return right, right && want.params != p.h.params, nil
}

// Hash returns the PHC string of a password under the present parameters and
// a fresh salt.
//
// Errors: OVERLOADED, the error of ctx.
func (p *Place) Hash(ctx context.Context, password string) (phc string, err error) {
	normal, ok := Normalize(password)
	if !ok {
		return "", errors.New("password: not a text that can be hashed")
	}
	s := stored{params: p.h.params, salt: random(saltBytes)}
	if s.tag, err = p.h.run(ctx, p, normal, s.salt, s.params, tagBytes); err != nil {
		return "", err
	}
	return s.String(), nil
}

// own is the service's own work.
var own = Caller{Known: true}

// Hash is Admit, Place.Hash and Leave for the service's own work.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	p, err := h.Admit(own)
	if err != nil {
		return "", err
	}
	defer p.Leave()
	return p.Hash(ctx, password)
}

// Verify is Admit, Place.Verify and Leave for the service's own work.
func (h *Hasher) Verify(ctx context.Context, password, phc string) (right, stale bool, err error) {
	p, err := h.Admit(own)
	if err != nil {
		return false, false, err
	}
	defer p.Leave()
	return p.Verify(ctx, password, phc)
}

func (h *Hasher) run(ctx context.Context, p *Place, password string, salt []byte, params Params,
	n uint32) ([]byte, error) {
	a, err := h.acquire(ctx, p)
	if err != nil {
		return nil, err
	}
	defer h.done(a)
	text := []byte(password)
	defer clear(text)
	return a.derive(text, salt, nil, nil, params, n), nil
}

// acquire waits for a slot, in the caller's turn.
func (h *Hasher) acquire(ctx context.Context, p *Place) (*arena, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	if h.running < h.slots {
		h.running++
		a := &arena{}
		if n := len(h.arenas); n > 0 {
			a, h.arenas = h.arenas[n-1], h.arenas[:n-1]
		}
		h.mu.Unlock()
		return a, nil
	}
	turn := h.places.wait(p)
	h.mu.Unlock()

	wait := h.wait
	if !p.who.Since.IsZero() {
		wait -= time.Since(p.who.Since)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case a := <-turn.slot:
		if a == nil {
			return nil, h.displaced()
		}
		return a, nil
	case <-ctx.Done():
	case <-timer.C:
	}
	h.mu.Lock()
	select {
	case a := <-turn.slot: // the turn came in the same moment: pass it on
		h.mu.Unlock()
		if a == nil {
			return nil, h.displaced()
		}
		h.done(a)
	default:
		turn.giveUp()
		if ctx.Err() == nil {
			h.refused++
		}
		h.mu.Unlock()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, h.overloaded()
}

// displaced is the error of a caller whose place another one took.
func (h *Hasher) displaced() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused++
	return h.overloaded()
}

// done hands the slot and its memory to the caller whose turn it is.
func (h *Hasher) done(a *arena) {
	if uint32(len(a.blocks)) > h.params.size() {
		a.free() // an old hash of larger parameters needed more
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.places.next(); w != nil {
		w.slot <- a
		return
	}
	h.running--
	h.arenas = append(h.arenas, a)
	if h.release == nil {
		h.release = time.AfterFunc(h.idle, h.Trim)
	} else {
		h.release.Reset(h.idle)
	}
}

// Trim frees the memory of the slots if no hash is running. It happens by itself after Idle; call it earlier for a
// hasher that is not needed any more.
func (h *Hasher) Trim() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == 0 {
		for _, a := range h.arenas {
			a.free()
		}
		h.arenas = nil
	}
}

func (h *Hasher) overloaded() error {
	return fault.New(fault.Overloaded, "too many passwords are being checked; try again").After(h.wait)
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
