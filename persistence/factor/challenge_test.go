package factor_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// made is when the first challenge of these tests was made.
var made = time.UnixMilli(1_700_000_000_000)

// sampled returns a challenge of a user, made n seconds after the first one, that ends after three minutes.
func sampled(n int, userID string) challenge.Challenge {
	at := made.Add(time.Duration(n) * time.Second)
	return challenge.Challenge{ID: id.New(at), UserID: userID, Action: "LOGIN", Flow: challenge.FlowLogin,
		CreatedAt: at.UnixMilli(), ExpiresAt: at.Add(3 * time.Minute).UnixMilli(), Version: 1,
		Body: challenge.Body{Subject: userID, Required: 1, CV: 4, Brief: "ğ",
			Methods: []challenge.Method{{ID: "m1", Name: challenge.SMS, LifetimeMs: 120_000}}}}
}

func keeps(t *testing.T, db *persistence.DB, command, intent []byte, cs ...challenge.Challenge) {
	t.Helper()
	for _, c := range cs {
		storetest.Must(t, db.Commit(t.Context(), challenge.Insert{Challenge: c, Command: command, Intent: intent}))
	}
}

// A challenge is read as it was written. Without an account its owner is the subject, and it names no user.
func TestChallengeStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, first, decoy := factor.NewChallenges(db), sampled(0, "u1"), sampled(1, "")
		decoy.Kind, decoy.Subject = challenge.Decoy, "?decoy"
		bare := sampled(2, "u1")
		keeps(t, db, []byte("command"), []byte("intent"), first, decoy)
		keeps(t, db, nil, nil, bare)
		for _, want := range []challenge.Challenge{first, decoy, bare} {
			got := storetest.Value(store.Load(t.Context(), want.ID))(t)
			storetest.Same(t, got, want)
		}
		_, err := store.Load(t.Context(), "unknown")
		storetest.Wants(t, err, fault.ChallengeNotFound)
		for id, want := range map[string]string{first.ID: "command intent", bare.ID: " "} {
			command, intent, err := store.Sealed(t.Context(), id)
			if got := string(command) + " " + string(intent); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %q", id, got, err, want)
			}
		}
		_, _, err = store.Sealed(t.Context(), "unknown")
		storetest.Wants(t, err, fault.RecordNotFound)
	})
}

// A newer challenge closes a pending one, whatever its version, and no other.
func TestChallengeIsSuperseded(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, open, done := factor.NewChallenges(db), sampled(0, "u1"), sampled(1, "u1")
		denied := sampled(2, "u1")
		denied.State, denied.Reason = challenge.Closed, challenge.TooManyWrong
		done.State = challenge.Done
		keeps(t, db, nil, nil, open, done, denied)
		for _, c := range []challenge.Challenge{open, done, denied} {
			storetest.Must(t, db.Commit(t.Context(), challenge.Supersede{ID: c.ID}))
		}
		for id, want := range map[string]challenge.Challenge{
			open.ID: {State: challenge.Closed, Version: 2, Body: challenge.Body{Reason: challenge.Superseded}},
			done.ID: {State: challenge.Done, Version: 1}, denied.ID: {State: challenge.Closed, Version: 1,
				Body: challenge.Body{Reason: challenge.TooManyWrong}}} {
			got, err := store.Load(t.Context(), id)
			if err != nil || got.State != want.State || got.Version != want.Version || got.Reason != want.Reason {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
	})
}

// Open and Pending list the challenges of a user that can be answered: the first in the order of creation, the second
// in the opposite one and in full.
func TestOpenChallenges(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, first, second, done := factor.NewChallenges(db), sampled(0, "u1"), sampled(1, "u1"), sampled(2, "u1")
		done.State = challenge.Done
		keeps(t, db, []byte("command"), []byte("intent"), second, first, done, sampled(3, "u2"))
		end := time.UnixMilli(first.ExpiresAt)
		for now, want := range map[time.Time][]challenge.Challenge{made: {first, second},
			end.Add(-time.Millisecond): {first, second}, end: {second}, end.Add(time.Second): nil} {
			refs := storetest.Value(store.Open(t.Context(), "u1", now))(t)
			pending := storetest.Value(store.Pending(t.Context(), "u1", now))(t)
			if len(refs) != len(want) || len(pending) != len(want) {
				t.Fatalf("%v: %+v, %+v, want %d", now, refs, pending, len(want))
			}
			slices.Reverse(pending)
			for i, c := range want {
				storetest.Same(t, refs[i], challenge.Ref{ID: c.ID, Action: "LOGIN", CreatedAt: c.CreatedAt,
					ExpiresAt: c.ExpiresAt})
				storetest.Same(t, pending[i], challenge.Insert{Challenge: c, Command: []byte("command"),
					Intent: []byte("intent")})
			}
		}
	})
}

// States returns the state of every challenge that exists.
func TestStatesOfChallenges(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, want, ids := factor.NewChallenges(db), map[string]challenge.State{}, []string{"unknown", `x",'`}
		for state := challenge.Pending; state <= challenge.Closed; state++ {
			c := sampled(int(state), "u1")
			c.State = state
			keeps(t, db, nil, nil, c)
			want[c.ID], ids = state, append(ids, c.ID)
		}
		keeps(t, db, nil, nil, sampled(9, "u1"))
		got := storetest.Value(store.States(t.Context(), ids))(t)
		storetest.Same(t, got, want)
		got = storetest.Value(store.States(t.Context(), nil))(t)
		storetest.Equal(t, len(got), 0)
	})
}

// A challenge has one outcome. It is purged after its end, if its challenge is old enough.
func TestOutcomeStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := factor.NewChallenges(db)
		var all []challenge.Outcome
		for n := range 3 {
			c := sampled(n, "u1")
			o := challenge.Outcome{ChallengeID: c.ID, CreatedAt: c.CreatedAt + 7, ExpiresAt: c.ExpiresAt,
				Sealed: []byte{byte(n), 0, 255}}
			storetest.Must(t, db.Commit(t.Context(), challenge.Record{Outcome: o}))
			all = append(all, o)
		}
		storetest.Wants(t, db.Commit(t.Context(), challenge.Record{Outcome: all[0]}), fault.RecordAlreadyExist)
		_, err := store.Outcome(t.Context(), "unknown")
		storetest.Wants(t, err, fault.ChallengeNotCompleted)
		kept := func() (left []int) {
			for i, o := range all {
				got, err := store.Outcome(t.Context(), o.ChallengeID)
				if fault.CodeOf(err) == fault.ChallengeNotCompleted {
					continue
				}
				storetest.Must(t, err)
				storetest.Same(t, got, o)
				left = append(left, i)
			}
			return left
		}
		end := time.UnixMilli(all[1].ExpiresAt)
		for _, c := range []struct {
			now, made time.Time
			want      []int
		}{{made, made.Add(time.Hour), []int{0, 1, 2}}, {end, made.Add(time.Second), []int{1, 2}},
			{end.Add(-time.Millisecond), made.Add(time.Hour), []int{1, 2}}, {end, made.Add(time.Hour), []int{2}}} {
			storetest.Must(t, store.PurgeOutcomes(t.Context(), c.now, c.made))
			storetest.Same(t, kept(), c.want)
		}
	})
}

// An executing challenge is stuck after its last change, in the order of these.
func TestStuckChallenges(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, first, second, open := factor.NewChallenges(db), sampled(0, "u1"), sampled(1, "u1"), sampled(0, "u1")
		first.State, second.State = challenge.Executing, challenge.Executing
		keeps(t, db, nil, nil, second, first, open)
		for before, want := range map[time.Duration][]string{0: nil, time.Millisecond: {first.ID}, time.Second: {first.ID},
			time.Second + time.Millisecond: {first.ID, second.ID}} {
			storetest.Same(t, storetest.Value(store.Stuck(t.Context(), made.Add(before), 9))(t), want, before)
		}
		storetest.Same(t, storetest.Value(store.Stuck(t.Context(), made.Add(time.Hour), 1))(t), []string{first.ID})
	})
}

// The evidence of an ended challenge outlives it, without its command.
func TestEvidenceStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, done, open, bare, late := factor.NewChallenges(db), sampled(0, "u1"), sampled(1, "u1"), sampled(2, "u1"),
			sampled(60, "u1")
		done.State, bare.State, late.State = challenge.Done, challenge.Done, challenge.Done
		keeps(t, db, []byte("command"), []byte("intent"), done, open, late)
		keeps(t, db, []byte("command"), nil, bare)
		has := func(c challenge.Challenge, want fault.Code) {
			t.Helper()
			got, err := store.Evidence(t.Context(), c.ID)
			storetest.Wants(t, err, want)
			if err == nil && !reflect.DeepEqual(got, challenge.Insert{Challenge: c, Intent: []byte("intent")}) {
				t.Errorf("%+v", got)
			}
		}
		for range 2 { // once more after an interrupted purge
			has(done, "")
			has(late, "")
			has(bare, fault.RecordNotFound)
			storetest.Must(t, store.Purge(t.Context(), made.Add(time.Minute)))
		}
		has(open, fault.RecordNotFound)
		has(challenge.Challenge{ID: "unknown"}, fault.RecordNotFound)
		for c, want := range map[string]fault.Code{done.ID: fault.ChallengeNotFound, open.ID: fault.ChallengeNotFound,
			late.ID: ""} {
			_, err := store.Load(t.Context(), c)
			storetest.Wants(t, err, want)
		}
		storetest.Must(t, store.PurgeEvidence(t.Context(), made))
		has(done, "")
		storetest.Must(t, store.PurgeEvidence(t.Context(), made.Add(time.Second)))
		has(done, fault.RecordNotFound)
		has(late, "")
	})
}

// Old wrong values are purged a day after those of a challenge. A row of consecutive ones outlives every window
// (D-2FA-13), except that of a decoy, or strangers could fill the table.
func TestPurgeOfBudgets(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := factor.NewChallenges(db)
		for _, b := range []challenge.Budget{{Subject: "plain"}, {Subject: "otp", OTPRow: 1}, {Subject: "totp", TOTPRow: 1},
			{Subject: "?decoy", OTPRow: 1}} {
			b.Flow = challenge.FlowLogin
			storetest.Must(t, db.Commit(t.Context(), challenge.Spend{Budget: b}))
		}
		kept := func() (left string) {
			for _, subject := range []string{"plain", "otp", "totp", "?decoy"} {
				b := storetest.Value(store.Budget(t.Context(), subject, challenge.FlowLogin))(t)
				if b.Version > 0 {
					left += subject + " "
				}
			}
			return left
		}
		now := time.Now()
		for _, c := range []struct {
			made time.Time
			want string
		}{{now.Add(23 * time.Hour), "plain otp totp ?decoy "}, {now.Add(25 * time.Hour), "otp totp "}} {
			storetest.Must(t, store.Purge(t.Context(), c.made))
			storetest.Equal(t, kept(), c.want, c.made.Sub(now))
		}
	})
}

// Switching the factors of one account ends its rows and leaves those of other accounts. A verdict that was made
// before is fenced out.
func TestSwitchOffAndOn(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, users := t.Context(), factor.NewChallenges(db), account.NewUsers(db)
		one, two := usertest.Sample(1), usertest.Sample(2)
		storetest.Must(t, db.Commit(ctx, one, two))
		login := challenge.FactorOf(challenge.FlowLogin, challenge.SMS)
		for _, u := range []string{one.ID, two.ID} {
			storetest.Must(t, db.Commit(ctx, challenge.SwitchOff{UserID: u, Factor: login},
				challenge.Spend{Budget: challenge.Budget{Subject: u, Flow: challenge.FlowLogin, OTPRow: 100, TOTPRow: 2}}))
		}
		storetest.Must(t, db.Commit(ctx, challenge.SwitchOff{UserID: one.ID,
			Factor: challenge.FactorOf(challenge.FlowSession, challenge.TOTP)}))
		storetest.Must(t, db.Commit(ctx, challenge.SwitchOff{UserID: challenge.DecoyMark, Factor: login})) // unknown
		u, err := users.Get(ctx, one.ID)
		if storetest.Must(t, err); u.FactorsOff != login|challenge.FactorOf(challenge.FlowSession, challenge.TOTP) ||
			u.CV != one.CV || u.Account().Off != u.FactorsOff {
			t.Errorf("off %b, cv %d", u.FactorsOff, u.CV)
		}
		storetest.Must(t, db.Commit(ctx, challenge.SwitchOn{UserID: one.ID}))
		for id, want := range map[string]int{one.ID: 0, two.ID: 100} {
			u := storetest.Value(users.Get(ctx, id))(t)
			b := storetest.Value(store.Budget(ctx, id, challenge.FlowLogin))(t)
			if b.OTPRow != want || (u.FactorsOff != 0) != (want > 0) || (b.Version == 1) != (want > 0) {
				t.Errorf("%s: off %b, %+v", id, u.FactorsOff, b)
			}
		}
	})
}
