package cluster

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// follower records the events that it receives.
type follower struct {
	mu    sync.Mutex
	notes []string
}

func (f *follower) note(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, s)
}

type placeKey struct{}

func (f *follower) Call(ctx context.Context, kind, message string) (string, func(error)) {
	along, _ := ctx.Value(placeKey{}).(string)
	f.note("call " + kind + " " + message + " " + along)
	return along, func(err error) { f.note(map[bool]string{true: "answered", false: "failed"}[err == nil]) }
}

func (f *follower) Handle(along, kind, message string) (context.Context, func(bool)) {
	f.note("handle " + kind + " " + message + " " + along)
	return context.WithValue(context.Background(), placeKey{}, along), func(failed bool) {
		f.note(map[bool]string{false: "handled", true: "crashed"}[failed])
	}
}

// teller answers with the place in the trace that its messages have.
type teller struct{}

func (teller) Receive(ctx actor.Context) {
	c, msg := ContextOf(ctx), ctx.Message()
	if m, ok := msg.(*wrapperspb.StringValue); ok {
		if m.Value == "panic" {
			panic("told to")
		}
		place, _ := c.Background().Value(placeKey{}).(string)
		c.Reply(wrapperspb.String(place))
	}
}

// A behaviour works in the trace of its caller, and of no other.
func TestCallsAreFollowed(t *testing.T) {
	n, f := Solo(quietly()), &follower{}
	n.Trace(f)
	n.Register(Kind{Name: "teller", New: func() actor.Actor { return teller{} }})
	defer n.Stop(context.Background())
	say := func(ctx context.Context, text string) string {
		m, err := n.Call(ctx, "teller", "a", wrapperspb.String(text))
		if err != nil {
			return "error"
		}
		return m.(*wrapperspb.StringValue).Value
	}
	there := context.WithValue(t.Context(), placeKey{}, "here")
	if a, b := say(there, ""), say(t.Context(), ""); a != "here" || b != "" {
		t.Errorf("worked at %q and %q", a, b)
	}
	if say(there, "panic") != "error" {
		t.Error("a crash answers")
	}
	n.Stop(context.Background())
	has := func(what string) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Contains(f.notes, what)
	}
	for end := time.Now().Add(10 * time.Second); !has("crashed") && time.Now().Before(end); { // it answers first
		time.Sleep(time.Millisecond)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, want := range []string{"call teller StringValue here", "handle teller StringValue here", "handled",
		"answered", "call teller StringValue ", "crashed", "failed"} {
		if !slices.Contains(f.notes, want) {
			t.Errorf("no %q in %q", want, f.notes)
		}
	}
	if slices.Contains(f.notes, "handle teller StringValue ") {
		t.Error("a call without a trace was handled in one")
	}
}

// A node without traces pays nothing for them: a call allocates no more than before traces existed.
func TestUnfollowedCallsCostNothing(t *testing.T) {
	const before = 7 // by the library, which brings a list of options, with one of them
	n := solo(t, nil)
	call(t, n, "a", "")
	m, ctx := wrapperspb.String(""), context.Background()
	least := math.Inf(1) // of many: a pool may be empty
	for range 300 {
		least = min(least, testing.AllocsPerRun(1, func() { n.Call(ctx, "counter", "a", m) }))
	}
	if least > before {
		t.Errorf("%v allocations, want at most %d", least, before)
	}
}
