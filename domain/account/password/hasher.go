package password

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/account/password/argon2id"
	"castellan/domain/kit/fault"
)

// HasherOptions configures a Hasher. A zero Params, Slots or Wait means its default.
type HasherOptions struct {
	Params Params        // zero: DefaultParams
	Slots  int           // concurrent hashes; default: one less than the processors, at least 1
	Queue  int           // callers that may wait for a slot; known ones have an eighth more
	Wait   time.Duration // the longest wait for a slot, since Caller.Since; default 5 s
}

// An unused hasher keeps the memory of one hash only, wiped, after idle, and none after keep.
const (
	idle = time.Minute
	keep = 15 * time.Minute
)

// Hasher hashes in a fixed number of slots. A caller first gets a place (Admit), which costs nothing and fails at
// once when too many callers wait. Its hashes then run in the turns of the places. A Hasher holds at most slots ×
// memory, that of one hash when it is idle, and none after keep. It is safe for concurrent use.
type Hasher struct {
	params Params
	slots  int
	wait   time.Duration
	dummy  string

	mu      sync.Mutex
	places  places
	running int
	refused int64
	arenas  []*argon2id.Memory // of idle slots
	calm    *time.Timer        // runs reduce, idle after the last hash
	release *time.Timer        // runs Trim, keep after the last hash

	mix  atomic.Pointer[mix] // nil: every account has a hash with the present parameters
	work atomic.Uint64
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
	// The dummy is verified like any other hash, and no password has its tag.
	dummy := stored{params: o.Params, salt: random(saltBytes), tag: random(tagBytes)}
	return &Hasher{params: o.Params, slots: o.Slots, wait: o.Wait, dummy: dummy.String(),
		places: newPlaces(o.Slots + max(0, o.Queue))}, nil
}

// Slots is the number of hashes that run at once.
func (h *Hasher) Slots() int { return h.slots }

// Waiting returns the number of admitted callers that are not hashing, for metrics.
func (h *Hasher) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.places.admitted-h.running) // a wipe runs without a caller
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
// another service. An empty phc represents an account without a password: Verify works as for an account with the
// present parameters and returns false.
//
// Errors: OVERLOADED when no slot became free in time, the error of ctx, and an internal one for a malformed phc.
// After an error the password was not judged.
func (p *Place) Verify(ctx context.Context, password, phc string) (right, stale bool, err error) {
	if phc == "" {
		_, _, err = p.verify(ctx, password, p.h.dummy)
		return false, false, err
	}
	return p.verify(ctx, password, phc)
}

func (p *Place) verify(ctx context.Context, password, phc string) (right, stale bool, err error) {
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
	right = subtle.ConstantTimeCompare(got, want.tag) == 1 && ok
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

// Hash is HashFor the service itself.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	return h.HashFor(ctx, own, password)
}

// HashFor is Admit, Place.Hash and Leave.
func (h *Hasher) HashFor(ctx context.Context, who Caller, password string) (string, error) {
	p, err := h.Admit(who)
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
	h.work.Add(recipeOf(params).Work())
	return derive(a, text, salt, params, n), nil
}

func derive(a *argon2id.Memory, password, salt []byte, p Params, n uint32) []byte {
	return a.Derive(password, salt, nil, nil, argon2id.Params(p), n)
}

// acquire waits for a slot in the caller's turn.
func (h *Hasher) acquire(ctx context.Context, p *Place) (*argon2id.Memory, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	if h.running < h.slots {
		h.running++
		a := &argon2id.Memory{}
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
func (h *Hasher) done(a *argon2id.Memory) {
	if a.Size() > argon2id.Params(h.params).Size() {
		a.Free() // an old hash with larger parameters needed more
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.pass(a) {
		return
	}
	if h.calm == nil {
		h.calm, h.release = time.AfterFunc(idle, h.reduce), time.AfterFunc(keep, h.Trim)
	} else {
		h.calm.Reset(idle)
		h.release.Reset(keep)
	}
}

// pass gives a slot and its memory to the next caller, or reports that none waits.
func (h *Hasher) pass(a *argon2id.Memory) (idle bool) {
	if w := h.places.next(); w != nil {
		w.slot <- a
		return false
	}
	h.running--
	h.arenas = append(h.arenas, a)
	return true
}

// reduce frees the memory of all slots but one, if no hash is running. A login of a quiet service thus needs no new
// memory, whose page faults cost more than its hash. The kept memory is wiped.
func (h *Hasher) reduce() {
	h.mu.Lock()
	if h.running > 0 || len(h.arenas) == 0 {
		h.mu.Unlock()
		return
	}
	// An imported hash of another kind leaves a memory of no size.
	kept := slices.MaxFunc(h.arenas, func(a, b *argon2id.Memory) int { return cmp.Compare(a.Size(), b.Size()) })
	for _, a := range h.arenas {
		if a != kept {
			a.Free()
		}
	}
	h.arenas = nil
	h.running++ // wiping occupies a slot, because the lock would stop all callers
	h.mu.Unlock()
	kept.Wipe()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pass(kept)
}

// Trim frees the memory of the slots if no hash is running. It runs by itself after keep. Call it earlier for a
// hasher that is not needed any more.
func (h *Hasher) Trim() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == 0 {
		for _, a := range h.arenas {
			a.Free()
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
