package challenge_test

import (
	"reflect"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
)

// endings plays a challenge of two required methods into each of its endings. sms is the earlier completion, if any.
// The last answer is for totp, in the denial for push. mail is never answered.
var endings = []struct {
	name  string
	last  string
	moves []step
}{
	{"executing", "totp", []step{{0, "sms right", "pending"}, {0, "totp right", "executing"}}},
	{"done", "totp", []step{{0, "sms right", "pending"}, {0, "totp right", "executing"}, {0, "finish", "done"}}},
	{"denied", "push", []step{{0, "sms right", "pending"}, {0, "push deny", "denied"}}},
	{"ten wrong", "totp", []step{{0, "sms right", "pending"},
		{0, "totp wrong", "OTP_INVALID 4 | OTP_INVALID 3 | OTP_INVALID 2 | OTP_INVALID 1 | OTP_INVALID 0"},
		{0, "mail wrong", "OTP_INVALID 4 | OTP_INVALID 3 | OTP_INVALID 2 | OTP_INVALID 1 | OTP_INVALID 0"}}},
	{"superseded", "totp", []step{{0, "sms right", "pending"}, {0, "close", "closed"}}},
	{"session ended", "totp", []step{{0, "sms right", "pending"}, {0, "abort", "closed"}}},
	{"credentials changed before the action ran", "totp", []step{{0, "sms right", "pending"},
		{0, "totp right", "executing"}, {0, "abort", "closed"}}},
	{"expired", "totp", []step{{0, "sms right", "pending"}}},
}

// The table of D-2FA-05: the answers after every ending, which time does not change. TestRepeat covers the exact
// repeat.
func TestAnswersAfterTheEnd(t *testing.T) {
	const already, closed, expired = "METHOD_ALREADY_COMPLETED", "CHALLENGE_CLOSED", "CHALLENGE_EXPIRED"
	want := map[string]struct {
		last, earlier, open, renew string // answers to these methods; renewal of mail
	}{
		"executing":     {already, already, already, closed},
		"done":          {already, already, closed, closed},
		"denied":        {closed, closed, closed, closed},
		"ten wrong":     {closed, closed, closed, closed},
		"superseded":    {closed, closed, closed, closed},
		"session ended": {closed, closed, closed, closed},
		"credentials changed before the action ran": {closed, closed, closed, closed},
		"expired": {expired, expired, expired, expired},
	}
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			w := want[e.name]
			for _, ms := range []int64{60_000, 600_000, 600_001, 86_400_000} {
				if e.name == "expired" && ms < 600_000 {
					continue
				}
				for _, verb := range []string{" right", " wrong"} {
					g := newGame(t, start(2, "sms", "mail", "totp", "push"))
					g.play(e.moves)
					g.play([]step{{ms, e.last + verb, w.last}, {ms, "sms" + verb, w.earlier}, {ms, "mail" + verb, w.open},
						{ms, "mail renew", w.renew}, {ms, "sms renew", w.renew}})
				}
			}
		})
	}
}

// The first ending wins: neither another ending nor time replaces it (D-2FA-05).
func TestFirstEndingWins(t *testing.T) {
	for _, e := range endings {
		if e.name == "executing" { // not ended yet: Finish and Abort end it
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			g := newGame(t, start(2, "sms", "mail", "totp", "push"))
			g.play(e.moves)
			for _, ms := range []int64{600_000, 700_000} {
				for _, why := range []challenge.Reason{challenge.TooManyWrong, challenge.Superseded, challenge.CredentialsChanged} {
					if next := g.c.Close(at(ms), why); !reflect.DeepEqual(next, g.c) {
						t.Errorf("Close for %d at %d ms: %+v", why, ms, next)
					}
				}
				if !g.c.Ended(at(ms)) {
					t.Errorf("not ended at %d ms", ms)
				}
			}
			if next := g.c.Finish(); !reflect.DeepEqual(next, g.c) {
				t.Errorf("Finish: %+v", next)
			}
			if next := g.c.Abort(at(600_000)); !reflect.DeepEqual(next, g.c) {
				t.Errorf("Abort: %+v", next)
			}
			if e.name == "expired" {
				return
			}
			if g.c.Expired(at(700_000)) {
				t.Error("an ended challenge expired")
			}
		})
	}
}

func TestClose(t *testing.T) {
	for _, c := range []struct {
		ms   int64
		want challenge.State
	}{{0, challenge.Closed}, {599_999, challenge.Closed}, {600_000, challenge.Pending}, {600_001, challenge.Pending}} {
		for _, why := range []challenge.Reason{challenge.Superseded, challenge.CredentialsChanged} {
			next := start(1, "sms").Close(at(c.ms), why)
			reason := challenge.NotClosed
			if c.want == challenge.Closed {
				reason = why
			}
			if next.State != c.want || next.Reason != reason {
				t.Errorf("at %d ms for %d: state %d, reason %d", c.ms, why, next.State, next.Reason)
			}
		}
	}
	g := newGame(t, start(1, "sms"))
	g.do(0, "sms right")
	if next := g.c.Close(at(0), challenge.Superseded); !reflect.DeepEqual(next, g.c) {
		t.Errorf("an executing challenge was closed: %+v", next)
	}
}

// Deadline is the one instant at which time changes a state.
func TestDeadline(t *testing.T) {
	states := map[challenge.State]struct{ expires, ended, completed bool }{
		challenge.Pending:   {expires: true},
		challenge.Executing: {completed: true},
		challenge.Done:      {ended: true, completed: true},
		challenge.Denied:    {ended: true},
		challenge.Closed:    {ended: true},
	}
	for s, want := range states {
		c := start(1, "sms")
		c.State = s
		for ms, late := range map[int64]bool{0: false, 599_999: false, 600_000: true, 600_001: true} {
			expired := late && want.expires
			if c.Expired(at(ms)) != expired || c.Ended(at(ms)) != (want.ended || expired) || c.Completed() != want.completed {
				t.Errorf("%s at %d ms: expired %t, ended %t, completed %t", stateNames[s], ms, c.Expired(at(ms)), c.Ended(at(ms)),
					c.Completed())
			}
			open := map[bool]string{true: "pending", false: "CHALLENGE_CLOSED"}[s == challenge.Pending]
			if expired {
				open = "CHALLENGE_EXPIRED"
			}
			storetest.Equal(t, told(c, c.Open(at(ms))), open, stateNames[s], "at", ms)
		}
		deadline := time.Time{}
		if want.expires {
			deadline = at(600_000)
		}
		if !c.Deadline().Equal(deadline) {
			t.Errorf("%s: deadline %v, want %v", stateNames[s], c.Deadline(), deadline)
		}
	}
}

func TestParseName(t *testing.T) {
	for s, want := range map[string]challenge.Name{
		"TOTP": challenge.TOTP, "PUSH": challenge.PUSH, "MAIL": challenge.MAIL, "SMS": challenge.SMS,
		"PUSH_OTP": challenge.PUSH, // D-2FA-08
		"":         "", "sms": "", "push_otp": "", "EMAIL": "", "SMS ": "",
	} {
		if got, ok := challenge.ParseName(s); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", s, got, ok)
		}
	}
	for n, want := range map[challenge.Name]bool{challenge.SMS: true, challenge.MAIL: true, challenge.TOTP: false,
		challenge.PUSH: false} {
		if n.Sent() != want {
			t.Errorf("%s is sent: %t", n, n.Sent())
		}
	}
}
