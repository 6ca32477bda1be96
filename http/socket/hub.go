// Package socket serves /2fa (section 6, decisions D-SOCK-…): the WebSocket on
// which a web client hears that a method was completed and what became of the
// action.
//
// The one idea: an idle socket costs a goroutine that waits to read and a
// small struct. Its upgrade is contrib/websocket's; then the connection is
// taken out of the HTTP server, so that neither the request's context nor its
// buffers stay alive with it, frames are read and written by gobwas/ws without
// buffers, one loop pings and expires all sockets, and a writer exists only
// while there is something to write.
//
// Start reading at Hub, then conn.go and upgrade.go.
package socket

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/challenge"
	"castellan/domain/stepup"
)

// Times of a socket's life (D-SOCK-01).
const (
	pingEvery    = 20 * time.Second
	readPatience = 45 * time.Second
	writeTime    = 5 * time.Second
	tick         = 250 * time.Millisecond
	subscribing  = 10 * time.Second
)

// Hub holds the sockets of this node, by challenge.
type Hub struct {
	feed stepup.Feed
	open func(challengeID string, sealed []byte) (challenge.Result, error)
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	rooms  map[string]*room
	closed bool
	live   atomic.Int64
	stop   chan struct{}
	done   sync.WaitGroup
}

// room is the sockets of one challenge.
type room struct {
	id      string
	conns   []*conn
	asking  bool // a subscription is under way
	again   bool // ask once more after it
	nextAsk time.Time
}

// NewHub returns a hub; its Receive must be given the node's news.
func NewHub(feed stepup.Feed, open func(string, []byte) (challenge.Result, error), now func() time.Time, log *slog.Logger) *Hub {
	h := &Hub{feed: feed, open: open, now: now, log: log, rooms: map[string]*room{}, stop: make(chan struct{})}
	h.done.Go(h.keep)
	return h
}

// Live is the number of open sockets.
func (h *Hub) Live() int64 { return h.live.Load() }

// Close tells every socket that the node goes away and waits until they know,
// or until ctx ends.
func (h *Hub) Close(ctx context.Context) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.closed = true
	for _, r := range h.rooms {
		for _, c := range r.conns {
			c.close(closeRestart)
		}
	}
	h.mu.Unlock()
	close(h.stop)
	h.done.Wait()
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for h.live.Load() > 0 && ctx.Err() == nil {
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// join adds a socket and asks for what happened so far.
func (h *Hub) join(id string, c *conn) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		c.close(closeRestart)
		return
	}
	r := h.rooms[id]
	if r == nil {
		r = &room{id: id}
		h.rooms[id] = r
	}
	r.conns = append(r.conns, c)
	h.mu.Unlock()
	h.ask(r)
}

// leave forgets a socket.
func (h *Hub) leave(id string, c *conn) {
	h.mu.Lock()
	r := h.rooms[id]
	if r == nil {
		h.mu.Unlock()
		return
	}
	for i, o := range r.conns {
		if o == c {
			r.conns = append(r.conns[:i:i], r.conns[i+1:]...)
			break
		}
	}
	closed := h.closed
	h.mu.Unlock()
	if !closed {
		h.ask(r) // also for an empty room, which goes once the owner knows
	}
}

// ask subscribes for a room's sockets: at joining and leaving, at every ping,
// and when an event was missed. One question is under way at a time.
func (h *Hub) ask(r *room) {
	h.mu.Lock()
	if r.asking {
		r.again = true
		h.mu.Unlock()
		return
	}
	r.asking, r.again = true, false
	r.nextAsk = h.now().Add(pingEvery)
	sockets, after := len(r.conns), h.seen(r)
	h.mu.Unlock()
	go h.subscribe(r, sockets, after)
}

// seen is the last event that every socket of the room has got.
func (h *Hub) seen(r *room) int {
	after := -1
	for _, c := range r.conns {
		if n := int(c.seen.Load()); after < 0 || n < after {
			after = n
		}
	}
	return max(after, 0)
}

func (h *Hub) subscribe(r *room, sockets, after int) {
	ctx, cancel := context.WithTimeout(context.Background(), subscribing)
	refused, news, err := h.feed.Subscribe(ctx, r.id, sockets, after)
	cancel()
	h.mu.Lock()
	r.asking = false
	again := r.again
	for ; err == nil && refused > 0 && len(r.conns) > 0; refused-- { // the latest are the ones too many
		last := r.conns[len(r.conns)-1]
		r.conns = r.conns[:len(r.conns)-1]
		last.close(closeTooMany)
	}
	if err != nil {
		r.nextAsk = h.now().Add(time.Second)
	}
	if len(r.conns) == 0 && !again && h.rooms[r.id] == r {
		delete(h.rooms, r.id)
	}
	h.mu.Unlock()
	if err == nil {
		h.Receive(news)
	}
	if again {
		h.ask(r)
	}
}

// Receive hands news to the sockets of its challenge. It does not block.
func (h *Hub) Receive(n stepup.News) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[n.ChallengeID]
	if r == nil {
		return
	}
	for _, e := range n.Events {
		frame, code := h.frame(n, e)
		for _, c := range r.conns {
			switch seen := int(c.seen.Load()); {
			case code != 0:
				c.close(code)
			case e.Number == seen+1:
				c.seen.Store(int32(e.Number))
				c.send(frame)
			case e.Number > seen+1: // one was missed, or the replay is not here yet
				r.nextAsk = h.now()
			}
		}
	}
	if n.Gone {
		for _, c := range r.conns {
			c.close(closeGone)
		}
	}
}

// message is the shape of section 6: exactly these four keys.
type message struct {
	ChallengeID string `json:"challengeId"`
	Action      string `json:"action"`
	Event       string `json:"event"`
	Data        [1]any `json:"data"`
}

type methodComplete struct {
	MethodID string `json:"methodId"`
	Method   string `json:"method"`
}

type actionComplete struct {
	Success bool              `json:"success"`
	Data    json.RawMessage   `json:"data"`
	Headers map[string]string `json:"headers"`
}

// frame writes an event as the client gets it, or names the close code that
// stands in its place.
func (h *Hub) frame(n stepup.News, e stepup.Event) ([]byte, closeCode) {
	m := message{ChallengeID: n.ChallengeID, Action: n.Action, Event: "METHOD_COMPLETE", Data: [1]any{methodComplete{e.MethodID, string(e.Method)}}}
	if e.Outcome != nil {
		r, err := h.open(n.ChallengeID, e.Outcome)
		if err != nil { // its session has ended, or it cannot be read
			return nil, closeGone
		}
		a := actionComplete{Success: r.Success, Data: r.Data, Headers: r.Headers}
		if len(a.Data) == 0 {
			a.Data = json.RawMessage("{}") // D-SOCK-08
		}
		if a.Headers == nil {
			a.Headers = map[string]string{}
		}
		m.Event, m.Data = "ACTION_COMPLETE", [1]any{a}
	}
	b, err := json.Marshal(m)
	if err != nil {
		h.log.Error("socket event could not be written", "challenge", n.ChallengeID, "err", err)
		return nil, closeInternal
	}
	return b, 0
}

// keep pings, expires and asks again, for all sockets in one loop.
func (h *Hub) keep() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-t.C:
		}
		now := h.now()
		var due []*room
		h.mu.Lock()
		for _, r := range h.rooms {
			for _, c := range r.conns {
				c.tend(now)
			}
			if !now.Before(r.nextAsk) && !r.asking {
				due = append(due, r)
			}
		}
		h.mu.Unlock()
		for _, r := range due {
			h.ask(r)
		}
	}
}
