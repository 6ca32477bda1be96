package challenge_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
)

// t0 is when every challenge of these tests starts, in ms. The tests give instants as milliseconds since t0.
const t0 int64 = 1_767_225_600_000

func at(ms int64) time.Time { return time.UnixMilli(t0 + ms) }

// start creates a challenge of 600 s whose methods have the lifetimes of a fresh installation (D-2FA-04). An id is
// the kind in lower case, with a digit where a kind occurs twice. A final "!" makes the method mandatory.
func start(required int, ids ...string) challenge.Challenge {
	c := challenge.Challenge{
		ID: "c1", UserID: "u1", Action: "LOGIN", Flow: challenge.FlowLogin,
		CreatedAt: t0, ExpiresAt: t0 + 600_000, Version: 7,
		Body: challenge.Body{Subject: "u1", Required: required, CV: 3, SV: 4, Starter: challenge.Starter{IP: "192.0.2.1"}},
	}
	for _, s := range ids {
		id, mandatory := strings.CutSuffix(s, "!")
		m := challenge.Method{ID: id, Name: challenge.Name(strings.ToUpper(strings.TrimRight(id, "0123456789"))),
			LifetimeMs: 120_000, Mandatory: mandatory}
		switch {
		case m.Name.Sent():
			m.RenewMs, m.MadeAt, m.Digest = 60_000, t0, stored(code(id, 0))
		case m.Name == challenge.TOTP: // no lifetime of its own (D-2FA-03)
			m.LifetimeMs = 600_000
		}
		m.ExpiresAt = t0 + m.LifetimeMs
		c.Methods = append(c.Methods, m)
	}
	return c
}

// code returns the OTP of a method after a number of renewals.
func code(id string, generation int) string { return id + "#" + strconv.Itoa(generation) }

func sum(key, value string) challenge.Digest {
	s := sha256.Sum256([]byte(key + "/" + value))
	return challenge.Digest{Key: key, Sum: s[:]}
}

// stored returns the stored digest of an OTP. Its key is not the newest, so an answer is matched by its key and not
// by its position.
func stored(value string) challenge.Digest { return sum("old", value) }

// typed answers a method with a value that the machine compares itself.
func typed(m challenge.Method, value string) challenge.Answer {
	return challenge.Answer{MethodID: m.ID, Method: m.Name, Digests: []challenge.Digest{sum("new", value), stored(value)}}
}

// answer returns a right, wrong or denying answer for the method; "stale" is the OTP before the last renewal.
func answer(m challenge.Method, verb string) challenge.Answer {
	a := typed(m, "no such value")
	switch {
	case verb == "deny":
		a, a.Verdict = typed(m, "DENIED"), challenge.Refusal
	case verb == "stale":
		a = typed(m, code(m.ID, m.Generation-1))
	case m.Name.Sent() && verb == "right":
		a = typed(m, code(m.ID, m.Generation))
	case verb == "right":
		a, a.Verdict = typed(m, "what the judge accepted"), challenge.Right
	case !m.Name.Sent():
		a.Verdict = challenge.Wrong
	}
	return a
}

var stateNames = map[challenge.State]string{
	challenge.Pending: "pending", challenge.Executing: "executing", challenge.Done: "done",
	challenge.Denied: "denied", challenge.Closed: "closed",
}

// told formats an answer of the machine for comparison: the new state, or the code of the refusal with the attempts
// left or the time to wait.
func told(c challenge.Challenge, err error) string {
	var f *fault.Error
	switch {
	case err == nil:
		return stateNames[c.State]
	case !errors.As(err, &f):
		return err.Error()
	case f.AttemptsLeft != nil:
		return fmt.Sprintf("%s %d", f.Code, *f.AttemptsLeft)
	case f.RetryAfter > 0:
		return fmt.Sprintf("%s %s", f.Code, f.RetryAfter)
	}
	return string(f.Code)
}

// game plays moves on a challenge of a user with a budget. After every move it checks that the machine did not modify
// its input.
type game struct {
	t testing.TB
	r challenge.Rules
	c challenge.Challenge
	b challenge.Budget
}

func newGame(t testing.TB, c challenge.Challenge) *game {
	return &game{t: t, r: challenge.DefaultRules(), c: c, b: challenge.Budget{Subject: "u1", Flow: c.Flow, Version: 5}}
}

// do plays "finish", "abort", "close", or "<method id> <verb>" and returns the result. The verb is one of answer's or
// "renew".
func (g *game) do(ms int64, move string) string {
	switch move {
	case "finish":
		return g.move(func() (challenge.Challenge, error) { return g.c.Finish(), nil })
	case "abort":
		return g.move(func() (challenge.Challenge, error) { return g.c.Abort(at(ms)), nil })
	case "close":
		return g.move(func() (challenge.Challenge, error) { return g.c.Close(at(ms), challenge.Superseded), nil })
	}
	id, verb, _ := strings.Cut(move, " ")
	m, ok := g.c.Method(id)
	if !ok {
		g.t.Fatalf("no method for the move %q", move)
	}
	if verb == "renew" {
		return g.renew(ms, m, stored(code(id, m.Generation+1)))
	}
	return g.complete(ms, answer(m, verb))
}

func (g *game) complete(ms int64, a challenge.Answer) string {
	return g.move(func() (challenge.Challenge, error) {
		step, err := g.c.Complete(at(ms), g.r, g.b, a)
		if err != nil {
			return g.c, err
		}
		if step.Budget != nil {
			g.b = *step.Budget
		}
		if (step.Refusal != nil) != (step.Verdict == challenge.Wrong) {
			g.t.Errorf("verdict %d with the refusal %v", step.Verdict, step.Refusal)
		}
		return step.Next, step.Refusal
	})
}

func (g *game) renew(ms int64, m challenge.Method, d challenge.Digest) string {
	return g.move(func() (challenge.Challenge, error) { return g.c.Renew(at(ms), g.r, m.ID, m.Name, d) })
}

// move stores the next state as g.c, also after a wrong value.
func (g *game) move(f func() (challenge.Challenge, error)) string {
	given, before := g.c, deep(g.c)
	budget, spent := g.b, g.b
	spent.OTP, spent.TOTP = slices.Clone(g.b.OTP), slices.Clone(g.b.TOTP)
	next, err := f()
	if !reflect.DeepEqual(given, before) {
		g.t.Errorf("the receiver changed:\n%+v\nwas %+v", given, before)
	}
	if !slices.Equal(budget.OTP, spent.OTP) || !slices.Equal(budget.TOTP, spent.TOTP) {
		g.t.Errorf("the given budget changed: %+v, was %+v", budget, spent)
	}
	if g.b.Key() != budget.Key() || g.b.Version != budget.Version {
		g.t.Errorf("the next budget is another one: %+v, was %+v", g.b, budget)
	}
	if next.Version != before.Version {
		g.t.Errorf("version %d became %d", before.Version, next.Version)
	}
	g.c = next
	return told(next, err)
}

// deep copies everything that a challenge refers to.
func deep(c challenge.Challenge) challenge.Challenge {
	c.Methods = slices.Clone(c.Methods)
	for i := range c.Methods {
		c.Methods[i].Digest.Sum = slices.Clone(c.Methods[i].Digest.Sum)
	}
	return c
}

// step is a move at an instant and its expected result. "a | b" expects the same move twice in a row.
type step struct {
	ms         int64
	move, want string
}

type scenario struct {
	name  string
	c     challenge.Challenge
	steps []step
}

func play(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			newGame(t, s.c).play(s.steps)
		})
	}
}

func (g *game) play(steps []step) {
	g.t.Helper()
	for i, st := range steps {
		for _, want := range strings.Split(st.want, " | ") {
			if got := g.do(st.ms, st.move); got != want {
				g.t.Fatalf("step %d, %q at %d ms: got %s, want %s", i+1, st.move, st.ms, got, want)
			}
		}
	}
}
