package account

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

var _ user.Directory = Users{}

// accountsByID lists users in ascending order of their ids.
var accountsByID = record.Table[userRow, user.User]{Record: Accounts.Record}

// registered lists users by registration, newest first.
var registered = record.Table[userRow, user.Registered]{
	Order:  record.Keyset{Columns: "created_at, id", Descending: true},
	Record: func(r userRow) (user.Registered, error) { return user.Registered{User: r.user()}, nil },
}

// visitors lists users by the day of their last login, the latest first.
var visitors = record.Table[userRow, user.Visitor]{
	Order: record.Keyset{Columns: "last_login_day, id", Descending: true},
	Record: func(r userRow) (user.Visitor, error) {
		return user.Visitor{User: r.user(), LastLogin: engine.Time(r.LastLoginDay * dayMillis)}, nil
	},
}

func visitorOrder(p user.VisitorPlace) []any { return []any{engine.Millis(p.Day) / dayMillis, p.ID} }

func (s Users) Active(ctx context.Context, since time.Time,
	p page.Query[user.VisitorPlace]) (page.Of[user.Visitor], error) {
	return record.ListPage(ctx, s.db, visitors, p, visitorOrder, []record.Filter{
		record.Where("last_login_day >= ?", engine.Millis(since)/dayMillis), record.Where("last_login_day > 0")})
}

func accountFilters(q user.Query) []record.Filter {
	fs := []record.Filter{record.Sent("id", q.ID), phoneIs(q.Phone, q.National), record.Sent("email", q.Email),
		equalsNonEmpty("tax_number", q.TaxNumber),
		record.Sent("kyc_approved", q.KYCApproved), equalsNonEmpty("birth_date", q.BirthDate), record.Sent("type", q.Type),
		record.Sent("status", q.Status), record.Among("identity_hash", q.IdentityHashes),
		PartOfName("u.folded", "u.full_name", q.Name)}
	if q.IdentityHashes != nil {
		fs = append(fs, record.Where("identity_hash <> ''"))
	}
	return fs
}

// PartOfName finds a part of a name; nil: any. folded is the expression of the name by Fold, NULL for a row that waits
// for it, and former the column of the name by FoldName.
func PartOfName(folded, former string, part *string) record.Filter {
	if part == nil {
		return record.Filter{}
	}
	like := func(folded string) string { return "%" + record.LikeText.Replace(folded) + "%" }
	return record.Where("(COALESCE("+folded+", ?) LIKE ? ESCAPE '!' OR ? LIKE ? ESCAPE '!')", bun.Ident(former),
		like(user.Fold(*part)), bun.Ident(former), like(user.FoldName(*part)))
}

// equalsNonEmpty is sent for a column whose index leaves out the rows with an empty text.
func equalsNonEmpty(column string, value *string) record.Filter {
	if value == nil {
		return record.Filter{}
	}
	return record.Where("? = ? AND ? <> ''", bun.Ident(column), *value, bun.Ident(column))
}

func registeredOrder(p user.RegisteredPlace) []any { return []any{engine.Millis(p.At), p.ID} }

func registeredFilters(s user.Span) []record.Filter {
	return []record.Filter{record.Between("created_at", s.From, s.To)}
}

func (s Users) Find(ctx context.Context, q user.Query, p page.Query[user.Place]) (page.Of[user.User], error) {
	t := accountsByID
	if q.NewestFirst {
		t = Accounts
	}
	filters := accountFilters(q)
	if q.Search != nil {
		found, err := s.searched(ctx, q, p)
		if err != nil {
			return page.Of[user.User]{}, err
		}
		filters = append(filters, found)
	}
	return record.ListPage(ctx, s.db, t, p, record.ByID, filters)
}

func (s Users) ByIDs(ctx context.Context, ids []string) ([]user.User, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return accountsByID.List(ctx, s.db, record.Part{Where: []record.Filter{record.Among("id", ids)}})
}

func (s Users) Registered(ctx context.Context, span user.Span,
	p page.Query[user.RegisteredPlace]) (page.Of[user.Registered], error) {
	return record.ListPage(ctx, s.db, registered, p, registeredOrder, registeredFilters(span))
}

func (s Users) CountByStatus(ctx context.Context) (map[user.Status]int64, error) {
	return countUsers[user.Status](ctx, s.db, "status")
}

func (s Users) CountByLevel(ctx context.Context) (map[int]int64, error) {
	return countUsers[int](ctx, s.db, "level")
}

// countUsers counts the accounts by a column that has an index.
func countUsers[V comparable](ctx context.Context, db *engine.DB, column string) (map[V]int64, error) {
	var rows []struct {
		Value V
		Total int64
	}
	err := db.Scan(ctx, counted(db.Conn(ctx), column), &rows)
	counts := map[V]int64{}
	for _, r := range rows {
		counts[r.Value] = r.Total
	}
	return counts, err
}

func counted(db bun.IDB, column string) *bun.SelectQuery {
	return db.NewSelect().Table("users").ColumnExpr("? AS value", bun.Ident(column)).ColumnExpr("COUNT(*) AS total").
		Group(column)
}

// dayMillis is the length of a day.
const dayMillis = 24 * 60 * 60 * 1000

func (s Users) CountByDay(ctx context.Context, span user.Span) ([]user.DayCount, error) {
	var rows []struct{ Day, Total int64 }
	q := s.db.Conn(ctx).NewSelect().Table("users").ColumnExpr("created_at / ? AS day", dayMillis).
		ColumnExpr("COUNT(*) AS total").GroupExpr("day").OrderExpr("day")
	err := s.db.Scan(ctx, record.Filtered(q, registeredFilters(span)), &rows)
	counts := make([]user.DayCount, len(rows))
	for i, r := range rows {
		counts[i] = user.DayCount{Day: engine.Time(r.Day * dayMillis), Count: r.Total}
	}
	return counts, err
}
