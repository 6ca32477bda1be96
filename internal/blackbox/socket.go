package blackbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// Socket is an open /2fa socket.
type Socket struct {
	t    testing.TB
	conn net.Conn
	r    io.Reader
}

// The places where a client may put its token (D-SOCK-01).
const (
	InHeader = "header"
	InQuery  = "query"
)

// Socket opens the socket of a flow with the token in a header.
func (c Client) Socket(t testing.TB, f Flow) *Socket {
	t.Helper()
	s, err := c.TrySocket(f, InHeader)
	if err != nil {
		t.Fatalf("open socket: %v", err)
	}
	s.t = t
	t.Cleanup(func() { s.conn.Close() })
	return s
}

// TrySocket opens the socket of a flow with the token in a place, without a test; the caller closes it.
func (c Client) TrySocket(f Flow, place string) (*Socket, error) {
	path, d := "/2fa", ws.Dialer{}
	switch place {
	case InHeader:
		d.Header = ws.HandshakeHeaderHTTP(http.Header{"P-Auth": {f.PAuth}})
	case InQuery:
		path += "?p-auth=" + f.PAuth
	}
	return c.dial(path, d)
}

func (c Client) dial(path string, d ws.Dialer) (*Socket, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, early, _, err := d.Dial(ctx, "ws"+strings.TrimPrefix(c.URL, "http")+path)
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: conn, r: conn}
	if early != nil {
		s.r = bufio.NewReader(io.MultiReader(early, conn))
	}
	return s, nil
}

// Close closes the connection without a close frame.
func (s *Socket) Close() { s.conn.Close() }

// Frame is a frame received on a socket: a message, or the code of a close frame.
type Frame struct {
	Text  []byte
	Close ws.StatusCode
}

// Message is a text frame of the socket (section 6 of the interface).
type Message struct {
	ChallengeID string            `json:"challengeId"`
	Action      string            `json:"action"`
	Event       string            `json:"event"`
	Data        []json.RawMessage `json:"data"`
}

// maxMessage bounds a frame that a client accepts.
const maxMessage = 64 << 10

// TryNext reads the next message or close frame. It answers nothing and skips pings.
func (s *Socket) TryNext(patience time.Duration) (Frame, error) {
	s.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		h, err := ws.ReadHeader(s.r)
		if err != nil {
			return Frame{}, err
		}
		if !h.Fin || h.Masked || h.Rsv != 0 || h.Length > maxMessage {
			return Frame{}, fmt.Errorf("a frame that no server sends: %+v", h)
		}
		payload := make([]byte, h.Length)
		if _, err := io.ReadFull(s.r, payload); err != nil {
			return Frame{}, err
		}
		switch h.OpCode {
		case ws.OpText:
			return Frame{Text: payload}, nil
		case ws.OpClose:
			code, _ := ws.ParseCloseFrameData(payload)
			return Frame{Close: code}, nil
		}
	}
}

// Next reads the next message, which must have exactly the four keys and one object as data.
func (s *Socket) Next() (m Message, raw []byte) {
	s.t.Helper()
	f, err := s.TryNext(patience)
	if err != nil || f.Text == nil {
		s.t.Fatalf("no message: close code %d, %v", f.Close, err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(f.Text, &object); err != nil {
		s.t.Fatalf("%s: %v", f.Text, err)
	}
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, []string{"action", "challengeId", "data", "event"}) {
		s.t.Fatalf("a message of the keys %v: %s", got, f.Text)
	}
	if err := json.Unmarshal(f.Text, &m); err != nil || len(m.Data) != 1 {
		s.t.Fatalf("data is not an array of one object: %s", f.Text)
	}
	return m, f.Text
}

// Expect reads the next message, which must be this event of the flow, and returns its data.
func (s *Socket) Expect(f Flow, action, event string) json.RawMessage {
	s.t.Helper()
	m, raw := s.Next()
	if m.ChallengeID != f.ChallengeID || m.Action != action || m.Event != event {
		s.t.Fatalf("got %s, want %s of %s", raw, event, action)
	}
	return m.Data[0]
}

// ExpectClose reads the close frame that must come next.
func (s *Socket) ExpectClose(code ws.StatusCode, within time.Duration) {
	s.t.Helper()
	f, err := s.TryNext(within)
	if err != nil || f.Close != code {
		s.t.Fatalf("got close code %d, text %q, %v; want close code %d", f.Close, f.Text, err, code)
	}
}

// Send writes bytes unchanged: frames that no correct client sends.
func (s *Socket) Send(parts ...[]byte) {
	s.t.Helper()
	for _, part := range parts {
		if _, err := s.conn.Write(part); err != nil {
			s.t.Fatalf("send: %v", err)
		}
	}
}

// Closed fails the test unless the other side closes, with a frame or without, before anything else arrives.
func (s *Socket) Closed(within time.Duration) {
	s.t.Helper()
	f, err := s.TryNext(within)
	var e net.Error
	if f.Text != nil || errors.As(err, &e) && e.Timeout() {
		s.t.Fatalf("still open: %q, %v", f.Text, err)
	}
}

// Silent fails the test if anything arrives within a while.
func (s *Socket) Silent(d time.Duration) {
	s.t.Helper()
	if f, err := s.TryNext(d); err == nil {
		s.t.Fatalf("got %q, close code %d, want nothing", f.Text, f.Close)
	}
}
