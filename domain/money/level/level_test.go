package level_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

var by = audit.By{UserID: "op"}

func newService(t *testing.T) (*level.Service, *persistence.DB) {
	t.Helper()
	db := persistencetest.SQLite(t)
	return &level.Service{Store: money.NewLevels(db), Users: account.NewUsers(db),
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}}, db
}

// limits returns limits of 10 a day and 20 a month after an edit.
func limits(edit func(*level.Limits)) level.Limits {
	ten, twenty := amount.Must("10"), amount.Must("20")
	l := level.Limits{SendTryDaily: ten, SendCryptoDaily: ten, SendTryMonthly: twenty, SendCryptoMonthly: twenty,
		ReceiveTryDaily: ten, ReceiveCryptoDaily: ten, ReceiveTryMonthly: &twenty, ReceiveCryptoMonthly: &twenty}
	edit(&l)
	return l
}

// A limit is not negative, and a month permits at least its day. Every invalid field is named.
func TestCheck(t *testing.T) {
	minus, nine := amount.Must("-0.01"), amount.Must("9.99")
	for fields, edit := range map[string]func(*level.Limits){
		"":                          func(*level.Limits) {},
		" ":                         func(l *level.Limits) { l.ReceiveTryMonthly, l.ReceiveCryptoMonthly = nil, nil },
		"  ":                        func(l *level.Limits) { l.SendTryMonthly = l.SendTryDaily },
		"   ":                       func(l *level.Limits) { *l = level.Limits{} },
		"sendLimitTRYDaily":         func(l *level.Limits) { l.SendTryDaily = minus },
		"sendLimitCryptoDaily":      func(l *level.Limits) { l.SendCryptoDaily = minus },
		"receiveLimitTRYDaily":      func(l *level.Limits) { l.ReceiveTryDaily = minus },
		"receiveLimitCryptoDaily":   func(l *level.Limits) { l.ReceiveCryptoDaily = minus },
		"sendLimitTRYMonthly":       func(l *level.Limits) { l.SendTryMonthly = nine },
		"sendLimitCryptoMonthly":    func(l *level.Limits) { l.SendCryptoMonthly = nine },
		"receiveLimitTRYMonthly":    func(l *level.Limits) { l.ReceiveTryMonthly = &nine },
		"receiveLimitCryptoMonthly": func(l *level.Limits) { l.ReceiveCryptoMonthly = &nine },
		"sendLimitTRYDaily sendLimitTRYMonthly": func(l *level.Limits) {
			l.SendTryDaily, l.SendTryMonthly = minus, minus
		},
	} {
		storetest.WantsFields(t, limits(edit).Check(), strings.TrimSpace(fields))
	}
	err := limits(func(l *level.Limits) { l.SendTryMonthly = nine }).Check()
	if f := err.(*fault.Error); f.Fields[0].Message != "must be at least sendLimitTRYDaily" {
		t.Errorf("%+v", f.Fields)
	}
}

// An added level has its limits, and is audited with them.
func TestAdd(t *testing.T) {
	s, db := newService(t)
	gold := level.Level{ID: 7, Label: "Gold", Special: true, Limits: limits(func(l *level.Limits) {
		l.ReceiveCryptoMonthly = nil
	})}
	persistencetest.Fails(t, db, "user_level audit", func(ctx context.Context) error { return s.Add(ctx, by, gold) })
	storetest.Wants(t, s.Add(t.Context(), by, gold), fault.RecordAlreadyExist)
	storetest.WantsFields(t, s.Add(t.Context(), by, level.Level{ID: 8, Label: "Bad", Limits: limits(
		func(l *level.Limits) { l.SendTryDaily = amount.Must("-1") })}), "sendLimitTRYDaily")
	all, err := s.Store.List(t.Context(), level.Query{})
	storetest.Must(t, err)
	i := slices.IndexFunc(all, func(l level.Level) bool { return l.ID == 7 })
	storetest.Same(t, all[max(i, 0)], gold)
	storetest.Same(t, persistencetest.Acts(t, db), []string{
		`LEVEL_ADD|op||7|label "Gold", special true, sendLimitTRYDaily 10, ` +
			"sendLimitCryptoDaily 10, sendLimitTRYMonthly 20, sendLimitCryptoMonthly 20, receiveLimitTRYDaily 10, " +
			"receiveLimitCryptoDaily 10, receiveLimitTRYMonthly 20"})
}

// A change is audited with both values of its fields. Without a difference nothing is written, and the number of a
// level cannot change.
func TestChange(t *testing.T) {
	s, db := newService(t)
	storetest.Must(t, s.Add(t.Context(), by, level.Level{ID: 7, Label: "Gold", Limits: limits(func(*level.Limits) {})}))
	change := func(edit func(*level.Level)) level.Level {
		t.Helper()
		next, err := s.Change(t.Context(), by, 7, edit)
		storetest.Must(t, err)
		return next
	}
	next := change(func(l *level.Level) { l.SendTryDaily, l.ID = amount.Must("11"), 9 })
	if next.ID != 7 || next.SendTryDaily != amount.Must("11") || next.Label != "Gold" {
		t.Errorf("%+v", next)
	}
	change(func(l *level.Level) { l.Label = "Silver" })
	change(func(*level.Level) {})
	change(func(l *level.Level) { l.Special = true })
	_, err := s.Change(t.Context(), by, 7, func(l *level.Level) { l.SendTryDaily = amount.Must("21") })
	storetest.WantsFields(t, err, "sendLimitTRYMonthly")
	_, err = s.Change(t.Context(), by, 99, func(*level.Level) {})
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Same(t, persistencetest.Acts(t, db)[1:], []string{
		"LEVEL_UPDATE|op||7|sendLimitTRYDaily 10 -> 11", `LEVEL_UPDATE|op||7|label "Gold" -> "Silver"`,
		"LEVEL_UPDATE|op||7|special false -> true"})
	persistencetest.Fails(t, db, "user_level audit", func(ctx context.Context) error {
		_, err := s.Change(ctx, by, 7, func(l *level.Level) { l.SendTryDaily = amount.Must("12") })
		return err
	})
}

// An account gets a level that exists. Assigning it again changes nothing.
func TestAssign(t *testing.T) {
	s, db := newService(t)
	u := usertest.Sample(1)
	u.Level = 0
	storetest.Must(t, db.Commit(t.Context(), u))
	_, err := s.Assign(t.Context(), by, "unknown", 1)
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = s.Assign(t.Context(), by, u.ID, 99)
	storetest.Wants(t, err, fault.RecordNotFound)
	persistencetest.Fails(t, db, "users user_level audit", func(ctx context.Context) error {
		l, err := s.Assign(ctx, by, u.ID, 1)
		if err == nil && (l.ID != 1 || l.Label != "Confirmed") {
			t.Errorf("%+v", l)
		}
		return err
	})
	if l, err := s.Assign(t.Context(), by, u.ID, 1); err != nil || l.Label != "Confirmed" {
		t.Errorf("again: %+v, %v", l, err)
	}
	storetest.Same(t, persistencetest.Acts(t, db), []string{"USER_LEVEL|op|" + u.ID + "|" + u.ID + "|0 -> 1"})
	var now user.User
	now, err = s.Users.Get(t.Context(), u.ID)
	if err != nil || now.Level != 1 {
		t.Errorf("%+v, %v", now, err)
	}
}
