package persistence

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/page"
	"castellan/domain/user"
)

var _ user.Directory = Users{}

// accountsByID lists users in ascending order of their ids.
var accountsByID = table[userRow, user.User]{record: accounts.record}

// registered lists users by registration, newest first.
var registered = table[userRow, user.Registered]{
	order:  keyset{columns: "created_at, id", descending: true},
	record: func(r userRow) (user.Registered, error) { return user.Registered{User: r.user()}, nil },
}

// visitors lists users by the day of their last login, the latest first.
var visitors = table[userRow, user.Visitor]{
	order: keyset{columns: "last_login_day, id", descending: true},
	record: func(r userRow) (user.Visitor, error) {
		return user.Visitor{User: r.user(), LastLogin: at(r.LastLoginDay * dayMillis)}, nil
	},
}

func visitorOrder(p user.VisitorPlace) []any { return []any{ms(p.Day) / dayMillis, p.ID} }

func visitorFilters(since time.Time) []filter {
	return []filter{where("last_login_day >= ?", ms(since)/dayMillis), where("last_login_day > 0")}
}

// Active implements user.Directory.
func (s Users) Active(ctx context.Context, since time.Time,
	p page.Query[user.VisitorPlace]) (page.Of[user.Visitor], error) {
	return listPage(ctx, s.db, visitors, p, visitorOrder, visitorFilters(since))
}

func accountFilters(q user.Query) []filter {
	fs := []filter{sent("id", q.ID), phoneIs(q.Phone, q.National), sent("email", q.Email), known("tax_number", q.TaxNumber),
		sent("kyc_approved", q.KYCApproved), known("birth_date", q.BirthDate), sent("type", q.Type),
		sent("status", q.Status), among("identity_hash", q.IdentityHashes), partOfName("full_name", q.Name)}
	if q.IdentityHashes != nil {
		fs = append(fs, where("identity_hash <> ''"))
	}
	return fs
}

// byNumber finds accounts by the number and by the number without its dialling code, each by
// an index of its own; an OR could be answered by a scan.
const byNumber = `id IN (SELECT id FROM users WHERE phone = ?
	UNION ALL SELECT id FROM users WHERE substr(phone, length(country_code) + 2) = ?)`

// phoneIs finds a number, or one without its dialling code; nil: any.
func phoneIs(full, national *string) filter {
	switch {
	case national == nil:
		return sent("phone", full)
	case full == nil:
		return where("substr(phone, length(country_code) + 2) = ?", *national)
	}
	return where(byNumber, *full, *national)
}

// partOfName finds a part of a folded name; nil: any.
func partOfName(column string, part *string) filter {
	if part == nil {
		return filter{}
	}
	return where("? LIKE ? ESCAPE '!'", bun.Ident(column), "%"+likeText.Replace(user.FoldName(*part))+"%")
}

// known is sent for a column that is ” in rows which its index leaves out.
func known(column string, value *string) filter {
	if value == nil {
		return filter{}
	}
	return where("? = ? AND ? <> ''", bun.Ident(column), *value, bun.Ident(column))
}

func accountOrder(p user.Place) []any { return []any{p.ID} }

func registeredOrder(p user.RegisteredPlace) []any { return []any{ms(p.At), p.ID} }

func registeredFilters(s user.Span) []filter {
	return []filter{where("created_at >= ?", ms(s.From)), where("created_at <= ?", ms(s.To))}
}

// Find implements user.Directory.
func (s Users) Find(ctx context.Context, q user.Query, p page.Query[user.Place]) (page.Of[user.User], error) {
	t := accountsByID
	if q.NewestFirst {
		t = accounts
	}
	return listPage(ctx, s.db, t, p, accountOrder, accountFilters(q))
}

// Registered implements user.Directory.
func (s Users) Registered(ctx context.Context, span user.Span,
	p page.Query[user.RegisteredPlace]) (page.Of[user.Registered], error) {
	return listPage(ctx, s.db, registered, p, registeredOrder, registeredFilters(span))
}

// CountByStatus implements user.Directory.
func (s Users) CountByStatus(ctx context.Context) (map[user.Status]int64, error) {
	return countUsers[user.Status](ctx, s.db, "status")
}

// CountByLevel implements user.Directory.
func (s Users) CountByLevel(ctx context.Context) (map[int]int64, error) {
	return countUsers[int](ctx, s.db, "level")
}

// countUsers counts the accounts by a column that has an index.
func countUsers[V comparable](ctx context.Context, db *DB, column string) (map[V]int64, error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	var rows []struct {
		Value V
		Total int64
	}
	err := counted(db.Conn(ctx), column).Scan(ctx, &rows)
	counts := map[V]int64{}
	for _, r := range rows {
		counts[r.Value] = r.Total
	}
	return counts, translate(err)
}

func counted(db bun.IDB, column string) *bun.SelectQuery {
	return db.NewSelect().Table("users").ColumnExpr("? AS value", bun.Ident(column)).ColumnExpr("COUNT(*) AS total").
		Group(column)
}

// dayMillis is the length of a day.
const dayMillis = 24 * 60 * 60 * 1000

// CountByDay implements user.Directory.
func (s Users) CountByDay(ctx context.Context, span user.Span) ([]user.DayCount, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []struct{ Day, Total int64 }
	err := filtered(s.db.Conn(ctx).NewSelect().Table("users").ColumnExpr("created_at / ? AS day", dayMillis).
		ColumnExpr("COUNT(*) AS total"), registeredFilters(span)).GroupExpr("day").OrderExpr("day").Scan(ctx, &rows)
	counts := make([]user.DayCount, len(rows))
	for i, r := range rows {
		counts[i] = user.DayCount{Day: at(r.Day * dayMillis), Count: r.Total}
	}
	return counts, translate(err)
}
