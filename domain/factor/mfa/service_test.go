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

// A new installation has the built-in methods and actions.
func TestSeed(t *testing.T) {
	o := newOffice(t)
	methods, err := o.Store.Methods(t.Context())
	storetest.Must(t, err)
	actions, err := o.Store.Actions(t.Context())
	storetest.Must(t, err)
	if !slices.Equal(methods, mfa.SeedMethods()) || !slices.EqualFunc(actions, mfa.SeedActions(), mfa.Action.Equal) {
		t.Errorf("%+v, %+v", methods, actions)
	}
	err = o.db.InTx(t.Context(), func(ctx context.Context) error { return mfa.Seed(ctx, o.Store) })
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	persistencetest.Empty(t, o.db, "mfa_method")
	err = o.db.InTx(t.Context(), func(ctx context.Context) error { return mfa.Seed(ctx, o.Store) })
	storetest.Wants(t, err, fault.RecordAlreadyExist)
}

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
	id, err := o.AddCommon(ctx, boss, policy(mfa.Login, "SMS"))
	storetest.Must(t, err)
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

// A rejected write changes nothing and leaves no audit row.
func TestAdminRefuses(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	id, err := o.AddCommon(ctx, boss, mfa.Policy{ActionCode: "GUARDED", Name: "p",
		Methods: []mfa.Choice{{Code: "SMS"}}, Required: 1})
	storetest.Must(t, err)
	policy := mfa.Policy{ActionCode: mfa.Login, Name: "p", Methods: []mfa.Choice{{Code: "SMS"}}, Required: 1}
	storetest.Must(t, o.Judge(ctx, policy))
	before := len(persistencetest.Acts(t, o.db))
	with := func(edit func(*mfa.Policy)) mfa.Policy {
		p := policy
		p.Methods = slices.Clone(p.Methods)
		edit(&p)
		return p
	}
	add := func(p mfa.Policy) func() error {
		return func() error { _, err := o.AddCommon(ctx, boss, p); return err }
	}
	for name, c := range map[string]struct {
		do   func() error
		want fault.Code
	}{
		"a method's code": {func() error { return o.AddMethod(ctx, boss, mfa.Method{}) }, fault.InvalidField},
		"a method twice": {func() error {
			return o.AddMethod(ctx, boss, mfa.SeedMethods()[0])
		}, fault.RecordAlreadyExist},
		"an empty change": {func() error {
			return o.ChangeMethod(ctx, boss, mfa.MethodChange{Code: "SMS"})
		}, fault.InvalidField},
		"an equal change": {func() error {
			return o.ChangeMethod(ctx, boss, mfa.MethodChange{Code: "SMS", ExpireMs: new(int64(120_000))})
		}, fault.InvalidField},
		"no method": {func() error {
			return o.ChangeMethod(ctx, boss, mfa.MethodChange{Code: "NONE", ExpireMs: new(int64(0))})
		}, fault.RecordNotFound},
		"an action's code": {func() error { return o.AddAction(ctx, boss, mfa.Action{}) }, fault.InvalidField},
		"an action twice": {func() error {
			return o.AddAction(ctx, boss, mfa.SeedActions()[0])
		}, fault.RecordAlreadyExist},
		"no change": {func() error {
			return o.ChangeAction(ctx, boss, mfa.ActionChange{Code: mfa.Login})
		}, fault.InvalidField},
		"no action": {func() error {
			return o.ChangeAction(ctx, boss, mfa.ActionChange{Code: "NONE", Title: &mfa.Text{"en": "x"}})
		}, fault.RecordNotFound},
		"a policy's action": {add(with(func(p *mfa.Policy) { p.ActionCode = "NONE" })), fault.InvalidField},
		"a policy's method": {add(with(func(p *mfa.Policy) { p.Methods[0].Code = "NONE" })), fault.InvalidField},
		"a grave action": {add(with(func(p *mfa.Policy) { p.ActionCode, p.RememberDays = "GUARDED", 1 })),
			fault.InvalidField},
		"a passkey alone": {add(with(func(p *mfa.Policy) { p.ActionCode, p.PasskeyAlone = "GUARDED", true })),
			fault.InvalidField},
		"a passkey alone with an intent": {add(with(func(p *mfa.Policy) { p.PasskeyAlone, p.SignIntent = true, true })),
			fault.InvalidField},
		"a recovery by a passkey": {add(with(func(p *mfa.Policy) {
			p.ActionCode, p.PhishingResistant = mfa.ResetPassword, true
		})), fault.InvalidField},
		"a policy twice": {add(with(func(p *mfa.Policy) { p.ActionCode = "GUARDED" })), fault.RecordAlreadyExist},
		"an empty edit": {func() error {
			return o.ChangeCommon(ctx, boss, mfa.PolicyChange{ID: id})
		}, fault.InvalidField},
		"an equal edit": {func() error {
			return o.ChangeCommon(ctx, boss, mfa.PolicyChange{ID: id, Name: new("p")})
		}, fault.InvalidField},
		"no policy": {func() error {
			return o.ChangeCommon(ctx, boss, mfa.PolicyChange{ID: id + 1, Name: new("q")})
		}, fault.RecordNotFound},
		"a judged form": {func() error {
			return with(func(p *mfa.Policy) { p.Name = "" }).CheckForm()
		}, fault.InvalidField},
		"a judged action": {func() error { return o.Judge(ctx, with(func(p *mfa.Policy) { p.ActionCode = "NONE" })) },
			fault.InvalidField},
	} {
		if err := c.do(); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	storetest.Must(t, with(func(p *mfa.Policy) { p.ActionCode = "NONE" }).CheckForm())
	if acts := persistencetest.Acts(t, o.db); len(acts) != before {
		t.Errorf("%q", acts[before:])
	}
}
