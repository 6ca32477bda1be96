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

// EventData holds the data of either event.
type EventData struct {
	MethodID string `json:"methodId"`
	Method   string `json:"method"`

	Success bool              `json:"success"`
	Data    json.RawMessage   `json:"data"`
	Headers map[string]string `json:"headers"` // x-auth, ot-auth
}

// Socket receives the events of a flow. If a socket fails, use Flow.Wait instead.
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
	if early != nil { // frames that arrived with the handshake
		s.rw = struct {
			io.Reader
			io.Writer
		}{early, conn}
	}
	return s, nil
}

// Next waits for the next event. If the service closed the socket, the error is a wsutil.ClosedError with its code
// (D-SOCK-06); if ctx ended, it is that of ctx.
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

// Close closes the connection.
func (s *Socket) Close() error { return s.conn.Close() }
