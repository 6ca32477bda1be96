package persistence_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/gate"
	"castellan/persistence/guard"
	"castellan/persistence/kit"
	"castellan/persistence/office"
	"castellan/persistence/people"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
	"castellan/persistence/session"
)

// Both databases have the same indexes: unique or not, of the same columns, with the same conditions. The tables of
// PostgreSQL are made by the migrations of this tree, never copied from a template that an older program made.
func TestIndexConditionsAgree(t *testing.T) {
	sqlite := indexesOf(t, persistencetest.OpenWith(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"),
		persistence.Options{}),
		`SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`)
	postgres := indexesOf(t, persistencetest.OpenWith(t, pgtest.Empty(t), persistence.Options{}),
		`SELECT indexname AS name, indexdef AS sql FROM pg_indexes WHERE schemaname = current_schema()
		 AND indexname NOT IN (SELECT conname FROM pg_constraint)`)
	delete(postgres, "user_search_parts") // a table of fts5 on SQLite
	if want := "unique (user_id, currency_id) where closure and status = 'active'"; sqlite["blockage_closure"] != want {
		t.Errorf("blockage_closure is %q, want %q", sqlite["blockage_closure"], want)
	}
	names := maps.Clone(sqlite)
	maps.Copy(names, postgres)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		storetest.Equal(t, sqlite[name], postgres[name], name)
	}
	if len(sqlite) < 20 {
		t.Errorf("only %d indexes were read", len(sqlite))
	}
}

var (
	indexText = regexp.MustCompile(`(?is)^CREATE( UNIQUE)? INDEX .*? ON [^(]*\((.*?)\)(?:\s+WHERE (.*))?$`)
	// rewritten are expressions as SQLite keeps them and PostgreSQL shows them. PostgreSQL shows blanks themselves; the
	// suite of transactions reads a row with each.
	rewritten = strings.NewReplacer("<> all array[ 4 , 11 , 12 ]", "not in 4, 11, 12", "status < 5 or status > 10",
		"status not between 5 and 10", "'-1'", "-1", "btrim", "trim", ", char 9, 10, 11, 12, 13, 32", ", ' '",
		" glob '*[^!-~]*'", " ~ '[^!-~]'", " ,", ",")
	spelling = regexp.MustCompile(`::\w+(\[\])?|[()\s]+`)
)

// indexesOf returns whether each index is unique, its columns and the condition it is limited by, in one spelling.
func indexesOf(t *testing.T, db *persistence.DB, query string) map[string]string {
	t.Helper()
	var rows []struct{ Name, SQL string }
	storetest.Must(t, db.Conn(t.Context()).NewRaw(query).Scan(t.Context(), &rows))
	all := map[string]string{}
	for _, r := range rows {
		r.SQL = strings.ReplaceAll(r.SQL, ` COLLATE "C"`, "") // SQLite compares bytes
		m := indexText.FindStringSubmatch(r.SQL)
		if m == nil {
			t.Fatalf("%s cannot be read: %s", r.Name, r.SQL)
		}
		for i := range m {
			m[i] = strings.Join(strings.Fields(spelling.ReplaceAllString(m[i], " ")), " ")
			m[i] = strings.ReplaceAll(strings.ToLower(m[i]), " include ", ", ") // SQLite has no INCLUDE
		}
		all[r.Name] = strings.TrimSpace(m[1] + " (" + rewritten.Replace(m[2]) + ")")
		if m[3] != "" {
			all[r.Name] += " where " + rewritten.Replace(m[3])
		}
	}
	return all
}

// The kit comes before money and repeats the name of an action: a row of another name would leave the archive
// without what the proof of the ledger reads.
func TestTheArchiveKeepsTransfers(t *testing.T) {
	storetest.Equal(t, kit.KeptAction, ledger.ActionTransfer)
}

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, []string{"Audit.MayRemove"}, // of PostgreSQL
		account.NewHashKinds(db), account.NewPasswordGuards(db), account.NewUsers(db), delivery.NewNotifications(db),
		delivery.NewOutbox(db), factor.NewChallenges(db), factor.NewMFA(db), factor.NewPasskeys(db), factor.NewRemembered(db),
		gate.NewErrands(db), gate.NewGateways(db), guard.NewFirewall(db), kit.NewAudit(db), kit.NewChanges(db),
		kit.NewIdempotency(db), kit.NewIntegration(db), kit.NewJobs(db), kit.NewKeys(db), kit.NewParameters(db),
		office.NewAnnouncements(db), office.NewDeploys(db), office.NewVPNs(db), office.NewContracts(db),
		office.NewFourEyes(db), people.NewAgreements(db), people.NewBootstrap(db), people.NewCorporate(db),
		people.NewDocuments(db), people.NewDropdowns(db), people.NewIdentities(db), people.NewInbox(db), people.NewIntake(db),
		people.NewDecisions(db), people.NewStandings(db), permit.NewCronKeys(db), permit.NewResources(db),
		permit.NewServiceKeys(db), proof.NewDevices(db), proof.NewTOTP(db), proof.NewUserLinks(db),
		session.NewAllowedIPs(db), session.NewGeofilters(db), session.NewProfiles(db), session.NewResetTokens(db),
		session.NewSessions(db))
}
