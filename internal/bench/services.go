package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"castellan/cluster"
	"castellan/internal/porttest"
)

// serviceLimits measures the limits of services beside a GET of /health/live: POST /limit, and Envoy's rate limit
// service over TLS (D-WAF-21 and 22). Each request has one of the usual number of entities.
func serviceLimits(b *bench) error {
	rls, err := porttest.Find()
	if err != nil {
		return err
	}
	keys := filepath.Join(b.dir, "rls-keys")
	if err := cluster.InitKeys(keys, ""); err != nil {
		return err
	}
	return b.besideBare("Limits of services", cheap("CASTELLAN_LIMITS_RLS_ADDR="+rls,
		"CASTELLAN_LIMITS_RLS_CERT_FILE="+filepath.Join(keys, "node.crt"),
		"CASTELLAN_LIMITS_RLS_KEY_FILE="+filepath.Join(keys, "node.key")),
		func(p *place, floor *server) error { return b.serviceLimitsOn(p, floor, rls) })
}

func (b *bench) serviceLimitsOn(p *place, floor *server, rls string) error {
	s, err := p.serve(0)
	if err != nil {
		return err
	}
	defer s.stop()
	key, err := addServiceLimit(s)
	if err != nil {
		return err
	}
	post := func(method, path, header string, body func(i int) string) func() (window, error) {
		return func() (window, error) {
			return load(b.clients, b.long(time.Second), b.long(4*time.Second), meter{servers: []*server{s}},
				func() (func(context.Context, int) error, func(), error) {
					c, err := dial(s.addr)
					if err != nil {
						return nil, nil, err
					}
					return func(_ context.Context, i int) error { return expect(c, method, path, header, body(i)) },
						func() { c.Close() }, nil
				})
		}
	}
	kinds := []struct {
		name string
		load func() (window, error)
		most bar
	}{
		{"GET /health/live", post("GET", "/health/live", "", func(int) string { return "" }), bar{}},
		{"POST /limit", post("POST", "/limit", "service-auth: "+key, func(i int) string {
			return fmt.Sprintf(`{"rule":"orders","entity":"%d","cost":1}`, i%people)
		}), bar{}},
		{"Envoy's rate limit service", func() (window, error) { return b.asksAsEnvoy(s, rls, key) }, bar{}},
	}
	of, bare := series{}, series{}
	for range b.rounds {
		if err := b.bareRound(floor, bare); err != nil {
			return err
		}
		for _, kind := range kinds {
			b.await()
			stop, err := b.profiled(s, fmt.Sprintf("services-%s-%c.prof", p.name, kind.name[0]))
			if err != nil {
				return err
			}
			w, err := kind.load()
			if err := errors.Join(err, stop()); err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
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
	return nil
}

// addServiceLimit creates a service client and a limit that it never reaches, as an administrator.
func addServiceLimit(s *server) (key string, err error) {
	v, header, err := administrator(s)
	if err != nil {
		return "", err
	}
	defer v.Close()
	if err := expect(v.client, "POST", "/admin/system/waf/rules", header, `{"label":"orders","type":"rate_limit",`+
		`"appId":"shop","targetEntityType":"USER_ID","targetResources":["LIMIT orders"],"period":60000,`+
		`"limit":1000000000,"expireAt":0,"status":"ACTIVE"}`); err != nil {
		return "", err
	}
	if err := expect(v.client, "POST", "/admin/service-keys", header, `{"name":"shop","role":"admin"}`); err != nil {
		return "", err
	}
	time.Sleep(2 * time.Second) // until the service has both in memory
	return member(v.body, "key"), nil
}

// expect sends a request that must succeed.
func expect(c *client, method, path, header, body string) error {
	status, err := c.do(method, path, header, body)
	if err == nil && status != 200 {
		err = fmt.Errorf("%s %s: %w", method, path, refusal{status: status, body: string(c.body)})
	}
	return err
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
