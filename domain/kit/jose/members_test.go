package jose_test

import (
	"testing"

	"castellan/domain/kit/jose"
)

// Members keep their exact names; a repeated name, a further value and any other text are refused.
func TestMembers(t *testing.T) {
	got, ok := jose.Members([]byte(` {"a":1,"A":[2],"":null} `))
	if !ok || len(got) != 3 || string(got["a"]) != "1" || string(got["A"]) != "[2]" || string(got[""]) != "null" {
		t.Errorf("%v: %s", ok, got)
	}
	for _, bad := range []string{"", "null", "[]", `"a"`, "{", `{"a":1`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"a":}`,
		`{"a":1}{}`, `{"a":1} x`, `{a:1}`} {
		if _, ok := jose.Members([]byte(bad)); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A JWS whose header or payload is no object, or whose header has a critical extension, has no part.
func TestReadIsStrict(t *testing.T) {
	const head, claims = `{"alg":"EdDSA"}`, `{"a":1}`
	for parts, want := range map[[2]string]bool{
		{head, claims}: true, {"[]", claims}: false, {head, "[]"}: false, {`{"alg":"EdDSA","crit":["b64"]}`, claims}: false,
	} {
		raw := jose.Encode([]byte(parts[0])) + "." + jose.Encode([]byte(parts[1])) + "." + jose.Encode([]byte("signature"))
		s, ok := jose.Read(raw, len(raw))
		if ok != want || (s.Alg == jose.EdDSA) != want || (string(s.Claims["a"]) == "1") != want {
			t.Errorf("%s: %v, %+v", parts, ok, s)
		}
	}
}
