package persistence

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/corporate"
	"castellan/domain/document"
	"castellan/domain/page"
	"castellan/domain/user"
	"castellan/persistence/access"
	"castellan/persistence/record"
)

// A page of a list that grows without end is found by an index that has the order
// of the list, with a position and without: the last page costs what the first
// one does.
func TestPagesOfPeopleAreFoundByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		linked := func(q corporate.UserQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[corporate.Place]{After: &corporate.Place{ID: 9}, Limit: 10}, corporateOrder,
				corporateFilters(q))
			return corporateUsers.Selected(db.Conn(t.Context()).NewSelect().Model((*corporateRow)(nil)), p)
		}
		applied := func(q corporate.ApplicationQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[corporate.Place]{After: &corporate.Place{ID: 9}, Limit: 10}, corporateOrder,
				applicationFilters(q))
			return applications.Selected(db.Conn(t.Context()).NewSelect().Model((*applicationRow)(nil)), p)
		}
		kept := func(q document.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[document.Place]{After: &document.Place{ID: "9"}, Limit: 10}, documentOrder,
				documentFilters(q))
			return documentList(q.Oldest).Selected(db.Conn(t.Context()).NewSelect().Model((*documentRead)(nil)), p)
		}
		risky := access.Accounts.Selected(db.Conn(t.Context()).NewSelect().TableExpr("users AS u").ColumnExpr("u.*"),
			record.PartOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, access.AccountOrder,
				riskyFilters(db.Postgres())))
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"risky users":            {risky, "users_aml"},
			"documents of one":       {kept(document.Query{UserID: new("u")}), "document_user"},
			"documents of a type":    {kept(document.Query{Type: new(int64(1))}), "document_type"},
			"documents of a status":  {kept(document.Query{Status: new("s")}), "document_status"},
			"documents for a reason": {kept(document.Query{Reason: new("r")}), "document_reason"},
			"documents that wait, oldest": {kept(document.Query{Reason: new("r"), OwnerKYC: new("w"), Oldest: true}),
				"document_reason"},
			"companies' users of one":  {linked(corporate.UserQuery{UserID: new("u")}), "corporate_user_user"},
			"users of a company":       {linked(corporate.UserQuery{CorporateUserID: new("c")}), "corporate_user_company"},
			"companies' users, status": {linked(corporate.UserQuery{Status: new("s")}), "corporate_user_status"},
			"applications, tax number": {applied(corporate.ApplicationQuery{TaxNumber: new("1")}),
				"corporate_application_tax_number"},
			"applications of a status": {applied(corporate.ApplicationQuery{Status: new("s")}),
				"corporate_application_status"},
		} {
			wantsIndex(t, db, name, c.query, c.index)
		}
	})
}
