package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"castellan/domain/kit/storetest"
	"castellan/internal/porttest"
)

func TestKeys(t *testing.T) {
	for _, addr := range []string{"192.0.2.1:7946", "0.0.0.0:7946", ":7946"} {
		if _, err := New(Options{GossipAddr: addr, ActorAddr: "127.0.0.1:7947", Log: quietly()}); err == nil {
			t.Errorf("%s without keys was accepted", addr)
		}
	}
	open := Options{GossipAddr: "127.0.0.1:7946", ActorAddr: "192.0.2.1:7947", Log: quietly()}
	if _, err := New(open); !errors.Is(err, ErrKeys) {
		t.Errorf("actors beyond loopback without keys: %v", err)
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	storetest.Must(t, errors.Join(InitKeys(first, ""), NodeKeys(first, second, "")))
	if err := InitKeys(first, ""); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a folder with keys: %v", err)
	}
	if _, err := os.Stat(filepath.Join(second, caKey)); !errors.Is(err, os.ErrNotExist) {
		t.Error("a node has the authority's key")
	}
	for _, d := range []string{first, second} {
		files := storetest.Value(os.ReadDir(d))(t)
		for _, f := range files {
			if i, err := f.Info(); err != nil || i.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", f.Name(), i.Mode(), err)
			}
		}
	}
	one := storetest.Value(LoadKeys(first))(t)
	other := storetest.Value(LoadKeys(second))(t)
	c := newCast()
	a := member(t, c, one)
	b := member(t, c, other, a)
	together(t, a, b)
	// Neither the gossip nor the links of another cluster are accepted.
	stranger := member(t, c, testKeys(t), a)
	time.Sleep(300 * time.Millisecond)
	if len(stranger.membership.ring.Load().seats) != 1 || len(a.membership.ring.Load().seats) != 2 {
		t.Error("a node with other keys is a member")
	}
	if conn, err := dial(t.Context(), stranger.membership.o.Keys, a.membership.o.ActorAddr); err == nil {
		conn.Close()
		t.Error("a link with the certificate of another cluster")
	}
}

// The node keeps running, whatever connects and whatever a member sends.
func TestHostilePeers(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	a := member(t, c, keys)
	hello := frame{op: opHello, id: "x:1~1", kind: a.Address()}
	unknown := frame{op: opCall, req: 7, kind: "player", id: "x", typ: "castellan.Unknown", body: []byte{1, 2, 3}}
	nobody := frame{op: opCall, req: 8, kind: "nobody", id: "x"}
	nobody.carry(wrapperspb.String(""))
	broken := frame{op: opCall, req: 9, kind: "player", id: "x", typ: "google.protobuf.StringValue", body: []byte{0xff}}
	for name, sent := range map[string][]byte{
		"nothing":        nil,
		"noise":          []byte("GET / HTTP/1.1\r\n\r\n"),
		"no hello":       unknown.append(nil),
		"a huge frame":   append(hello.append(nil), 0xff, 0xff, 0xff, 0xff),
		"a broken frame": append(hello.append(nil), 0, 0, 0, 2, 0xff, 0xff),
		"unknown things": broken.append(nobody.append(unknown.append(hello.append(nil)))),
		"another node":   (&frame{op: opHello, id: "x", kind: "y"}).append(nil),
		"wild numbers":   (&frame{op: 99, req: 1 << 63, code: 1 << 60}).append(hello.append(nil)),
		"empty names": (&frame{op: opRelease}).append(
			(&frame{op: opPost}).append((&frame{op: opTell}).append(hello.append(nil)))),
	} {
		for _, secured := range []bool{true, false} {
			var conn net.Conn
			var err error
			if secured {
				conn, err = dial(t.Context(), keys, a.membership.o.ActorAddr)
			} else {
				conn, err = net.Dial("tcp", a.membership.o.ActorAddr)
			}
			storetest.Must(t, err)
			conn.Write(sent)
			if name == "unknown things" && secured {
				for range 4 { // hello, and three refusals
					f, _, err := readFrame(conn, nil)
					if err != nil || f.op == opAnswer && f.code != codeKind {
						t.Errorf("%+v, %v", f, err)
					}
				}
			}
			conn.Close()
		}
		if got, err := tell(t.Context(), a, "x", ""); err != nil || got != a.Address() {
			t.Fatalf("after %s: %s, %v", name, got, err)
		}
	}
}

// BenchmarkCallAcross measures calls that another node answers, 128 at a time.
func BenchmarkCallAcross(b *testing.B) {
	c := newCast()
	var ns []*Node
	for range 2 {
		o := Options{GossipAddr: porttest.Free(b), ActorAddr: porttest.Free(b), Log: quietly()}
		for _, n := range ns {
			o.Join = append(o.Join, n.membership.o.GossipAddr)
		}
		n := storetest.Value(New(o))(b)
		n.Register(Kind{Name: "player", New: func() actor.Actor { return &player{c: c} }})
		storetest.Must(b, n.Start())
		defer n.Stop(context.Background())
		ns = append(ns, n)
	}
	together(b, ns...)
	ids := idsOf(ns[1], 1024)
	msg := wrapperspb.String("")
	b.ReportAllocs()
	b.SetParallelism(64)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := ns[0].Call(context.Background(), "player", ids[i&1023], msg); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
