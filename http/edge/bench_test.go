package edge

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

// loop feeds one request over and over to a server, as one keep-alive
// connection would, and throws the answers away.
type loop struct {
	request []byte
	at, n   int
}

func (l *loop) Read(b []byte) (int, error) {
	if l.at == len(l.request) {
		if l.n--; l.n <= 0 {
			return 0, net.ErrClosed
		}
		l.at = 0
	}
	n := copy(b, l.request[l.at:])
	l.at += n
	return n, nil
}
func (*loop) Write(b []byte) (int, error)      { return len(b), nil }
func (*loop) Close() error                     { return nil }
func (*loop) LocalAddr() net.Addr              { return loopAddr }
func (*loop) RemoteAddr() net.Addr             { return loopAddr }
func (*loop) SetDeadline(time.Time) error      { return nil }
func (*loop) SetReadDeadline(time.Time) error  { return nil }
func (*loop) SetWriteDeadline(time.Time) error { return nil }

var loopAddr = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4000}

const benchBody = `{"currencyCode":"BTC","networkCode":"BTC","address":` +
	`"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq","name":"cold"}`

var benchRequest = []byte("POST /asset/withdrawal-addresses HTTP/1.1\r\nHost: id.example.com\r\nUser-Agent: " +
	"bench/1.0\r\nAccept: */*\r\n" +
	"Accept-Language: tr-TR,tr;q=0.9\r\nX-Auth: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" +
	"Content-Type: application/json\r\n" +
	"Device-Brand: Acme\r\nDevice-Model: One\r\nContent-Length: 111\r\n\r\n" + benchBody)

type benchIn struct {
	Currency string `json:"currencyCode"`
	Network  string `json:"networkCode"`
	Address  string `json:"address"`
	Name     string `json:"name"`
}

type benchOut struct {
	ID string `json:"id"`
	benchIn
}

func bench(b *testing.B, app *fiber.App) {
	if want := bytes.Index(benchRequest, []byte("\r\n\r\n")) + 4 + len(benchBody); want != len(benchRequest) ||
		len(benchBody) != 111 {
		b.Fatalf("the request's length is wrong: %d", len(benchBody))
	}
	app.Handler() // builds the router's tree
	b.ReportAllocs()
	b.ResetTimer()
	_ = app.Server().ServeConn(&loop{request: benchRequest, n: b.N})
}

// BenchmarkEndpoint is one whole request through the kit: edge, guard, strict
// JSON, binding, handler, answer.
func BenchmarkEndpoint(b *testing.B) {
	opts := allow()
	served := 0
	opts.Guards[rest.User] = func(_ context.Context, r *Request) (rest.Caller, error) {
		who := r.Caller
		who.UserID = "u1"
		return who, nil
	}
	s := serve(b, opts, rest.Post("/asset/withdrawal-addresses", "", rest.User, func(_ context.Context, _ rest.Caller,
		in benchIn) (rest.Data[benchOut], error) {
		served++
		return rest.Data[benchOut]{Data: benchOut{"7", in}}, nil
	}))
	bench(b, s.App)
	if served != b.N {
		b.Fatalf("served %d of %d", served, b.N)
	}
}
