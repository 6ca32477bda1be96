package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// The events of the socket (section 6 of the interface).
const (
	MethodComplete = "METHOD_COMPLETE"
	ActionComplete = "ACTION_COMPLETE"
)

// Event is a message of the socket.
type Event struct {
	ChallengeID string      `json:"challengeId"`
	Action      string      `json:"action"`
	Event       string      `json:"event"` // MethodComplete or ActionComplete
	Data        []EventData `json:"data"`
}

// EventData holds what one of the two events tells.
type EventData struct {
	MethodID string `json:"methodId"`
	Method   string `json:"method"`

	Success bool              `json:"success"`
	Data    json.RawMessage   `json:"data"`
	Headers map[string]string `json:"headers"` // x-auth, ot-auth
}

// Socket tells what becomes of a flow. A socket that fails is replaced by Flow.Wait.
type Socket struct {
	conn net.Conn
	rw   io.ReadWriter
}

// Socket opens the socket of a flow. The caller closes it.
func (f *Flow) Socket(ctx context.Context) (*Socket, error) {
	d := ws.Dialer{Header: ws.HandshakeHeaderHTTP(http.Header{"P-Auth": {f.PAuth}})}
	conn, early, _, err := d.Dial(ctx, "ws"+strings.TrimPrefix(f.client.URL, "http")+"/2fa")
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: conn, rw: conn}
	if early != nil { // frames that came with the handshake
		s.rw = struct {
			io.Reader
			io.Writer
		}{early, conn}
	}
	return s, nil
}

// Next waits for the next event. The error of a socket that the service closed is a
// wsutil.ClosedError with its code (D-SOCK-06), that of an ended ctx its own.
func (s *Socket) Next(ctx context.Context) (e Event, err error) {
	stop := context.AfterFunc(ctx, func() { s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	text, err := wsutil.ReadServerText(s.rw)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return e, err
	}
	return e, json.Unmarshal(text, &e)
}

// Close ends the connection.
func (s *Socket) Close() error { return s.conn.Close() }
