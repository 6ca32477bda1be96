package persistencetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// Did returns what the audit says of an action, the newest first. There is something.
func Did(t *testing.T, db *persistence.DB, action string) []audit.Stored {
	t.Helper()
	rows := storetest.Value(kit.NewAudit(db).List(t.Context(), audit.Query{Action: action}, page.Query[audit.Place]{}))(t)
	if len(rows.Records) == 0 {
		t.Fatalf("the audit has no %s", action)
	}
	return rows.Records
}

// ErrNoAudit is the answer of Unaudited.
var ErrNoAudit = errors.New("no audit")

type noAudit struct{ commit.Committer }

func (noAudit) Commit(context.Context, ...commit.Write) error { return ErrNoAudit }

// Unaudited is a database that refuses every unit, of which an audit row is one.
func Unaudited(db *persistence.DB) commit.Committer { return noAudit{db} }

type thenDo struct {
	commit.Committer
	do func()
}

func (a thenDo) InTx(ctx context.Context, fn func(context.Context) error) error {
	defer a.do()
	return a.Committer.InTx(ctx, fn)
}

// Afterwards is a database that does something as soon as a transaction is committed.
func Afterwards(db *persistence.DB, do func()) commit.Committer { return thenDo{db, do} }

// Challenge is a challenge to write.
func Challenge(id string) challenge.Challenge {
	now := time.Now().UnixMilli()
	m := challenge.Method{ID: "m1", Name: challenge.SMS, LifetimeMs: 120_000, ExpiresAt: now + 120_000,
		Digest: challenge.Digest{Key: "k", Sum: []byte{1, 2, 3}}}
	return challenge.Challenge{ID: id, UserID: "u1", Action: "LOGIN", Flow: challenge.FlowLogin, CreatedAt: now,
		ExpiresAt: now + 600_000, Body: challenge.Body{Subject: "u1", Required: 1, Methods: []challenge.Method{m}}}
}
