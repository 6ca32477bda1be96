package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fasthttp/websocket"
)

func (s *service) result(w http.ResponseWriter, r *http.Request) {
	deadline := time.After(25 * time.Second)
	for {
		s.mu.Lock()
		s.results++
		outcome, ended, changed := s.outcome, s.ended, s.changed
		if s.results <= s.busyResults {
			s.mu.Unlock()
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "OVERLOADED", "Busy.", nil)
			return
		}
		if outcome != nil {
			s.answerOutcome(w)
		}
		s.mu.Unlock()
		switch {
		case outcome != nil:
			return
		case ended == "CHALLENGE_EXPIRED":
			refuse(w, http.StatusGone, ended, "The challenge has expired.", nil)
			return
		case ended != "":
			refuse(w, http.StatusConflict, ended, "The challenge is closed.", nil)
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-deadline:
			refuse(w, http.StatusConflict, "CHALLENGE_NOT_COMPLETED", "Not yet.", nil)
			return
		}
	}
}

// socket follows the script: "serve" replays and streams; "refuse" answers 401; a number closes with that code, at once
// or, after a plus sign, when the outcome exists but before it is sent.
func (s *service) socket(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	script := "serve"
	if len(s.sockets) > 0 {
		script = s.sockets[min(s.connected, len(s.sockets)-1)]
	}
	s.connected++
	s.mu.Unlock()
	offered := websocket.Subprotocols(r)
	if script == "refuse" || len(offered) != 2 || offered[0] != "p-auth" || strings.Count(offered[1], ".") != 2 {
		refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED", "p-auth is missing", nil)
		return
	}
	upgrader := websocket.Upgrader{Subprotocols: []string{"p-auth"}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.live = append(s.live, conn)
	s.mu.Unlock()
	code, whenDone := 0, strings.HasPrefix(script, "+")
	_, _ = fmt.Sscan(strings.TrimPrefix(script, "+"), &code)
	go s.stream(conn, code, whenDone)
	for { // reading answers pings and detects the client's close
		if _, _, err := conn.ReadMessage(); err != nil {
			_ = conn.Close()
			return
		}
	}
}

func (s *service) stream(conn *websocket.Conn, code int, whenDone bool) {
	for sent := 0; ; {
		s.mu.Lock()
		events, changed, done := s.events, s.changed, s.outcome != nil
		s.mu.Unlock()
		if code != 0 && (!whenDone || done) {
			hangUp(conn, code)
			return
		}
		for ; sent < len(events); sent++ {
			if conn.WriteJSON(events[sent]) != nil {
				return
			}
		}
		<-changed
	}
}

func hangUp(conn *websocket.Conn, code int) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}

func (s *service) authenticated(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("x-auth") == "" || s.loggedOut {
		refuse(w, http.StatusUnauthorized, "TOKEN_REVOKED", "The session has ended.", nil)
		return false
	}
	return true
}

func (s *service) listSessions(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.authenticated(w, r) {
		return
	}
	at := time.Now().UTC()
	answer(w, http.StatusOK, []any{
		map[string]any{"sessionId": "s-7Qm2vXk4Wd9T", "createdAt": at, "lastSeenAt": at, "ip": "127.0.0.1",
			"countryName": "", "deviceBrand": "", "deviceModel": "", "deviceDesc": "Chromium on Linux", "current": true},
		map[string]any{"sessionId": "s-2", "createdAt": at.Add(-26 * time.Hour), "lastSeenAt": at.Add(-3 * time.Hour),
			"ip": "203.0.113.9", "countryName": "Türkiye", "deviceBrand": "Pixel", "deviceModel": "9", "deviceDesc": "",
			"current": false}})
}

func (s *service) endSession(w http.ResponseWriter, r *http.Request) {
	in := read(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.authenticated(w, r) {
		return
	}
	s.loggedOut = in["sessionId"] == "s-7Qm2vXk4Wd9T"
	answer(w, http.StatusOK, map[string]any{"data": map[string]any{"ended": 1}})
}

func (s *service) logout(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.authenticated(w, r) {
		s.loggedOut = true
		answer(w, http.StatusOK, map[string]any{})
	}
}
