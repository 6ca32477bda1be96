package challenge_test

import (
	"slices"
	"testing"

	"castellan/domain/factor/challenge"
)

// Number matching (SEC-16): a signed approval counts only with the number. A wrong number counts for the challenge
// and for no budget. A user without attempts left may still refuse.
func TestNumberMatching(t *testing.T) {
	with := func(ids ...string) *game {
		c := start(1, ids...)
		i := slices.IndexFunc(c.Methods, func(m challenge.Method) bool { return m.Name == challenge.PUSH })
		c.Methods[i].Number, c.Methods[i].Digest = "42", stored("APPROVED:42")
		return newGame(t, c)
	}
	approve := func(g *game, value string, v challenge.Verdict) string {
		m, _ := g.c.Method("push")
		a := typed(m, value)
		a.Verdict = v
		return g.complete(0, a)
	}
	g := with("push", "sms")
	for _, c := range []struct {
		value string
		v     challenge.Verdict
		want  string
		wrong int
	}{
		{"APPROVED:42", challenge.Wrong, "DEVICE_SIGNATURE_INVALID", 0}, // the number without the signature
		{"APPROVED:43", challenge.Right, "OTP_INVALID 4", 1},
		{"APPROVED", challenge.Right, "OTP_INVALID 3", 2},
		{"APPROVED:42", challenge.Right, "executing", 2},
		{"APPROVED:43", challenge.Right, "METHOD_ALREADY_COMPLETED", 2},
	} {
		if got := approve(g, c.value, c.v); got != c.want || g.c.Wrong != c.wrong || len(g.b.OTP)+len(g.b.TOTP) > 0 {
			t.Errorf("%s: %s, %d wrong, budget %+v; want %s, %d", c.value, got, g.c.Wrong, g.b, c.want, c.wrong)
		}
	}
	m, _ := g.c.Method("push")
	if !g.c.Repeat(typed(m, "APPROVED:42")) || g.c.Repeat(typed(m, "APPROVED:43")) {
		t.Error("the repeat is not known by its number")
	}

	g = with("push")
	for range 5 {
		approve(g, "APPROVED:11", challenge.Right)
	}
	if got := approve(g, "APPROVED:42", challenge.Right); got != "METHOD_LOCKED" {
		t.Errorf("after five: %s", got)
	}
	if got := approve(g, "DENIED", challenge.Refusal); got != "denied" {
		t.Errorf("a refusal: %s", got)
	}

	g = with("push", "sms")
	g.c.Wrong = 9
	if got := approve(g, "APPROVED:11", challenge.Right); got != "OTP_INVALID 0" || g.c.State != challenge.Closed ||
		g.c.Reason != challenge.TooManyWrong {
		t.Errorf("the tenth: %s in state %s", got, stateNames[g.c.State])
	}
}
