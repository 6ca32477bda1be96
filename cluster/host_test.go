package cluster

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"castellan/internal/porttest"
)

// tallies is a Host that answers with its node and the sender. An id is "SHARD/NAME".
type tallies struct {
	address func() string
	turns   atomic.Int64
	mu      sync.Mutex
	names   map[string]int
}

func (h *tallies) Shard(id string) (n int, ok bool) {
	shard, _, ok := strings.Cut(id, "/")
	n, err := strconv.Atoi(shard)
	return n, ok && err == nil
}

func (h *tallies) Active() int { h.mu.Lock(); defer h.mu.Unlock(); return len(h.names) }

func (h *tallies) Figures() map[string]int64 { return nil }

func (h *tallies) Turn(t *Turn) {
	h.turns.Add(1)
	h.mu.Lock()
	if h.names == nil {
		h.names = map[string]int{}
	}
	h.names[t.ID]++
	first := h.names[t.ID] == 1
	h.mu.Unlock()
	answer := wrapperspb.String(h.address() + " " + t.From)
	switch t.Message.(*wrapperspb.StringValue).Value {
	case "panic":
		panic("told to")
	case "later":
		time.AfterFunc(10*time.Millisecond, func() { t.Reply(answer); t.Reply(nil) })
	case "silence":
	case "elsewhere":
		if first {
			t.Elsewhere()
			return
		}
		fallthrough
	default:
		t.Reply(answer)
	}
}

func hosts(n *Node) *tallies {
	h := &tallies{address: n.Address}
	n.Register(Kind{Name: "tally", Shards: "tallies", Host: h})
	return h
}

// A hosted identity is reached from every member, at the member that the ring gives its shard: by Request, by
// RequestFuture and by the PID of Get. A turn may answer later, and a panic fails its caller only.
func TestHostedKind(t *testing.T) {
	c := newCast()
	var nodes []*Node
	all := map[string]*tallies{}
	for range 3 {
		var h *tallies
		n := memberWith(t, c, Options{GossipAddr: porttest.Free(t), ActorAddr: porttest.Free(t)},
			func(n *Node) { h = hosts(n) }, nodes...)
		nodes, all[n.Address()] = append(nodes, n), h
	}
	together(t, nodes...)
	for shard := range 12 {
		id := strconv.Itoa(shard) + "/a"
		owner, _ := nodes[0].Place("tallies", strconv.Itoa(shard))
		for _, n := range nodes {
			from := n.Address()
			if from == owner {
				from = ""
			}
			for _, say := range []string{"", "later"} {
				got, err := n.Call(t.Context(), "tally", id, wrapperspb.String(say))
				if err != nil || got.(*wrapperspb.StringValue).Value != owner+" "+from {
					t.Errorf("%q %q: %v, %v; its owner is %s", id, say, got, err, owner)
				}
			}
			if _, err := n.Call(t.Context(), "tally", id, wrapperspb.String("panic")); !errors.Is(err, ErrCrashed) {
				t.Errorf("a panic: %v", err)
			}
			if n.Owns("tally", id) != (from == "") {
				t.Errorf("%s: owns %s: %t", n.Address(), id, from != "")
			}
		}
		moved := strconv.Itoa(shard) + "/moved"
		if _, err := nodes[shard%3].Call(t.Context(), "tally", moved, wrapperspb.String("elsewhere")); err != nil {
			t.Errorf("the owner was not looked up again: %v", err)
		}
	}
	_, err := nodes[0].Call(t.Context(), "tally", "x", wrapperspb.String(""))
	if !errors.Is(err, ErrID) || !NeverSent(err) {
		t.Errorf("an invalid id: %v", err)
	}
	if _, err := nodes[0].Cluster().Request("1/a", "tally", wrapperspb.String("silence"),
		protoactor.WithTimeout(20*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
	f, err := nodes[1].Cluster().RequestFuture("2/a", "tally", wrapperspb.String(""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Result(); err != nil || got.(*wrapperspb.StringValue).Value == "" {
		t.Errorf("by a future: %v, %v", got, err)
	}
	turns := func() (sum int64) {
		for _, h := range all {
			sum += h.turns.Load()
		}
		return sum
	}
	before := turns()
	nodes[2].Tell("tally", "3/a", wrapperspb.String("silence"))
	nodes[2].Tell("tally", "4/a", wrapperspb.String("panic"))
	until(t, "messages without an answer arrive", func() bool { return turns() == before+2 })
	active, failed := 0, int64(0)
	for _, n := range nodes {
		active, failed = active+n.Loads()["tally"].Active, failed+n.Loads()["tally"].Failed
	}
	if active != 24 || failed != 37 {
		t.Errorf("%d activations, %d panics", active, failed)
	}
}

// A node without a cluster runs hosted kinds, too.
func TestHostedKindOfOneNode(t *testing.T) {
	n := solo(t, nil)
	h := hosts(n)
	got, err := n.Call(t.Context(), "tally", "7/a", wrapperspb.String("later"))
	if err != nil || got.(*wrapperspb.StringValue).Value != n.Address()+" " {
		t.Errorf("%v, %v", got, err)
	}
	n.Tell("tally", "7/a", wrapperspb.String("silence"))
	if _, err := n.Call(t.Context(), "tally", "7", wrapperspb.String("")); !errors.Is(err, ErrID) {
		t.Errorf("an invalid id: %v", err)
	}
	if h.turns.Load() != 2 || n.Loads()["tally"].Active != 1 {
		t.Errorf("%d turns, %+v", h.turns.Load(), n.Loads())
	}
}
