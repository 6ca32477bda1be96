package faults

import (
	"testing"

	"castellan/internal/blackbox"
)

// Browsers that were remembered.
var replaysOfRemembered = []replay{
	{"vaultwarden#7682", "vaultwarden: a browser stayed remembered after a new password",
		func(t *testing.T, s stage) {
			s.remembers()
			a := s.user()
			k := &blackbox.Keyed{Key: blackbox.ECKey(t)}
			s.remember(k, a)
			x := s.loginBy(k, a).Header.Get("x-auth")
			if x == "" {
				t.Fatal("not remembered")
			}
			f := blackbox.FlowOf(t, s.Ask("POST", "/auth/password", map[string]string{"oldPassword": a.Password,
				"password": "lantern-orchard-9", "passwordVerify": "lantern-orchard-9"}, blackbox.Headers{"x-auth": x}))
			s.answer(a, f, "SMS").Is(t, 200, "")
			a.Password = "lantern-orchard-9"
			if got := s.loginBy(k, a); got.Header.Get("x-auth") != "" || blackbox.FlowOf(t, got).Status != "PENDING" {
				t.Errorf("%s", got)
			}
		}, nil},
	{"authy-devise#58", "authy-devise: a browser remembered for one account served any other",
		func(t *testing.T, s stage) {
			s.remembers()
			attacker, victim := s.user(), s.user()
			k := &blackbox.Keyed{Key: blackbox.ECKey(t)}
			s.remember(k, attacker)
			if s.loginBy(k, attacker).Header.Get("x-auth") == "" {
				t.Fatal("not remembered")
			}
			if got := s.loginBy(k, victim); got.Header.Get("x-auth") != "" || blackbox.FlowOf(t, got).Status != "PENDING" {
				t.Errorf("%s", got)
			}
		}, nil},
}

// remembers has browsers remembered for LOGIN, whose policy is otherwise the built-in default.
func (st stage) remembers() {
	st.T.Helper()
	const methods = `[["TOTP"],["PUSH"],["SMS"],["MAIL"]]`
	got := st.Ask("POST", "/admin/system/mfa/policies/common",
		`{"actionCode":"LOGIN","name":"n","expireAt":0,"required":1,"methods":`+methods+`,"remember":30}`, st.boss)
	if got.Status != 200 {
		got.Is(st.T, 409, "RECORD_ALREADY_EXIST")
	}
}

// loginBy starts a login with a proof of a key.
func (st stage) loginBy(k *blackbox.Keyed, a blackbox.Account) blackbox.Answer {
	st.T.Helper()
	k.Token = ""
	return st.Ask("POST", "/auth/login", blackbox.LoginBody(a), k.Proof(st.T, st.Node, "POST", "/auth/login"))
}

// remember logs in with a key and has the browser remembered.
func (st stage) remember(k *blackbox.Keyed, a blackbox.Account) {
	st.T.Helper()
	f := blackbox.FlowOf(st.T, st.loginBy(k, a))
	m := f.Method(st.T, "SMS")
	st.Ask("POST", blackbox.CompletePath, map[string]any{"methodId": m.ID, "method": m.Name,
		"value": st.Code(st.T, a, "SMS"), "remember": true}, blackbox.Headers{"p-auth": f.PAuth}).Is(st.T, 200, "")
}
