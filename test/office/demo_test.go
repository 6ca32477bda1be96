package office

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/rest"
	"castellan/internal/blackbox"
)

// everyState lists the states that 300 accounts must contain, by table and condition.
var everyState = []string{
	"users WHERE kyc_confirm = 'waitingApproval'", "users WHERE kyc_confirm = 'manuelApproved'",
	"users WHERE kyc_confirm = 'ocrOrNfcApproved'", "users WHERE kyc_confirm = 'rejected'",
	"users WHERE status = 'active'", "users WHERE status = 'passive'", "users WHERE status = 'blocked'",
	"users WHERE status = 'closed'", "users WHERE aml_status = 'notRisky'", "users WHERE aml_status = 'risky'",
	"users WHERE type = 'bireysel'", "users WHERE type = 'kurumsal' AND tax_number <> ''",
	"users WHERE level = 0", "users WHERE level = 1", "users WHERE level = 2", "users WHERE level = 10",
	"users WHERE language = 'tr'", "users WHERE language = 'en'", "users WHERE language = 'ar'",
	"users WHERE identity_hash <> '' AND birth_date <> ''", "users WHERE countries <> ''",
	"users WHERE withdraw_prohibited",
	"users WHERE last_login_day > 0", "login_history WHERE success", "login_history WHERE NOT success",
	"document WHERE reason = 'approved'", "document WHERE reason = 'rejected' AND status = 'deActive'",
	"document WHERE reason = 'waitingApproval'", "document WHERE mime_type = 'application/pdf'",
	"deposit WHERE status = -9 AND sender_info <> ''", "deposit WHERE status = -5", "deposit WHERE status = 1",
	"deposit WHERE status = 1 AND external_id <> ''", "deposit WHERE status = 2",
	"withdrawal WHERE status = -1", "withdrawal WHERE status = -2", "withdrawal WHERE status = -3",
	"withdrawal WHERE status = 1", "withdrawal WHERE status = 3",
	"withdrawal_queue WHERE status = 4", "withdrawal_queue WHERE status = 5", "withdrawal_queue WHERE status = 6",
	"withdrawal_queue WHERE status = 7", "withdrawal_queue WHERE status = 8", "withdrawal_queue WHERE status = 9",
	"withdrawal_queue WHERE status = 10", "withdrawal_queue WHERE status = 11", "withdrawal_queue WHERE status = 12",
	"users WHERE aml_status = 'highRisk'", "aml_finding WHERE status = 'risky'",
	"integration_event WHERE type = 'withdrawal.queued'", "integration_event WHERE type = 'withdrawal.resumed'",
	"integration_event WHERE type = 'withdrawal.cancelled'", "integration_event WHERE type = 'deposit.decided'",
	"parameter WHERE code = 'WITHDRAWAL_FEE'", "process WHERE status = 1",
	"transfer WHERE kind = 'deposit'", "transfer WHERE kind = 'withdrawal'", "transfer WHERE kind = 'withdrawal-fee'",
	"transfer WHERE kind = 'adjustment'", "transfer WHERE kind = 'reversal'",
	"hold WHERE state = 'active'", "hold WHERE state = 'released'", "hold WHERE state = 'settled'", "day WHERE seq > 1",
	"exchange_rate WHERE source = 'demo'", "contract_detail WHERE order_no > 10", "announcement WHERE active",
	"announcement WHERE NOT active", "announcement WHERE slider", "firewall_rule WHERE status = 'INACTIVE'",
	"firewall_rule WHERE type = 'rate_limit'", "geofilter_country WHERE code = 'TR'",
	"user_role WHERE role = 'treasury'",
	"role_resource_permission WHERE permission = 'ALLOW'", "agreement WHERE accept_required",
	"agreement_acceptance WHERE accepted_at > 0", "notification WHERE read_at = 0", "notification WHERE read_at > 0",
	"withdrawal_address WHERE name <> ''", "deploy_request WHERE status = 'PENDING'",
	"deploy_request WHERE status = 'APPROVED'", "deploy_request WHERE status = 'REJECTED'",
	"vpn_request WHERE status = 'PENDING'", "job WHERE state = 'queued'", "job WHERE state = 'running'",
	"job WHERE state = 'paused'", "job WHERE state = 'done'", "job WHERE state = 'failed'",
	"job WHERE state = 'cancelled'", "corporate_application WHERE status = 'PENDING'",
	"corporate_application WHERE status = 'APPROVED'", "corporate_application WHERE status = 'REJECTED'",
	"corporate_user WHERE status = 'active'", "corporate_user WHERE status = 'passive'",
	"users WHERE address_confirmed = 'manuelApproved'", "users WHERE address_confirmed = 'rejected'",
	"account_decision WHERE kind = 'kyc' AND value = 'rejected'", "account_decision WHERE kind = 'address'",
	"blockage WHERE status = 'active' AND NOT closure", "blockage WHERE status = 'active' AND closure",
	"blockage WHERE status = 'released' AND deleted_at = 0", "blockage WHERE deleted_at > 0",
	"additional_info WHERE purpose > 0",
	"email_change WHERE old_email <> ''", "provider_snapshot WHERE provider = 'spot'", "users WHERE NOT campaign_sms",
}

// asked has the parameters of lists that need or accept some. ${user} is replaced by the id of a demo user.
var asked = map[string]string{
	"/admin/login-history":                      "userId=${user}",
	"/admin/login-history-v2":                   "ipaddress=${ip}",
	"/admin/user-names":                         "ids=${user}",
	"/admin/get-users-by-register-date":         "beginDate=2026-01-01&endDate=2026-10-31",
	"/admin/get-user-counts-by-register-date":   "beginDate=2026-01-01&endDate=2026-10-31",
	"/admin/get-active-users":                   "startDate=2026-01-01",
	"/admin/get-last-rates-by-date":             "date=2026-10-31",
	"/admin/get-contract-details":               "contractId=1",
	"/admin/get-agreements":                     "userId=${user}",
	"/admin/get-document-file":                  "documentInfo=%7B%22id%22%3A%22${document}%22%7D",
	"/admin/currency/get-all":                   "type=CURRENCY",
	"/admin/jobs/{id}":                          "",
	"/admin/kyc-case":                           "userId=${user}",
	"/admin/transaction/adjust-balance/preview": "userId=${user}&currencyCode=BTC&networkCode=BTC&amount=1&type=C",
	"/admin/get-email-change-history":           "userId=${user}",
	"/admin/user/limit-info":                    "userId=${user}",
	"/admin/user/link":                          "userId=${user}",
	"/admin/user/security":                      "userId=${user}",
	"/user/get-kyc-images":                      "userId=${user}",
	"/admin/get-member-asset-balances":          "userId=${user}",
	"/balance/get-daily-position":               "startDate=2026-10-01&endDate=2026-10-31",
	"/process/get-process-admin":                "userId=${user}",
	"/process/get-provider-balances":            "provider=spot",
	"/process/get-provider-balances-of-asset":   "provider=spot&account=AllAccounts&asset=BTC",
	"/process/get-provider-balances-total":      "provider=spot&datetime5min=2026-10-31",
}

// stayEmpty are the lists that the demo leaves empty, with the reason.
var stayEmpty = map[string]string{
	"/user/last-month-user-count-day-by-day": "the demo has a fixed day here",
	"/admin/approvals":                       "nothing needs a second person until it is set",
	"/admin/service-keys":                    "no other service is connected",
	"/admin/user/link":                       "no account logs in elsewhere",
}

// Every state occurs, the ledger verifies, every list of the back office shows rows, the printed accounts can
// log in, and a second run is refused. (TestConsoleMoney uses a demo on PostgreSQL.)
func TestDemoFillsEveryList(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Alone()
		run := []string{"demo", "--users", "300", "--now", "2026-10-31", "--password", blackbox.DemoPassword}
		got := s.Command("", run...)
		if got.Code != 0 || !strings.Contains(got.Out, "administrator") || !strings.Contains(got.Out, blackbox.DemoPassword) {
			t.Fatalf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
		}
		for _, state := range everyState {
			if s.Count(state) == 0 {
				t.Errorf("no row of %s", state)
			}
		}
		s.Has(0, "outbox") // no message to people waits
		s.Succeeds("", "ledger", "verify")
		s.Succeeds("", "audit", "verify")
		if got := s.Command("", run...); got.Code != 1 || !strings.Contains(got.ErrOut, "already") {
			t.Errorf("the second run: exit %d: %s%s", got.Code, got.Out, got.ErrOut)
		}
		n := s.Start()
		who := n.Auth(t, blackbox.DemoAccount(1))
		fill := map[string]string{}
		for name, query := range map[string]string{
			"${user}":     "SELECT id FROM users WHERE email = 'ayse@demo.example'",
			"${ip}":       "SELECT ip FROM login_history ORDER BY id LIMIT 1",
			"${document}": "SELECT id FROM document ORDER BY id LIMIT 1",
			"${job}":      "SELECT id FROM job WHERE state = 'done' ORDER BY id LIMIT 1"} {
			fill[name] = s.Text(query)
		}
		for _, e := range httpapi.Endpoints() {
			if e.Path == "/admin/approvals/{id}" || e.Path == "/admin/challenges/{id}/evidence" ||
				strings.HasPrefix(e.Path, "/integration/") {
				continue // no such record exists, and no other service is connected
			}
			if e.Method == "GET" && (e.Audience == rest.Admin || e.Audience == rest.SelfOrAdmin) {
				list(t, n, who, e.Path, fill)
			}
		}
		for i := range 7 {
			n.Session(t, blackbox.DemoAccount(i+1))
		}
		n.Stop()
	})
}

// list requests a list, which must have rows.
func list(t *testing.T, n *blackbox.Node, who blackbox.Headers, path string, fill map[string]string) {
	t.Helper()
	query := asked[path]
	for name, value := range fill {
		query = strings.ReplaceAll(query, name, value)
	}
	url := strings.ReplaceAll(path, "{id}", fill["${job}"]) + "?" + query
	got := n.Do(t, "GET", url, nil, who)
	body := bytes.TrimSpace(got.Body)
	var object struct{ Data json.RawMessage }
	if json.Unmarshal(body, &object) == nil && object.Data != nil {
		body = object.Data
	}
	empty := len(body) == 0 || slices.Contains([]string{"[]", "{}", "null"}, string(body))
	switch reason, may := stayEmpty[path]; {
	case got.Status != 200:
		t.Errorf("GET %s: %s", url, got)
	case empty && !may:
		t.Errorf("GET %s shows nothing", url)
	case !empty && may && path != "/user/last-month-user-count-day-by-day":
		t.Errorf("GET %s shows something, though %s", url, reason)
	}
}

// The tables and columns that differ between two databases. These are keys and values derived from them, the audit with
// its chain, notes, the seeds of every installation, and the logins of development mode. The team gets its passwords at
// the instant of the run. PostgreSQL skips numbers after an aborted transaction.
var (
	unequalTables = []string{"keys", "audit", "audit_checkpoint", "change", "seed", "schema_migrations", "idempotency",
		"outbox", "session", "password_guard", "mfa_method", "mfa_action", "mfa_policy", "resource", "resource_type",
		"dropdown_option", "sqlite_sequence"}
	unequalColumns = map[string][]string{"users": {"identity_hash", "password_hash", "cv", "credentials_at"},
		"job":      {"params"},
		"currency": {"created_at", "updated_at"}, "currency_network": {"created_at", "updated_at"},
		"currency_of_network": {"created_at", "updated_at"},
		"withdrawal_address":  {"id"}, "geofilter_country": {"id"}, "account_decision": {"id"}, "email_change": {"id"},
		"additional_info": {"id"}, "parameter": {"created_at", "updated_at"},
		"contract": {"created_at"}, "role": {"created_at"}, "integration_event": {"tx"},
		"integration_claim": {"digest"}} // it covers the number of an address
)

// digest hashes all rows that the demo made, by table.
func digest(t *testing.T, s *blackbox.Site) (of map[string]string) {
	t.Helper()
	of = map[string]string{}
	db := s.Open()
	defer db.Close()
	for _, table := range s.Tables() {
		if slices.Contains(unequalTables, table) {
			continue
		}
		columns := slices.DeleteFunc(s.Columns(table), func(c string) bool {
			return slices.Contains(unequalColumns[table], c)
		})
		where := ""
		if table == "users" {
			where = " WHERE email NOT LIKE '%@demo.castellan.test'"
		} else if table == "user_role" {
			where = " WHERE user_id IN (SELECT id FROM users WHERE email NOT LIKE '%@demo.castellan.test')"
		}
		list := strings.Join(columns, ", ")
		rows, err := db.Query("SELECT " + list + " FROM " + table + where + " ORDER BY " + list)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		sum, values, into := sha256.New(), make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		n := 0
		for ; rows.Next(); n++ {
			storetest.Must(t, rows.Scan(into...))
			fmt.Fprintln(sum, values...)
		}
		storetest.Must(t, rows.Err())
		of[table] = fmt.Sprint(n, " rows ", hex.EncodeToString(sum.Sum(nil)[:8]))
	}
	return of
}

// A killed run continues when the command is repeated, and produces the rows of an uninterrupted run. On
// PostgreSQL its transactions are also ended twice, as happens to a long computation. A run with other options
// is refused meanwhile.
func TestDemoContinuesAfterKill(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		whole := blackbox.NewSite(t, s.Kind).Alone()
		s.Alone()
		whole.Succeeds("", "demo", "--users", "1100", "--now", "2026-10-31")
		n := s.Run("demo", "--users", "1100", "--now", "2026-10-31")
		blackbox.Until(t, 4*time.Minute, "the first accounts", func() bool {
			return strings.Contains(n.Log(), "accounts: 500 of 1100") || n.Ended()
		})
		n.Kill()
		s.Says(1, "demo --users 1200", "--users 1100")
		rest := s.Run("demo")
		if s.Kind == "postgres" {
			endTwice(t, s, rest)
		}
		blackbox.Until(t, 4*time.Minute, "the end of the run", rest.Ended) // slow beside other tests
		storetest.Equal(t, rest.Wait(), 0, "exit", rest.Out(), rest.Log())
		want, got := digest(t, whole), digest(t, s)
		for table := range want {
			storetest.Equal(t, got[table], want[table], table, "after a kill", "otherwise")
		}
		if len(want) < 30 {
			t.Errorf("only %d tables were compared", len(want))
		}
	})
}

// endTwice ends the connection of a transaction that has written, twice.
func endTwice(t *testing.T, s *blackbox.Site, run *blackbox.Node) {
	for cut := range 2 {
		blackbox.Until(t, 4*time.Minute, "a transaction that writes", func() bool {
			if run.Ended() {
				t.Fatalf("it ended after %d cuts: %s", cut, run.Log())
			}
			return s.Text(`SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE
				datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL`) != "0"
		})
	}
}

// The command changes nothing in a database with users, or with contradictory options.
func TestDemoRefusesUsedDatabase(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.AddUser("user")
		for options, want := range map[string]string{"": "contains accounts", "--users 7": "--users must be",
			"--now today": "--now must be", "--password short": "password"} {
			s.Says(1, "demo "+options, want)
		}
		s.Has(3, "users") // and the two of development mode
	})
}
