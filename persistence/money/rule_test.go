package money_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

var ruler = audit.By{UserID: "u1"}

// simpleRule is a valid rule.
func simpleRule(label string) policy.Rule {
	return policy.Rule{Label: label, Status: policy.Active, Kinds: []policy.Kind{policy.Withdrawal},
		Effect: policy.Effect{Type: policy.Approval, Group: "treasury", Required: 2}}
}

func TestRuleStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) policy.Store { return money.NewRules(db) },
		storetest.Cases[policy.Store]{"Versions": ruleVersions, "Admin": ruleAdmin, "AtOnce": rulesAtOnce}, "money_rule")
}

func ruleVersions(t *testing.T, s policy.Store, _ commit.Committer) {
	rule := func(label string, version int64) policy.Rule {
		return persistencetest.Whole(t, func(r *policy.Rule) { r.Label, r.Version, r.Status = label, version, policy.Active })
	}
	put := func(label string, version int64, ends bool) error {
		return s.Put(t.Context(), rule(label, version), ends, time.Now())
	}
	storetest.Must(t, put("b", 1, false))
	storetest.Must(t, put("a", 1, false))
	storetest.Must(t, put("a", 2, false))
	storetest.Must(t, put("c", 1, false))
	storetest.Must(t, put("c", 2, true))
	if err := put("a", 2, false); fault.CodeOf(err) != fault.RecordAlreadyExist {
		t.Errorf("the second version 2 is %v", err)
	}
	all := storetest.Value(s.Rules(t.Context()))(t)
	want := []policy.Rule{rule("a", 2), rule("b", 1)}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("\n got %+v\nwant %+v", all, want)
	}
	if one, err := s.Rules(t.Context(), "b", "c"); err != nil || !reflect.DeepEqual(one, want[1:]) {
		t.Errorf("%+v, %v", one, err)
	}
	for label, want := range map[string]int64{"a": 2, "c": 2, "none": 0} {
		if n, err := s.Last(t.Context(), label); n != want || err != nil {
			t.Errorf("the last version of %s is %d, %v", label, n, err)
		}
	}
}

func administer(s policy.Store, c commit.Committer) *policy.Admin {
	return &policy.Admin{Store: s, Changes: admin.Changes{Commit: c, Now: time.Now, Topic: change.Policy},
		Members: func(context.Context, string) (int, error) { return 2, nil }}
}

// A change may not ask for more approvals than a group has members. A label that was removed keeps its versions.
func ruleAdmin(t *testing.T, s policy.Store, c commit.Committer) {
	a := administer(s, c)
	set := func(required int) func(policy.Rule) (policy.Rule, error) {
		return func(r policy.Rule) (policy.Rule, error) { r.Effect.Required = required; return r, nil }
	}
	storetest.Must(t, a.Add(t.Context(), ruler, simpleRule("a")))
	storetest.Must(t, a.Change(t.Context(), ruler, "a", set(1)))
	storetest.Wants(t, a.Change(t.Context(), ruler, "a", set(3)), fault.InvalidField)
	storetest.Must(t, a.Remove(t.Context(), ruler, "a"))
	storetest.Must(t, a.Add(t.Context(), ruler, simpleRule("a")))
	all := storetest.Value(s.Rules(t.Context()))(t)
	if len(all) != 1 || all[0].Version != 4 || all[0].Effect.Required != 2 {
		t.Errorf("%+v", all)
	}
}

// Each change that succeeds is a version of its own.
func rulesAtOnce(t *testing.T, s policy.Store, c commit.Committer) {
	a := administer(s, c)
	storetest.Must(t, a.Add(t.Context(), ruler, simpleRule("a")))
	var wait sync.WaitGroup
	var done atomic.Int64
	for i := range 8 {
		wait.Go(func() {
			err := a.Change(t.Context(), ruler, "a", func(r policy.Rule) (policy.Rule, error) {
				r.Match.Account.Levels = append(r.Match.Account.Levels, i)
				return r, nil
			})
			switch fault.CodeOf(err) {
			case "":
				done.Add(1)
			case fault.InvalidState:
			default:
				t.Error(err)
			}
		})
	}
	wait.Wait()
	all := storetest.Value(s.Rules(t.Context()))(t)
	if n := done.Load(); n == 0 || all[0].Version != 1+n || int64(len(all[0].Match.Account.Levels)) != n {
		t.Errorf("%d changes made %+v", n, all[0])
	}
}

// waitingForLocks waits until that many sessions wait for locks.
func waitingForLocks(t *testing.T, db *persistence.DB, n int) {
	t.Helper()
	for got := -1; got < n; time.Sleep(time.Millisecond) {
		storetest.Must(t, db.Conn(t.Context()).NewRaw("SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "+
			"(SELECT oid FROM pg_database WHERE datname = current_database()) OR NOT granted AND locktype = 'transactionid'").
			Scan(t.Context(), &got))
	}
}

// A unit and a transaction of PostgreSQL lock new and known gates in one order, and gates before balances. So neither
// waits for the other in a circle.
func TestGatesAreLockedInOneOrder(t *testing.T) {
	db := persistencetest.OpenWith(t, pgtest.DSN(t), persistence.Options{})
	past := money.NewTransactions(db)
	at := time.UnixMilli(1000)
	books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "1")
	gate := func(key string, version int64) transaction.PassGate {
		return transaction.PassGate{Key: key, Version: version, At: at}
	}
	storetest.Must(t, db.Commit(t.Context(), gate("b", 0)))
	lock := func(ctx context.Context, keys ...string) {
		_, err := past.LockGates(ctx, keys, at)
		storetest.Must(t, err)
	}
	unit, other, booked := make(chan error, 1), make(chan error, 1), make(chan bool)
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		lock(ctx, "b")
		go func() {
			defer close(booked)
			books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "2", gate("b", 1))
		}()
		waitingForLocks(t, db, 1)
		_, err := db.Conn(ctx).NewRaw("SELECT 1 FROM balance FOR UPDATE").Exec(ctx)
		return err
	}))
	<-booked
	rollback := errors.New("rollback")
	storetest.Is(t, db.InTx(t.Context(), func(ctx context.Context) error {
		lock(ctx, "a")
		go func() {
			other <- db.InTx(t.Context(), func(ctx context.Context) error { lock(ctx, "a", "b"); return nil })
		}()
		waitingForLocks(t, db, 1)
		go func() { unit <- db.Commit(t.Context(), gate("a", 0), gate("b", 2)) }()
		waitingForLocks(t, db, 2)
		return rollback
	}), rollback)
	storetest.Must(t, <-other)
	if err := <-unit; err != nil && !errors.Is(err, commit.ErrFenced) { // either makes the gate a
		t.Error(err)
	}
}

// A transaction that is refused as UNAVAILABLE by its own rules is no outage: units that wait meanwhile are committed.
func TestRefusedTransactionIsNoOutage(t *testing.T) {
	db := persistencetest.OpenWith(t, pgtest.DSN(t), persistence.Options{})
	past, at := money.NewTransactions(db), time.UnixMilli(1000)
	storetest.Must(t, db.Commit(t.Context(), transaction.PassGate{Key: "a", At: at}))
	units := make(chan error, 2)
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		_, err := past.LockGates(ctx, []string{"a"}, at)
		storetest.Must(t, err)
		go func() { units <- db.Commit(t.Context(), transaction.PassGate{Key: "a", Version: 1, At: at}) }()
		waitingForLocks(t, db, 1)
		go func() { units <- db.Commit(t.Context(), transaction.PassGate{Key: "b", At: at}) }()
		for db.Waiting() == 0 {
			time.Sleep(time.Millisecond)
		}
		storetest.Wants(t, db.InTx(t.Context(), func(context.Context) error {
			return fault.New(fault.Unavailable, "the account is busy")
		}), fault.Unavailable)
		return nil
	}))
	storetest.Must(t, <-units)
	storetest.Must(t, <-units)
}

// Sums of one account or destination, and of many, are read by their indexes, also as PostgreSQL plans a statement that
// it has executed often: for any arguments.
func TestNarrowSumsReadByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		requests := transaction.Flow{Kind: policy.Withdrawal, Direction: policy.Out}
		claims := requests
		claims.Left = true
		for index, q := range map[string]transaction.CountedQuery{"withdrawal_user": {Flow: requests, UserID: "u"},
			"withdrawal_destination": {Flow: requests, Destination: "d"},
			"withdrawal_left_to":     {Flow: claims, Destination: "d"}} {
			for _, many := range []int{1, 64} {
				var queries []transaction.CountedQuery
				for i := range many {
					one := q
					if one.UserID = ""; q.UserID != "" {
						one.UserID = fmt.Sprint("u", i)
					} else {
						one.Destination = fmt.Sprint("d", i)
					}
					queries = append(queries, one)
				}
				text, args := money.NewTransactions(db).CountedText(queries...)
				name := fmt.Sprint(index, many)
				settings := []string{"SET plan_cache_mode = force_generic_plan",
					"DO $do$ BEGIN EXECUTE $of$PREPARE " + name + " AS " + text + "$of$; END $do$"}
				if db.Postgres() {
					text = "EXECUTE " + name + " (" + strings.Repeat("'1', ", args-1) + "'1')"
				} else {
					text = regexp.MustCompile(`\$[0-9]+`).ReplaceAllString(text, "'1'")
				}
				plan := persistencetest.ExplainText(t, db, text, settings...)
				if !regexp.MustCompile(`(?i)using (index )?` + index + `\b`).MatchString(plan) {
					t.Errorf("%d sums do not use %s:\n%s", many, index, plan)
				}
			}
		}
	})
}
