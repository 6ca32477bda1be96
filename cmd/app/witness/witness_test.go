package witness

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/cluster"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// board is a change feed with several readers.
type board struct {
	commit.Committer
	mu      sync.Mutex
	readers []*Witness
	broken  bool
}

func (b *board) Commit(ctx context.Context, ws ...commit.Write) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errors.New("no connection")
	}
	for _, w := range ws {
		for _, r := range b.readers {
			go func() {
				time.Sleep(change.Every)
				_ = r.Apply(context.WithoutCancel(ctx), w.(change.Note).Key)
			}()
		}
	}
	return nil
}

// Of two nodes that do not hear each other exactly one serves; a single node serves; a node that cannot decide does
// not.
func TestWitnessLetsOneNodeServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		node := func(port string) *Witness {
			n, err := cluster.New(cluster.Options{GossipAddr: "127.0.0.1:1" + port, ActorAddr: "127.0.0.1:2" + port,
				Log: slog.New(slog.DiscardHandler)})
			storetest.Must(t, err)
			time.Sleep(time.Millisecond)
			return New(b, n)
		}
		one, two := node("001"), node("002")
		ask := func(r *Witness) (bool, error) {
			side, _ := r.node.Component()
			return r.Ask(t.Context(), side)
		}
		if _, err := ask(one); err == nil {
			t.Error("a feed that it does not read tells nothing")
		}
		b.readers = []*Witness{one}
		if others, err := ask(one); err != nil || others {
			t.Errorf("the only one: %v, %v", others, err)
		}
		b.readers = []*Witness{one, two}
		first, err1 := ask(one)
		second, err2 := ask(two)
		if err1 != nil || err2 != nil || first || !second {
			t.Errorf("of two: %v, %v; %v, %v", first, err1, second, err2)
		}
		// A node that has met no member yields to every other node, and only then to the smallest id.
		if yields, err := one.Ask(t.Context(), cluster.Component{Least: one.node.Address()}); err != nil || !yields {
			t.Errorf("a newcomer beside another node: %v, %v", yields, err)
		}
		b.readers = []*Witness{one}
		if yields, err := one.Ask(t.Context(), cluster.Component{Least: one.node.Address()}); err != nil || yields {
			t.Errorf("a newcomer that is the only one: %v, %v", yields, err)
		}
		b.broken = true
		if _, err := ask(one); err == nil {
			t.Error("without a database it knows")
		}
		for _, odd := range []string{"", "who", "here/x", "here/x/0/y", "here/x/many/y", "else/x/y"} {
			if err := one.Apply(t.Context(), odd); err != nil {
				t.Errorf("%q: %v", odd, err)
			}
		}
		time.Sleep(time.Minute)
	})
}
