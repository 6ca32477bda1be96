package challenge_test

import (
	"reflect"
	"slices"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
)

// Rules 1 and 4 of section 3.1 of the interface (D-2FA-20, 21) define when a renewal is possible.
func TestRenewalBoundaries(t *testing.T) {
	late := start(1, "sms", "mail") // its gate opens after the cut-off
	late.Methods[0].RenewMs = 500_000
	never := start(1, "sms")
	never.Methods[0].RenewMs = 0
	negative := start(1, "sms")
	negative.Methods[0].RenewMs = -1
	push := start(1, "push", "totp") // the kind decides, not the number
	push.Methods[0].RenewMs, push.Methods[1].RenewMs = 60_000, 60_000
	play(t, []scenario{
		{"1 ms before the gate", start(1, "sms"), []step{{59_999, "sms renew", "RENEW_TOO_EARLY 1ms"}}},
		{"on the gate", start(1, "sms"), []step{{60_000, "sms renew", "pending"}}},
		{"1 ms after the gate", start(1, "sms"), []step{{60_001, "sms renew", "pending"}}},
		{"how long to wait", start(1, "sms"), []step{{0, "sms renew", "RENEW_TOO_EARLY 1m0s"},
			{20_500, "sms renew", "RENEW_TOO_EARLY 39.5s"}}},
		{"120 001 ms left", start(1, "sms"), []step{{479_999, "sms renew", "pending"}}},
		{"120 000 ms left", start(1, "sms"), []step{{480_000, "sms renew", "pending"}}},
		{"119 999 ms left", start(1, "sms"), []step{{480_001, "sms renew", "RENEW_CLOSED"}}},
		{"too late before too early", late, []step{{480_000, "sms renew", "RENEW_TOO_EARLY 20s"},
			{480_001, "sms renew", "RENEW_CLOSED"}}},
		{"renewal 0", never, []step{{0, "sms renew", "RENEW_NOT_SUPPORTED"}, {400_000, "sms renew", "RENEW_NOT_SUPPORTED"}}},
		{"renewal below 0", negative, []step{{0, "sms renew", "RENEW_NOT_SUPPORTED"}}},
		{"push and TOTP", push, []step{{60_000, "push renew", "RENEW_NOT_SUPPORTED"},
			{60_000, "totp renew", "RENEW_NOT_SUPPORTED"}}},
		{"an expired method", start(1, "sms"), []step{{120_000, "sms right", "METHOD_EXPIRED"},
			{120_000, "sms renew", "pending"}, {120_000, "sms right", "executing"}}},
		{"five renewals", start(1, "sms", "mail"), []step{
			{60_000, "sms renew", "pending | pending | pending | pending | pending | RENEW_CLOSED"},
			{60_000, "sms right", "executing"}}},
		{"five of each method", start(1, "sms", "mail"), []step{
			{60_000, "sms renew", "pending | pending | pending | pending | pending"},
			{60_000, "mail renew", "pending | pending | pending | pending | pending | RENEW_CLOSED"}}},
	})
}

// A renewal changes the renewed method, and leaves the rest of the challenge as it was (REQ-RNW-10).
func TestRenewedMethod(t *testing.T) {
	for _, c := range []struct {
		name               string
		ms, lifetime, ends int64
		expires            int64 // of the method before
		want               int64
	}{
		{"full lifetime", 60_000, 120_000, 600_000, 120_000, 180_000},
		{"also where that is less than it had", 60_000, 120_000, 600_000, 400_000, 180_000},
		{"just inside the challenge", 480_000, 119_999, 600_000, 120_000, 599_999},
		{"to the end of the challenge", 480_000, 120_000, 600_000, 120_000, 600_000},
		{"cut by the challenge", 480_000, 120_001, 600_000, 120_000, 600_000},
		{"ten minutes", 60_000, 600_000, 900_000, 600_000, 660_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := start(1, "mail", "sms")
			before.ExpiresAt = t0 + c.ends
			m := &before.Methods[1]
			m.LifetimeMs, m.ExpiresAt, m.Wrong, m.Generation = c.lifetime, t0+c.expires, 3, 2
			before.Methods[0].ExpiresAt = before.ExpiresAt // nothing to stretch
			before.Wrong = 4
			want := deep(before)
			w := &want.Methods[1]
			w.ExpiresAt, w.MadeAt, w.Wrong, w.Generation, w.Digest = t0+c.want, t0+c.ms, 0, 3, stored("new")
			got, err := before.Renew(at(c.ms), challenge.DefaultRules(), "sms", challenge.SMS, stored("new"))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
			}
		})
	}
}

// Rule 3: the other open methods end no earlier than the renewed one. They still end within the challenge and, for an
// OTP, within ten minutes of its creation (D-2FA-22, SEC-07). All instants are ms since the start.
func TestRenewalStretchesOthers(t *testing.T) {
	for _, c := range []struct {
		name         string
		id           string // of the other method
		made         int64  // its OTP
		expires      int64
		ms, lifetime int64 // the renewal, and the lifetime of the renewed one
		ends         int64 // the challenge
		want         int64
	}{
		{"1 ms less left", "sms", 0, 179_999, 60_000, 120_000, 600_000, 180_000},
		{"1 ms more left", "sms", 0, 180_001, 60_000, 120_000, 600_000, 180_001},
		{"expired push", "push", 0, 90_000, 200_000, 120_000, 600_000, 320_000},
		{"TOTP that lives as long as the challenge", "totp", 0, 600_000, 60_000, 120_000, 600_000, 600_000},
		{"OTP cut by the challenge", "sms", 60_000, 90_000, 400_000, 300_000, 600_000, 600_000},
		{"just inside the ten minutes", "sms", 0, 120_000, 479_999, 120_000, 900_000, 599_999},
		{"cut by the ten minutes", "sms", 0, 120_000, 480_001, 120_000, 900_000, 600_000},
		{"ten minutes of the present OTP", "sms", 60_000, 180_000, 600_000, 120_000, 900_000, 660_000},
		{"ten minutes given already", "sms", 0, 600_000, 500_000, 300_000, 900_000, 600_000},
		{"push has no such limit", "push", 0, 120_000, 480_001, 120_000, 900_000, 600_001},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := start(1, c.id, "mail")
			before.ExpiresAt = t0 + c.ends
			o, m := &before.Methods[0], &before.Methods[1]
			m.LifetimeMs = c.lifetime
			o.ExpiresAt, o.Wrong = t0+c.expires, 2
			if o.Name.Sent() {
				o.MadeAt = t0 + c.made
			}
			want := deep(before).Methods[0]
			want.ExpiresAt = t0 + c.want
			next, err := before.Renew(at(c.ms), challenge.DefaultRules(), "mail", challenge.MAIL, stored("new"))
			if err != nil {
				t.Fatal(err)
			}
			if got := next.Methods[0]; !reflect.DeepEqual(got, want) {
				t.Errorf("expires at %d ms, want %d:\ngot  %+v\nwant %+v", got.ExpiresAt-t0, c.want, got, want)
			}
			if next.ExpiresAt != before.ExpiresAt {
				t.Errorf("the challenge now ends at %d ms", next.ExpiresAt-t0)
			}
		})
	}
}

// The checks of D-2FA-21 keep their order under every combination of faults, and Renewable makes the same ones. A
// refusal changes nothing.
func TestOrderOfRenewalChecks(t *testing.T) {
	type attempt struct {
		c    challenge.Challenge
		id   string
		name challenge.Name
	}
	const now = 100_000
	faults := []struct {
		want string
		make func(*attempt)
	}{
		{"METHOD_NOT_FOUND", func(x *attempt) { x.id = "none" }},
		{"INVALID_FIELD", func(x *attempt) { x.name = challenge.MAIL }},
		{"CHALLENGE_CLOSED", func(x *attempt) { x.c.State = challenge.Executing }},
		{"CHALLENGE_EXPIRED", func(x *attempt) { x.c.ExpiresAt = t0 + now }},
		{"METHOD_ALREADY_COMPLETED", func(x *attempt) { x.c.Methods[0].Order = 1 }},
		{"RENEW_NOT_SUPPORTED", func(x *attempt) { x.c.Methods[0].RenewMs = 0 }},
		{"RENEW_CLOSED", func(x *attempt) { x.c.ExpiresAt = t0 + now + 119_999 }},
		{"RENEW_CLOSED", func(x *attempt) { x.c.Methods[0].Generation = 5 }},
		{"RENEW_TOO_EARLY 100ms", func(x *attempt) { x.c.Methods[0].RenewMs = now + 100 }},
	}
	for set := range 1 << len(faults) {
		x := attempt{start(2, "sms", "mail"), "sms", challenge.SMS}
		want := "pending"
		for i := len(faults) - 1; i >= 0; i-- {
			if set&(1<<i) != 0 {
				faults[i].make(&x)
				want = faults[i].want
			}
		}
		next, err := x.c.Renew(at(now), challenge.DefaultRules(), x.id, x.name, stored("new"))
		storetest.Equal(t, told(next, err), want, "faults", set)
		if err != nil && !reflect.DeepEqual(next, x.c) {
			t.Errorf("faults %09b: a refusal changed the challenge", set)
		}
		i, checked := x.c.Renewable(at(now), challenge.DefaultRules(), x.id, x.name)
		if told(next, checked) != told(next, err) {
			t.Errorf("faults %09b: Renewable says %v, Renew %v", set, checked, err)
		}
		if checked == nil && i != slices.IndexFunc(x.c.Methods, func(m challenge.Method) bool { return m.ID == x.id }) {
			t.Errorf("faults %09b: index %d", set, i)
		}
	}
}
