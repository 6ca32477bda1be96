package password

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/account/password/argon2id"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

var cheap = Params{MemoryKiB: 64, Passes: 1, Lanes: 1}

func small(t *testing.T, o HasherOptions) *Hasher {
	t.Helper()
	if o.Params == (Params{}) {
		o.Params = cheap
	}
	return storetest.Value(NewHasher(o))(t)
}

// ownPlace is a Place of the service itself, which occupies no place in the queue.
func ownPlace(h *Hasher) *Place { return &Place{h: h, who: own} }

func (h *Hasher) kept() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.arenas)
}

func TestHashAndVerify(t *testing.T) {
	h, ctx := small(t, HasherOptions{}), t.Context()
	long := strings.Repeat("0123456789", 10)
	other := long[:79] + "X" + long[80:]
	a, err := h.Hash(ctx, long)
	if err != nil || !strings.HasPrefix(a, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("%q, %v", a, err)
	}
	if b, _ := h.Hash(ctx, long); a == b {
		t.Error("two hashes of one password are equal: the salt is not fresh")
	}
	for password, want := range map[string]bool{long: true, other: false, long + " ": false, long[:99]: false, "": false,
		strings.Repeat("x", 5000): false, "\xff": false} {
		if right, stale, err := h.Verify(ctx, password, a); right != want || stale || err != nil {
			t.Errorf("%.20q…: right %v, stale %v, %v", password, right, stale, err)
		}
	}
	if right, stale, err := small(t, HasherOptions{Params: Params{128, 1, 1}}).Verify(ctx, long, a); !right || !stale ||
		err != nil {
		t.Errorf("a hash of older parameters: right %v, stale %v, %v", right, stale, err)
	}
	if _, _, err := h.Verify(ctx, long, "$2a$10$abc"); err == nil || fault.CodeOf(err) != fault.Internal {
		t.Errorf("a malformed hash: %v", err)
	}
	// An account that does not exist is verified with the current parameters.
	if s, err := parse(h.dummy); err != nil || s.params != h.params || len(s.tag) != tagBytes || len(s.salt) != saltBytes {
		t.Errorf("the dummy is not like other hashes: %+v, %v", s, err)
	}
	if right, stale, err := h.Verify(ctx, "anything", ""); right || stale || err != nil {
		t.Errorf("without an account: right %v, stale %v, %v", right, stale, err)
	}
	storetest.Fails(t, storetest.Err(h.Hash(ctx, "\xff")), "", "text that is not UTF-8")
	little := HasherOptions{Params: Params{MemoryKiB: 4, Passes: 1, Lanes: 1}}
	storetest.Fails(t, storetest.Err(NewHasher(little)), "", "too little memory")
}

// from returns a caller of site i.
func from(i int) Caller { return Caller{Site: fmt.Sprint("site ", i)} }

func TestPlacesAreBounded(t *testing.T) {
	h := small(t, HasherOptions{Slots: 1, Queue: 2, Wait: 3 * time.Second})
	var places []*Place
	for i := range 3 {
		p := storetest.Value(h.Admit(from(i)))(t)
		places = append(places, p)
	}
	_, err := h.Admit(from(4))
	e, _ := err.(*fault.Error)
	if e == nil || e.Code != fault.Overloaded || e.RetryAfter != 3*time.Second {
		t.Fatalf("a place too many: %v", err)
	}
	places[0].Leave()
	places[0].Leave()
	storetest.Wants(t, storetest.Err(h.Admit(from(4))), "", "after one left")
	storetest.Fails(t, storetest.Err(h.Admit(from(5))), "", "after one left twice")
	if h.Waiting() != 3 || h.Running() != 0 || h.Refused() != 2 {
		t.Errorf("%d waiting, %d running, %d refused", h.Waiting(), h.Running(), h.Refused())
	}
}

func TestSlotsAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{Slots: 2, Wait: time.Hour})
		one, _ := h.acquire(t.Context(), ownPlace(h))
		two, _ := h.acquire(t.Context(), ownPlace(h))
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				a, err := h.acquire(t.Context(), ownPlace(h))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				h.done(a)
			})
			synctest.Wait() // it is in the queue
		}
		h.done(one)
		time.Sleep(500 * time.Microsecond)
		h.done(two)
		wg.Wait()
		ended := time.Now()
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("served in the order %v", order)
		}
		if h.running != 0 || h.places.waiting() != 0 || len(h.arenas) != 2 {
			t.Errorf("afterwards %d run, %d wait, %d arenas", h.running, h.places.waiting(), len(h.arenas))
		}
		kept := func(at time.Duration, want int) {
			t.Helper()
			time.Sleep(time.Until(ended.Add(at)))
			synctest.Wait()
			storetest.Equal(t, h.kept(), want, at, "after the last hash the hasher keeps the memory of")
		}
		kept(idle-time.Nanosecond, 2)
		kept(idle, 1)
		one, _ = h.acquire(t.Context(), ownPlace(h))
		h.done(one)
		ended = time.Now() // the memory is kept that long after the last hash, not after the first one
		kept(keep-time.Nanosecond, 1)
		kept(keep, 0)
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{Slots: 1, Wait: 5 * time.Second})
		held, _ := h.acquire(t.Context(), ownPlace(h))
		start := time.Now()
		if _, err := h.Hash(t.Context(), "kedi7şeker"); fault.CodeOf(err) != fault.Overloaded ||
			time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.Hash(ctx, "kedi7şeker"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who gave up: %v", err)
		}
		storetest.Equal(t, h.places.waiting(), 0, "are still in the queue")
		h.done(held)
		storetest.Must(t, storetest.Err(h.Hash(t.Context(), "kedi7şeker")))
		if _, err := h.Hash(ctx, "kedi7şeker"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller that has gone took a slot: %v", err)
		}
		time.Sleep(keep + time.Second) // let the timers end inside the bubble
	})
}

// However callers arrive, leave and give up, at most the slots run and none is lost.
func TestSlotsUnderRace(t *testing.T) {
	h := small(t, HasherOptions{Slots: 3, Queue: 1000, Wait: time.Minute})
	var mu sync.Mutex
	running, most := 0, 0
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*time.Millisecond+time.Microsecond)
			defer cancel()
			a, err := h.acquire(ctx, ownPlace(h))
			if err != nil {
				return
			}
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			derive(a, []byte("x"), []byte("0123456789abcdef"), cheap, 32)
			mu.Lock()
			running--
			mu.Unlock()
			h.done(a)
		})
	}
	wg.Wait()
	if most > 3 || h.running != 0 || h.places.waiting() != 0 {
		t.Errorf("at most %d ran; afterwards %d run and %d wait", most, h.running, h.places.waiting())
	}
}

// A hash with larger, older parameters does not keep its memory.
func TestLargeHashesAreNotKept(t *testing.T) {
	h := small(t, HasherOptions{Slots: 1})
	big, _ := small(t, HasherOptions{Params: Params{2048, 1, 1}}).Hash(t.Context(), "kedi7şeker")
	if right, stale, err := h.Verify(t.Context(), "kedi7şeker", big); !right || !stale || err != nil {
		t.Fatal(right, stale, err)
	}
	for _, a := range h.arenas {
		if need := argon2id.Params(cheap).Size(); a.Size() > need {
			t.Errorf("%d bytes are kept, %d are needed", a.Size(), need)
		}
	}
}

// Trim frees the memory before its time, and the hasher still works.
func TestTrim(t *testing.T) {
	h := small(t, HasherOptions{})
	for range 2 {
		storetest.Must(t, storetest.Err(h.Hash(t.Context(), "kedi7şeker")))
		a := h.arenas[0]
		h.Trim()
		if len(h.arenas) != 0 || a.Size() != 0 {
			t.Errorf("%d arenas are kept, one with %d bytes", len(h.arenas), a.Size())
		}
	}
}

// The memory that an idle hasher keeps holds nothing of the last hash.
func TestKeptMemoryIsWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{})
		storetest.Must(t, storetest.Err(h.Hash(t.Context(), "kedi7şeker")))
		used := func() bool {
			blocks := reflect.ValueOf(h.arenas[0]).Elem().FieldByName("blocks")
			for i := range blocks.Len() {
				if !blocks.Index(i).IsZero() {
					return true
				}
			}
			return false
		}
		before := used()
		time.Sleep(idle)
		synctest.Wait()
		if !before || used() {
			t.Errorf("after a hash the memory is used: %v, after a minute: %v", before, used())
		}
	})
}
