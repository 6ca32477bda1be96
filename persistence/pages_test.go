package persistence_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
	"castellan/domain/office/staffrequest"
	"castellan/domain/people/corporate"
	"castellan/domain/people/document"
	"castellan/domain/people/inbox"
	"castellan/domain/permit/resource"
	"castellan/domain/session/profile"
	"castellan/domain/session/session"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/kit"
	"castellan/persistence/office"
	"castellan/persistence/people"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

// reads is a key of contexts whose last statement is kept.
type reads struct{}

// read runs a read and returns its last statement.
type read func(do func(ctx context.Context) error) string

// plans runs a test on both databases, with the statements of reads.
func plans(t *testing.T, test func(t *testing.T, db *persistence.DB, statement read)) {
	var last string
	trace := func(ctx context.Context, statement string) bool {
		if ctx.Value(reads{}) != nil {
			last = statement
		}
		return false
	}
	persistencetest.BothWith(t, persistence.Options{Trace: trace}, func(t *testing.T, db *persistence.DB) {
		test(t, db, func(do func(ctx context.Context) error) string {
			t.Helper()
			storetest.Must(t, do(context.WithValue(t.Context(), reads{}, true)))
			return last
		})
	})
}

// paged reads ten records of a list behind a place; from the start if it is nil.
func paged[Q, P, R any](list func(context.Context, Q, page.Query[P]) (page.Of[R], error), q Q, after *P,
	oldest ...bool) func(context.Context) error {
	return func(ctx context.Context) error {
		return storetest.Err(list(ctx, q, page.Query[P]{After: after, Limit: 10, Oldest: len(oldest) > 0}))
	}
}

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesAreFoundByIndex(t *testing.T) {
	plans(t, func(t *testing.T, db *persistence.DB, statement read) {
		at := time.UnixMilli(5)
		users, changed := account.NewUsers(db), &user.Place{ID: "9"}
		audits, line := kit.NewAudit(db).List, &audit.Place{At: at, Chain: "c", Seq: 1}
		jobs, worked := kit.NewJobs(db).List, &job.Place{ID: "9"}
		told, message := delivery.NewNotifications(db).List, &notification.Place{ID: "9"}
		refused := sessionstore.NewSessions(db).RefusedLogins
		roles, member := permit.NewResources(db), &resource.Member{UserID: "u", RoleCode: "r", CreatedAt: at}
		deploys, vpns, asked := office.NewDeploys(db).List, office.NewVPNs(db).List, &staffrequest.Place{ID: 9}
		documents, uploaded := people.NewDocuments(db).List, &document.Place{ID: "9"}
		companies, linked := people.NewCorporate(db), &corporate.Place{ID: 9}
		pending := staffrequest.Pending
		of := func(q user.Query) func(context.Context) error { return paged(users.Find, q, changed) }
		for name, c := range map[string]struct {
			read  func(ctx context.Context) error
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"audit":                 {paged(audits, audit.Query{}, nil), "audit_at"},
			"audit, later":          {paged(audits, audit.Query{}, line), "audit_at"},
			"audit of one":          {paged(audits, audit.Query{UserID: "u1"}, nil), "audit_user"},
			"audit from an address": {paged(audits, audit.Query{IP: "::1"}, line), "audit_ip"},
			"audit of a record":     {paged(audits, audit.Query{Target: "t"}, nil), "audit_target"},
			"jobs of a type":        {paged(jobs, job.Query{Kind: "k"}, worked), "job_kind"},
			"jobs in a state":       {paged(jobs, job.Query{State: job.Done}, worked), "job_state"},
			"jobs of both":          {paged(jobs, job.Query{Kind: "k", State: job.Done}, worked), "job_kind_state"},
			"notifications":         {paged(told, notification.Query{UserID: "u"}, message), "notification_user"},
			"unread ones": {paged(told, notification.Query{UserID: "u", Unread: true}, message),
				"notification_unread"},
			"users of an identity":  {of(user.Query{IdentityHashes: []string{"h"}}), "users_identity"},
			"users of a tax number": {of(user.Query{TaxNumber: new("1")}), "users_tax_number"},
			"users of a birth date": {of(user.Query{BirthDate: new("d")}), "users_birth_date"},
			"users of a name":       {of(user.Query{Name: new("n")}), "users"},
			"users of a status":     {of(user.Query{Status: new(user.Active)}), "users_status"},
			"users of a type":       {of(user.Query{Type: new(user.Corporate)}), "users_type"},
			"confirmed users":       {of(user.Query{KYCApproved: new(true)}), "users_kyc_approved"},
			"unconfirmed, newest":   {of(user.Query{KYCApproved: new(false), NewestFirst: true}), "users_kyc_approved"},
			"users":                 {of(user.Query{}), "users"},
			"active users":          {paged(users.Active, at, &user.VisitorPlace{Day: at, ID: "9"}), "users_last_login"},
			"registrations": {paged(users.Registered, user.Span{From: at, To: at}, &user.RegisteredPlace{At: at, ID: "9"}),
				"users_created"},
			"risky users":    {paged(people.NewStandings(db).Risky, struct{}{}, changed), "users_aml"},
			"refused logins": {paged(refused, struct{}{}, &session.LoginPlace{ID: "9"}), "login_history_refused"},
			"last refusals":  {paged(refused, struct{}{}, nil), "login_history_refused"},
			"addresses of one": {paged(sessionstore.NewProfiles(db).MailChanges, profile.Query{UserID: "u", From: at, To: at},
				&profile.Place{At: at, ID: 9}), "email_change_user"},
			"log of a role": {paged(roles.Log, resource.LogQuery{RoleID: new(int64(1))}, &resource.LogPlace{ID: 9}),
				"role_resource_permission_log_role"},
			"members":           {paged(roles.Members, resource.MemberQuery{}, member), "user_role_created"},
			"members of a role": {paged(roles.Members, resource.MemberQuery{RoleCode: "r"}, member), "user_role_by_role"},
			"deploys of a status": {paged(deploys, staffrequest.DeployQuery{Status: &pending}, asked),
				"deploy_request_status"},
			"deploys of a service": {paged(deploys, staffrequest.DeployQuery{ServiceName: new("s")}, asked),
				"deploy_request_service"},
			"deploys of an original": {paged(deploys, staffrequest.DeployQuery{OriginalServiceName: new("s")}, asked),
				"deploy_request_original"},
			"deploys of a type":      {paged(deploys, staffrequest.DeployQuery{Type: new("t")}, asked), "deploy_request_type"},
			"VPNs of a status":       {paged(vpns, staffrequest.VPNQuery{Status: &pending}, asked), "vpn_request_status"},
			"VPNs of a name":         {paged(vpns, staffrequest.VPNQuery{UserName: new("n")}, asked), "vpn_request_user_name"},
			"VPNs of a type":         {paged(vpns, staffrequest.VPNQuery{Type: new("t")}, asked), "vpn_request_type"},
			"documents of one":       {paged(documents, document.Query{UserID: new("u")}, uploaded), "document_user"},
			"documents of a type":    {paged(documents, document.Query{Type: new(int64(1))}, uploaded), "document_type"},
			"documents of a status":  {paged(documents, document.Query{Status: new("s")}, uploaded), "document_status"},
			"documents for a reason": {paged(documents, document.Query{Reason: new("r")}, uploaded), "document_reason"},
			"documents that wait": {paged(documents, document.Query{Reason: new("r"), OwnerKYC: new("w")}, uploaded, true),
				"document_reason"},
			"links of one": {paged(companies.Users, corporate.UserQuery{UserID: new("u")}, linked),
				"corporate_user_user"},
			"links of a company": {paged(companies.Users, corporate.UserQuery{CorporateUserID: new("c")}, linked),
				"corporate_user_company"},
			"links of a status": {paged(companies.Users, corporate.UserQuery{Status: new("s")}, linked),
				"corporate_user_status"},
			"companies of a number": {paged(companies.Applications, corporate.ApplicationQuery{TaxNumber: new("1")}, linked),
				"corporate_application_tax_number"},
			"companies of a status": {paged(companies.Applications, corporate.ApplicationQuery{Status: new("s")}, linked),
				"corporate_application_status"},
		} {
			persistencetest.WantsIndexOf(t, db, name, statement(c.read), c.index)
		}
	})
}

// The backlog of each queue is read by an index, oldest first, and so are the counts of accounts.
func TestBacklogsAndCountsAreFoundByIndex(t *testing.T) {
	plans(t, func(t *testing.T, db *persistence.DB, statement read) {
		indexes := map[inbox.Queue]string{inbox.Documents: "document_reason", inbox.AML: "users_aml",
			inbox.Deposits: "deposit_status", inbox.Withdrawals: "withdrawal_queue_active",
			inbox.Held: "withdrawal_queue_status", inbox.Approvals: "four_eyes_status", inbox.Deploys: "deploy_request_status",
			inbox.VPN: "vpn_request_status", inbox.Applications: "corporate_application_status"}
		for _, q := range inbox.Queues {
			persistencetest.WantsIndexOf(t, db, string(q.Queue), statement(func(ctx context.Context) error {
				return storetest.Err(people.NewInbox(db).Backlog(ctx, q.Queue))
			}), indexes[q.Queue])
		}
		users := account.NewUsers(db)
		for index, do := range map[string]func(context.Context) error{
			"users_status": func(ctx context.Context) error { return storetest.Err(users.CountByStatus(ctx)) },
			"users_level":  func(ctx context.Context) error { return storetest.Err(users.CountByLevel(ctx)) },
			"four_eyes_status": paged(office.NewFourEyes(db).List, foureyes.Query{Status: foureyes.Pending, Now: time.Now()},
				nil),
		} {
			if plan := persistencetest.ExplainText(t, db, statement(do)); !strings.Contains(plan, index) {
				t.Errorf("the plan does not use %s:\n%s", index, plan)
			}
		}
	})
}

// The rows of one request are few, so they are sorted. Both readings of a phone number are looked up by an index
// (D-USR-02).
func TestPlansOfFewRows(t *testing.T) {
	plans(t, func(t *testing.T, db *persistence.DB, statement read) {
		asked := statement(paged(kit.NewAudit(db).List, audit.Query{RequestID: "r"}, nil))
		plan := persistencetest.ExplainText(t, db, asked, "SET enable_sort = on")
		if !strings.Contains(plan, "audit_request") {
			t.Errorf("audit of a request is planned as\n%s", plan)
		}
		phones := "sqlite_autoindex_users"
		if db.Postgres() {
			phones = "users_phone_key"
		}
		for _, newest := range []bool{false, true} {
			q := user.Query{Phone: new("+5321234567"), National: new("5321234567"), NewestFirst: newest}
			plan := persistencetest.ExplainText(t, db, statement(paged(account.NewUsers(db).Find, q, &user.Place{ID: "9"})))
			if !strings.Contains(plan, phones) || strings.Contains(plan, "SCAN users") || strings.Contains(plan, "Seq Scan") {
				t.Errorf("newest first %v: a table is scanned:\n%s", newest, plan)
			}
		}
	})
}
