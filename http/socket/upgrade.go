package socket

import (
	"context"
	"encoding/base64"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/fault"
	"castellan/http/edge"
	"castellan/http/rest"
)

// Path is the path of the socket; its firewall resource is "GET /2fa".
const Path = "/2fa"

// Options of the socket's route.
type Options struct {
	Hub *Hub
	// Challenge adds the claims of a p-auth token to a caller.
	Challenge func(ctx context.Context, who rest.Caller, raw string) (rest.Caller, error)
	// Origins may open sockets from a browser; a request without an Origin does not come from a browser (D-SOCK-01).
	Origins []string
	// Loopback also allows pages that this server itself served on a loopback address, for development.
	Loopback bool
	// MaxSockets bounds the sockets of this node; 0 for no bound.
	MaxSockets int
}

// establishing bounds the time in which a caller is established.
const establishing = 5 * time.Second

// local is the key under which the handshake leaves the caller for the socket.
const local = "castellan.caller"

// subprotocol is the first subprotocol of a browser, which cannot set headers; the token follows as the second.
const subprotocol = "p-auth"

// Mount adds the route to a server. A bad token, a foreign origin and a request that is not a
// handshake are refused before the upgrade, with ordinary problems.
func Mount(s *edge.Server, o Options) {
	s.App.Server().KeepHijackedConns = true // the hub owns them from then on
	upgrade := websocket.New(func(c *websocket.Conn) {
		who := c.Locals(local).(rest.Caller)
		nc, early := bare(c.NetConn())
		o.Hub.admit(nc, who.ChallengeID, who.TokenExpires, early)
	}, websocket.Config{Subprotocols: []string{subprotocol}, ReadBufferSize: 128, WriteBufferSize: 128})

	s.Raw(fiber.MethodGet, Path, func(c *fiber.Ctx) error {
		r := edge.RequestOf(c)
		if origin := r.Header("Origin"); origin != "" && !o.admits(origin, r.Header("Host")) {
			return fault.New(fault.Forbidden, "this origin may not open sockets")
		}
		ctx, cancel := context.WithTimeout(context.Background(), establishing)
		who, err := o.Challenge(ctx, r.Caller, presented(r, c.Query("p-auth")))
		cancel()
		if err != nil {
			return err
		}
		if why := handshake(c); why != "" {
			r.SetHeader("Upgrade", "websocket")
			r.SetHeader("Sec-WebSocket-Version", "13")
			return fault.New(fault.InvalidField, "%s", why)
		}
		if o.MaxSockets > 0 && o.Hub.Live() >= int64(o.MaxSockets) {
			return fault.New(fault.Overloaded, "too many sockets are open").After(time.Second)
		}
		c.Locals(local, who)
		return upgrade(c)
	})
}

// handshake is the reason why a request is not a handshake (RFC 6455, section 4.2.1); "" if it
// is. The upgrade then cannot fail.
func handshake(c *fiber.Ctx) string {
	switch key, err := base64.StdEncoding.DecodeString(c.Get("Sec-WebSocket-Key")); {
	case c.Method() != fiber.MethodGet || !websocket.IsWebSocketUpgrade(c) || !c.Request().Header.IsHTTP11():
		return "this address is a WebSocket"
	case c.Get("Sec-WebSocket-Version") != "13":
		return "the version of the WebSocket protocol must be 13"
	case err != nil || len(key) != 16:
		return "the header sec-websocket-key is not 16 bytes in base64"
	}
	return ""
}

// presented finds the token: the header, the query, or the subprotocol after
// "p-auth".
func presented(r *edge.Request, query string) string {
	if h := r.Header("p-auth"); h != "" {
		return h
	}
	if query != "" {
		return query
	}
	first, second, _ := strings.Cut(r.Header("Sec-WebSocket-Protocol"), ",")
	if strings.TrimSpace(first) != subprotocol {
		return ""
	}
	return strings.TrimSpace(second)
}

func (o Options) admits(origin, host string) bool {
	if slices.Contains(o.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return o.Loopback && err == nil && u.Host == host && edge.Loopback(host)
}

// bare takes the connection out of the HTTP server, which frees the server's memory, and
// returns the bytes that the client sent after its handshake.
func bare(nc net.Conn) (_ net.Conn, early []byte) {
	if hijacked, ok := nc.(interface{ UnsafeConn() net.Conn }); ok {
		early = buffered(nc)
		nc = hijacked.UnsafeConn()
	}
	nc.SetDeadline(time.Time{})
	return nc, early
}

// buffered reads the server's buffer: with a deadline in the past, a read returns the buffered
// bytes and nothing else.
func buffered(c net.Conn) (early []byte) {
	c.SetReadDeadline(time.Unix(1, 0))
	buf := make([]byte, maxFrame)
	for {
		n, err := c.Read(buf)
		early = append(early, buf[:n]...)
		if err != nil || n == 0 {
			return early
		}
	}
}
