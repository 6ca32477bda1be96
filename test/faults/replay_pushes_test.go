package faults

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/internal/blackbox"
)

// Approvals on a device.
var replaysOfPushes = []replay{
	{"CVE-2026-9798", "Keycloak: a locked user could still log in by approving on a device",
		func(t *testing.T, s stage) {
			a, me := s.known()
			p := s.phone(a, me)
			f := s.begin(a)
			p.Answer(t, f, "APPROVED").Is(t, 200, "")
			s.Result(f).Is(t, 200, "")
			f = s.begin(a)
			s.standing(a, "passive")
			p.Answer(t, f, "APPROVED").Is(t, 409, "CHALLENGE_CLOSED")
			storetest.Equal(t, s.Result(f).Is(t, 409, "CHALLENGE_CLOSED").Header.Get("x-auth"), "", "token")
			storetest.Equal(t, len(p.List(t)), 0, "approvals that wait")
			s.Login(a).Is(t, 401, "INVALID_CREDENTIALS")
		}, nil},
	{"CVE-2026-16103", "Keycloak: an approval from before the lock was redeemed after it", func(t *testing.T, s stage) {
		a, me := s.known()
		p := s.phone(a, me)
		f, other := s.begin(a), s.begin(a)
		p.Answer(t, f, "APPROVED").Is(t, 200, "")
		p.Answer(t, other, "APPROVED").Is(t, 200, "")
		x := s.Result(f).Is(t, 200, "").Header.Get("x-auth")
		s.open(blackbox.Headers{"x-auth": x})
		s.standing(a, "passive")
		storetest.Equal(t, s.Result(other).Is(t, 409, "CHALLENGE_CLOSED").Header.Get("x-auth"), "", "token")
		s.ended(blackbox.Headers{"x-auth": x})
	}, nil},
	{"AA23-320A", "Push bombing: approvals were requested until their owner gave in", func(t *testing.T, s stage) {
		a, me := s.known()
		p := s.phone(a, me)
		flows := []blackbox.Flow{s.begin(a), s.begin(a), s.begin(a)}
		for _, f := range flows {
			if !blackbox.Offered(f) {
				t.Fatalf("no push is offered: %+v", f.MethodList)
			}
		}
		f := s.begin(a)
		if blackbox.Offered(f) || len(p.List(t)) != 3 {
			t.Errorf("%d approvals wait, and a fourth is offered: %v", len(p.List(t)), blackbox.Offered(f))
		}
		for _, f := range flows {
			p.Answer(t, f, "DENIED").Is(t, 200, "")
		}
		f = s.begin(a)
		if blackbox.Offered(f) {
			t.Error("a push is offered after three denials")
		}
		s.answer(a, f, "SMS").Is(t, 200, "") // another method remains
	}, nil},
	{"AA22-074A", "Duo: the password alone was enough to enrol a device for a dormant account",
		func(t *testing.T, s stage) {
			a := s.user()
			f := s.begin(a)
			p := blackbox.Pocket{N: s.Node, Aud: s.URL}
			p.Key, p.Pub = devicetest.Signer(t, device.ES256)
			p.ID = p.Pub.Thumbprint()
			p.Register(t, f.PAuth, "").Is(t, 401, "UNAUTHENTICATED")
			p.Register(t, "", "").Is(t, 401, "UNAUTHENTICATED")
			me := s.Session(a)
			blackbox.FlowOf(t, p.Register(t, me["x-auth"], "")) // and a session alone cannot add a device either
			if f := s.begin(a); blackbox.Offered(f) || s.s.Count("device WHERE user_id = $1", a.ID) != 0 {
				t.Error("a device without its challenge")
			}
			s.phone(a, me)
			if !blackbox.Offered(s.begin(a)) {
				t.Error("no push for a device that was enrolled")
			}
		}, nil},
	{"CVE-2024-5798", "Vault: a JWT for another audience was accepted", func(t *testing.T, s stage) {
		a, me := s.known()
		p := s.phone(a, me)
		f := s.begin(a)
		for _, aud := range []string{"https://other.example", "", p.Aud + "/", p.Aud + ".evil.test"} {
			p.Answer(t, f, "APPROVED", func(c *device.Claims) { c.Audience = aud }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		}
		p.Answer(t, f, "APPROVED").Is(t, 200, "")
	}, nil},
	{"GHSA-wxg7-w2v3-w38g", "ZITADEL: a JWT without an issue time never expired",
		func(t *testing.T, s stage) {
			a, me := s.known()
			p := blackbox.Enroll(t, s.Node, a, me["x-auth"], device.EdDSA, "")
			path := blackbox.OngoingPath + "?deviceId=" + p.ID // a list is bound to its time only
			for _, iat := range []string{"", `,"iat":null`, `,"iat":"now"`, `,"iat":0`, `,"iat":1e400`, `,"iat":99999999999`} {
				h := p.Undated(t, p.Sign(t, "GET", path, nil, device.Claims{}), iat)
				s.Ask("GET", path, nil, h).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
			}
			s.Ask("GET", path, nil, p.Undated(t, p.Sign(t, "GET", path, nil, device.Claims{}),
				fmt.Sprintf(`,"iat":%d`, time.Now().Unix()))).Is(t, 200, "")
		}, nil},
}
