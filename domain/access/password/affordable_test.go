package password_test

import (
	"errors"
	"testing"

	"castellan/domain/access/password"
	"castellan/domain/access/password/legacy"
)

// The wrapping of a stored hash that comes from a file has the bounds of any other hash of a file.
func TestWrappingIsBounded(t *testing.T) {
	const inner, salted = "$imported$digest$h=sha1,o=ps$c2FsdA$n=20", "$MDEyMzQ1Njc4OWFiY2RlZg$" +
		"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	for outer, want := range map[string]error{
		"":                                   nil,
		"$argon2id$v=19$m=64,t=1,p=1":        nil,
		"$argon2id$v=19$m=131072,t=8,p=16":   nil,
		"$argon2id$v=19$m=4194304,t=100,p=1": legacy.ErrCost,
		"$argon2id$v=19$m=262144,t=1,p=1":    legacy.ErrCost,
		"$argon2id$v=19$m=1024,t=100,p=1":    legacy.ErrCost,
		"$argon2id$v=19$m=131072,t=9,p=1":    legacy.ErrCost,
		"$argon2id$v=19$m=1024,t=1,p=17":     legacy.ErrCost,
	} {
		text := inner + outer + salted
		if outer == "" {
			text = "$imported$bcrypt$r=10$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY"
		}
		if err := password.Affordable(text); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", outer, err, want)
		}
	}
	if password.Affordable("$imported$nonsense") == nil {
		t.Error("nonsense is affordable")
	}
}
