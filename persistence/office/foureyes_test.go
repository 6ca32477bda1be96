package office_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
	"castellan/domain/proof/device"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

func TestFourEyesStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) foureyes.Store { return office.NewFourEyes(db) },
		storetest.Cases[foureyes.Store]{
			"RoundTrip":  fourEyesRoundTrip,
			"Lists":      fourEyesLists,
			"DecideOnce": fourEyesDecideOnce,
			"Holds":      fourEyesHolds,
			"Purge":      fourEyesPurge,
		}, "four_eyes")
}

var fourEyesAt = time.UnixMilli(1_700_000_000_000).UTC()

// fourEyesRequest returns the nth request; requests are made a minute apart and live for five.
func fourEyesRequest(n int) foureyes.Request {
	made := fourEyesAt.Add(time.Duration(n) * time.Minute)
	return foureyes.Request{ID: id.Of(made, "request"), Method: "POST", Path: "/admin/things/{id}",
		Summary: fmt.Sprint("THING_CHANGE: ", n), RequestedBy: fmt.Sprint("u", n), RequestedAt: made,
		ExpiresAt: made.Add(5 * time.Minute), Status: foureyes.Pending, Sealed: []byte{0, 1, byte(n)}}
}

// decidedRequest returns a request after a decision.
func decidedRequest(r foureyes.Request, to foureyes.Status) foureyes.Request {
	r.Status, r.DecidedBy, r.DecidedAt, r.Reason, r.Sealed = to, "boss", r.RequestedAt.Add(time.Second), "why", nil
	r.Result = []byte{9, 0}
	return r
}

func fourEyesRoundTrip(t *testing.T, s foureyes.Store, _ commit.Committer) {
	ctx := t.Context()
	r := persistencetest.Whole(t, func(r *foureyes.Request) { r.ID, r.Status = "1", foureyes.Pending })
	storetest.Must(t, s.Add(ctx, r))
	storetest.Wants(t, s.Add(ctx, r), fault.RecordAlreadyExist)
	for range 2 {
		storetest.Same(t, storetest.Value(s.Get(ctx, r.ID))(t), r)
		if r.Status != foureyes.Pending {
			break
		}
		r = decidedRequest(r, foureyes.Approved)
		next := r
		next.Summary, next.RequestedBy, next.Path = "other", "other", "/other" // these never change
		storetest.Must(t, s.Decide(ctx, next))
	}
	storetest.Wants(t, s.Decide(ctx, decidedRequest(r, foureyes.Refused)), fault.RecordNotFound)

	// A request that is executed later keeps its sealed part, and is decided once more.
	r = fourEyesRequest(2)
	storetest.Must(t, s.Add(ctx, r))
	for _, sealed := range [][]byte{r.Sealed, nil} {
		r = decidedRequest(r, foureyes.Approved)
		r.Sealed = sealed
		storetest.Must(t, s.Decide(ctx, r))
		storetest.Same(t, storetest.Value(s.Get(ctx, r.ID))(t), r)
	}
	storetest.Wants(t, s.Decide(ctx, r), fault.RecordNotFound)
}

func fourEyesLists(t *testing.T, s foureyes.Store, _ commit.Committer) {
	var all []foureyes.Request // newest first
	for n := range 10 {
		r := fourEyesRequest(n)
		storetest.Must(t, s.Add(t.Context(), r))
		if to := map[int]foureyes.Status{2: foureyes.Approved, 5: foureyes.Approved, 6: foureyes.Approved,
			7: foureyes.Refused, 8: foureyes.Failed}[n]; to != "" {
			sealed := r.Sealed
			r = decidedRequest(r, to)
			switch n {
			case 5: // approved a day before now
				r.DecidedAt = fourEyesAt.Add(8*time.Minute - foureyes.FetchTime)
				r.Sealed = sealed
			case 6: // and a millisecond later
				r.DecidedAt = fourEyesAt.Add(8*time.Minute - foureyes.FetchTime + time.Millisecond)
				r.Sealed = sealed
			}
			storetest.Must(t, s.Decide(t.Context(), r))
		}
		all = append([]foureyes.Request{r}, all...)
	}
	now := fourEyesAt.Add(8 * time.Minute) // the request of the third minute has just expired
	of := map[foureyes.Status][]foureyes.Request{}
	for i := range all {
		if n := 9 - i; n <= 3 && n != 2 || n == 5 {
			all[i].Status = foureyes.Expired
		}
		of[all[i].Status] = append(of[all[i].Status], all[i])
	}
	if len(of) != 5 || len(of[foureyes.Expired]) != 4 || len(of[foureyes.Pending]) != 2 ||
		len(of[foureyes.Approved]) != 2 {
		t.Fatalf("the case is not what it says: %v", of)
	}
	of[""] = all
	for status, want := range of {
		pagetest.CheckBoth(t, s.List, foureyes.Query{Status: status, Now: now}, want)
	}
}

// Of many concurrent decisions on one request one succeeds.
func fourEyesDecideOnce(t *testing.T, s foureyes.Store, _ commit.Committer) {
	r := fourEyesRequest(1)
	storetest.Must(t, s.Add(t.Context(), r))
	storetest.OneWins(t, 16, fault.RecordNotFound, func(i int) error {
		return s.Decide(t.Context(), decidedRequest(r, []foureyes.Status{foureyes.Approved, foureyes.Refused}[i%2]))
	})
}

// A transaction that holds a request sees the result of the previous holder, and decides alone.
func fourEyesHolds(t *testing.T, s foureyes.Store, c commit.Committer) {
	r := fourEyesRequest(1)
	storetest.Must(t, s.Add(t.Context(), r))
	var inside atomic.Int64
	storetest.OneWins(t, 8, fault.InvalidState, func(int) error {
		return c.InTx(t.Context(), func(ctx context.Context) error {
			got, err := s.Hold(ctx, r.ID)
			if err != nil {
				return err
			}
			storetest.Equal(t, inside.Add(1), 1, "hold one request")
			defer inside.Add(-1)
			if got.Status != foureyes.Pending {
				return fault.New(fault.InvalidState, "it is decided")
			}
			return s.Decide(ctx, decidedRequest(r, foureyes.Approved))
		})
	})
}

func fourEyesPurge(t *testing.T, s foureyes.Store, _ commit.Committer) {
	for n := range 3 {
		storetest.Must(t, s.Add(t.Context(), fourEyesRequest(n)))
	}
	storetest.Must(t, s.Purge(t.Context(), fourEyesRequest(2).RequestedAt))
	pagetest.Check(t, s.List, foureyes.Query{Now: fourEyesAt}, []foureyes.Request{fourEyesRequest(2)})
}

// Two accounts have a device in common when one key is registered in both.
func TestSharedDevices(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := proof.NewDevices(db), t.Context()
		for i, d := range [][3]string{{"u1", "k1"}, {"u1", "k2"}, {"u2", "k2"}, {"u3", "k3"}} {
			persistencetest.Exec(t, db,
				`INSERT INTO device (id, user_id, public_key, brand, model, description, platform, status,
				created_at, last_used_at) VALUES ('d`+string(rune('0'+i))+`', '`+d[0]+`', '`+d[1]+`', '', '', '', '',
				'`+string(device.Active)+`', 0, 0)`)
		}
		for pair, want := range map[[2]string]bool{{"u1", "u2"}: true, {"u2", "u1"}: true, {"u1", "u3"}: false,
			{"u3", "u2"}: false, {"u4", "u5"}: false} {
			storetest.Equal(t, storetest.Value(s.Shared(ctx, pair[0], pair[1]))(t), want, pair)
		}
	})
}

// A rehearsal tells what would have been written, and leaves nothing.
func TestRehearsal(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, row, ran := t.Context(), audit.Record{At: time.Now(), Action: "REHEARSED"}, false
		act := func(ctx context.Context) error {
			commit.After(ctx, func() { ran = true })
			return db.InTx(ctx, func(ctx context.Context) error { return db.Commit(ctx, row) })
		}
		storetest.Same(t, storetest.Value(commit.Rehearse(ctx, db, act))(t), []commit.Write{row})
		no := fault.New(fault.InvalidState, "no")
		storetest.Is(t, storetest.Err(commit.Rehearse(ctx, db, func(ctx context.Context) error {
			return errors.Join(act(ctx), no)
		})), no, "a rehearsal that is refused")
		if n, err := kit.NewAudit(db).Verify(ctx, []byte("audit key of the test")); n != 0 || err != nil || ran {
			t.Errorf("%d rows are left, %v; what waits for a commit ran: %t", n, err, ran)
		}
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			storetest.Fails(t, storetest.Err(commit.Rehearse(ctx, db, act)), "", "a part of a transaction was rehearsed")
			return nil
		}))
	})
}
