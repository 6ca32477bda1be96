package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/domain/people/corporate"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Corporate struct{ db *engine.DB }

var _ corporate.Store = Corporate{}

func NewCorporate(db *engine.DB) Corporate { return Corporate{db} }

// corporateLock is the key under which users of companies change.
const corporateLock = 0x636f72706f726174 // "corporat"

type applicationRow struct {
	bun.BaseModel `bun:"table:corporate_application,alias:a"`

	ID                                         int64 `bun:",pk,autoincrement"`
	ExternalID                                 string
	CompanyName, FoldedName, TaxNumber, Status string
	record.Created
}

var applications = record.Of(record.Table[applicationRow, corporate.Application]{
	Order:  record.Keyset{Columns: "id", Descending: true},
	Absent: "there is no such application",
	Writes: func(a corporate.Application, r *applicationRow) { r.FoldedName = user.FoldName(a.CompanyName) },
}, record.Names{"FoldedName": ""})

type corporateRow struct {
	bun.BaseModel `bun:"table:corporate_user,alias:c"`

	ID                                    int64 `bun:",pk,autoincrement"`
	UserID, CorporateUserID, Role, Status string
	CountryCode, PhoneNumber              string
	Email                                 *string
	Made                                  bool
	record.Stamps
}

var corporateUsers = record.Of(record.Table[corporateRow, corporate.User]{
	Order:  record.Keyset{Columns: "id", Descending: true},
	Fixed:  []string{"made", "created_at"},
	Absent: "there is no such corporate user",
}, nil)

func applicationFilters(q corporate.ApplicationQuery) []record.Filter {
	return []record.Filter{record.Sent("id", q.ID), record.Sent("tax_number", q.TaxNumber), record.Sent("status",
		q.Status),
		account.PartOfName("(SELECT s.folded FROM application_search AS s WHERE s.id = a.id)", "a.folded_name",
			q.CompanyName)}
}

func corporateFilters(q corporate.UserQuery) []record.Filter {
	return []record.Filter{record.Sent("id", q.ID), record.Sent("user_id", q.UserID), record.Sent("corporate_user_id",
		q.CorporateUserID),
		record.Sent("status", q.Status)}
}

// searchName is the name of an application for searches.
type searchName struct {
	bun.BaseModel `bun:"table:application_search"`

	ID     int64 `bun:",pk"`
	Folded string
}

// FoldWaiting stores the names for searches of the applications that have none, at most limit, and returns how many.
func (s Corporate) FoldWaiting(ctx context.Context, limit int) (n int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context) error {
		var rows []applicationRow
		if err := s.db.Conn(ctx).NewSelect().Model(&rows).Column("id", "company_name").
			Where("NOT EXISTS (SELECT 1 FROM application_search AS s WHERE s.id = a.id)").Order("id").Limit(int64(limit)).
			Scan(ctx); err != nil || len(rows) == 0 {
			return engine.Translate(err)
		}
		names := make([]searchName, len(rows))
		for i, r := range rows { // a company keeps its name
			names[i] = searchName{ID: r.ID, Folded: user.Fold(r.CompanyName)}
		}
		n = len(rows)
		_, err := s.db.Conn(ctx).NewInsert().Model(&names).On("CONFLICT DO NOTHING").Returning("NULL").Exec(ctx)
		return engine.Translate(err)
	})
	return n, err
}

func (s Corporate) Lock(ctx context.Context) error { return s.db.LockTx(ctx, corporateLock) }

func (s Corporate) Applications(ctx context.Context, q corporate.ApplicationQuery,
	p page.Query[corporate.Place]) (page.Of[corporate.Application], error) {
	return record.ListPage(ctx, s.db, applications, p, record.ByID, applicationFilters(q))
}

func (s Corporate) AddApplication(ctx context.Context, a corporate.Application) (int64, error) {
	return applications.Add(ctx, s.db, a)
}

// SetApplicationStatus sets the status of an application and returns it as it was.
func (s Corporate) SetApplicationStatus(ctx context.Context, id int64, status string) (was corporate.Application,
	err error) {
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		var row applicationRow
		// The row is written before it is read, so that a second call waits here.
		touch := tx.NewUpdate().Model(&row).Set("status = status").Where("id = ?", id).Returning("*")
		if err := touch.Scan(ctx); err != nil {
			return applications.Translate(err)
		}
		if was, err = applications.Record(row); err != nil {
			return err
		}
		_, err := tx.NewUpdate().Model(&row).Set("status = ?", status).Where("id = ?", id).Exec(ctx)
		return err
	})
	return was, err
}

func (s Corporate) Users(ctx context.Context, q corporate.UserQuery,
	p page.Query[corporate.Place]) (page.Of[corporate.User], error) {
	return record.ListPage(ctx, s.db, corporateUsers, p, record.ByID, corporateFilters(q))
}

func (s Corporate) FindLink(ctx context.Context, u corporate.User) (corporate.User, error) {
	if u.UserID == "" {
		return corporateUsers.Find(ctx, s.db, record.Is("corporate_user_id", u.CorporateUserID), record.Sent("email",
			u.Email),
			record.Where("made"))
	}
	return corporateUsers.Find(ctx, s.db, record.Is("corporate_user_id", u.CorporateUserID), record.Is("user_id",
		u.UserID))
}

func (s Corporate) AddUser(ctx context.Context, u corporate.User) (int64, error) {
	return corporateUsers.Add(ctx, s.db, u)
}

func (s Corporate) ChangeUser(ctx context.Context, id int64, f func(corporate.User) (corporate.User, error)) error {
	return corporateUsers.Change(ctx, s.db, f, record.Is("id", id))
}
