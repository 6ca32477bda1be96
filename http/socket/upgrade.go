package socket

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"

	"castellan/domain/fault"
	"castellan/http/rest"
)

// Path is where the socket lives; as a resource of the firewall it is
// "GET /2fa".
const Path = "/2fa"

// Options of the socket's route.
type Options struct {
	Hub *Hub
	// Challenge adds to a caller what a p-auth token says.
	Challenge func(who rest.Caller, raw string) (rest.Caller, error)
	// Origins may open sockets from a browser; a request without an Origin is
	// no browser's (D-SOCK-01).
	Origins []string
	// Loopback also admits a page that this server itself served on a loopback
	// address, for development.
	Loopback bool
	// MaxSockets bounds the sockets of this node; 0 for no bound.
	MaxSockets int
}

// local is the key under which the handshake leaves the caller for the socket.
const local = "castellan.caller"

// Mount adds the route to a server. A bad token, a foreign origin and what is
// no handshake are refused before the upgrade, as problems like any other.
func Mount(s *rest.Server, o Options) {
	s.App.Server().KeepHijackedConns = true // the hub owns them from then on
	upgrade := websocket.New(func(c *websocket.Conn) {
		who := c.Locals(local).(rest.Caller)
		take(o.Hub, c, who)
	}, websocket.Config{Subprotocols: []string{"p-auth"}, ReadBufferSize: 128, WriteBufferSize: 128})

	s.Raw(fiber.MethodGet, Path, func(c *fiber.Ctx) error {
		r := rest.RequestOf(c)
		if origin := r.Header("Origin"); origin != "" && !o.admits(origin, r.Header("Host")) {
			return fault.New(fault.Forbidden, "this origin may not open sockets")
		}
		who, err := o.Challenge(r.Caller, presented(r, c.Query("p-auth")))
		if err != nil {
			return err
		}
		if !websocket.IsWebSocketUpgrade(c) {
			r.SetHeader("Upgrade", "websocket")
			return fault.New(fault.InvalidField, "this address is a WebSocket")
		}
		if o.MaxSockets > 0 && o.Hub.Live() >= int64(o.MaxSockets) {
			return fault.New(fault.Overloaded, "too many sockets are open").After(time.Second)
		}
		c.Locals(local, who)
		return upgrade(c)
	})
}

// presented finds the token: the header, the query, or the subprotocol after
// "p-auth", which is what a browser can set.
func presented(r *rest.Request, query string) string {
	if h := r.Header("p-auth"); h != "" {
		return h
	}
	if query != "" {
		return strings.Clone(query)
	}
	parts := strings.Split(r.Header("Sec-WebSocket-Protocol"), ",")
	if len(parts) == 2 && strings.TrimSpace(parts[0]) == "p-auth" {
		return strings.TrimSpace(parts[1])
	}
	return ""
}

func (o Options) admits(origin, host string) bool {
	if slices.Contains(o.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if !o.Loopback || err != nil || u.Host != host {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// take moves the connection out of the HTTP server and gives it a goroutine of
// its own, small again; the request's memory is free when this returns.
func take(h *Hub, c *websocket.Conn, who rest.Caller) {
	nc := c.NetConn()
	var early []byte
	if hijacked, ok := nc.(interface{ UnsafeConn() net.Conn }); ok {
		early = drain(nc)
		nc = hijacked.UnsafeConn()
	}
	if len(early) > 0 { // frames that came together with the handshake
		nc = &ahead{Conn: nc, early: early}
	}
	now := time.Now()
	nc.SetDeadline(time.Time{})
	nc.SetReadDeadline(now.Add(readPatience))
	s := &conn{net: nc, expires: who.TokenExpires, ping: now.Add(pingEvery)}
	h.live.Add(1)
	go serve(h, s, who.ChallengeID)
}

func serve(h *Hub, c *conn, challengeID string) {
	defer h.live.Add(-1)
	h.join(challengeID, c)
	c.read()
	c.net.Close()
	h.leave(challengeID, c)
}

// drain reads what the server's buffer holds already: with a deadline in the
// past a read gives buffered bytes and nothing else.
func drain(c net.Conn) (early []byte) {
	c.SetReadDeadline(time.Unix(1, 0))
	var buf [2 * maxFrame]byte
	for {
		n, err := c.Read(buf[:])
		early = append(early, buf[:n]...)
		if err != nil || n == 0 {
			return early
		}
	}
}

// ahead is a connection some of whose bytes were read already.
type ahead struct {
	net.Conn
	early []byte
}

func (a *ahead) Read(p []byte) (int, error) {
	if len(a.early) > 0 {
		n := copy(p, a.early)
		a.early = a.early[n:]
		return n, nil
	}
	return a.Conn.Read(p)
}
