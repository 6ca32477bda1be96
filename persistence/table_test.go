package persistence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/access/profile"
	"castellan/domain/access/resource"
	"castellan/domain/access/user"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/office/staffrequest"
	"castellan/domain/people/corporate"
	"castellan/domain/people/document"
)

// A page of a list that grows without end is found by an index that has the order
// of the list, with a position and without: the last page costs what the first
// one does.
func TestPagesAreFoundByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		at := time.UnixMilli(5)
		audits := func(q audit.Query, after *audit.Place) *bun.SelectQuery {
			p := partOf(page.Query[audit.Place]{After: after, Limit: 10}, auditOrder, auditFilters(q))
			return auditRows.selected(db.Conn(t.Context()).NewSelect().Model((*auditRow)(nil)), p)
		}
		lines := func(q resource.LogQuery, after resource.LogPlace) *bun.SelectQuery {
			p := partOf(page.Query[resource.LogPlace]{After: &after, Limit: 10}, logOrder, logFilters(q))
			return grantLog.selected(db.Conn(t.Context()).NewSelect().Model((*grantLogRow)(nil)), p)
		}
		after := resource.Member{UserID: "u", RoleCode: "r", CreatedAt: at}
		held := func(q resource.MemberQuery) *bun.SelectQuery {
			p := partOf(page.Query[resource.Member]{After: &after, Limit: 10}, memberOrder, memberFilters(q))
			return members.selected(db.Conn(t.Context()).NewSelect().Model((*roleRow)(nil)), p)
		}
		asked := func(q staffrequest.DeployQuery) *bun.SelectQuery {
			p := partOf(page.Query[staffrequest.Place]{After: &staffrequest.Place{ID: 9}, Limit: 10}, approvalOrder, deployFilters(q))
			return deploys.selected(db.Conn(t.Context()).NewSelect().Model((*deployRow)(nil)), p)
		}
		vpn := func(q staffrequest.VPNQuery) *bun.SelectQuery {
			p := partOf(page.Query[staffrequest.Place]{After: &staffrequest.Place{ID: 9}, Limit: 10}, approvalOrder, vpnFilters(q))
			return vpns.selected(db.Conn(t.Context()).NewSelect().Model((*vpnRow)(nil)), p)
		}
		people := func(q user.Query) *bun.SelectQuery {
			p := partOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, accountOrder, accountFilters(q))
			list := accountsByID
			if q.NewestFirst {
				list = accounts
			}
			return list.selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)), p)
		}
		registrations := registered.selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)),
			partOf(page.Query[user.RegisteredPlace]{After: &user.RegisteredPlace{At: at, ID: "9"}, Limit: 10}, registeredOrder,
				registeredFilters(user.Span{From: at, To: at})))
		active := visitors.selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)),
			partOf(page.Query[user.VisitorPlace]{After: &user.VisitorPlace{Day: at, ID: "9"}, Limit: 10}, visitorOrder,
				visitorFilters(at)))
		pending := staffrequest.Pending
		work := func(q job.Query) *bun.SelectQuery {
			p := partOf(page.Query[job.Place]{After: &job.Place{ID: "9"}, Limit: 10}, jobOrder, jobFilters(q))
			return jobs.selected(db.Conn(t.Context()).NewSelect().Model((*jobRow)(nil)), p)
		}
		told := func(q notification.Query) *bun.SelectQuery {
			p := partOf(page.Query[notification.Place]{After: &notification.Place{ID: "9"}, Limit: 10}, notificationOrder,
				notificationFilters(q))
			return notifications.selected(db.Conn(t.Context()).NewSelect().Model((*notificationRow)(nil)), p)
		}
		linked := func(q corporate.UserQuery) *bun.SelectQuery {
			p := partOf(page.Query[corporate.Place]{After: &corporate.Place{ID: 9}, Limit: 10}, corporateOrder,
				corporateFilters(q))
			return corporateUsers.selected(db.Conn(t.Context()).NewSelect().Model((*corporateRow)(nil)), p)
		}
		applied := func(q corporate.ApplicationQuery) *bun.SelectQuery {
			p := partOf(page.Query[corporate.Place]{After: &corporate.Place{ID: 9}, Limit: 10}, corporateOrder,
				applicationFilters(q))
			return applications.selected(db.Conn(t.Context()).NewSelect().Model((*applicationRow)(nil)), p)
		}
		kept := func(q document.Query) *bun.SelectQuery {
			p := partOf(page.Query[document.Place]{After: &document.Place{ID: "9"}, Limit: 10}, documentOrder,
				documentFilters(q))
			return documentList(q.Oldest).selected(db.Conn(t.Context()).NewSelect().Model((*documentRead)(nil)), p)
		}
		mails := func(q profile.Query) *bun.SelectQuery {
			p := partOf(page.Query[profile.Place]{After: &profile.Place{At: at, ID: 9}, Limit: 10}, mailChangeOrder,
				mailChangeFilters(q))
			return mailChanges.selected(db.Conn(t.Context()).NewSelect().Model((*mailChangeRow)(nil)), p)
		}
		blocked := func(q blockage.Query) *bun.SelectQuery {
			p := partOf(page.Query[blockage.Place]{After: &blockage.Place{ID: 9}, Limit: 10}, blockageOrder, blockageFilters(q))
			return blockages.selected(db.Conn(t.Context()).NewSelect().Model((*blockageRead)(nil)), p)
		}
		risky := accounts.selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)),
			partOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, accountOrder, riskyFilters(db.Postgres())))
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"users of an identity":  {people(user.Query{IdentityHashes: []string{"h"}}), "users_identity"},
			"users of a tax number": {people(user.Query{TaxNumber: new("1")}), "users_tax_number"},
			"users of a birth date": {people(user.Query{BirthDate: new("d")}), "users_birth_date"},
			"users of a name":       {people(user.Query{Name: new("n")}), "users"},
			"users of a status":     {people(user.Query{Status: new(user.Active)}), "users_status"},
			"users of a type":       {people(user.Query{Type: new(user.Corporate)}), "users_type"},
			"confirmed users":       {people(user.Query{KYCApproved: new(true)}), "users_kyc_approved"},
			"unconfirmed, newest":   {people(user.Query{KYCApproved: new(false), NewestFirst: true}), "users_kyc_approved"},
			"users":                 {people(user.Query{}), "users"},
			"active users":          {active, "users_last_login"},
			"registrations":         {registrations, "users_created"},

			"blockages":             {blocked(blockage.Query{}), "b"},
			"blockages of one":      {blocked(blockage.Query{UserID: new("u")}), "blockage_user"},
			"blockages of a code":   {blocked(blockage.Query{CurrencyID: new(int64(1))}), "blockage_currency"},
			"blockages of a type":   {blocked(blockage.Query{TypeIDs: []int64{1}}), "blockage_type"},
			"blockages of a status": {blocked(blockage.Query{Status: new(blockage.Active)}), "blockage_status"},
			"risky users":           {risky, "users_aml"},

			"audit":                 {audits(audit.Query{}, nil), "audit_at"},
			"audit, later":          {audits(audit.Query{}, &audit.Place{At: at, Chain: "c", Seq: 1}), "audit_at"},
			"audit of one":          {audits(audit.Query{UserID: "u1"}, nil), "audit_user"},
			"audit from an address": {audits(audit.Query{IP: "::1"}, &audit.Place{At: at, Chain: "c", Seq: 1}), "audit_ip"},
			"audit of a record":     {audits(audit.Query{Target: "t"}, nil), "audit_target"},
			"log of a role": {lines(resource.LogQuery{RoleID: new(int64(1))}, resource.LogPlace{ID: 9}),
				"role_resource_permission_log_role"},
			"members":              {held(resource.MemberQuery{}), "user_role_created"},
			"deploys of a status":  {asked(staffrequest.DeployQuery{Status: &pending}), "deploy_request_status"},
			"deploys of a service": {asked(staffrequest.DeployQuery{ServiceName: new("s")}), "deploy_request_service"},
			"deploys of an original": {asked(staffrequest.DeployQuery{OriginalServiceName: new("s")}),
				"deploy_request_original"},
			"deploys of a type":      {asked(staffrequest.DeployQuery{Type: new("t")}), "deploy_request_type"},
			"VPNs of a status":       {vpn(staffrequest.VPNQuery{Status: &pending}), "vpn_request_status"},
			"VPNs of a name":         {vpn(staffrequest.VPNQuery{UserName: new("n")}), "vpn_request_user_name"},
			"VPNs of a type":         {vpn(staffrequest.VPNQuery{Type: new("t")}), "vpn_request_type"},
			"members of a role":      {held(resource.MemberQuery{RoleCode: "r"}), "user_role_by_role"},
			"jobs of a type":         {work(job.Query{Kind: "k"}), "job_kind"},
			"jobs in a state":        {work(job.Query{State: job.Done}), "job_state"},
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
			"notifications":    {told(notification.Query{UserID: "u"}), "notification_user"},
			"unread ones":      {told(notification.Query{UserID: "u", Unread: true}), "notification_unread"},
			"jobs of both":     {work(job.Query{Kind: "k", State: job.Done}), "job_kind_state"},
			"addresses of one": {mails(profile.Query{UserID: "u", From: at, To: at}), "email_change_user"},
		} {
			wantsIndex(t, db, name, c.query, c.index)
		}
		// What one request did is so little that it is sorted.
		plan := explainText(t, db, audits(audit.Query{RequestID: "r"}, nil).String(), "SET enable_sort = on")
		if !strings.Contains(plan, "audit_request") {
			t.Errorf("audit of a request is planned as\n%s", plan)
		}
	})
}

// labelRow is the row of a table that only this test has.
type labelRow struct {
	bun.BaseModel `bun:"table:label,alias:l"`

	ID    int64 `bun:",pk,autoincrement"`
	Name  string
	Group string
	Count int64
	stamps
}

type label struct {
	ID          int64
	Name, Group string
	Count       int64
}

var labels = table[labelRow, label]{
	order:  keyset{columns: "name, id", descending: true},
	fixed:  []string{"name", "created_at"},
	absent: "there is no such label",
	record: func(r labelRow) (label, error) { return label{r.ID, r.Name, r.Group, r.Count}, nil },
	row:    func(l label) labelRow { return labelRow{Name: l.Name, Group: l.Group, Count: l.Count} },
}

func createLabels(t *testing.T, db *DB) {
	id := "INTEGER PRIMARY KEY AUTOINCREMENT"
	if db.Postgres() {
		id = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
	}
	exec(t, db, "CREATE TABLE label (id "+id+", name TEXT NOT NULL UNIQUE, \"group\" TEXT NOT NULL, "+
		"count BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL)")
}

func TestTable(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		createLabels(t, db)
		for i := range 5 {
			id, err := labels.add(ctx, db, label{ID: 99, Name: fmt.Sprint("n", i), Group: string(rune('a' + i%2))})
			if err != nil || id != int64(i+1) {
				t.Fatalf("added as %d, %v", id, err)
			}
		}
		if _, err := labels.add(ctx, db, label{Name: "n0"}); fault.CodeOf(err) != fault.RecordAlreadyExist {
			t.Errorf("a name that is taken: %v", err)
		}
		names := func(p part) (names []string) {
			ls, err := labels.list(ctx, db, p)
			storetest.Must(t, err)
			for _, l := range ls {
				names = append(names, l.Name)
			}
			return names
		}
		for _, c := range []struct {
			part part
			want string
		}{
			{part{}, "n4 n3 n2 n1 n0"},
			{part{limit: 2}, "n4 n3"},
			{part{limit: 2, after: []any{"n3", 4}}, "n2 n1"},
			{part{after: []any{"n0", 1}}, ""},
			{part{where: []filter{is("group", "a")}}, "n4 n2 n0"},
			{part{where: []filter{given("group", "b"), given("name", "")}}, "n3 n1"},
		} {
			if got := strings.Join(names(c.part), " "); got != c.want {
				t.Errorf("%+v: %s, want %s", c.part, got, c.want)
			}
		}
		if n, err := labels.count(ctx, db, is("group", "a")); n != 3 || err != nil {
			t.Errorf("%d of a group, %v", n, err)
		}
		storetest.Must(t, labels.change(ctx, db, func(l label) (label, error) {
			l.Name, l.Count = "other", l.Count+1
			return l, nil
		}, is("name", "n1")))
		if l, err := labels.find(ctx, db, is("id", 2)); err != nil || l != (label{2, "n1", "b", 1}) {
			t.Errorf("after a change: %+v, %v", l, err)
		}
		boom := errors.New("boom")
		refuse := func(l label) (label, error) { l.Count = 9; return l, boom }
		if err := labels.change(ctx, db, refuse, is("name", "n1")); !errors.Is(err, boom) {
			t.Errorf("a refused change: %v", err)
		}
		storetest.Must(t, labels.save(ctx, db, label{Name: "other", Group: "c"}, is("id", 1)))
		if l, err := labels.find(ctx, db, is("group", "c")); err != nil || l != (label{1, "n0", "c", 0}) {
			t.Errorf("after a save: %+v, %v", l, err)
		}
		storetest.Must(t, labels.remove(ctx, db, is("id", 3)))
		if got := names(part{}); !slices.Equal(got, []string{"n4", "n3", "n1", "n0"}) {
			t.Errorf("after a removal: %v", got)
		}
		_, err := labels.find(ctx, db, is("id", 3))
		for what, err := range map[string]error{
			"find":   err,
			"change": labels.change(ctx, db, refuse, is("id", 3)),
			"save":   labels.save(ctx, db, label{}, is("id", 3)),
			"remove": labels.remove(ctx, db, is("id", 3)),
		} {
			if fault.CodeOf(err) != fault.RecordNotFound || !strings.Contains(err.Error(), "there is no such label") {
				t.Errorf("%s of a row that is not there: %v", what, err)
			}
		}
		// A condition that names nothing must not mean every row.
		if err := labels.remove(ctx, db, given("name", "")); err == nil {
			t.Error("a removal without a condition was done")
		}
	})
}

// Changes of one row come one after the other, and each sees the one before.
func TestTableChangesQueue(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		createLabels(t, db)
		_, err := labels.add(t.Context(), db, label{Name: "n"})
		storetest.Must(t, err)
		errs := make(chan error)
		for range 20 {
			go func() {
				errs <- db.InTx(t.Context(), func(ctx context.Context) error {
					return labels.change(ctx, db, func(l label) (label, error) { l.Count++; return l, nil },
						is("name", "n"))
				})
			}()
		}
		for range 20 {
			storetest.Must(t, <-errs)
		}
		if l, err := labels.find(t.Context(), db, is("name", "n")); err != nil || l.Count != 20 {
			t.Errorf("counted %d, %v", l.Count, err)
		}
	})
}
