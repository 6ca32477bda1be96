package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/idempotency"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

func TestIdempotencyOnADatabase(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		ring := keyringtest.Ring(t, time.Now)
		keeper := func() *auth.Idempotent {
			return &auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Ring: ring, Now: time.Now}
		}
		i, who := keeper(), rest.Caller{UserID: "u1"}
		var runs atomic.Int64
		effect := func(ctx context.Context) (int, []byte, []rest.Header, error) {
			runs.Add(1)
			err := db.Commit(ctx, audit.Record{At: time.Now(), Action: "EFFECT"})
			return 200, []byte(`{"n":1}`), []rest.Header{{Name: "x-a", Value: "b"}}, err
		}
		run := func(i *auth.Idempotent, key string, body byte, fn func(context.Context) (int, []byte, []rest.Header,
			error)) (int, string, bool, error) {
			status, b, _, replayed, err := i.Run(t.Context(), who, key, "POST", "/x", [32]byte{body},
				func(context.Context) error { return nil }, fn)
			return status, string(b), replayed, err
		}
		rows := func() int64 {
			return storetest.Value(kit.NewAudit(db).Verify(t.Context(), []byte(persistencetest.AuditKey)))(t)
		}

		var wg sync.WaitGroup
		var conflicts atomic.Int64
		for range 50 {
			wg.Go(func() {
				switch status, body, _, err := run(i, "k1", 1, effect); {
				case fault.CodeOf(err) == fault.IdempotencyConflict:
					conflicts.Add(1)
				case err != nil || status != 200 || body != `{"n":1}`:
					t.Errorf("%d %s %v", status, body, err)
				}
			})
		}
		wg.Wait()
		if runs.Load() != 1 || rows() != 1 {
			t.Fatalf("%d runs, %d effects; %d callers were told to wait", runs.Load(), rows(), conflicts.Load())
		}
		if status, body, replayed, err := run(keeper(), "k1", 1, effect); status != 200 || body != `{"n":1}` || !replayed ||
			err != nil {
			t.Errorf("after a restart: %d %s %v %v", status, body, replayed, err)
		}
		if status, _, replayed, err := run(i, "k1", 2, effect); fault.CodeOf(err) != fault.IdempotencyMismatch ||
			status != 0 || replayed {
			t.Errorf("another body: %d %t %v", status, replayed, err)
		}

		// A failure is neither kept nor effective: the next try runs.
		failure := func(ctx context.Context) (int, []byte, []rest.Header, error) {
			effect(ctx)
			return 500, nil, nil, errors.New("trouble")
		}
		contradiction := func(ctx context.Context) (int, []byte, []rest.Header, error) {
			status, body, headers, _ := effect(ctx)
			return status, body, headers, errors.New("trouble after the effect")
		}
		for _, fails := range []func(context.Context) (int, []byte, []rest.Header, error){failure, contradiction} {
			if _, _, replayed, err := run(i, "k3", 1, fails); err == nil || replayed {
				t.Errorf("a failure was taken for an answer: %v, replayed %t", err, replayed)
			}
		}
		storetest.Equal(t, rows(), 1, "effects, want the first one alone")
		if status, _, replayed, err := run(i, "k3", 1, effect); status != 200 || replayed || err != nil {
			t.Errorf("after the failure: %d %v %v", status, replayed, err)
		}

		// A refusal leaves no effect but the audit row that reports it.
		refusal := func(ctx context.Context) (int, []byte, []rest.Header, error) {
			_, body, headers, err := effect(ctx)
			return 422, body, headers, errors.Join(err, db.Commit(ctx, audit.Record{At: time.Now(), Action: "DENIED",
				Outcome: audit.Refused}))
		}
		for _, again := range []bool{false, true} {
			if status, _, replayed, err := run(i, "k4", 1, refusal); status != 422 || replayed != again || err != nil {
				t.Errorf("a refusal: %d, replayed %t, %v", status, replayed, err)
			}
		}
		if rows() != 3 {
			t.Errorf("%d rows of the audit, want two effects and a refusal", rows())
		}
	})
}

// unreadable is a store whose answers are damaged.
type unreadable struct{ record idempotency.Record }

func (u unreadable) Find(context.Context, string, time.Time) (idempotency.Record, error) {
	return u.record, nil
}

func (unreadable) Purge(context.Context, time.Time) error { return nil }

// An answer that cannot be read is an error, and the operation does not run again.
func TestUnreadableAnswer(t *testing.T) {
	ring, id := keyringtest.Ring(t, time.Now), ""
	id = ring.StableHash("idempotency", "u1", "", "POST", "/x", "k")
	for name, sealed := range map[string][]byte{"open stored answer": []byte("x"),
		"invalid character": ring.Seal([]byte("no JSON"), idempotency.Data(id))} {
		i := &auth.Idempotent{Store: unreadable{idempotency.Record{ID: id, Sealed: sealed}}, Ring: ring, Now: time.Now}
		status, body, _, replayed, err := i.Run(t.Context(), rest.Caller{UserID: "u1"}, "k", "POST", "/x", [32]byte{},
			func(context.Context) error { t.Error("admitted"); return nil }, nil)
		if err == nil || !strings.Contains(err.Error(), name) || status != 0 || body != nil || replayed {
			t.Errorf("%s: %d %s, replayed %t, %v", name, status, body, replayed, err)
		}
	}
}

// A key belongs to its caller and to the operation. The same key of another user, of a scheduled client or at
// another endpoint is another key; its answer is never shown.
func TestIdempotencyKeysAreNotShared(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		i := &auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Ring: keyringtest.Ring(t, time.Now),
			Now: time.Now}
		for _, c := range []struct {
			who          rest.Caller
			method, path string
		}{
			{rest.Caller{UserID: "u1"}, "POST", "/x"}, {rest.Caller{UserID: "u2"}, "POST", "/x"},
			{rest.Caller{Cron: "u1"}, "POST", "/x"}, {rest.Caller{UserID: "u1"}, "POST", "/y"},
			{rest.Caller{UserID: "u1"}, "PUT", "/x"},
		} {
			mine := c.who.UserID + c.who.Cron + c.method + c.path
			for n := range 2 {
				ran := false
				_, body, _, replayed, err := i.Run(t.Context(), c.who, "k", c.method, c.path, [32]byte{1},
					func(context.Context) error { return nil },
					func(context.Context) (int, []byte, []rest.Header, error) {
						ran = true
						return 200, []byte(mine), nil, nil
					})
				if err != nil || ran != (n == 0) || replayed != (n == 1) || string(body) != mine {
					t.Errorf("%s, call %d: ran %t, replayed %t, %s, %v", mine, n, ran, replayed, body, err)
				}
			}
		}
	})
}

// An answer is found again after the hashing key was replaced, and one that is kept
// afterwards when the old key has ended.
func TestIdempotencyOutlivesAReplacedKey(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		var ahead atomic.Int64
		start := time.Now()
		now := func() time.Time { return start.Add(time.Duration(ahead.Load())) }
		keys := keyringtest.Keeper(t, now)
		i := &auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Ring: keys.Ring(), Now: now}
		run := func(key string) (replayed bool) {
			t.Helper()
			_, _, _, replayed, err := i.Run(t.Context(), rest.Caller{UserID: "u1"}, key, "POST", "/x", [32]byte{1},
				func(context.Context) error { return nil },
				func(context.Context) (int, []byte, []rest.Header, error) { return 200, []byte("{}"), nil, nil })
			storetest.Must(t, err)
			return replayed
		}
		run("before")
		keyringtest.Replace(t, keys)
		ahead.Add(int64(keyring.Notice))
		if !run("before") || run("after") || !run("after") {
			t.Error("an operation ran twice, or not at all")
		}
		ahead.Add(int64(keyring.HashGrace) - int64(time.Hour) - int64(keyring.Notice))
		run("late")
		ahead.Add(int64(2 * time.Hour))
		if !run("late") {
			t.Error("an answer was lost with the old key")
		}
	})
}

// An answer with a secret is replayed for ten minutes and can be purged then. A later repeat gets the refusal of that
// moment.
func TestSecretIsReplayedForTenMinutes(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, now := kit.NewIdempotency(db), time.UnixMilli(1_700_000_000_000).UTC()
		ring, began := keyringtest.Ring(t, time.Now), now
		i := &auth.Idempotent{Store: store, Commit: db, Ring: ring, Now: func() time.Time { return now },
			Secret: func(endpoint string) bool { return endpoint == "POST /secret" }}
		run := func(path string, status int, text string) (string, bool) {
			_, body, _, replayed, err := i.Run(t.Context(), rest.Caller{UserID: "u1"}, "k", "POST", path, [32]byte{1},
				func(context.Context) error { return nil },
				func(context.Context) (int, []byte, []rest.Header, error) { return status, []byte(text), nil, nil })
			storetest.Must(t, err)
			return string(body), replayed
		}
		run("/secret", 200, "s3cret")
		run("/plain", 200, "plain")
		for _, c := range []struct {
			after          time.Duration
			secret, plain  string
			again, another bool
		}{{10 * time.Minute, "s3cret", "plain", true, true},
			{10*time.Minute + time.Millisecond, "over", "plain", false, true},
			{24 * time.Hour, "over", "plain", false, true}} {
			now = began.Add(c.after)
			secret, again := run("/secret", 409, "over")
			plain, another := run("/plain", 409, "over")
			if secret != c.secret || again != c.again || plain != c.plain || another != c.another {
				t.Errorf("after %v: %s %t, %s %t", c.after, secret, again, plain, another)
			}
			storetest.Must(t, store.Purge(t.Context(), now.Add(-idempotency.Kept)))
		}
	})
}

// repeats is an idempotency over a database, with one caller and one operation.
type repeats struct {
	*auth.Idempotent
	t  *testing.T
	db *persistence.DB
}

func newRepeats(t *testing.T) *repeats {
	db := persistencetest.SQLite(t)
	return &repeats{&auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Now: time.Now,
		Ring: keyringtest.Ring(t, time.Now)}, t, db}
}

func (r *repeats) run(ctx context.Context, key string, admit error, fn func(context.Context) (int, error)) (status int,
	body string, replayed bool, err error) {
	status, b, _, replayed, err := r.Run(ctx, rest.Caller{UserID: "u1"}, key, "POST", "/x", [32]byte{1},
		func(context.Context) error { return admit },
		func(ctx context.Context) (int, []byte, []rest.Header, error) {
			status, err := fn(ctx)
			return status, []byte("answer"), nil, err
		})
	return status, string(b), replayed, err
}

// effect writes a row and answers with a status.
func (r *repeats) effect(status int) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		return status, r.db.Commit(ctx, audit.Record{At: time.Now(), Action: "EFFECT"})
	}
}

// An answer from 400 on is kept without its effects; every smaller one with them.
func TestRefusalsHaveNoEffect(t *testing.T) {
	for status, effects := range map[int]int{200: 1, 399: 1, 400: 0, 503: 0} {
		r := newRepeats(t)
		for n := range 2 {
			got, body, replayed, err := r.run(t.Context(), "k", nil, r.effect(status))
			if got != status || body != "answer" || replayed != (n == 1) || err != nil {
				t.Errorf("%d, call %d: %d %s, replayed %t, %v", status, n, got, body, replayed, err)
			}
		}
		storetest.Equal(t, len(persistencetest.Acts(t, r.db)), effects, status, "left", "effects")
	}
}

// A call that is not admitted neither runs nor keeps an answer.
func TestNotAdmitted(t *testing.T) {
	r := newRepeats(t)
	no := fault.New(fault.RateLimited, "no")
	_, _, _, err := r.run(t.Context(), "k", no, r.effect(200))
	storetest.Wants(t, err, fault.RateLimited)
	_, _, replayed, err := r.run(t.Context(), "k", nil, r.effect(200))
	if err != nil || replayed || len(persistencetest.Acts(t, r.db)) != 1 {
		t.Errorf("replayed %t, %v, %d effects", replayed, err, len(persistencetest.Acts(t, r.db)))
	}
}

// Of two nodes that answer one key at the same time, the later one gets a conflict and has no effect.
func TestAnsweredElsewhere(t *testing.T) {
	r := newRepeats(t)
	other := &repeats{&auth.Idempotent{Store: r.Store, Commit: r.db, Ring: r.Ring, Now: time.Now}, t, r.db}
	_, _, _, err := r.run(t.Context(), "k", nil, func(ctx context.Context) (int, error) {
		_, _, _, err := other.run(ctx, "k", nil, r.effect(200))
		storetest.Must(t, err)
		return 200, nil
	})
	var f *fault.Error
	if storetest.Wants(t, err, fault.IdempotencyConflict); errors.As(err, &f) && f.RetryAfter != time.Second {
		t.Errorf("retry after %v", f.RetryAfter)
	}
	storetest.Equal(t, len(persistencetest.Acts(t, r.db)), 0, "effects")
}

// A call beside a running one of the same key is refused; the key is free again when that one ends.
func TestRunningKey(t *testing.T) {
	r := newRepeats(t)
	no := errors.New("trouble")
	_, _, _, err := r.run(t.Context(), "k", nil, func(ctx context.Context) (int, error) {
		_, _, _, err := r.run(ctx, "k", nil, r.effect(200))
		var f *fault.Error
		if storetest.Wants(t, err, fault.IdempotencyConflict); errors.As(err, &f) && f.RetryAfter != time.Second {
			t.Errorf("retry after %v", f.RetryAfter)
		}
		return 0, no
	})
	if !errors.Is(err, no) {
		t.Error(err)
	}
	if _, _, _, err := r.run(t.Context(), "k", nil, r.effect(200)); err != nil {
		t.Error(err)
	}
}

// An answer is kept for its retention, and nothing runs if it cannot be looked up.
func TestKeptAnswers(t *testing.T) {
	r := newRepeats(t)
	now := time.Now()
	r.Now = func() time.Time { return now }
	call := func() (bool, error) {
		_, _, replayed, err := r.run(t.Context(), "k", nil, r.effect(200))
		return replayed, err
	}
	_, err := call()
	storetest.Must(t, err)
	now = now.Add(idempotency.Retention - time.Second)
	if replayed, err := call(); !replayed || err != nil {
		t.Errorf("before the end of its retention: replayed %t, %v", replayed, err)
	}
	persistencetest.Exec(t, r.db, "ALTER TABLE idempotency RENAME TO broken")
	if _, err := call(); err == nil || len(persistencetest.Acts(t, r.db)) != 1 {
		t.Errorf("ran without knowing what was answered: %v", err)
	}
}
