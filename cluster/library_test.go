package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"castellan/domain/kit/storetest"
	"castellan/internal/porttest"
)

func said(t *testing.T, m any, err error) string {
	t.Helper()
	storetest.Must(t, err)
	return m.(*wrapperspb.StringValue).Value
}

// The standard protoactor API reaches a virtual actor, also on another node, and with the same PID after the actor has
// moved.
func TestVirtualActorsAreReachedByTheLibrary(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	id, ask := idsOf(b, 1)[0], wrapperspb.String("")
	for _, n := range []*Node{a, b} {
		lib := protoactor.GetCluster(n.Cluster().ActorSystem)
		got, err := lib.Request(id, "player", ask)
		storetest.Equal(t, said(t, got, err), b.Address(), "Request was answered by", got)
		f := storetest.Value(lib.RequestFuture(id, "player", ask, protoactor.WithTimeout(5*time.Second)))(t)
		if got, err = f.Result(); said(t, got, err) != b.Address() {
			t.Errorf("RequestFuture was answered by %v", got)
		}
		pid := lib.Get(id, "player")
		if pid.Address != b.membership.self.Address || pid.Id != "player/"+id {
			t.Errorf("Get gave %v", pid)
		}
		if got, err = n.sys.Root.RequestFuture(pid, ask, 5*time.Second).Result(); said(t, got, err) != b.Address() {
			t.Errorf("a request to the PID was answered by %v", got)
		}
	}
	pid := a.Cluster().Get(id, "player")
	waiting := storetest.Value(a.Cluster().RequestFuture(id, "player", wrapperspb.String("wait")))(t)
	until(t, "it waits", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.latest[id].kept) == 1 })
	a.sys.Root.Send(pid, wrapperspb.String("go")) // no caller waits for its answer
	if got, err := waiting.Result(); said(t, got, err) != "gone" {
		t.Errorf("after a Send: %v", got)
	}
	b.Leave(t.Context())
	if got, err := a.sys.Root.RequestFuture(pid, ask, 5*time.Second).Result(); said(t, got, err) != a.Address() {
		t.Errorf("after it moved the PID was answered by %v", got)
	}
}

// "Never sent" and "no answer" are different errors, in a request and in a future.
func TestNeverSentIsNotNoAnswer(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	id, lib := idsOf(b, 1)[0], a.Cluster()
	ask := func(say string, more ...protoactor.GrainCallOption) error {
		_, err := lib.Request(id, "player", wrapperspb.String(say), more...)
		return err
	}
	err := ask("wait", protoactor.WithTimeout(300*time.Millisecond))
	if !errors.Is(err, context.DeadlineExceeded) || NeverSent(err) {
		t.Errorf("no answer in time: %v", err)
	}
	cut, stop := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, stop)
	if err := ask("wait", Within(cut)); !errors.Is(err, context.Canceled) || NeverSent(err) {
		t.Errorf("a caller that left: %v", err)
	}
	answers := make(chan error, 2)
	go func() { answers <- ask("wait") }()
	f := storetest.Value(lib.RequestFuture(id, "player", wrapperspb.String("wait")))(t)
	until(t, "they wait", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.latest[id].kept) == 4 })
	b.membership.end() // as a crash does
	if err := <-answers; !errors.Is(err, ErrLost) || NeverSent(err) {
		t.Errorf("an owner that was lost: %v", err)
	}
	var grain *protoactor.GrainErrorResponse
	if got, _ := f.Result(); !errors.As(got.(error), &grain) || grain.Reason != protoactor.ErrorReason_UNAVAILABLE {
		t.Errorf("a future whose owner was lost: %v", got)
	}

	silent := silentOwner(t, a)
	began := time.Now()
	_, err = lib.Request(silent, "player", wrapperspb.String(""))
	if !errors.Is(err, ErrNotSent) || !NeverSent(err) || time.Since(began) > 1500*time.Millisecond {
		t.Errorf("an owner that cannot be reached: %v after %v", err, time.Since(began))
	}
	began = time.Now()
	if _, err := lib.Request(silent, "player", wrapperspb.String(""), protoactor.WithRetryCount(1)); !NeverSent(err) ||
		time.Since(began) > findTime/2 {
		t.Errorf("one look for it: %v after %v", err, time.Since(began))
	}
	if f, err = lib.RequestFuture(silent, "player", wrapperspb.String("")); err != nil {
		t.Fatal(err)
	}
	if err := f.Wait(); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("a future that cannot be sent: %v", err)
	}
}

// silentOwner adds a member that accepts connections and never speaks, like a frozen process. It returns an identity of
// players that the member owns.
func silentOwner(t *testing.T, n *Node) string {
	t.Helper()
	silent := vouchedFor(t, n)
	for i := 0; ; i++ {
		id := strings.Repeat("s", i)
		if o := n.membership.ring.Load().owner(identity{"player", id}); o != nil && o.ID == silent.ID {
			return id
		}
	}
}

// A message that the library cannot send is refused at once.
func TestUnsupportedMessageIsRefused(t *testing.T) {
	n := solo(t, nil)
	lib := n.Cluster()
	if _, err := lib.Request("a", "counter", "text"); err == nil {
		t.Error("a request that is no protobuf message")
	}
	if _, err := lib.Request("a", "nobody", wrapperspb.String("")); !errors.Is(err, ErrKind) || !NeverSent(err) {
		t.Errorf("an unknown kind: %v", err)
	}
	if _, err := lib.RequestFuture("a", "nobody", wrapperspb.String("")); !errors.Is(err, ErrKind) {
		t.Errorf("a future of an unknown kind: %v", err)
	}
	if pid := lib.Get("a", "nobody"); pid != nil {
		t.Errorf("an unknown kind has the PID %v", pid)
	}
	pid := lib.Get("a", "counter")
	if err := n.sys.Root.RequestFuture(pid, "text", time.Second).Wait(); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("a text to a PID: %v", err)
	}
	f, err := lib.RequestFuture("a", "counter", wrapperspb.String("silence"), protoactor.WithTimeout(20*time.Millisecond))
	if err != nil || !errors.Is(f.Wait(), actor.ErrTimeout) {
		t.Errorf("a future without an answer: %v, %v", err, f.Wait())
	}
	until(t, "no call waits", func() bool { return n.Calls() == 0 })
	n.sys.Root.Poison(pid)
	storetest.Equal(t, call(t, n, "a", ""), 2, "a stranger has ended an activation")
	if kind := lib.Config.Kinds["counter"]; kind == nil || kind.Kind != "counter" {
		t.Errorf("the library's kinds are %v", lib.Config.Kinds)
	}
}

// The library's list has the members, and its event reports joins and leaves. A member that was disconnected and comes
// back is seen again.
func TestLibraryListsMembers(t *testing.T) {
	c := newCast()
	var mu sync.Mutex
	var events []string
	note := func(sign string, ms []*protoactor.Member) {
		for _, m := range ms {
			events = append(events, sign+m.Address())
		}
	}
	a := storetest.Value(New(Options{GossipAddr: porttest.Free(t), ActorAddr: porttest.Free(t), Log: quietly()}))(t)
	a.Register(Kind{Name: "player", New: func() actor.Actor { return &player{c: c} }})
	a.Cluster().ActorSystem.EventStream.Subscribe(func(e any) {
		if topology, ok := e.(*protoactor.ClusterTopology); ok {
			mu.Lock()
			defer mu.Unlock()
			note("+", topology.Joined)
			note("-", topology.Left)
			if list := a.Cluster().MemberList; list.Length() != len(topology.Members) || !list.ContainsMemberID(a.sys.ID) {
				t.Errorf("%d members in the list, %d in the event", list.Length(), len(topology.Members))
			}
		}
	})
	storetest.Must(t, a.Start())
	defer a.Stop(context.Background())
	b := member(t, c, nil, a)
	together(t, a, b)
	here, there := a.membership.self.Address, b.membership.self.Address
	wants := func(want ...string) {
		t.Helper()
		text := strings.Join(want, " ")
		until(t, text, func() bool { mu.Lock(); defer mu.Unlock(); return strings.Join(events, " ") == text })
	}
	wants("+"+here, "+"+there)
	cut := func(away bool) {
		a.membership.mu.Lock()
		if away {
			delete(a.membership.peers, b.Address())
		} else {
			a.membership.peers[b.Address()] = b.membership.self
		}
		a.membership.mu.Unlock()
		a.membership.wake()
	}
	cut(true)
	wants("+"+here, "+"+there, "-"+there)
	cut(false)
	wants("+"+here, "+"+there, "-"+there, "+"+there)
	b.Leave(t.Context())
	b.Stop(t.Context())
	wants("+"+here, "+"+there, "-"+there, "+"+there, "-"+there)
}

// The supervisor handles a panic: it logs the panic once with its stack, counts it and publishes it on the event
// stream. The waiting callers get an error at once.
func TestPanicIsSupervised(t *testing.T) {
	var log bytes.Buffer
	n := Solo(slog.New(slog.NewTextHandler(&log, nil)))
	gate := make(chan struct{})
	n.Register(Kind{Name: "counter", New: func() actor.Actor { return &counter{} }})
	events := make(chan *actor.SupervisorEvent, 8)
	n.Cluster().ActorSystem.EventStream.Subscribe(func(e any) {
		if e, ok := e.(*actor.SupervisorEvent); ok {
			events <- e
		}
	})
	call(t, n, "a", "")
	Self{n, n.find(identity{"counter", "a"})}.Send(func() { <-gate })
	lib, began := n.Cluster(), time.Now()
	failing := storetest.Value(lib.RequestFuture("a", "counter", wrapperspb.String("panic")))(t)
	until(t, "it is queued", func() bool { return n.find(identity{"counter", "a"}).waiting() == 1 })
	behind := make(chan error, 3)
	for range cap(behind) {
		go func() {
			_, err := lib.Request("a", "counter", wrapperspb.String(""))
			behind <- err
		}()
	}
	until(t, "they are queued", func() bool { return n.find(identity{"counter", "a"}).waiting() == 4 })
	close(gate)
	var grain *protoactor.GrainErrorResponse
	if got, _ := failing.Result(); !errors.As(got.(error), &grain) || grain.Reason != protoactor.ErrorReason_INTERNAL {
		t.Errorf("the caller got %v", got)
	}
	for range cap(behind) {
		if err := <-behind; !errors.Is(err, ErrCrashed) {
			t.Errorf("a caller behind it: %v", err)
		}
	}
	if time.Since(began) > DefaultTimeout/2 {
		t.Errorf("they waited for %v", time.Since(began))
	}
	if e := <-events; e.Directive != actor.StopDirective || e.Reason != "told to" {
		t.Errorf("the event says %v, %v", e.Directive, e.Reason)
	}
	storetest.Equal(t, call(t, n, "a", ""), 1, "the next one has handled", "messages")
	storetest.Equal(t, n.Loads()["counter"].Failed, 1, "failures are counted")
	n.Stop(t.Context())
	if text := log.String(); strings.Count(text, "actor failed") != 1 || !strings.Contains(text, "node_test.go") ||
		!strings.Contains(text, "kind=counter message=*wrapperspb.StringValue panic=\"told to\"") {
		t.Errorf("the log says %s", text)
	}
}

// The next call replaces an activation that the library's own Stop ended.
func TestStoppedActivationIsReplaced(t *testing.T) {
	n := solo(t, nil)
	call(t, n, "a", "")
	pid := n.find(identity{"counter", "a"}).pid
	storetest.Must(t, n.sys.Root.StopFuture(pid).Wait())
	if got := call(t, n, "a", ""); got != 1 || n.Live() != 1 {
		t.Errorf("%d messages, %d live", got, n.Live())
	}
}

// The library links gRPC into the program. Nothing of it, and nothing of the stock remote and gossip, runs or listens.
func TestStockRemoteDoesNotRun(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	if _, err := tell(t.Context(), a, idsOf(b, 1)[0], ""); err != nil {
		t.Fatal(err)
	}
	stacks := make([]byte, 1<<20)
	text := string(stacks[:runtime.Stack(stacks, true)])
	for _, not := range []string{"google.golang.org/grpc", "protoactor-go/remote", "cluster.(*Gossip"} {
		if strings.Contains(text, not) {
			t.Errorf("%s runs", not)
		}
	}
	if _, listens := a.sys.ProcessRegistry.GetLocal(protoactor.DefaultGossipActorName); listens {
		t.Error("the library's gossip runs")
	}
}
