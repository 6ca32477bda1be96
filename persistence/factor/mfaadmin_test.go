package factor_test

import (
	"context"
	"testing"
	"time"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// An administrative write commits with its audit row and its note, or not at
// all, and the node that made it works with it at once.
func TestMFAAdmin(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		store := factor.NewMFA(db)
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error { return mfa.Seed(ctx, store) }))
		live := mfa.NewCache(store)
		storetest.Must(t, live.Reload(ctx))
		config := &mfa.Admin{Store: store, Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.MFA,
			Follow: live.Follow}}
		by := audit.By{UserID: "admin1", IP: "192.0.2.9", RequestID: "r1"}

		var id int64
		for _, step := range []struct {
			action string
			do     func() error
		}{
			{"MFA_METHOD_ADD", func() error { return config.AddMethod(ctx, by, mfa.Method{Code: "FAX", ExpireMs: 10_000}) }},
			{"MFA_METHOD_UPDATE", func() error {
				return config.ChangeMethod(ctx, by, mfa.MethodChange{Code: "SMS", ExpireMs: new(int64(90_000))})
			}},
			{"MFA_ACTION_ADD", func() error {
				return config.AddAction(ctx, by, mfa.Action{Code: "WIRE", Title: mfa.Text{"en": "Wire"}})
			}},
			{"MFA_ACTION_UPDATE", func() error {
				return config.ChangeAction(ctx, by, mfa.ActionChange{Code: "LOGIN", Title: &mfa.Text{"en": "Log in"}})
			}},
			{"MFA_POLICY_ADD", func() (err error) {
				id, err = config.AddCommon(ctx, by, mfa.Policy{ActionCode: "LOGIN", Name: "n",
					Methods: []mfa.Choice{{Code: "SMS"}, {Code: "FAX"}}, Required: 1})
				return err
			}},
			{"MFA_POLICY_UPDATE", func() error {
				return config.ChangeCommon(ctx, by,
					mfa.PolicyChange{ID: id, Required: new(2)})
			}},
		} {
			storetest.Must(t, step.do())
			last := persistencetest.Did(t, db, step.action)[0]
			if last.ActorID != "admin1" || last.IP != "192.0.2.9" || last.RequestID != "r1" || last.Target == "" ||
				last.Detail == "" || last.Outcome != "success" {
				t.Errorf("%s: audit %+v", step.action, last)
			}
		}
		c := live.Catalog()
		if p := c.Plan(time.Now(), "LOGIN", "", ""); p.PolicyID != id || p.Required != 2 || len(p.Methods) != 1 ||
			p.Methods[0].LifetimeMs != 90_000 {
			t.Errorf("this node plans %+v", p)
		}
		if got := c.ActionTitle("LOGIN", "tr"); got != "Log in" {
			t.Errorf("title %q", got)
		}
		notes, err := kit.NewChanges(db).Since(ctx, time.Now().Add(-time.Hour))
		storetest.Must(t, err)
		for _, n := range notes {
			if n.Topic != change.MFA {
				t.Errorf("note %+v", n)
			}
		}
		rows, err := kit.NewAudit(db).Verify(ctx, []byte("audit key of the test"))
		storetest.Must(t, err)
		if len(notes) != 6 || rows != 6 {
			t.Errorf("%d notes and %d audit rows for 6 changes", len(notes), rows)
		}
	})
}
