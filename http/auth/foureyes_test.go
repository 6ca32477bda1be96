package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func secondPerson(t *testing.T) (auth.SecondPerson, *persistence.DB) {
	db, ring := persistencetest.SQLite(t), keyringtest.Ring(t, time.Now)
	now := func() time.Time { return time.UnixMilli(1_700_000_000_000) }
	return auth.SecondPerson{Commit: db, Service: &foureyes.Service{Store: office.NewFourEyes(db),
		Changes: admin.Changes{Commit: db, Now: now}, Seal: ring.Seal, Open: ring.Open, TTL: time.Minute,
		Account: func(context.Context, string) (challenge.Account, error) { return challenge.Account{}, nil }}}, db
}

// A rehearsal says what would have been written in the words of the audit, names a record only where the request names
// it, and leaves nothing.
func TestRehearse(t *testing.T) {
	p, db := secondPerson(t)
	row := audit.Record{At: time.Now(), Action: "ROLE_ADD", Target: "clerk", Detail: "name Clerk"}
	for name, c := range map[string]struct {
		c    edge.Captured
		want string
	}{
		"in the body":       {edge.Captured{Body: json.RawMessage(`{"code":"clerk"}`)}, "ROLE_ADD clerk: name Clerk"},
		"in the path":       {edge.Captured{Params: map[string]string{"a": "x", "b": "clerk"}}, "ROLE_ADD clerk: name Clerk"},
		"in the query":      {edge.Captured{Query: "code=c%6Cerk"}, "ROLE_ADD clerk: name Clerk"},
		"in a part of one":  {edge.Captured{Params: map[string]string{"a": "clerks"}}, "ROLE_ADD: name Clerk"},
		"nowhere":           {edge.Captured{}, "ROLE_ADD: name Clerk"},
		"in a broken query": {edge.Captured{Query: "code=clerk%zz"}, "ROLE_ADD: name Clerk"},
		"beside a broken query": {edge.Captured{Query: "%zz", Body: json.RawMessage(`{"code":"clerk"}`)},
			"ROLE_ADD clerk: name Clerk"},
	} {
		got, err := p.Rehearse(t.Context(), c.c, func(ctx context.Context) error { return db.Commit(ctx, row) })
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	c := edge.Captured{Method: "POST", Path: "/x", Body: json.RawMessage(`{}`)}
	got, err := p.Rehearse(t.Context(), c, func(ctx context.Context) error {
		return db.Commit(ctx, change.Note{Topic: change.Roles})
	})
	if got != "POST /x" || err != nil {
		t.Errorf("without a row in the audit: %q, %v", got, err)
	}
	nameless := row
	nameless.Target = ""
	if got, err := p.Rehearse(t.Context(), c, func(ctx context.Context) error {
		return db.Commit(ctx, nameless)
	}); got != "ROLE_ADD: name Clerk" || err != nil {
		t.Errorf("without a target: %q, %v", got, err)
	}
	nameless.UserID = "u1"
	if got, err := p.Rehearse(t.Context(), c, func(ctx context.Context) error {
		return db.Commit(ctx, nameless)
	}); got != "ROLE_ADD of u1: name Clerk" || err != nil {
		t.Errorf("of an account without a target: %q, %v", got, err)
	}
	if got, err := p.Rehearse(t.Context(), c, func(context.Context) error { return nil }); got != "" || err != nil {
		t.Errorf("without a write: %q, %v", got, err)
	}
	no := errors.New("no")
	if got, err := p.Rehearse(t.Context(), c, func(ctx context.Context) error {
		return errors.Join(db.Commit(ctx, row), no)
	}); got != "" || !errors.Is(err, no) {
		t.Errorf("refused: %q, %v", got, err)
	}
	if acts := persistencetest.Acts(t, db); len(acts) != 0 {
		t.Errorf("left behind: %v", acts)
	}
}

// A call that waits is kept with its caller and answered with the id and the expiry.
func TestStand(t *testing.T) {
	p, db := secondPerson(t)
	answer := storetest.Value(p.Stand(t.Context(), edge.Captured{Method: "POST", Path: "/x",
		Caller: rest.Caller{UserID: "u1", SessionID: "s1"}}, []byte(`{"n":1}`), "ROLE_ADD"))(t)
	text := storetest.Value(json.Marshal(answer))(t)
	var told struct {
		Data struct {
			ApprovalID string
			ExpiresAt  time.Time
		}
	}
	storetest.Must(t, json.Unmarshal(text, &told))
	r := storetest.Value(p.Service.Store.Get(t.Context(), told.Data.ApprovalID))(t)
	held, err := p.Service.Open(r.Sealed, foureyes.HeldData(r.ID))
	if err != nil || r.Method != "POST" || r.Path != "/x" || r.Summary != "ROLE_ADD" || r.RequestedBy != "u1" ||
		!told.Data.ExpiresAt.Equal(r.ExpiresAt) || string(held) != `{"request":{"n":1},"sessionId":"s1","cv":0,"sv":0}` {
		t.Errorf("%s, %+v, held %s, %v", text, r, held, err)
	}
	persistencetest.Exec(t, db, "ALTER TABLE four_eyes RENAME TO broken")
	if _, err := p.Stand(t.Context(), edge.Captured{}, nil, ""); err == nil {
		t.Error("no error of a request that cannot be kept")
	}
}
