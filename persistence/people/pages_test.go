package people_test

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/domain/people/corporate"
	"castellan/domain/people/document"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfPeopleAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		linked := func(q corporate.UserQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[corporate.Place]{After: &corporate.Place{ID: 9}, Limit: 10}, people.CorporateOrder,
				people.CorporateFilters(q))
			return people.CorporateUsers.Selected(db.Conn(t.Context()).NewSelect().Model((*people.CorporateRow)(nil)), p)
		}
		applied := func(q corporate.ApplicationQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[corporate.Place]{After: &corporate.Place{ID: 9}, Limit: 10}, people.CorporateOrder,
				people.ApplicationFilters(q))
			return people.Applications.Selected(db.Conn(t.Context()).NewSelect().Model((*people.ApplicationRow)(nil)), p)
		}
		ordered := func(q document.Query, oldest bool) *bun.SelectQuery {
			p := record.PartOf(page.Query[document.Place]{After: &document.Place{ID: "9"}, Limit: 10}, people.DocumentOrder,
				people.DocumentFilters(q))
			list := people.DocumentList
			list.Order.Descending = !oldest
			return list.Selected(db.Conn(t.Context()).NewSelect().Model((*people.DocumentRead)(nil)), p)
		}
		kept := func(q document.Query) *bun.SelectQuery { return ordered(q, false) }
		risky := account.Accounts.Selected(db.Conn(t.Context()).NewSelect().TableExpr("users AS u").ColumnExpr("u.*"),
			record.PartOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, account.AccountOrder,
				people.RiskyFilters(db.Postgres())))
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"risky users":            {risky, "users_aml"},
			"documents of one":       {kept(document.Query{UserID: new("u")}), "document_user"},
			"documents of a type":    {kept(document.Query{Type: new(int64(1))}), "document_type"},
			"documents of a status":  {kept(document.Query{Status: new("s")}), "document_status"},
			"documents for a reason": {kept(document.Query{Reason: new("r")}), "document_reason"},
			"documents that wait, oldest": {ordered(document.Query{Reason: new("r"), OwnerKYC: new("w")}, true),
				"document_reason"},
			"companies' users of one":  {linked(corporate.UserQuery{UserID: new("u")}), "corporate_user_user"},
			"users of a company":       {linked(corporate.UserQuery{CorporateUserID: new("c")}), "corporate_user_company"},
			"companies' users, status": {linked(corporate.UserQuery{Status: new("s")}), "corporate_user_status"},
			"applications, tax number": {applied(corporate.ApplicationQuery{TaxNumber: new("1")}),
				"corporate_application_tax_number"},
			"applications of a status": {applied(corporate.ApplicationQuery{Status: new("s")}),
				"corporate_application_status"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		people.NewAgreements(db), people.NewBootstrap(db), people.NewCorporate(db), people.NewDocuments(db),
		people.NewDropdowns(db),
		people.NewIdentities(db), people.NewInbox(db), people.NewIntake(db), people.NewDecisions(db),
		people.NewStandings(db))
}
