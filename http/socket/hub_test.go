package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"go.uber.org/goleak"

	"castellan/domain/challenge"
	"castellan/domain/fault"
	"castellan/domain/stepup"
)

func TestMain(m *testing.M) {
	// It keeps the date of answers for the whole process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// owner stands for the actors: it holds challenges and answers questions.
type owner struct {
	mu    sync.Mutex
	cases map[string]*watched
	hook  func(id string, sockets, after int) // runs before each answer
	fail  error
}

// watched is a challenge that sockets may watch.
type watched struct {
	events    []stepup.Event
	gone      bool
	elsewhere int // sockets on other nodes
	asked     []question
}

type question struct{ sockets, after int }

func (o *owner) of(id string) *watched {
	if o.cases == nil {
		o.cases = map[string]*watched{}
	}
	if o.cases[id] == nil {
		o.cases[id] = &watched{}
	}
	return o.cases[id]
}

// Subscribe implements stepup.Feed.
func (o *owner) Subscribe(_ context.Context, id string, sockets, after int) (int, stepup.News, error) {
	o.mu.Lock()
	w := o.of(id)
	w.asked = append(w.asked, question{sockets, after})
	n := stepup.News{ChallengeID: id, Action: "LOGIN", Gone: w.gone}
	if after < len(w.events) {
		n.Events = slices.Clone(w.events[after:])
	}
	refused, err, hook := max(0, sockets+w.elsewhere-5), o.fail, o.hook
	o.mu.Unlock()
	if hook != nil {
		hook(id, sockets, after)
	}
	return refused, n, err
}

// happen adds an event and returns the news of it.
func (o *owner) happen(id string, e stepup.Event) stepup.News {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.of(id)
	e.Number = len(w.events) + 1
	w.events = append(w.events, e)
	return stepup.News{ChallengeID: id, Action: "LOGIN", Events: []stepup.Event{e}}
}

// set changes what the owner is like.
func (o *owner) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

func (o *owner) questions(id string) []question {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.of(id).asked)
}

func method(id string) stepup.Event { return stepup.Event{MethodID: id, Method: challenge.SMS} }

// sealed are outcomes as openSealed knows them.
func sealed(text string) stepup.Event { return stepup.Event{Outcome: []byte(text)} }

func openSealed(_ string, sealed []byte) (r challenge.Result, err error) {
	switch string(sealed) {
	case "session ended":
		return r, fault.New(fault.ChallengeClosed, "the session of this outcome has ended")
	case "unreadable":
		return r, errors.New("no such key")
	}
	return r, json.Unmarshal(sealed, &r)
}

// world is a hub over an owner, without a poller: its connections are pipes,
// so that everything is in virtual time.
type world struct {
	t *testing.T
	owner
	hub *Hub
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, run func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.hub = newHub(&w.owner, openSealed, time.Now, slog.New(slog.DiscardHandler), nil)
		run(w)
		w.hub.Close(w.t.Context())
		synctest.Wait()
	})
}

// client is the other end of a socket.
type client struct {
	t    *testing.T
	conn net.Conn

	mu    sync.Mutex
	got   []string // what came, in short
	texts [][]byte
}

// join opens a socket whose client reads everything and answers pings.
func (w *world) join(id string, life time.Duration) *client {
	w.t.Helper()
	c := w.silent(id, life)
	go c.read(true)
	synctest.Wait()
	return c
}

// silent opens a socket whose client does nothing.
func (w *world) silent(id string, life time.Duration) *client {
	here, there := net.Pipe()
	w.t.Cleanup(func() { there.Close() })
	w.hub.admit(here, id, time.Now().Add(life), nil)
	return &client{t: w.t, conn: there}
}

func (c *client) read(pong bool) {
	for {
		f, err := readFrame(c.conn)
		if err != nil {
			c.conn.Close()
			return
		}
		c.note(f)
		switch {
		case f.Header.OpCode == ws.OpPing && pong:
			c.write(ws.NewPongFrame(f.Payload))
		case f.Header.OpCode == ws.OpClose:
			c.write(ws.NewCloseFrame(f.Payload))
		}
	}
}

func readFrame(r io.Reader) (f ws.Frame, err error) {
	if f.Header, err = ws.ReadHeader(r); err != nil {
		return f, err
	}
	f.Payload = make([]byte, f.Header.Length) // the other side is ours
	_, err = io.ReadFull(r, f.Payload)
	return f, err
}

func (c *client) note(f ws.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Header.Masked || !f.Header.Fin || f.Header.Rsv != 0 {
		c.t.Errorf("header %+v", f.Header)
	}
	switch f.Header.OpCode {
	case ws.OpPing:
		c.got = append(c.got, "ping")
	case ws.OpPong:
		c.got = append(c.got, "pong "+string(f.Payload))
	case ws.OpClose:
		code, _ := ws.ParseCloseFrameData(f.Payload)
		c.got = append(c.got, fmt.Sprintf("close %d", code))
	case ws.OpText:
		c.texts = append(c.texts, f.Payload)
		c.got = append(c.got, short(c.t, f.Payload))
	default:
		c.t.Errorf("a frame of kind %d", f.Header.OpCode)
	}
}

// short is the one fact that tells an event apart.
func short(t testing.TB, text []byte) string {
	var m struct {
		Event string
		Data  []struct {
			MethodID string
			Success  *bool
		}
	}
	if err := json.Unmarshal(text, &m); err != nil || len(m.Data) != 1 {
		t.Errorf("message %s: %v", text, err)
		return ""
	}
	if m.Event == "ACTION_COMPLETE" && m.Data[0].Success != nil {
		return fmt.Sprintf("done %t", *m.Data[0].Success)
	}
	return m.Data[0].MethodID
}

// write sends a frame as a client must: masked.
func (c *client) write(f ws.Frame) {
	c.conn.Write(ws.MustCompileFrame(ws.MaskFrame(f))) // a socket that has ended shows elsewhere
}

// want checks everything that came so far.
func (c *client) want(what ...string) {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.got, what) {
		c.t.Errorf("got %q, want %q", c.got, what)
	}
}

func TestReplayThenLive(t *testing.T) {
	virtual(t, func(w *world) {
		w.happen("c1", method("m1"))
		first := w.join("c1", time.Hour)
		first.want("m1")
		w.hub.Receive(w.happen("c1", method("m2")))
		second := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", sealed(`{"success":true}`)))
		other := w.join("c2", time.Hour)
		first.want("m1", "m2", "done true")
		second.want("m1", "m2", "done true")
		other.want()
		w.hub.Receive(w.happen("c2", sealed(`{"success":false}`)))
		other.want("done false")
		time.Sleep(19 * time.Second)
		first.want("m1", "m2", "done true") // it stays open after the end
		if n := w.hub.Live(); n != 3 {
			t.Errorf("%d sockets live", n)
		}
	})
}

// A frame has exactly the four keys of section 6, and both objects always.
func TestFrames(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m1")))
		w.hub.Receive(w.happen("c1", sealed(`{"success":true,"data":{"sessionKey":"k"},"headers":{"x-auth":"t"}}`)))
		d := w.join("c2", time.Hour)
		w.hub.Receive(w.happen("c2", sealed(`{"success":false}`)))
		synctest.Wait()
		for i, want := range []string{
			`{"challengeId":"c1","action":"LOGIN","event":"METHOD_COMPLETE","data":[{"methodId":"m1","method":"SMS"}]}`,
			`{"challengeId":"c1","action":"LOGIN","event":"ACTION_COMPLETE","data":[{"success":true,"data":{"sessionKey":"k"},"headers":{"x-auth":"t"}}]}`,
			`{"challengeId":"c2","action":"LOGIN","event":"ACTION_COMPLETE","data":[{"success":false,"data":{},"headers":{}}]}`,
		} {
			if got := slices.Concat(c.texts, d.texts)[i]; string(got) != want {
				t.Errorf("frame %d is %s", i, got)
			}
		}
	})
}

// The answer to the question is on its way while events happen: the socket
// gets each once and in order, whichever comes first.
func TestLiveOvertakesReplay(t *testing.T) {
	virtual(t, func(w *world) {
		w.happen("c1", method("m1"))
		once := sync.OnceFunc(func() { // after the first answer was made, before it is heard
			w.hub.Receive(w.happen("c1", method("m2")))
			w.hub.Receive(w.happen("c1", method("m3")))
		})
		w.set(func() { w.hook = func(string, int, int) { once() } })
		c := w.join("c1", time.Hour)
		c.want("m1", "m2", "m3")
		if q := w.questions("c1"); !slices.Equal(q, []question{{1, 0}, {1, 1}}) {
			t.Errorf("questions %v", q)
		}
	})
}

func TestDuplicateAndMissedNews(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		m1 := w.happen("c1", method("m1"))
		for range 3 {
			w.hub.Receive(m1)
		}
		c.want("m1")
		w.happen("c1", method("m2")) // its news is lost
		w.hub.Receive(w.happen("c1", method("m3")))
		w.hub.Receive(m1)
		c.want("m1", "m2", "m3") // asked again at once, not at the next ping
		w.happen("c1", method("m4"))
		time.Sleep(21 * time.Second)
		c.want("m1", "m2", "m3", "ping", "m4") // and at every ping
	})
}

// Sockets of one room that have seen different amounts each get what they lack.
func TestLateSocketBesideEarlyOne(t *testing.T) {
	virtual(t, func(w *world) {
		early := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m1")))
		w.hub.Receive(w.happen("c1", method("m2")))
		release := make(chan struct{})
		w.set(func() { w.hook = func(string, int, int) { <-release } })
		late := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m3")))
		early.want("m1", "m2", "m3")
		late.want()
		close(release)
		late.want("m1", "m2", "m3")
		early.want("m1", "m2", "m3")
	})
}

func TestSixthSocket(t *testing.T) {
	virtual(t, func(w *world) {
		w.happen("c1", method("m1"))
		var cs []*client
		for range 6 {
			cs = append(cs, w.join("c1", time.Hour))
		}
		for _, c := range cs[:5] {
			c.want("m1")
		}
		cs[5].want("close 4429")
		cs[0].conn.Close()
		synctest.Wait()
		w.join("c1", time.Hour).want("m1")
		w.set(func() { w.of("c1").elsewhere = 3 })
		time.Sleep(21 * time.Second) // the next question, where somebody else has taken three places
		cs[1].want("m1", "ping")
		cs[2].want("m1", "ping")
		cs[3].want("m1", "ping", "close 4429")
		if n := w.hub.Live(); n != 2 {
			t.Errorf("%d sockets live", n)
		}
	})
}

// A socket leaves while the owner is asked about six: nobody else has to go.
func TestSixthSocketMakesRoomItself(t *testing.T) {
	virtual(t, func(w *world) {
		var cs []*client
		for range 5 {
			cs = append(cs, w.join("c1", time.Hour))
		}
		once := sync.OnceFunc(func() { cs[0].conn.Close(); synctestWait() })
		w.set(func() {
			w.hook = func(_ string, sockets, _ int) {
				if sockets == 6 {
					once()
				}
			}
		})
		last := w.join("c1", time.Hour)
		last.want()
		for _, c := range cs[1:] {
			c.want()
		}
	})
}

// synctestWait gives other goroutines of the bubble time to react, from within
// one that the test waits for.
func synctestWait() { time.Sleep(time.Millisecond) }

func TestExpiry(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", 30*time.Second)
		time.Sleep(30*time.Second - time.Millisecond)
		c.want("ping")
		time.Sleep(time.Millisecond + tick)
		c.want("ping", "close 4401")
		time.Sleep(5 * time.Second)
		if n := w.hub.Live(); n != 0 {
			t.Errorf("%d sockets live", n)
		}
		w.join("c2", -time.Second)
		time.Sleep(2 * tick)
		if n := w.hub.Live(); n != 0 {
			t.Errorf("%d sockets live", n)
		}
	})
}

func TestGone(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		w.hub.Receive(stepup.News{ChallengeID: "c1", Gone: true})
		c.want("close 4410")
		w.set(func() { w.of("c2").gone = true })
		w.happen("c2", method("m1"))
		w.join("c2", time.Hour).want("m1", "close 4410")
		w.set(func() { w.fail = fault.New(fault.ChallengeNotFound, "no such challenge") })
		w.join("c3", time.Hour).want("close 4410")
	})
}

func TestOutcomeThatCannotBeShown(t *testing.T) {
	virtual(t, func(w *world) {
		before := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m1")))
		w.hub.Receive(w.happen("c1", sealed(`{"success":true}`)))
		w.set(func() { w.of("c1").events[1].Outcome = []byte("session ended") }) // logged out since
		after := w.join("c1", time.Hour)
		after.want("m1", "close 4410")
		before.want("m1", "done true") // it heard when it was true, and stays
		broken := w.join("c2", time.Hour)
		w.hub.Receive(w.happen("c2", sealed("unreadable")))
		broken.want("close 1011")
	})
}

func TestClose(t *testing.T) {
	virtual(t, func(w *world) {
		var cs []*client
		for i := range 10 {
			cs = append(cs, w.join(fmt.Sprint("c", i), time.Hour))
		}
		w.hub.Close(w.t.Context())
		for _, c := range cs {
			c.want("close 1012")
		}
		w.join("c1", time.Hour).want("close 1012")
		w.hub.Receive(w.happen("c1", method("m1"))) // nothing happens, and nothing breaks
	})
}

// A client that does not answer a close frame does not keep the node.
func TestCloseOfDeafClient(t *testing.T) {
	virtual(t, func(w *world) {
		w.silent("c1", time.Hour)
		began := time.Now()
		w.hub.Close(w.t.Context())
		if took := time.Since(began); took > writeTime+parting+tick || w.hub.Live() != 0 {
			t.Errorf("it took %v, %d sockets live", took, w.hub.Live())
		}
	})
	virtual(t, func(w *world) {
		w.silent("c1", time.Hour)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		w.hub.Close(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(writeTime)
	})
}

func TestPings(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		time.Sleep(time.Minute + tick)
		c.want("ping", "ping", "ping")
		if q := w.questions("c1"); len(q) != 4 {
			t.Errorf("questions %v", q)
		}
	})
}

// The sockets of a room ping at different times; the owner is asked once.
func TestOneQuestionForAllPings(t *testing.T) {
	virtual(t, func(w *world) {
		for range 5 {
			w.join("c1", time.Hour)
			time.Sleep(3 * time.Second)
		}
		before := len(w.questions("c1"))
		time.Sleep(10 * time.Minute)
		if n := len(w.questions("c1")) - before; n < 25 || n > 31 {
			t.Errorf("%d questions in ten minutes", n)
		}
	})
}

// Nobody is there any more, but the connection does not know.
func TestHalfOpen(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.silent("c1", time.Hour)
		go c.read(false)
		time.Sleep(patience + tick - time.Millisecond)
		c.want("ping", "ping")
		synctest.Wait()
		if n := w.hub.Live(); n != 0 {
			t.Errorf("%d sockets live", n)
		}
	})
	virtual(t, func(w *world) {
		c := w.silent("c1", time.Hour)
		go c.read(false)
		time.Sleep(40 * time.Second)
		c.write(ws.NewTextFrame([]byte("still here")))
		time.Sleep(39 * time.Second)
		c.want("ping", "ping", "ping")
		time.Sleep(10 * time.Second)
		if n := w.hub.Live(); n != 0 {
			t.Errorf("%d sockets live", n)
		}
	})
}

// A client that reads nothing is never waited for.
func TestSlowReader(t *testing.T) {
	virtual(t, func(w *world) {
		slow := w.silent("c1", time.Hour)
		quick := w.join("c1", time.Hour)
		began := time.Now()
		var want []string
		for i := range 10 {
			w.hub.Receive(w.happen("c1", method(fmt.Sprint("m", i))))
			want = append(want, fmt.Sprint("m", i))
			quick.want(want...)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("delivery took %v", took)
		}
		time.Sleep(writeTime - time.Millisecond)
		if n := w.hub.Live(); n != 2 {
			t.Errorf("%d sockets live", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := w.hub.Live(); n != 1 {
			t.Errorf("%d sockets live", n)
		}
		if _, err := slow.conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the slow one: %v", err)
		}
		quick.want(want...)
	})
}

func TestQueueIsBounded(t *testing.T) {
	virtual(t, func(w *world) {
		w.silent("c1", time.Hour)
		synctest.Wait()
		for i := range maxQueue + 1 {
			w.hub.Receive(w.happen("c1", method(fmt.Sprint("m", i))))
			synctest.Wait()
		}
		if n := w.hub.Live(); n != 1 {
			t.Errorf("%d sockets live with a full queue", n)
		}
		w.hub.Receive(w.happen("c1", method("one too many")))
		synctest.Wait()
		if n := w.hub.Live(); n != 0 {
			t.Errorf("%d sockets live", n)
		}
	})
}

// While the owner cannot be asked the socket stays, and hears all of it later.
func TestOwnerUnreachable(t *testing.T) {
	virtual(t, func(w *world) {
		w.set(func() { w.fail = fault.New(fault.Unavailable, "try again") })
		c := w.join("c1", time.Hour)
		w.happen("c1", method("m1"))
		time.Sleep(time.Minute)
		n := len(w.questions("c1"))
		if n < 4 || n > 12 {
			t.Errorf("%d questions in a minute", n)
		}
		c.want("ping", "ping", "ping")
		w.set(func() { w.fail = nil })
		time.Sleep(pingEvery)
		c.want("ping", "ping", "ping", "m1", "ping")
	})
}

// The owner hears when a node's sockets are fewer, and the room goes with the
// last one.
func TestLeaving(t *testing.T) {
	virtual(t, func(w *world) {
		a, b := w.join("c1", time.Hour), w.join("c1", time.Hour)
		a.conn.Close()
		synctest.Wait()
		b.write(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusGoingAway, "")))
		b.want("close 1001")
		if q := w.questions("c1"); !slices.Equal(q, []question{{1, 0}, {2, 0}, {1, 0}, {0, 0}}) {
			t.Errorf("questions %v", q)
		}
		if len(w.hub.rooms) != 0 {
			t.Errorf("rooms %v", w.hub.rooms)
		}
		w.set(func() { w.fail = errors.New("trouble") })
		w.join("c2", time.Hour).conn.Close()
		synctest.Wait()
		if len(w.hub.rooms) != 0 {
			t.Errorf("rooms %v", w.hub.rooms)
		}
		time.Sleep(time.Minute)
		if n := len(w.questions("c2")); n > 3 {
			t.Errorf("%d questions for nobody", n)
		}
	})
}

// What clients send is ignored, to the end of the protocol's patience.
func TestClientFrames(t *testing.T) {
	text := func(n int) ws.Frame { return ws.NewTextFrame(make([]byte, n)) }
	for name, c := range map[string]struct {
		send func(c *client)
		want []string
	}{
		"ignored": {func(c *client) {
			c.write(text(0))
			c.write(text(maxFrame))
			c.write(ws.NewBinaryFrame([]byte{0xff}))
			c.write(ws.NewPongFrame([]byte("unasked")))
		}, nil},
		"ping":             {func(c *client) { c.write(ws.NewPingFrame([]byte("hello"))) }, []string{"pong hello"}},
		"too big":          {func(c *client) { c.write(text(maxFrame + 1)) }, []string{"close 1009"}},
		"close":            {func(c *client) { c.write(ws.NewCloseFrame(ws.NewCloseFrameBody(3999, "bye"))) }, []string{"close 3999"}},
		"close, no code":   {func(c *client) { c.write(ws.NewCloseFrame(nil)) }, []string{"close 0"}},
		"close, bad code":  {func(c *client) { c.write(ws.NewCloseFrame(ws.NewCloseFrameBody(1005, ""))) }, []string{"close 1002"}},
		"unmasked":         {func(c *client) { ws.WriteFrame(c.conn, ws.NewTextFrame(nil)) }, []string{"close 1002"}},
		"no text":          {func(c *client) { c.write(ws.NewTextFrame([]byte{0xff})) }, []string{"close 1007"}},
		"nothing after it": {func(c *client) { c.write(text(2000)); c.write(ws.NewPingFrame(nil)) }, []string{"close 1009"}},
		"flood": {func(c *client) {
			for range maxFrames + 1 {
				c.write(text(1))
			}
		}, []string{"close 1008"}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				client := w.join("c1", time.Hour)
				c.send(client)
				client.want(c.want...)
				time.Sleep(2 * parting)
				if live := w.hub.Live() == 1; live != (len(c.want) == 0 || name == "ping") {
					t.Errorf("live: %t", live)
				}
			})
		})
	}
}

// The count of a flood starts anew with each ping: an ordinary client may talk.
func TestTalkativeClient(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		for range 600 { // ten minutes, 40 frames a second
			for range 40 {
				c.write(ws.NewTextFrame([]byte("x")))
			}
			time.Sleep(time.Second)
		}
		if n := w.hub.Live(); n != 1 {
			t.Errorf("%d sockets live", n)
		}
	})
}

// Everything at once: sockets come, go and stall while events happen, and
// every reader that stays hears all of them, once and in order.
func TestManyAtOnce(t *testing.T) {
	virtual(t, func(w *world) {
		const cases, steps = 20, 40
		var wg sync.WaitGroup
		for n := range cases {
			id := fmt.Sprint("c", n)
			wg.Go(func() {
				stay := w.silent(id, time.Hour)
				go stay.read(true)
				var want []string
				for i := range steps {
					news := w.happen(id, method(fmt.Sprint("m", i)))
					want = append(want, fmt.Sprint("m", i))
					if i%3 != 0 { // every third is lost
						go w.hub.Receive(news)
					}
					guest := w.silent(id, time.Hour)
					if i%2 == 0 {
						go guest.read(true)
					}
					time.Sleep(time.Duration(i%7) * 10 * time.Millisecond)
					guest.conn.Close()
				}
				time.Sleep(pingEvery + tick)
				stay.mu.Lock()
				defer stay.mu.Unlock()
				got := slices.DeleteFunc(slices.Clone(stay.got), func(s string) bool { return s == "ping" })
				if !slices.Equal(got, want) {
					t.Errorf("%s got %q", id, got)
				}
			})
		}
		wg.Wait()
		if n := w.hub.Live(); n != cases {
			t.Errorf("%d sockets live", n)
		}
	})
}
