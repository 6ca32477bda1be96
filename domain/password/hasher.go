package password

import (
	"container/list"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"castellan/domain/fault"
)

// HasherOptions size a Hasher. A zero Params, Slots or Wait means its default.
type HasherOptions struct {
	Params Params        // DefaultParams
	Slots  int           // hashes at once; one less than the processors, at least 1
	Queue  int           // callers that may wait for a slot
	Wait   time.Duration // the longest wait for a slot; 5 s
}

// Hasher hashes in a fixed number of slots. Callers first get a place
// (Admit), which costs nothing and fails at once when too many are waiting;
// their hashes then run first come, first served. It is safe for concurrent use.
//
// A hash takes its memory from the heap and drops it whole, so what is in use
// is slots × memory, and what a storm of logins adds to the process is that and
// the garbage until the next collection: up to as much again as the heap holds.
// (64 hashes of 19 MiB in one slot: 57 MiB beside a heap of 5 MiB, 118 MiB
// beside one of 100 MiB.)
type Hasher struct {
	params      Params
	slots, room int
	wait        time.Duration
	dummy       string

	mu       sync.Mutex
	admitted int
	running  int
	waiting  list.List // of chan struct{}
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
	// The dummy verifies like any other hash and no password has its tag.
	dummy := stored{params: o.Params, salt: random(saltBytes), tag: random(tagBytes)}
	return &Hasher{params: o.Params, slots: o.Slots, room: o.Slots + max(0, o.Queue), wait: o.Wait, dummy: dummy.String()}, nil
}

// Slots is the number of hashes that run at once.
func (h *Hasher) Slots() int { return h.slots }

// Waiting is the number of callers that were admitted and are not hashing,
// for metrics.
func (h *Hasher) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.admitted - h.running
}

// Place is a caller's place in the queue. Every hash of the caller waits its
// turn anew. It must be left.
type Place struct {
	h    *Hasher
	left sync.Once
}

// Admit takes a place. Take it before anything that costs: when there is none
// the caller is refused at no cost.
//
// Errors: OVERLOADED.
func (h *Hasher) Admit() (*Place, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.admitted >= h.room {
		return nil, h.overloaded()
	}
	h.admitted++
	return &Place{h: h}, nil
}

// Leave gives the place up. Leaving twice is leaving once.
func (p *Place) Leave() {
	p.left.Do(func() {
		p.h.mu.Lock()
		p.h.admitted--
		p.h.mu.Unlock()
	})
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
	got, err := p.h.run(ctx, normal, want.salt, want.params, uint32(len(want.tag)))
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
	if s.tag, err = p.h.run(ctx, normal, s.salt, s.params, tagBytes); err != nil {
		return "", err
	}
	return s.String(), nil
}

// Hash is Admit, Place.Hash and Leave.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	p, err := h.Admit()
	if err != nil {
		return "", err
	}
	defer p.Leave()
	return p.Hash(ctx, password)
}

// Verify is Admit, Place.Verify and Leave.
func (h *Hasher) Verify(ctx context.Context, password, phc string) (right, stale bool, err error) {
	p, err := h.Admit()
	if err != nil {
		return false, false, err
	}
	defer p.Leave()
	return p.Verify(ctx, password, phc)
}

func (h *Hasher) run(ctx context.Context, password string, salt []byte, params Params, n uint32) ([]byte, error) {
	if err := h.acquire(ctx); err != nil {
		return nil, err
	}
	defer h.done()
	text := []byte(password)
	defer clear(text)
	return argon2.IDKey(text, salt, params.Passes, params.MemoryKiB, params.Lanes, n), nil
}

// acquire waits for a slot, in the order of the calls.
func (h *Hasher) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	if h.running < h.slots {
		h.running++
		h.mu.Unlock()
		return nil
	}
	turn := make(chan struct{}, 1)
	place := h.waiting.PushBack(turn)
	h.mu.Unlock()

	timer := time.NewTimer(h.wait)
	defer timer.Stop()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	h.mu.Lock()
	select {
	case <-turn: // the turn came in the same moment: pass it on
		h.mu.Unlock()
		h.done()
	default:
		h.waiting.Remove(place)
		h.mu.Unlock()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.overloaded()
}

// done hands the slot to the caller who waits longest.
func (h *Hasher) done() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first := h.waiting.Front(); first != nil {
		h.waiting.Remove(first).(chan struct{}) <- struct{}{}
		return
	}
	h.running--
}

func (h *Hasher) overloaded() error {
	return fault.New(fault.Overloaded, "too many passwords are being checked; try again").After(h.wait)
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
