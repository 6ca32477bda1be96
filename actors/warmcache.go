package actors

import (
	"sync"
	"time"

	"castellan/domain/factor/challenge"
)

// WarmCache keeps the challenges that this node has just committed, so that their first step need not read the rows.
// Most challenges get one answer within half a minute and nothing before it. An actor for each of them from the start
// would waste memory. The cache is bounded in number and time, and may drop an entry at any moment, because the row is
// the source of truth. A challenge is taken once: the actor that takes it owns it from then on.
//
// The owner of a challenge never changes, so it is kept after the state is taken.
//
// The cache has two halves. When the younger half is full, or after warmLife, it becomes the older one, and the older
// one is dropped.
type WarmCache struct {
	mu         sync.Mutex
	young, old generation
	turn       *time.Timer // armed unless the cache is empty
}

type generation struct {
	states map[string]warmState
	owners map[string]string // for every challenge that was put: the user's id, "" for a decoy
}

type warmState struct {
	state challenge.Challenge
	sealed
}

// sealed holds the sealed command and intent of a challenge. Both are nil if they must be read.
type sealed struct{ command, intent []byte }

const (
	maxWarm  = 8192 // per half
	warmLife = 45 * time.Second
)

// put stores the state of a new challenge.
func (w *WarmCache) put(made challenge.Insert) {
	c := made.Challenge
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.young.owners) >= maxWarm {
		w.rotate()
	}
	if w.young.owners == nil {
		w.young = generation{map[string]warmState{}, map[string]string{}}
	}
	w.young.states[c.ID], w.young.owners[c.ID] = warmState{c, sealed{made.Command, made.Intent}}, c.UserID
	if w.turn == nil {
		w.turn = time.AfterFunc(warmLife, w.tick)
	}
}

// take returns the cached state of a challenge and removes it.
func (w *WarmCache) take(id string) (warmState, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range []generation{w.young, w.old} {
		if s, ok := h.states[id]; ok {
			delete(h.states, id)
			return s, true
		}
	}
	return warmState{}, false
}

// holder names the user of a challenge. untouched: no actor has taken it yet, so it is unchanged since its creation,
// and the rest of h is valid too.
func (w *WarmCache) holder(id string) (h challenge.Holder, untouched, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, half := range []generation{w.young, w.old} {
		if h.UserID, ok = half.owners[id]; ok {
			kept, untouched := half.states[id]
			h.KeepsFilter = untouched && !kept.state.Proven
			return h, untouched, true
		}
	}
	return h, false, false
}

// Clear removes everything. After a change of ownership another node may have changed any of the rows.
func (w *WarmCache) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.young, w.old = generation{}, generation{}
}

func (w *WarmCache) rotate() { w.young, w.old = generation{}, w.young }

func (w *WarmCache) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rotate()
	if w.turn = nil; len(w.old.owners) > 0 {
		w.turn = time.AfterFunc(warmLife, w.tick)
	}
}
