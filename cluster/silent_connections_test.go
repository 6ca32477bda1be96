package cluster

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"castellan/domain/kit/storetest"
	"castellan/internal/porttest"
)

// idle opens a connection that sends nothing.
func idle(t *testing.T, from, to string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	conn, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { conn.Close() })
}

// Silent connections never block a member, however many there are. They may come from one address, which may be the
// member's own, or from many.
func TestStrangersExcludeNoMember(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	a := member(t, c, keys)
	b := member(t, c, keys, a)
	together(t, a, b)
	for name, from := range map[string]func(i int) string{
		"the member's address": func(int) string { return "127.0.0.1" },
		"another address":      func(int) string { return "127.0.0.2" },
		"many addresses":       func(i int) string { return fmt.Sprintf("127.0.1.%d", 1+i%250) },
	} {
		var all sync.WaitGroup
		var opened atomic.Int64
		back := make(chan struct{})
		for range 4 {
			all.Go(func() {
				for {
					n := opened.Add(1)
					idle(t, from(int(n)), a.membership.o.ActorAddr)
					select {
					case <-back: // only then do they stop: a free slot is taken at once
						return
					case <-time.After(time.Duration(1+n/1000*10) * time.Millisecond):
					}
				}
			})
		}
		until(t, "so many are open", func() bool { return opened.Load() > 1000 })
		time.Sleep(100 * time.Millisecond) // they are accepted
		l := b.membership.linkTo(a.Address())
		before := l.current.Load()
		began := time.Now()
		before.close()
		until(t, "the member is connected again", func() bool {
			s := l.current.Load()
			return s != nil && s != before
		})
		took := time.Since(began)
		close(back)
		all.Wait()
		t.Logf("%s: the member came back after %v, beside %d connections", name, took, opened.Load())
		if took > time.Second { // it takes 15 ms on an idle machine
			t.Error("that is not at once")
		}
	}
}

// Slots are bounded in total and for each address. Silent connections are closed first, then the oldest; strangers
// never take a member's slot.
func TestHandshakesAreBounded(t *testing.T) {
	h := &handshakes{}
	begin := func(from string, member, speaks bool) *arrival {
		a := h.begin(&stranger{from: from}, member)
		a.spoke.Store(speaks)
		return a
	}
	count := func(chosen func(*arrival) bool) (n int) {
		for _, a := range h.open {
			if chosen(a) {
				n++
			}
		}
		return n
	}
	friends := []*arrival{}
	for range maxPerMemberHost {
		friends = append(friends, begin("10.0.0.1", true, true))
	}
	first := begin("10.0.0.9", false, true)
	for range 2 * maxPerStranger {
		begin("10.0.0.9", false, false)
	}
	if n := count(func(a *arrival) bool { return a.from == first.from }); n != maxPerStranger {
		t.Errorf("%d of one address", n)
	}
	if !slices.Contains(h.open, first) {
		t.Error("one that spoke was sent away before the silent")
	}
	for i := range 4 * maxStrangers {
		begin(fmt.Sprintf("10.1.%d.%d", i/200, 1+i%200), false, true)
	}
	storetest.Equal(t, count(func(a *arrival) bool { return !a.member }), maxStrangers, "strangers")
	for _, f := range friends {
		if f.Conn.(*stranger).closed || !slices.Contains(h.open, f) {
			t.Fatal("strangers have taken a member's place")
		}
	}
	if h.end(first) || !first.Conn.(*stranger).closed {
		t.Error("the oldest stranger is still there")
	}
	next := begin("10.0.0.1", true, false)
	if !friends[0].Conn.(*stranger).closed || h.end(friends[0]) || !h.end(next) || h.end(next) {
		t.Error("the oldest of a member's address has kept its place")
	}
	for _, x := range [][2]string{{"2001:db8:1:2::3", "2001:db8:1:2:ffff::1"}, {"::ffff:10.0.0.1", "10.0.0.1"}} {
		storetest.Equal(t, origin(&stranger{from: x[0]}), origin(&stranger{from: x[1]}), x, "count apart")
	}
}

// stranger is a connection from an arbitrary address.
type stranger struct {
	net.Conn
	from   string
	closed bool
}

func (s *stranger) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(s.from), Port: 4} }
func (s *stranger) Close() error         { s.closed = true; return nil }

// forge joins the gossip with its key alone, and reports a member with that id and address.
func forge(t *testing.T, keys *Keys, at Member, seeds ...*Node) (gossips string) {
	t.Helper()
	gossips = porttest.Free(t)
	host, port, err := net.SplitHostPort(gossips)
	storetest.Must(t, err)
	c := memberlist.DefaultLANConfig()
	c.Name, c.BindAddr, c.Logger = at.ID, host, log.New(gossipLog{quietly()}, "", 0)
	fmt.Sscan(port, &c.BindPort)
	c.AdvertisePort = c.BindPort
	c.Delegate = forged(at)
	c.SecretKey = keys.now.Load().gossip
	g := storetest.Value(memberlist.Create(c))(t)
	t.Cleanup(func() { g.Shutdown() })
	for _, n := range seeds {
		if _, err := g.Join([]string{n.membership.o.GossipAddr}); err != nil {
			t.Fatal(err)
		}
	}
	return gossips
}

type forged Member

func (f forged) NodeMeta(int) []byte {
	text, err := json.Marshal(meta{Actor: f.Address, Version: "forged"})
	if err != nil {
		panic(err)
	}
	return text
}
func (forged) NotifyMsg([]byte)                {}
func (forged) GetBroadcasts(int, int) [][]byte { return nil }
func (forged) LocalState(bool) []byte          { return nil }
func (forged) MergeRemoteState([]byte, bool)   {}

// A process with only the gossip key cannot add a member that owns anything: the ring stays, calls continue, and
// nothing is sent to the forged member.
func TestGossipKeyAloneMakesNoMember(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	a := member(t, c, keys)
	alone := member(t, newCast(), keys)
	b := member(t, c, keys, a)
	together(t, a, b)
	silent, hello := listen(t), unreachableMember(t)
	forge(t, keys, Member{ID: silent.Addr().String() + "~2~keys", Address: silent.Addr().String()}, alone)
	for _, m := range []Member{
		{ID: silent.Addr().String() + "~1~keys", Address: silent.Addr().String()},
		hello, // it speaks unencrypted
		{ID: "127.0.0.1:1~1~keys", Address: "127.0.0.1:1"},                                           // nothing listens there
		{ID: b.membership.o.ActorAddr + "~ffffffffffffffff~keys", Address: b.membership.o.ActorAddr}, // a later b
		{ID: "127.0.0.1:2~1~keys", Address: b.membership.o.ActorAddr},                                // it is elsewhere
	} {
		forge(t, keys, m, a)
	}
	until(t, "every node has heard of them", func() bool {
		return a.Unmet() == 4 && b.Unmet() == 4 && alone.Unmet() == 1
	})
	before := a.membership.ring.Load()
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, n := range []*Node{a, b, alone} {
			if _, err := tell(t.Context(), n, fmt.Sprint("id-", end.UnixNano()%97), ""); err != nil {
				t.Fatalf("a call: %v", err)
			}
			want := 2
			if n == alone {
				want = 1
			}
			if seats := n.membership.ring.Load().seats; len(seats) != want || len(n.Members()) != want || !n.Belongs() {
				t.Fatalf("the ring is %+v, members %v", seats, n.Members())
			}
		}
	}
	if a.membership.ring.Load() != before || c.broken.Load() > 0 {
		t.Errorf("the ring was rebuilt, or %d messages were handled twice", c.broken.Load())
	}
}
