package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"castellan/domain/kit/storetest"
)

func quietly() *slog.Logger { return slog.New(slog.DiscardHandler) }

// counter answers with the number of messages that its activation has handled, and executes the message.
type counter struct {
	n      int64
	births *atomic.Int64
}

func (b *counter) Receive(ctx actor.Context) {
	c, msg := ContextOf(ctx), ctx.Message()
	switch m := msg.(type) {
	case Activated:
		if b.births != nil {
			b.births.Add(1)
		}
	case *wrapperspb.StringValue:
		b.n++
		switch m.Value {
		case "panic":
			panic("told to")
		case "silence":
			return
		case "later":
			to := c.Sender()
			c.Self().After(10*time.Millisecond, func() { to.Reply(wrapperspb.Int64(-1)) })
			return
		case "leave":
			c.Self().After(0, "leave")
		}
		c.Reply(wrapperspb.Int64(b.n))
	case func():
		m()
	case string:
		c.Passivate()
	}
}

func solo(t *testing.T, births *atomic.Int64) *Node {
	t.Helper()
	n := Solo(quietly())
	n.Register(Kind{Name: "counter", New: func() actor.Actor { return &counter{births: births} }})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		n.Stop(ctx)
	})
	return n
}

func call(t *testing.T, n *Node, id, say string) int64 {
	t.Helper()
	m, err := n.Call(t.Context(), "counter", id, wrapperspb.String(say))
	if err != nil {
		t.Fatal(err)
	}
	return m.(*wrapperspb.Int64Value).Value
}

func TestCallReachesOneActivation(t *testing.T) {
	var births atomic.Int64
	n := solo(t, &births)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { call(t, n, "a", "") })
	}
	wg.Wait()
	if got := call(t, n, "a", ""); got != 201 || births.Load() != 1 || n.Live() != 1 {
		t.Errorf("%d messages, %d activations, %d live", got, births.Load(), n.Live())
	}
	storetest.Equal(t, call(t, n, "b", "later"), -1, "a deferred answer")
}

// Passivation never loses a call: a call that arrives while an activation leaves reaches the next one.
func TestPassivationLosesNothing(t *testing.T) {
	var births atomic.Int64
	n := solo(t, &births)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				say := ""
				if (i+g)%3 == 0 {
					say = "leave"
				}
				call(t, n, "a", say)
			}
		})
	}
	wg.Wait()
	if births.Load() < 10 {
		t.Errorf("only %d activations: the test did not passivate", births.Load())
	}
}

// A call that finds an ended activation in the table removes it: a crowd of retrying callers would starve its removal
// of the shard lock.
func TestEndedActivationIsReplaced(t *testing.T) {
	var births atomic.Int64
	n := solo(t, &births)
	call(t, n, "a", "")
	n.find(identity{"counter", "a"}).state.Store(gone)
	if got := call(t, n, "a", ""); got != 1 || births.Load() != 2 || n.Live() != 1 {
		t.Errorf("%d messages, %d activations, %d live", got, births.Load(), n.Live())
	}
}

// The runtime names actors with a counter in letters, past every short word.
func TestNoActivationMeetsAReservedName(t *testing.T) {
	n := solo(t, nil)
	for i := range 64 * 64 * 64 / 4 {
		n.Tell("counter", fmt.Sprint(i), wrapperspb.String("leave"))
	}
	got, err := n.Call(t.Context(), "counter", "last", wrapperspb.String(""))
	if err != nil || got.(*wrapperspb.Int64Value).Value != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// A mailbox that is not emptied refuses messages instead of growing.
func TestFullMailboxRefuses(t *testing.T) {
	n := Solo(quietly())
	gate := make(chan struct{})
	n.Register(Kind{Name: "stuck", New: func() actor.Actor { return blocked{gate} }})
	defer func() {
		close(gate)
		n.Stop(context.Background())
	}()
	var busy atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for range maxWaiting + 50 {
		wg.Go(func() {
			if _, err := n.Call(ctx, "stuck", "a", wrapperspb.String("")); errors.Is(err, ErrBusy) {
				busy.Add(1)
			}
		})
	}
	wg.Wait()
	if busy.Load() < 50 {
		t.Errorf("%d callers were turned away, want at least 50", busy.Load())
	}
	n.Tell("stuck", "b", wrapperspb.String(""))
	want := Load{Active: 2, Activated: 2, Waiting: maxWaiting + 1, Deepest: maxWaiting}
	storetest.Equal(t, n.Loads()["stuck"], want, "a load of")
}

type blocked struct{ gate chan struct{} }

func (b blocked) Receive(ctx actor.Context) {
	msg := ctx.Message()
	if _, ok := msg.(proto.Message); ok {
		<-b.gate
	}
}

func TestTellAndPost(t *testing.T) {
	n := solo(t, nil)
	n.Tell("counter", "a", wrapperspb.String(""))
	n.SendToActive("counter", "a", wrapperspb.String(""))
	n.SendToActive("counter", "asleep", wrapperspb.String(""))
	if got := call(t, n, "a", ""); got != 3 || n.Live() != 1 {
		t.Errorf("%d messages, %d live", got, n.Live())
	}
	got := make(chan proto.Message, 1)
	n.Listen("ear", func(m proto.Message) { got <- m })
	n.Post(n.Address(), "ear", wrapperspb.String("hello"))
	if m := <-got; m.(*wrapperspb.StringValue).Value != "hello" {
		t.Errorf("%v", m)
	}
}

func TestStopRefusesAndLeaksNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	n := Solo(quietly())
	n.Register(Kind{Name: "counter", New: func() actor.Actor { return &counter{} }})
	for i := range 100 {
		call(t, n, fmt.Sprint(i), "")
	}
	n.Stop(t.Context())
	if _, err := n.Call(t.Context(), "counter", "x", wrapperspb.String("")); !errors.Is(err, ErrStopped) {
		t.Errorf("after the stop: %v", err)
	}
}
