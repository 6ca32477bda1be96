package office

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The service runs with the database rights that docs/ledger.md grants. With those, a transfer, an account or
// an audit row can be neither changed nor removed.
func TestServiceRunsWithMinimalDatabaseRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/ledger.md")
	block := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(text)
	if err != nil || block == nil {
		t.Fatal("docs/ledger.md grants nothing", err)
	}
	s := blackbox.NewSite(t, "postgres")
	s.Succeeds("", "migrate")
	owner, role := s.Open(), "service_"+strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		for _, text := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			storetest.Is(t, storetest.Err(owner.Exec(text)), nil)
		}
		owner.Close()
	})
	s.Exec("CREATE ROLE " + role + " LOGIN PASSWORD 'of-the-test'")
	s.Exec(strings.ReplaceAll(string(block[1]), "castellan_service", role))
	dsn := storetest.Value(url.Parse(s.DSN))(t)
	dsn.User = url.UserPassword(role, "of-the-test")
	s.DSN = dsn.String()
	b := newBank(t, s.Set("DATABASE_URL="+s.DSN))
	for _, d := range []*deed{
		{order: order{Do: "debit", Ref: "1"}, n: 10, from: 0, to: -1},
		{order: order{Do: "send", Ref: "2"}, n: 10, from: 0, to: 1},
		{order: order{Do: "hold", Ref: "3"}, n: 10, from: 0, to: -1},
	} {
		if b.does(t, d); d.Do != "hold" {
			continue
		}
		b.does(t, &deed{order: order{Do: "settle", Ref: "4", Of: d.id}, n: 5, from: 0, to: -1})
	}
	for _, command := range []string{"ledger", "audit"} {
		s.Succeeds("", command, "verify")
	}
	s.Says(1, "audit archive --keep 720h --write", "cannot remove audit rows")
	service := s.Open()
	defer service.Close()
	refused(t, service, "UPDATE %", "transfer SET hi = 9", "account SET bounded = FALSE", "asset SET unit = 1",
		"day SET seq = 9", "audit SET detail = ''")
	refused(t, service, "DELETE FROM %", "transfer", "account", "asset", "day", "audit", "balance", "hold",
		"audit_archive", "audit_left", "audit_checkpoint")
	refused(t, service, "TRUNCATE %", "transfer", "account", "asset", "day", "audit", "balance", "hold")
	refused(t, service, "ALTER TABLE % DISABLE TRIGGER ALL", "transfer", "balance")
}

// refused runs statements, which the database must refuse to this role.
func refused(t *testing.T, db *sql.DB, text string, of ...string) {
	t.Helper()
	for _, what := range of {
		text := strings.ReplaceAll(text, "%", what)
		_, err := db.Exec(text)
		if err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Ledger verify names the first fault that was inserted directly into the database.
func TestLedgerVerifyNamesFirstFault(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Start().Stop()
		s.Says(0, "ledger verify", "is valid")
		s.Exec("INSERT INTO asset VALUES (7, 10000000000000000)")
		s.Exec("INSERT INTO account VALUES ('user/7/ada', 'user', 'ada', 7, TRUE)")
		s.Says(0, "ledger verify", "asset 7: 0 transfers between 1 accounts")
		s.Exec("UPDATE balance SET posted_lo = 1, seq = 1, version = 2 WHERE account_id = 'user/7/ada'")
		s.Says(1, "ledger verify", "account user/7/ada has 0.000000000000000001")
	})
}
