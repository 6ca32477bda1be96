package socket

import (
	"encoding/json"

	"github.com/gobwas/ws"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/stepup"
)

// Receive hands news to the sockets of its challenge. It does not block.
func (h *Hub) Receive(n stepup.News) {
	if r := h.deliver(n); r != nil {
		h.mu.Lock()
		h.ask(r)
		h.mu.Unlock()
	}
}

// deliver sends each socket the events that follow those it was sent. It
// returns the room when one of its sockets lacks an event in between.
func (h *Hub) deliver(n stepup.News) (lacking *room) {
	frames, watched := h.frames(n)
	if !watched {
		return nil
	}
	var flush []*conn
	h.mu.Lock()
	if r := h.rooms[n.ChallengeID]; r != nil {
		for _, c := range r.conns {
			wrote, code := false, closeCode(0)
			for i, e := range n.Events {
				if e.Number <= int(c.seen) {
					continue
				}
				if e.Number > int(c.seen)+1 || frames[i].isZero() {
					lacking = r
					break
				}
				c.seen++
				if code = frames[i].code; code != 0 {
					break
				}
				wrote = c.enqueue(frames[i].text, false) || wrote
			}
			if code == 0 && n.Gone {
				code = closeGone
			}
			if code != 0 {
				wrote = c.enqueue(closeFrame(code, reasons[code]), true) || wrote
			}
			if wrote {
				flush = append(flush, c)
			}
		}
	}
	h.mu.Unlock()
	for _, c := range flush { // the system calls come after the lock
		c.flush()
	}
	return lacking
}

// frame is an event in the client's format, or a close code in its place.
type frame struct {
	text []byte
	code closeCode
}

// isZero reports whether the frame was not encoded, because no socket needed it.
func (f frame) isZero() bool { return f.text == nil && f.code == 0 }

// frames writes the events of n that some socket was not sent yet.
func (h *Hub) frames(n stepup.News) (all []frame, watched bool) {
	h.mu.Lock()
	r := h.rooms[n.ChallengeID]
	watched = r != nil && len(r.conns) > 0
	seen := 0
	if watched {
		seen = r.seen()
	}
	h.mu.Unlock()
	if !watched {
		return nil, false
	}
	all = make([]frame, len(n.Events))
	for i, e := range n.Events {
		if e.Number > seen {
			all[i] = h.frame(n, e)
		}
	}
	return all, true
}

// message is the shape of section 6 of the interface: exactly these four keys.
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
	m := message{ChallengeID: n.ChallengeID, Action: n.Action, Event: "METHOD_COMPLETE",
		Data: [1]any{methodComplete{e.MethodID, string(e.Method)}}}
	if e.Outcome != nil {
		r, err := h.open(n.ChallengeID, e.Outcome)
		if fault.CodeOf(err) == fault.ChallengeClosed { // its session has ended
			return frame{code: closeGone}
		}
		if err != nil {
			h.log.Error("outcome could not be read for a socket", "challenge", n.ChallengeID, "err", err)
			return frame{code: closeInternal}
		}
		m.Event, m.Data = "ACTION_COMPLETE", [1]any{outcome(r)}
	}
	b, err := json.Marshal(m)
	if err != nil {
		h.log.Error("socket event could not be written", "challenge", n.ChallengeID, "err", err)
		return frame{code: closeInternal}
	}
	return frame{text: ws.MustCompileFrame(ws.NewTextFrame(b))}
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
