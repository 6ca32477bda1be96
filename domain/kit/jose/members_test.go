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
