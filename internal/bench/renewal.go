package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"time"

	"castellan/domain/proof/dpop"
)

// renewals measures renewals of sessions by their keys (D-AUTH-16), beside a bare handler of the same rounds. The keys
// are of P-256, as browsers have them.
func renewals(b *bench) {
	b.besideBare("Renewals of sessions by ES256 proofs", cheap(), b.renewalsOn)
}

func (b *bench) renewalsOn(p *place, s, floor *server) {
	of, bare := series{}, series{}
	warm, span := b.long(time.Second), b.long(6*time.Second)
	for round := range b.rounds {
		b.bareRound(floor, bare)
		w := need(b.profiled(s, fmt.Sprintf("renewal-%s-%d", p.name, round+1), func() (window, error) {
			return b.renewing([]*server{s}, p.process, 0, warm, span)
		}))
		of.add("rate", w.rate())
		of.add("server", w.each(w.server)*1e3)
		of.add("requests", w.each(w.server)*1e3/bare["cpu"][round])
	}
	r := &b.report
	r.line(p.name+": bare Fiber handler: CPU per request", "µs", bare["cpu"], bar{})
	r.line(p.name+": renewals", "/s", of["rate"], bar{})
	r.line(p.name+": CPU of the service per renewal", "µs", of["server"], bar{})
	r.line(p.name+": … in bare requests", "×", of["requests"], atMost(8))
}

// renewing lets clients renew sessions of accounts of a round. The servers have equally many clients.
func (b *bench) renewing(servers []*server, base, round int, warm, span time.Duration) (window, error) {
	client := 0
	return load(b.clients, warm, span, meter{servers: servers, base: base},
		func() (func(context.Context, int) error, func(), error) {
			k, err := newKeyed(servers[client%len(servers)], account(round, client))
			client++
			if err != nil {
				return nil, nil, err
			}
			return k.renew, func() { k.Close() }, nil
		})
}

// keyed is a client whose session is bound to a key.
type keyed struct {
	*visitor
	key   crypto.Signer
	token string
}

// newKeyed logs an account in.
func newKeyed(s *server, i int) (*keyed, error) {
	v, err := visitorFrom(s, home(i))
	if err != nil {
		return nil, err
	}
	k := &keyed{visitor: v}
	if k.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	header, err := k.proof("/auth/login")
	if err != nil {
		return nil, err
	}
	if err := v.expect(200, "POST", "/auth/login", header, loginBody(i)); err != nil {
		return nil, err
	}
	method := member(v.body, "id")
	code, err := s.codes.take(context.Background(), method, v.code)
	if err == nil {
		err = v.complete(method, code)
	}
	k.token = v.xAuth
	return k, err
}

func (k *keyed) proof(path string) (string, error) {
	proof, err := dpop.Sign(k.key, dpop.Claims{Method: "POST", Target: "http://localhost" + path,
		TokenHash: dpop.TokenHash(k.token)})
	return "dpop: " + proof, err
}

func (k *keyed) renew(context.Context, int) error {
	header, err := k.proof("/auth/sessions/renew")
	if err != nil {
		return err
	}
	if err = k.expect(200, "POST", "/auth/sessions/renew", "x-auth: "+k.token+"\r\n"+header, ""); err == nil {
		k.token = k.xAuth
	}
	return err
}
