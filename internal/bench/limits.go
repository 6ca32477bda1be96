package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

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
func limits(b *bench) error {
	p, err := b.postgresql(cheap("CASTELLAN_HTTP_TRUSTED_PROXIES=127.0.0.1"))
	if err != nil {
		return err
	}
	defer p.bare.close()
	if err := p.limit(); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	floor, err := start(roleFiber, nil)
	if err != nil {
		return err
	}
	defer floor.stop()
	one, err := start(roleService, p.environ)
	if err != nil {
		return err
	}
	defer one.stop()
	three, err := b.cluster(p.environ, 3)
	if err != nil {
		return err
	}
	for _, s := range three {
		defer s.stop()
	}

	var apart []*server // the same three, each counting separately
	for range 3 {
		s, err := start(roleService, p.environ)
		if err != nil {
			return err
		}
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
		if err := measureFloor(floor, b.clients, b.long(2*time.Second), bare); err != nil {
			return err
		}
		for _, k := range kinds {
			for _, round := range []struct {
				name    string
				servers []*server
				of      series
			}{{"one", []*server{one}, k.alone}, {"apart", apart, k.each}, {"three", three, k.together}} {
				b.await()
				stop, err := b.profiled(round.servers[0], fmt.Sprintf("limits-%s-%d.prof", round.name, k.addresses))
				if err != nil {
					return err
				}
				w, err := b.limited(round.servers, k.addresses, warm, span)
				if err := errors.Join(err, stop()); err != nil {
					return err
				}
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
	return nil
}

const keysPath = "/.well-known/jwks.json"

// limit migrates the database and stores a rule that counts but refuses no request at the rates of this bench.
func (p *place) limit() error {
	ctx := context.Background()
	cfg, err := config.Load("", append(environ(), p.environ...))
	if err != nil {
		return err
	}
	v, err := app.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	return guard.NewFirewall(
		v.DB,
	).Add(
		ctx,
		firewall.Rule{AppID: firewall.DefaultApp, Label: "keys-ip", Type: firewall.RateLimit, EntityType: firewall.IP,
			PeriodMs: new(
				int64(10_000),
			), Limit: new(int64(1_000_000)), AllEntities: true, Resources: []string{"GET " + keysPath}, Status: firewall.Active},
	)
}

// cluster starts the nodes of a cluster, with the settings of a place.
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
		s, err := start(
			roleService,
			append(slices.Clone(environ), "CASTELLAN_CLUSTER_GOSSIP_ADDR="+gossip, "CASTELLAN_CLUSTER_ACTOR_ADDR="+actors,
				"CASTELLAN_CLUSTER_JOIN="+seed, "CASTELLAN_CLUSTER_TLS_DIR="+keys),
		)
		if err != nil {
			return all, err
		}
		all = append(all, s)
		seed = strings.TrimPrefix(seed+","+gossip, ",")
	}
	time.Sleep(time.Second) // until all have the last one
	return all, nil
}

// limited is load of counted requests, each client at one of the servers.
func (b *bench) limited(servers []*server, addresses int, warm, span time.Duration) (window, error) {
	var turn atomic.Int64
	return load(b.clients, warm, span, meter{servers: servers}, func() (func(context.Context, int) error, func(), error) {
		c, err := dial(servers[int(turn.Add(1))%len(servers)].addr)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, i int) error {
			i %= addresses
			status, err := c.do("GET", keysPath, fmt.Sprintf("X-Forwarded-For: 10.1.%d.%d", i/250, i%250), "")
			if err == nil && status != 200 {
				err = refusal{status: status, body: string(c.body)}
			}
			return err
		}, func() { c.Close() }, nil
	})
}
