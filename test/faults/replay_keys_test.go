package faults

import (
	"testing"

	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

// keyed is a new account with a session that is bound to a key.
func (st stage) keyed() (blackbox.Account, *blackbox.Keyed) {
	st.T.Helper()
	a, k := st.user(), &blackbox.Keyed{Key: blackbox.ECKey(st.T)}
	k.Login(st.T, st.Node, a)
	return a, k
}

// Proofs of session keys (RFC 9449).
var replaysOfKeys = []replay{
	{"keycloak#36475", "Keycloak: a token bound to a key was refreshed without a proof", func(t *testing.T, s stage) {
		_, k := s.keyed()
		s.Do(t, "POST", blackbox.RenewSessionPath, nil, blackbox.Headers{"x-auth": k.Token}).Is(t, 401, "DPOP_INVALID")
		k.Renew(t, s.Node).Is(t, 200, "")
	}, nil},
	{"keycloak#38333", "Keycloak: a proof by any key, without the token's hash, was accepted",
		func(t *testing.T, s stage) {
			_, k := s.keyed()
			thief := &blackbox.Keyed{Key: blackbox.EdKey(t), Token: k.Token}
			none := func(c *dpop.Claims) { c.TokenHash = "" }
			thief.Renew(t, s.Node).Is(t, 401, "DPOP_INVALID")
			thief.Renew(t, s.Node, none).Is(t, 401, "DPOP_INVALID")
			k.Renew(t, s.Node, none).Is(t, 401, "DPOP_INVALID")
			k.Renew(t, s.Node).Is(t, 200, "")
		}, nil},
	{"product-is#23358", "WSO2: a proof was accepted twice, because its jti was forgotten",
		func(t *testing.T, s stage) {
			_, k := s.keyed()
			h := k.Proof(t, s.Node, "POST", blackbox.RenewSessionPath)
			s.Do(t, "POST", blackbox.RenewSessionPath, nil, h).Is(t, 200, "")
			s.Do(t, "POST", blackbox.RenewSessionPath, nil, h).Is(t, 401, "DPOP_INVALID")
		}, nil},
	{"attesto#18", "attesto: a proof of another key with the same jti used up the victim's", func(t *testing.T, s stage) {
		_, k := s.keyed()
		_, attacker := s.keyed()
		same := func(c *dpop.Claims) { c.ID = "the-same-jti" }
		attacker.Renew(t, s.Node, same).Is(t, 200, "")
		k.Renew(t, s.Node, same).Is(t, 200, "")
	}, nil},
	{"keycloak#50306", "Keycloak: the logout refused the proof of a bound token",
		func(t *testing.T, s stage) {
			_, k := s.keyed()
			s.Do(t, "POST", "/auth/logout", nil, k.Proof(t, s.Node, "POST", "/auth/logout")).Is(t, 200, "")
			k.Renew(t, s.Node).Is(t, 401, "TOKEN_REVOKED")
		}, nil},
}
