package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"castellan/cluster"
	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/guard/firewall"
	"castellan/internal/porttest"
	"castellan/persistence/guard"
)

// limits measures the cost of exact limits: a limit of N admits N on any number of nodes. The requests count under a
// rate limit, on one node, and spread over three that count together. With many addresses each is rarely used, so that
// nearly every request is part of a query to its owner. A few addresses are used constantly, so that reservations admit
// most requests.
func limits(b *bench) {
	p := b.postgresql(cheap("CASTELLAN_HTTP_TRUSTED_PROXIES=127.0.0.1"))
	defer p.bare.close()
	p.limit()
	floor := need(start(roleFiber, nil))
	defer floor.stop()
	one := need(start(roleService, p.environ))
	defer one.stop()
	three := need(b.cluster(p.environ, 3))
	for _, s := range three {
		defer s.stop()
	}

	var apart []*server // the same three, each counting separately
	for range 3 {
		s := need(start(roleService, p.environ))
		defer s.stop()
		apart = append(apart, s)
	}

	type kind struct {
		addresses             int
		alone, each, together series
	}
	bare, kinds := series{}, []kind{{people, series{}, series{}, series{}}, {8, series{}, series{}, series{}}}
	warm, span := b.long(2*time.Second), b.long(6*time.Second)
	for range b.rounds {
		b.await()
		measureFloor(floor, b.clients, b.long(2*time.Second), bare)
		for _, k := range kinds {
			for _, round := range []struct {
				name    string
				servers []*server
				of      series
			}{{"one", []*server{one}, k.alone}, {"apart", apart, k.each}, {"three", three, k.together}} {
				name := fmt.Sprintf("limits-%s-%d", round.name, k.addresses)
				w := need(b.profiled(round.servers[0], name, func() (window, error) {
					return b.limited(round.servers, k.addresses, warm, span)
				}))
				round.of.add("rate", w.rate())
				round.of.add("cpu", w.each(w.server)*1e3)
			}
			n := len(k.alone["cpu"]) - 1
			k.together.add("ratio", k.together["cpu"][n]/k.alone["cpu"][n])
		}
	}
	r := &b.report
	r.begin("GET of the public keys under one large rate limit by address, %d clients, PostgreSQL", b.clients)
	r.line("bare Fiber handler: CPU per request", "µs", bare["cpu"], bar{})
	for _, k := range kinds {
		of := fmt.Sprintf("%d addresses: ", k.addresses)
		r.line(of+"one node", "/s", k.alone["rate"], bar{})
		r.line(of+"one node: CPU per request", "µs", k.alone["cpu"], bar{})
		r.line(of+"three nodes, each by itself: CPU of all per request", "µs", k.each["cpu"], bar{})
		r.line(of+"three nodes", "/s", k.together["rate"], bar{})
		r.line(of+"three nodes: CPU of all per request", "µs", k.together["cpu"], bar{})
		r.line(of+"three nodes: CPU, in that of one node", "×", k.together["ratio"], atMost(2))
	}
}

const keysPath = "/.well-known/jwks.json"

// limit migrates the database and stores a rule that counts but refuses no request at the rates of this bench.
func (p *place) limit() {
	ctx := context.Background()
	cfg := need(config.Load("", append(environ(), p.environ...)))
	v := need(app.Open(ctx, cfg))
	defer v.Close()
	must(guard.NewFirewall(v.DB).Add(ctx, firewall.Rule{AppID: firewall.DefaultApp, Label: "keys-ip",
		Type: firewall.RateLimit, EntityType: firewall.IP, PeriodMs: new(int64(10_000)), Limit: new(int64(1_000_000)),
		AllEntities: true, Resources: []string{"GET " + keysPath}, Status: firewall.Active}))
}

// cluster starts the nodes of a cluster, with the settings of a place. All codes go to the first one's.
func (b *bench) cluster(environ []string, n int) (all []*server, err error) {
	keys := filepath.Join(b.dir, "cluster-keys")
	if err := cluster.InitKeys(keys, ""); err != nil {
		return nil, err
	}
	var seed string
	for range n {
		gossip, err := porttest.Find()
		if err != nil {
			return all, err
		}
		actors, err := porttest.Find()
		if err != nil {
			return all, err
		}
		s, err := start(roleService, append(slices.Clone(environ), "CASTELLAN_CLUSTER_GOSSIP_ADDR="+gossip,
			"CASTELLAN_CLUSTER_ACTOR_ADDR="+actors, "CASTELLAN_CLUSTER_JOIN="+seed, "CASTELLAN_CLUSTER_TLS_DIR="+keys))
		if err != nil {
			return all, err
		}
		if all = append(all, s); len(all) > 1 {
			s.codes.passTo(all[0].codes)
			s.codes = all[0].codes
		}
		seed = strings.TrimPrefix(seed+","+gossip, ",")
	}
	time.Sleep(time.Second) // until all have the last one
	return all, nil
}

// limited is load of counted requests, each client at one of the servers.
func (b *bench) limited(servers []*server, addresses int, warm, span time.Duration) (window, error) {
	return load(b.clients, warm, span, meter{servers: servers}, dialled(servers, func(c *client, i int) error {
		i %= addresses
		return c.expect(200, "GET", keysPath, fmt.Sprintf("X-Forwarded-For: 10.1.%d.%d", i/250, i%250), "")
	}))
}

// serviceLimits measures the limits of services beside a GET of /health/live: POST /limit, and Envoy's rate limit
// service over TLS (D-WAF-21 and 22). Each request has one of the usual number of entities.
func serviceLimits(b *bench) {
	rls := need(porttest.Find())
	keys := filepath.Join(b.dir, "rls-keys")
	must(cluster.InitKeys(keys, ""))
	b.besideBare("Limits of services", cheap("CASTELLAN_LIMITS_RLS_ADDR="+rls,
		"CASTELLAN_LIMITS_RLS_CERT_FILE="+filepath.Join(keys, "node.crt"),
		"CASTELLAN_LIMITS_RLS_KEY_FILE="+filepath.Join(keys, "node.key")),
		func(p *place, s, floor *server) { b.serviceLimitsOn(p, s, floor, rls) })
}

func (b *bench) serviceLimitsOn(p *place, s, floor *server, rls string) {
	key := addServiceLimit(s)
	post := func(method, path, header string, body func(i int) string) func() (window, error) {
		return func() (window, error) {
			return b.requests(s, func(c *client, i int) error { return c.expect(200, method, path, header, body(i)) })
		}
	}
	kinds := []struct {
		name string
		load func() (window, error)
	}{
		{"GET /health/live", post("GET", "/health/live", "", func(int) string { return "" })},
		{"POST /limit", post("POST", "/limit", "service-auth: "+key, func(i int) string {
			return fmt.Sprintf(`{"rule":"orders","entity":"%d","cost":1}`, i%people)
		})},
		{"Envoy's rate limit service", func() (window, error) { return b.asksAsEnvoy(s, rls, key) }},
	}
	of, bare := series{}, series{}
	for range b.rounds {
		b.bareRound(floor, bare)
		for _, kind := range kinds {
			w, err := b.profiled(s, fmt.Sprintf("services-%s-%c", p.name, kind.name[0]), kind.load)
			must(within(kind.name, err))
			of.add(kind.name+" rate", w.rate())
			of.add(kind.name, w.each(w.server)*1e3)
			of.add(kind.name+" live", of[kind.name][len(of[kind.name])-1]/of[kinds[0].name][len(of[kind.name])-1])
		}
	}
	b.report.line(p.name+": bare Fiber handler: CPU", "µs", bare["cpu"], bar{})
	for _, kind := range kinds {
		b.report.line(p.name+": "+kind.name, "/s", of[kind.name+" rate"], bar{})
		b.report.line(p.name+": "+kind.name+": CPU", "µs", of[kind.name], bar{})
		b.report.line(p.name+": "+kind.name+": … in GETs of /health/live", "×", of[kind.name+" live"], bar{})
	}
}

// addServiceLimit creates a service client and a limit that it never reaches, as an administrator.
func addServiceLimit(s *server) (key string) {
	v, header := administrator(s)
	defer v.Close()
	must(v.expect(200, "POST", "/admin/system/waf/rules", header, `{"label":"orders","type":"rate_limit",`+
		`"appId":"shop","targetEntityType":"USER_ID","targetResources":["LIMIT orders"],"period":60000,`+
		`"limit":1000000000,"expireAt":0,"status":"ACTIVE"}`))
	must(v.expect(200, "POST", "/admin/service-keys", header, `{"name":"shop","role":"admin"}`))
	time.Sleep(2 * time.Second) // until the service has both in memory
	return member(v.body, "key")
}

// asksAsEnvoy is load of calls with one descriptor each. Envoy has one connection for each of its threads.
func (b *bench) asksAsEnvoy(s *server, addr, key string) (window, error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))) // #nosec G402: loopback
	if err != nil {
		return window{}, err
	}
	defer conn.Close()
	text := func(b []byte, n protowire.Number, v string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	return load(b.clients, b.long(time.Second), b.long(4*time.Second), meter{servers: []*server{s}},
		func() (func(context.Context, int) error, func(), error) {
			return func(ctx context.Context, i int) error {
				entry := text(text(nil, 1, "orders"), 2, fmt.Sprint(i%people))
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // Envoy sends a timeout too
				defer cancel()
				var question, answer emptypb.Empty // with unknown fields, which are those of Envoy
				question.ProtoReflect().SetUnknown(text(text(nil, 1, "shop"), 2, string(text(nil, 1, string(entry)))))
				err := conn.Invoke(metadata.AppendToOutgoingContext(ctx, "service-auth", key),
					"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", &question, &answer)
				if code := answer.ProtoReflect().GetUnknown(); err == nil && (len(code) < 2 || code[1] != 1) {
					err = fmt.Errorf("refused: %x", code)
				}
				return err
			}, func() {}, nil
		})
}
