package actors

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// A primed challenge equals the created one in every field except those that only a step sets.
func TestPrimeKeepsEverything(t *testing.T) {
	// Nothing is primed while factors are off, passkeys take part or the user logged in elsewhere, and a new challenge has
	// no answer.
	later := []string{"State", "Version", "Reason", "Wrong", "Last", "Failures", "Generation", "Order", "CompletedAt",
		"Off", "Proof", "Remembered", "Resistant", "Passkeys", "Entry", "Recovered", "Settling",
		"Login"}
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if !slices.Contains(later, v.Type().Field(i).Name) {
					fill(v.Field(i))
				}
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0))
			fill(v.Index(1))
		case reflect.String:
			v.SetString(string(rune('a'+n%26)) + "ü")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer: // of an answer, which a new challenge has none of
		case reflect.Uint8:
			v.SetUint(uint64(n % 256))
		default:
			v.SetInt(int64(n))
		}
	}
	var c challenge.Challenge
	fill(reflect.ValueOf(&c).Elem())
	c.Version = 1
	p := prime(challenge.Insert{Challenge: c, Command: []byte("sealed"), Intent: []byte("shown")})
	storetest.Same(t, unprime(c.ID, p), c)
	if string(p.Command) != "sealed" || string(p.Intent) != "shown" {
		t.Errorf("the command became %q, the intent %q", p.Command, p.Intent)
	}
}

// One row reports an outcome: the result, the user and the actor.
func TestReportInOneRow(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	a := &challengeActor{d: &Deps{Now: func() time.Time { return now }}}
	c := challenge.Challenge{ID: "c1", UserID: "u1", Action: "LOGIN",
		Body: challenge.Body{Starter: challenge.Starter{IP: "192.0.2.1", RequestID: "r1"}}}
	row := audit.Record{At: now, UserID: "u1", Action: "LOGIN", Target: "c1", IP: "192.0.2.1", RequestID: "r1"}
	by := audit.By{UserID: "admin", IP: "192.0.2.9", RequestID: "r9"}

	login := row
	login.ActorID, login.Outcome, login.Detail = "u1", audit.Success, "session s1"
	done := row
	done.ActorID, done.Outcome, done.IP, done.RequestID = "admin", audit.Success, by.IP, by.RequestID
	failed := row
	failed.Outcome, failed.Detail = audit.Refused, "INVALID_STATE"
	for _, test := range []struct {
		result challenge.Result
		by     audit.By
		want   audit.Record
	}{
		{challenge.Result{Success: true, UserID: "u1", SessionID: "s1"}, audit.By{}, login},
		{challenge.Result{Success: true}, by, done},
		{challenge.Failed(fault.New(fault.InvalidState, "no")), audit.By{}, failed},
	} {
		storetest.Equal(t, a.report(c, test.result, test.by), test.want)
	}
}
