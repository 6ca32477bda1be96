package session_test

import (
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/session/profile"
	"castellan/domain/session/session"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
	sessionstore "castellan/persistence/session"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfSessionsAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		at := time.UnixMilli(5)
		mails := func(q profile.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[profile.Place]{After: &profile.Place{At: at, ID: 9}, Limit: 10},
				sessionstore.MailChangeOrder,
				sessionstore.MailChangeFilters(q))
			return sessionstore.MailChanges.Selected(
				db.Conn(t.Context()).NewSelect().Model((*sessionstore.MailChangeRow)(nil)), p)
		}
		refusals := func(after *session.LoginPlace) *bun.SelectQuery {
			p := record.PartOf(page.Query[session.LoginPlace]{After: after, Limit: 10}, sessionstore.LoginOrder,
				sessionstore.RefusedFilters())
			return sessionstore.RefusedLogins.Selected(
				db.Conn(t.Context()).NewSelect().Model((*sessionstore.RefusedLoginRow)(nil)), p)
		}
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"refused logins":   {refusals(&session.LoginPlace{ID: "9"}), "login_history_refused"},
			"last refusals":    {refusals(nil), "login_history_refused"},
			"addresses of one": {mails(profile.Query{UserID: "u", From: at, To: at}), "email_change_user"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}
