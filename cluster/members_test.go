package cluster

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"castellan/domain/kit/storetest"
	"castellan/internal/porttest"
)

// cast tracks every activation of a test: of each identity only the latest may handle messages.
type cast struct {
	mu     sync.Mutex
	latest map[string]*player
	births map[string]int
	broken atomic.Int64
}

func newCast() *cast { return &cast{latest: map[string]*player{}, births: map[string]int{}} }

// player answers with the address of its node. It keeps callers that send "wait" and answers them at "go".
type player struct {
	c    *cast
	kept []Sender
}

func (p *player) Receive(ctx actor.Context) {
	c, msg := ContextOf(ctx), ctx.Message()
	p.c.mu.Lock()
	if _, born := msg.(Activated); born {
		p.c.latest[c.ID()] = p
		p.c.births[c.ID()]++
		p.c.mu.Unlock()
		return
	}
	if p.c.latest[c.ID()] != p {
		p.c.broken.Add(1)
	}
	p.c.mu.Unlock()
	say, ok := msg.(*wrapperspb.StringValue)
	if !ok {
		return
	}
	switch say.Value {
	case "wait":
		p.c.mu.Lock()
		p.kept = append(p.kept, c.Sender())
		p.c.mu.Unlock()
		return
	case "go":
		for _, s := range p.kept {
			s.Reply(wrapperspb.String("gone"))
		}
	case "slow":
		time.Sleep(50 * time.Millisecond)
	}
	c.Reply(wrapperspb.String(c.Node().Address()))
}

// member starts a node that joins the others.
func member(t *testing.T, c *cast, keys *Keys, others ...*Node) *Node {
	t.Helper()
	return memberAt(t, c, Options{GossipAddr: porttest.Free(t), ActorAddr: porttest.Free(t), Keys: keys}, others...)
}

func memberAt(t *testing.T, c *cast, o Options, others ...*Node) *Node {
	t.Helper()
	return memberWith(t, c, o, func(*Node) {}, others...)
}

// memberWith is memberAt for a node with more kinds.
func memberWith(t *testing.T, c *cast, o Options, register func(*Node), others ...*Node) *Node {
	t.Helper()
	o.Version, o.Log, o.Join = "test", quietly(), nil
	for _, n := range others {
		o.Join = append(o.Join, n.membership.o.GossipAddr)
	}
	n := storetest.Value(New(o))(t)
	n.Register(Kind{Name: "player", New: func() actor.Actor { return &player{c: c} }})
	register(n)
	storetest.Must(t, n.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		n.Leave(ctx)
		n.Stop(ctx)
	})
	return n
}

func together(t testing.TB, ns ...*Node) {
	t.Helper()
	until(t, "the members see each other", func() bool {
		for _, n := range ns {
			if len(n.membership.ring.Load().seats) != len(ns) || !n.membership.holdsLease() {
				return false
			}
		}
		return true
	})
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

func tell(ctx context.Context, n *Node, id, say string) (string, error) {
	m, err := n.Call(ctx, "player", id, wrapperspb.String(say))
	if err != nil {
		return "", err
	}
	return m.(*wrapperspb.StringValue).Value, nil
}

func testKeys(t *testing.T) *Keys {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	storetest.Must(t, InitKeys(dir, ""))
	return storetest.Value(LoadKeys(dir))(t)
}
