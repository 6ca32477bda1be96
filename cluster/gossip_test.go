package cluster

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/hashicorp/memberlist"

	"castellan/domain/kit/storetest"
)

// The metadata of a member in the gossip is either rejected, or valid enough to place the member, show it and remove it
// again. The member never becomes this node, nor gets this node's place.
func FuzzMeta(f *testing.F) {
	seed := func(name string, m any) {
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, text)
	}
	seed("10.0.0.2:7947~18ea2da27e2a7fe1", meta{Actor: "10.0.0.2:7947", Version: "v1.2.3", Epoch: 3})
	seed("10.0.0.2:7947~18ea2da27e2a7fe2", meta{Actor: "10.0.0.2:7947", Leaving: true})
	seed("", meta{Actor: "10.0.0.2:7947"})
	seed("~", meta{Actor: "[::1]:0"})
	seed("nobody", meta{Actor: "no port"})
	seed("numbers", map[string]any{"a": 7, "e": -1})
	f.Add("not text", []byte{0xff, 0x00, '{'})
	f.Add("deep", []byte(`{"a":"h:1","e":18446744073709551616}`))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		n, err := New(Options{GossipAddr: "127.0.0.1:7946", ActorAddr: "127.0.0.1:7947", Log: slog.New(slog.DiscardHandler)})
		storetest.Must(t, err)
		defer n.membership.end()
		fl := n.membership
		said := &memberlist.Node{Name: name, Meta: text}
		(*events)(fl).NotifyJoin(said)
		(*events)(fl).NotifyUpdate(said)
		m, taken := fl.peers[name]
		if len(fl.peers) > 1 || len(fl.peers) == 1 && !taken {
			t.Fatalf("members %v", fl.peers)
		}
		if taken {
			if m.ID != name || m.Address == "" || m.ID == fl.self.ID {
				t.Errorf("took in %+v", m)
			}
			r := newRing([]Member{fl.self, m})
			if m.Address != fl.self.Address && (!r.has(fl.self.ID) || !r.has(m.ID)) {
				t.Errorf("%+v has another's place", m)
			}
			if r.owner(identity{"challenge", "c-1"}) == nil {
				t.Error("an identity has no owner")
			}
			if _, err := json.Marshal(m); err != nil {
				t.Error(err)
			}
		}
		(*events)(fl).NotifyLeave(said)
		storetest.Equal(t, len(fl.peers), 0, fl.peers, "is still there")
	})
}

// A joining node owns nothing until it has the list of members.
func TestJoiningNodeOwnsNothing(t *testing.T) {
	n, err := New(Options{GossipAddr: "127.0.0.1:7946", ActorAddr: "127.0.0.1:7947", Log: slog.New(slog.DiscardHandler)})
	storetest.Must(t, err)
	f := n.membership
	defer f.end()
	hear := func(m Member) string {
		text := storetest.Value(json.Marshal(meta{Actor: m.Address}))(t)
		(*events)(f).NotifyJoin(&memberlist.Node{Name: m.ID, Meta: text})
		until(t, "it has met the other", func() bool {
			f.rebuild()
			return f.linkTo(m.ID).met.Load()
		})
		f.rebuild()
		return m.ID
	}
	f.joining.Store(true)
	first, second := unreachableMember(t), unreachableMember(t)
	x := hear(first)
	if f.ring.Load().has(x) || n.Belongs() {
		t.Error("it serves before it has joined")
	}
	f.joined.Store(true)
	f.rebuild()
	if !f.ring.Load().has(x) {
		t.Fatal("it has not joined")
	}
	mine := ""
	for i := 0; mine == ""; i++ { // an id that it owns with any members
		key := identity{"k", fmt.Sprint(i)}
		r := newRing([]Member{f.self, first, second})
		if r.owner(key).ID == f.self.ID {
			mine = key.id
		}
	}
	if got := n.Former("k", mine); !slices.Equal(got, []string{x}) {
		t.Errorf("asks %v", got)
	}
	y := hear(second)
	if got := n.Former("k", mine); !slices.Contains(got, y) {
		t.Errorf("asks %v and not %s, which may be older", got, y)
	}
}
