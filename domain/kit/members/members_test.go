package members_test

import (
	"testing"

	"castellan/domain/kit/members"
)

// Members keep their exact names; a repeated name, a further value and any other text are refused.
func TestOf(t *testing.T) {
	got, ok := members.Of([]byte(` {"a":1,"A":[2],"":null} `))
	if !ok || len(got) != 3 || string(got["a"]) != "1" || string(got["A"]) != "[2]" || string(got[""]) != "null" {
		t.Errorf("%v: %s", ok, got)
	}
	for _, bad := range []string{"", "null", "[]", `"a"`, "{", `{"a":1`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"a":}`,
		`{"a":1}{}`, `{"a":1} x`, `{a:1}`} {
		if _, ok := members.Of([]byte(bad)); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}
