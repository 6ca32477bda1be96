package socket

import (
	"encoding/json"
	"slices"

	"github.com/gobwas/ws"

	"castellan/domain/challenge"
	"castellan/domain/fault"
	"castellan/domain/stepup"
)

// Receive hands news to the sockets of its challenge. It does not block.
func (h *Hub) Receive(n stepup.News) {
	if lacking := h.deliver(n); !lacking {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[n.ChallengeID]; r != nil {
		h.ask(r)
	}
}

// deliver sends each socket the events that follow those it was sent, one
// event at a time: the first is on its way before the next is written. It
// reports whether some socket lacks an event in between.
func (h *Hub) deliver(n stepup.News) (lacking bool) {
	for _, e := range n.Events {
		if h.wanted(n.ChallengeID, e.Number) {
			lacking = h.pass(n.ChallengeID, e.Number, h.frame(n, e)) || lacking
		}
	}
	if n.Gone {
		for _, c := range h.sockets(n.ChallengeID) {
			c.close(closeGone)
		}
	}
	return lacking
}

func (h *Hub) sockets(id string) []*conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[id]; r != nil {
		return slices.Clone(r.conns)
	}
	return nil
}

// wanted reports whether some socket was not sent an event yet.
func (h *Hub) wanted(id string, number int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[id]
	return r != nil && len(r.conns) > 0 && r.seen() < number
}

// pass sends one event to the sockets whose next it is, and reports whether
// there are some that lack one before it.
func (h *Hub) pass(id string, number int, f frame) (lacking bool) {
	var flush [8]*conn // as many as watch one challenge, and then some
	due := flush[:0]
	h.mu.Lock()
	if r := h.rooms[id]; r != nil {
		for _, c := range r.conns {
			if int(c.seen)+1 < number {
				lacking = true
			}
			if int(c.seen)+1 != number {
				continue
			}
			c.seen++
			if c.enqueue(f.bytes, f.last) {
				due = append(due, c)
			}
		}
	}
	h.mu.Unlock()
	for _, c := range due { // the system calls come after the lock
		c.flush()
	}
	return lacking
}

// frame is an event as the client gets it, or the close frame in its place.
type frame struct {
	bytes []byte
	last  bool
}

func ending(code closeCode) frame { return frame{closeFrame(code, reasons[code]), true} }

// message is the shape of section 6: exactly these four keys.
type message struct {
	ChallengeID string `json:"challengeId"`
	Action      string `json:"action"`
	Event       string `json:"event"`
	Data        [1]any `json:"data"` // D-SOCK-02
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

func (h *Hub) frame(n stepup.News, e stepup.Event) frame {
	m := message{ChallengeID: n.ChallengeID, Action: n.Action, Event: "METHOD_COMPLETE", Data: [1]any{methodComplete{e.MethodID, string(e.Method)}}}
	if e.Outcome != nil {
		r, err := h.open(n.ChallengeID, e.Outcome)
		if fault.CodeOf(err) == fault.ChallengeClosed { // its session has ended
			return ending(closeGone)
		}
		if err != nil {
			h.log.Error("outcome could not be read for a socket", "challenge", n.ChallengeID, "err", err)
			return ending(closeInternal)
		}
		m.Event, m.Data = "ACTION_COMPLETE", [1]any{outcome(r)}
	}
	b, err := json.Marshal(m)
	if err != nil {
		h.log.Error("socket event could not be written", "challenge", n.ChallengeID, "err", err)
		return ending(closeInternal)
	}
	return frame{ws.MustCompileFrame(ws.NewTextFrame(b)), false}
}

// outcome always has both objects (D-SOCK-03, 08).
func outcome(r challenge.Result) actionComplete {
	a := actionComplete{Success: r.Success, Data: r.Data, Headers: r.Headers}
	if len(a.Data) == 0 {
		a.Data = json.RawMessage("{}")
	}
	if a.Headers == nil {
		a.Headers = map[string]string{}
	}
	return a
}
