package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

const (
	visitors   = 4
	mayBeWrong = 10 // values per method, so that a visit has room for many
	// challengeTries is the number of wrong values that close a challenge.
	challengeTries = 30
)

// Killed at any moment under load, the service knows every acknowledged step. It knows the started challenges,
// the count of wrong values, the valid code, the completed methods, the outcome and the ended sessions. A step
// that was under way happened once or not at all.
func TestKillLosesNoAcknowledgedStep(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		t.Logf("seed %d", seed)
		s.Set(forVisitors...)
		n := s.Start()
		asksTwo(t, s, n)
		crowd := make([]*visitor, visitors)
		for i := range crowd {
			crowd[i] = &visitor{a: s.AddUser("user"), rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
		}
		before := s.Count("session")

		for range kills {
			var acknowledged atomic.Int64
			var at sync.WaitGroup
			// On a stalling machine the database may be too slow for a step: a 503 is a lost answer.
			c := n.Client.Impatient(time.Minute, func(time.Time) time.Duration { return 0 })
			for _, v := range crowd {
				at.Go(func() { v.err = v.live(c, &acknowledged) })
			}
			enough := int64(10 + rng.IntN(50))
			blackbox.Becomes(blackbox.Within(10), func() bool { return acknowledged.Load() >= enough })
			time.Sleep(time.Duration(rng.IntN(5_000)) * time.Microsecond) // in the middle of a step
			n.Kill()
			at.Wait()
			if rng.IntN(4) == 0 { // once more, during the start
				n = s.Begin()
				time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
				n.Kill()
			}
			n = s.Start()
			for i, v := range crowd {
				if v.err == nil {
					v.err = v.check(n.Client, 30)
				}
				if v.err != nil {
					t.Fatalf("visitor %d after %d visits: %v\n%s", i, len(v.past), v.err, strings.Join(v.trail, "\n"))
				}
			}
		}

		logins, steps := 0, 0
		for i, v := range crowd {
			if err := errors.Join(v.finish(n.Client), v.check(n.Client, len(v.past))); err != nil {
				t.Fatalf("visitor %d: %v\n%s", i, err, strings.Join(v.trail, "\n"))
			}
			logins, steps = logins+len(v.past), steps+v.steps
		}
		storetest.Equal(t, s.Count("session")-before, logins, "sessions")
		if logins < kills {
			t.Errorf("%d logins between %d kills: too few to mean anything", logins, kills)
		}
		t.Logf("%d kills, %d acknowledged steps, %d logins", kills, steps, logins)
		n.Stop()
		s.Succeeds("", "audit", "verify")
	})
}

// visitor is a client that records every acknowledged step.
type visitor struct {
	a     blackbox.Account
	rng   *rand.Rand
	now   *visit
	past  []*visit
	steps int
	err   error
	// lost is when the last login or renewal got no answer. Its effect may follow a moment later, and then the
	// newest code is another one.
	lost time.Time
	// strays is the number of wrong values without an answer, the last one at strayed. Each may be counted a
	// moment later.
	strays  int
	strayed time.Time
	trail   []string // of the latest requests
}

// note records a line for the report of a broken promise.
func (v *visitor) note(line string) {
	if v.trail = append(v.trail, line); len(v.trail) > 80 {
		v.trail = slices.Delete(v.trail, 0, 40)
	}
}

// stray records more wrong values without an answer, and returns how many may still be counted.
func (v *visitor) stray(more int) int {
	if time.Since(v.strayed) > lateTime {
		v.strays = 0
	}
	if more > 0 {
		v.strays, v.strayed = v.strays+more, time.Now()
	}
	return v.strays
}

// lateTime is how long after a client gave up its request may still take effect.
const lateTime = 2 * time.Second

// visit is one login, from the password to, sometimes, the logout.
type visit struct {
	f         blackbox.Flow
	wrong     map[string]span // values that count against a method
	stage     int
	doubt     bool // the step of the stage was sent and not answered
	muddled   bool // a login without an answer came before: the newest code may be of its challenge
	tries     int  // wrong values sent, fewer than MFA_CHALLENGE_ATTEMPTS
	final     blackbox.Answer
	loggedOut bool
}

// The stages of a visit.
const (
	atSMS = iota
	atMAIL
	inside
	leaving // a logout was sent
	over
)

// span is the range of a count: a step without an answer was counted or not.
type span struct{ lo, hi int }

// live makes visits until the connection is lost. Any other error is a broken promise.
func (v *visitor) live(c blackbox.Client, acknowledged *atomic.Int64) error {
	for {
		if err := v.step(c); errors.Is(err, blackbox.ErrLost) {
			return nil
		} else if err != nil {
			return err
		}
		v.steps++
		acknowledged.Add(1)
	}
}

// finish completes the current visit.
func (v *visitor) finish(c blackbox.Client) error {
	for v.now != nil {
		if err := v.step(c); err != nil {
			return err
		}
	}
	return nil
}

func (v *visitor) step(c blackbox.Client) error {
	c = c.Telling(v.note)
	w := v.now
	if w == nil {
		f, err := c.TryLogin(v.a)
		if err != nil {
			v.lost = time.Now()
			return lost(err)
		}
		v.now = &visit{f: f, wrong: map[string]span{}, muddled: time.Since(v.lost) < lateTime}
		return nil
	}
	switch w.stage {
	case atSMS, atMAIL:
		name := map[int]string{atSMS: "SMS", atMAIL: "MAIL"}[w.stage]
		m := w.f.MethodList[slices.IndexFunc(w.f.MethodList, func(m blackbox.Method) bool { return m.Name == name })]
		code, err := c.TryCode(v.a, name)
		if err != nil {
			return lost(err)
		}
		switch dice := v.rng.IntN(10); {
		case w.doubt, // an unanswered request from before the kill is repeated
			w.tries >= challengeTries-5: // one more wrong value might close the challenge
			return v.complete(c, w, m, code)
		case dice < 3 && w.wrong[name].hi < mayBeWrong-2:
			return v.mistype(c, w, m, code)
		case dice < 5 || w.wrong[name].hi >= mayBeWrong-2:
			return v.renew(c, w, m, code)
		default:
			return v.complete(c, w, m, code)
		}
	case inside:
		if v.rng.IntN(2) == 0 {
			v.leave(over)
			return nil
		}
		w.stage = leaving
		return nil
	default:
		got, err := c.Try("POST", "/auth/logout", nil, blackbox.Headers{"x-auth": w.final.Header.Get("x-auth")})
		if err != nil {
			w.doubt = true
			return blackbox.ErrLost
		}
		if got.Status != 200 && !(w.doubt && got.Code() == "TOKEN_REVOKED") {
			return fmt.Errorf("logout: %s", got)
		}
		w.loggedOut = true
		v.leave(over)
		return nil
	}
}

func (v *visitor) leave(stage int) {
	v.now.stage = stage
	v.past, v.now = append(v.past, v.now), nil
}

// mistype sends a wrong value. The remaining attempts show how many values were counted.
func (v *visitor) mistype(c blackbox.Client, w *visit, m blackbox.Method, code string) error {
	w.tries++
	got, err := c.TryComplete(w.f, m, blackbox.WrongFor(code))
	s := w.wrong[m.Name]
	s.hi++
	if err != nil {
		w.wrong[m.Name] = s
		v.stray(1)
		return blackbox.ErrLost
	}
	s.lo++
	p := got.Problem()
	if p.Code != "OTP_INVALID" || p.AttemptsLeft == nil {
		return fmt.Errorf("a wrong value: %s", got)
	}
	counted := mayBeWrong - *p.AttemptsLeft
	renewed := counted == 1 && time.Since(v.lost) < lateTime // by the lost renewal, just now
	if !renewed && (counted < s.lo || counted > s.hi) {
		return fmt.Errorf("%d wrong values counted, want %d to %d", counted, s.lo, s.hi)
	}
	w.wrong[m.Name] = span{counted, counted + v.stray(0)}
	return nil
}

// renew requests a new code; the old one is wrong from then on.
func (v *visitor) renew(c blackbox.Client, w *visit, m blackbox.Method, old string) error {
	got, err := c.Try("POST", blackbox.RenewPath, map[string]string{"methodId": m.ID, "method": m.Name},
		blackbox.Headers{"p-auth": w.f.PAuth})
	if err != nil {
		w.wrong[m.Name], v.lost = span{0, w.wrong[m.Name].hi}, time.Now()
		return blackbox.ErrLost
	}
	if got.Code() == "METHOD_ALREADY_COMPLETED" && w.doubt {
		return nil
	}
	if got.Status != 200 {
		return fmt.Errorf("renewal: %s", got)
	}
	w.wrong[m.Name] = span{0, v.stray(0)}
	fresh, err := c.TryCode(v.a, m.Name)
	if err != nil {
		return lost(err)
	}
	if fresh == old { // one time in a million
		return nil
	}
	w.tries++
	got, err = c.TryComplete(w.f, m, old)
	if err != nil {
		w.wrong[m.Name] = span{0, v.stray(1)}
		return blackbox.ErrLost
	}
	if got.Code() != "OTP_INVALID" {
		return fmt.Errorf("the code before the renewal: %s", got)
	}
	w.wrong[m.Name] = span{1, 1 + v.stray(0)}
	return nil
}

func (v *visitor) complete(c blackbox.Client, w *visit, m blackbox.Method, code string) error {
	got, err := c.TryComplete(w.f, m, code)
	if err != nil {
		w.doubt = true
		return blackbox.ErrLost
	}
	switch {
	case got.Code() == "OTP_INVALID" && (w.muddled || time.Since(v.lost) < lateTime):
		s := w.wrong[m.Name]
		w.wrong[m.Name] = span{0, s.hi + 1}
		return v.renew(c, w, m, code)
	case w.stage == atMAIL:
		if got.Status != 200 || got.Header.Get("x-auth") == "" {
			return fmt.Errorf("the last completion: %s", got)
		}
		w.final = got
	case got.Code() == "METHOD_ALREADY_COMPLETED" && w.doubt:
	case got.Status != 200 || got.Header.Get("x-auth") != "":
		return fmt.Errorf("the first completion: %s", got)
	}
	if w.stage == atSMS { // and it stays completed
		again, err := c.TryComplete(w.f, m, code)
		if err == nil && again.Code() != "METHOD_ALREADY_COMPLETED" {
			return fmt.Errorf("a repeated completion: %s", again)
		}
	}
	w.stage, w.doubt = w.stage+1, false
	return nil
}

// check verifies the state of the current visit and of the latest ones. It returns errLost if it got no
// answer; any other error is a broken promise.
func (v *visitor) check(c blackbox.Client, latest int) error {
	if w := v.now; w != nil {
		got, err := c.Try("GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": w.f.PAuth})
		if err != nil {
			return errors.Join(blackbox.ErrLost, err)
		}
		open := got.Code() == "CHALLENGE_NOT_COMPLETED"
		if w.stage < inside && !open && !(w.stage == atMAIL && w.doubt && got.Status == 200) {
			return fmt.Errorf("a challenge under way at stage %d: %s", w.stage, got)
		}
		if w.stage == atMAIL && !w.doubt {
			sms := w.f.MethodList[slices.IndexFunc(w.f.MethodList, func(m blackbox.Method) bool { return m.Name == "SMS" })]
			again, err := c.TryComplete(w.f, sms, "000000")
			if err != nil {
				return errors.Join(blackbox.ErrLost, err)
			}
			if again.Code() != "METHOD_ALREADY_COMPLETED" {
				return fmt.Errorf("a completed method: %s", again)
			}
		}
	}
	for _, w := range v.past[max(0, len(v.past)-latest):] {
		token := w.final.Header.Get("x-auth")
		got, err := c.Try("GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": w.f.PAuth})
		if err != nil {
			return errors.Join(blackbox.ErrLost, err)
		}
		used, err := c.Try("GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": token})
		if err != nil {
			return errors.Join(blackbox.ErrLost, err)
		}
		switch {
		case w.loggedOut && (got.Code() != "CHALLENGE_CLOSED" || used.Code() != "TOKEN_REVOKED"):
			return fmt.Errorf("a session that has ended: result %s, used: %s", got, used)
		case !w.loggedOut && (got.Status != 200 || got.Header.Get("x-auth") != token || used.Status != 200):
			return fmt.Errorf("a session that lives: result %s, used: %d %s", got, used.Status, used.Code())
		}
	}
	return nil
}

// lost distinguishes a lost connection from a wrong answer.
func lost(err error) error {
	if errors.As(err, new(blackbox.Unexpected)) {
		return err
	}
	return blackbox.ErrLost
}
