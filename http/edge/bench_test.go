package edge

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
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

// BenchmarkEndpointBehindFirewall is BenchmarkEndpoint with a hundred active rules of all
// types in front of it, and exact windows by address, user and country that each request is
// counted under. The difference is the price of the firewall.
func BenchmarkEndpointBehindFirewall(b *testing.B) {
	var rules []firewall.Rule
	add := func(t firewall.Type, kind firewall.EntityType, entities ...string) {
		r := firewall.Rule{AppID: "API", Label: fmt.Sprint("rule ", len(rules)), Type: t, EntityType: kind,
			Entities: entities, AllEntities: len(entities) == 0, AllResources: len(rules)%2 == 0,
			Resources: []string{"POST /asset/withdrawal-addresses"}, Status: firewall.Active,
			PeriodMs: new(int64(100)), Limit: new(int64(1_000_000_000))}
		r.Canonical(firewall.Resources{})
		storetest.Must(b, r.Check())
		rules = append(rules, r)
	}
	for i := range 32 {
		add(firewall.Blacklist, firewall.IP, fmt.Sprintf("203.0.%d.0/24", i), fmt.Sprintf("198.51.100.%d", i))
		add(firewall.Blacklist, firewall.UserID, fmt.Sprint("bad ", i))
		add(firewall.Whitelist, firewall.IP, fmt.Sprintf("10.%d.0.0/16", i))
	}
	add(firewall.Blacklist, firewall.CountryCode, "AQ")
	add(firewall.RateLimit, firewall.IP)
	add(firewall.RateLimit, firewall.UserID)
	add(firewall.RateLimit, firewall.CountryCode)
	for i := range rules[97:] { // exact ones
		rules[97+i].Limit, rules[97+i].PeriodMs = new(int64(4000)), new(int64(5))
	}
	snapshot := firewall.Compile(rules, "API", time.Now().UnixMilli())
	evaluator := &firewall.Evaluator{Rules: func() *firewall.Snapshot { return snapshot },
		Limiter: ratelimit.NewTable(nil), Now: time.Now}
	rulings := sync.Pool{New: func() any { return new(firewall.Ruling) }}
	opts := allow()
	opts.CountryOf = func(netip.Addr) string { return "TR" }
	opts.Guards[rest.User] = func(_ context.Context, r *Request) (rest.Caller, error) {
		who := r.Caller
		who.UserID = "u1"
		return who, nil
	}
	judged := 0
	opts.Firewall = func(ctx context.Context, r *Request, key string) error {
		c := firewall.Client{IP: r.Caller.IP, Country: r.Caller.Country}
		if evaluator.Needs(key).User {
			c.UserID = "u1"
		}
		k := rulings.Get().(*firewall.Ruling)
		defer rulings.Put(k)
		if err := evaluator.Check(ctx, key, c, k); err != nil {
			return err
		}
		if len(k.State) == 0 {
			b.Fatal("not counted")
		}
		judged++
		r.SetHeaderBytes("RateLimit-Policy", k.Policy)
		r.SetHeaderBytes("RateLimit", k.State)
		if k.Verdict != firewall.Allow {
			return fault.New(fault.RateLimited, "too many requests")
		}
		return nil
	}
	served := 0
	s := serve(b, opts, rest.Post("/asset/withdrawal-addresses", "", rest.User, func(_ context.Context, _ rest.Caller,
		in benchIn) (rest.Data[benchOut], error) {
		served++
		return rest.Data[benchOut]{Data: benchOut{"7", in}}, nil
	}))
	bench(b, s.App)
	if judged != b.N || served != b.N {
		b.Fatalf("judged %d and served %d of %d", judged, served, b.N)
	}
}
