package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/fault"
)

// HasherOptions configures a Hasher. A zero Params, Slots or Wait means its default.
type HasherOptions struct {
	Params Params        // zero: DefaultParams
	Slots  int           // concurrent hashes; default: one less than the processors, at least 1
	Queue  int           // callers that may wait for a slot; known ones have an eighth more
	Wait   time.Duration // the longest wait for a slot, since Caller.Since; default 5 s
	Idle   time.Duration // an unused hasher frees its memory after it; default 1 min
}

// Hasher hashes in a fixed number of slots. A caller first gets a place (Admit), which costs nothing and fails at
// once when too many callers wait. Its hashes then run in the turns of the places. A Hasher holds at most slots ×
// memory, and none after Idle. It is safe for concurrent use.
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

	level atomic.Pointer[level] // nil: no account has a hash of another service
}

// Caller describes the caller that requests a place.
type Caller struct {
	// Site is the unit that shares places and turns (client.Site). "" means work of the service itself, or of a
	// network that the operator exempts: it is never displaced.
	Site string
	// Known means that the account knows the caller by a session, a token or a good login from its prefix.
	Known bool
	// Since is when the caller began to wait; zero: each wait counts separately.
	Since time.Time
}

// NewHasher returns a Hasher, or an error for invalid parameters.
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
	// The dummy is verified like any other hash, and no password has its tag.
	dummy := stored{params: o.Params, salt: random(saltBytes), tag: random(tagBytes)}
	return &Hasher{params: o.Params, slots: o.Slots, wait: o.Wait, idle: o.Idle, dummy: dummy.String(),
		places: newPlaces(o.Slots + max(0, o.Queue))}, nil
}

// Slots is the number of hashes that run at once.
func (h *Hasher) Slots() int { return h.slots }

// Waiting returns the number of admitted callers that are not hashing, for metrics.
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

// Refused returns the number of callers that found no place, or no slot in time.
func (h *Hasher) Refused() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// Place is a caller's place in the queue. Each hash of the caller waits for its own turn. The caller must call Leave.
type Place struct {
	h    *Hasher
	who  Caller
	held bool // until Leave or displacement; under Hasher.mu
	// spent is the time of its hashes, without waiting, while accounts have hashes of other services.
	spent time.Duration
}

// Full refuses a caller of a site that would find no place even if its account knew it. Call it before any expensive
// work: it costs nothing and reserves nothing.
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

// Admit takes a place. When none is free, it displaces the newest waiter of the site that holds the most places. That
// site must still hold at least as many places as the caller's site. The displaced caller's wait for a slot ends with
// OVERLOADED.
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

// Leave gives up the place. It does nothing on a second call or on a nil Place.
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

// Verify reports whether password matches the stored hash phc, and whether that hash has outdated parameters or is of
// another service. An empty phc represents an account that does not exist: Verify does the same work and returns false.
//
// Errors: OVERLOADED when no slot became free in time, the error of ctx, and an internal one for a malformed phc.
// After an error the password was not judged.
func (p *Place) Verify(ctx context.Context, password, phc string) (right, stale bool, err error) {
	missing := phc == ""
	if missing {
		phc = p.h.dummy
	}
	if Imported(phc) {
		right, err = p.verifyImported(ctx, password, phc)
		return right, right, err
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

// own is the Caller of the service itself.
var own = Caller{Known: true}

// Hash is Admit, Place.Hash and Leave for the service itself.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	p, err := h.Admit(own)
	if err != nil {
		return "", err
	}
	defer p.Leave()
	return p.Hash(ctx, password)
}

// Verify is Admit, Place.Verify and Leave for the service itself.
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
	began := h.began()
	tag := a.derive(text, salt, nil, nil, params, n)
	p.spend(began)
	return tag, nil
}

// acquire waits for a slot in the caller's turn.
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
	case a := <-turn.slot: // the turn came at the same moment: pass it on
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

// displaced returns the error of a displaced caller.
func (h *Hasher) displaced() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused++
	return h.overloaded()
}

// done passes the slot and its memory to the next caller.
func (h *Hasher) done(a *arena) {
	if uint32(len(a.blocks)) > h.params.size() {
		a.free() // an old hash with larger parameters needed more
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

// Trim frees the memory of the slots if no hash is running. It runs by itself after Idle. Call it earlier for a
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
