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

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
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

// short is the fact that identifies an event.
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
	storetest.Same(c.t, c.got, what)
}
