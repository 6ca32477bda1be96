package mfa_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// office is the service of administrators over a new installation.
type office struct {
	*mfa.Admin
	db *persistence.DB
}

func newOffice(t *testing.T) office {
	t.Helper()
	db := persistencetest.SQLite(t)
	store := factor.NewMFA(db)
	persistencetest.Empty(t, db, "mfa_method", "mfa_action", "mfa_policy")
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error { return mfa.Seed(ctx, store) }))
	return office{&mfa.Admin{Store: store, Guarded: []string{"GUARDED", mfa.Login}, Grave: []string{"GUARDED"},
		Changes: admin.Changes{Commit: db, Topic: change.MFA,
			Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}}, db}
}

// last returns the newest row of the audit.
func (o office) last(t *testing.T) string {
	t.Helper()
	acts := persistencetest.Acts(t, o.db)
	return acts[len(acts)-1]
}

var boss = audit.By{UserID: "boss"}

// A policy must not shut its author out of an action that the author needs, unless it is forced (D-MFA-15).
func TestAuthorIsNotShutOut(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	o.Keeps = []string{mfa.Login}
	owned := []challenge.Name{challenge.SMS}
	o.Can = func(_ context.Context, c *mfa.Catalog, action, userID, ip string) (bool, error) {
		_, err := c.Plan(time.UnixMilli(2), action, userID, ip).Offer(func(n challenge.Name) bool {
			return slices.Contains(owned, n)
		})
		return err == nil, nil
	}
	policy := func(action, code string) mfa.Policy {
		return mfa.Policy{ActionCode: action, Name: "p", Methods: []mfa.Choice{{Code: code}}, Required: 1}
	}
	_, err := o.AddCommon(ctx, boss, policy(mfa.Login, "PUSH"))
	storetest.WantsFields(t, err, "force")
	_, err = o.AddCommon(ctx, boss, policy("GUARDED", "PUSH")) // needed for nothing here
	storetest.Must(t, err)
	id := storetest.Value(o.AddCommon(ctx, boss, policy(mfa.Login, "SMS")))(t)
	push := mfa.PolicyChange{ID: id, Methods: &[]mfa.Choice{{Code: "PUSH"}}}
	before := len(persistencetest.Acts(t, o.db))
	storetest.WantsFields(t, o.ChangeCommon(ctx, boss, push), "force")
	if acts := persistencetest.Acts(t, o.db); len(acts) != before {
		t.Errorf("%q", acts[before:])
	}
	storetest.Must(t, o.Forced().ChangeCommon(ctx, boss, push))
	// The author is out already: another change takes nothing away, and the way back is open.
	storetest.Must(t, o.ChangeCommon(ctx, boss, mfa.PolicyChange{ID: id, Methods: &[]mfa.Choice{{Code: "MAIL"}}}))
	storetest.Must(t, o.ChangeCommon(ctx, boss, mfa.PolicyChange{ID: id, ExpireAt: new(int64(1))}))
	// Without an end it would apply; so it does not when it is deleted.
	storetest.WantsFields(t, o.ChangeCommon(ctx, boss, mfa.PolicyChange{ID: id, ExpireAt: new(int64(0))}), "force")
	storetest.Must(t, o.RemoveCommon(ctx, boss, id))
	removed := "MFA_POLICY_DELETE|boss||" + strconv.FormatInt(id, 10) + `|actionCode "LOGIN", name "p", `
	if got := o.last(t); !strings.HasPrefix(got, removed) {
		t.Error(got)
	}
	storetest.Wants(t, o.RemoveCommon(ctx, boss, id), fault.RecordNotFound)
}
