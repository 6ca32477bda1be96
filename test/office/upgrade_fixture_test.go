package office

import (
	"compress/gzip"
	"encoding/base32"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// masterFile is the master key of a site, in its data folder.
const masterFile = "master.key"

// makeUpgradeFixture writes a database as another version of the program leaves it. The program must allow
// tokens of any lifetime: scripts/upgrade-fixture.sh builds one that does.
func makeUpgradeFixture(t *testing.T, kind string) {
	t.Helper()
	const century = "876000h" // the tokens are valid for as long as the fixture is kept
	s := blackbox.NewSite(t, kind).Empty().Set("LOG_LEVEL=info", "TOKENS_X_AUTH_TTL="+century,
		"TOKENS_SESSION_TTL="+century)
	s.Program = *upgradeProgram
	n := s.Start()
	money := slices.Contains(s.Tables(), "transfer")
	if money { // an address of the treasury, which is read at the start
		s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	}
	n.Stop()
	n = s.Start()

	made := left{User: s.AddUser("user"), Other: s.AddUser("user")}
	made.Admin, _ = n.Session(t, s.Seeded("admin"))
	boss := blackbox.Headers{"x-auth": made.Admin}
	ended, _ := n.Session(t, made.User)
	n.Ok(t, "POST", "/auth/logout", nil, blackbox.Headers{"x-auth": ended})
	for range 2 {
		token, key := n.Session(t, made.User)
		made.Token, made.Sessions = token, append(made.Sessions, key)
	}
	who := blackbox.Headers{"x-auth": made.Token}

	made.Address = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
	n.Ok(t, "POST", blackbox.AddressesPath, blackbox.AddressBody("BTC", "BTC", made.Address, "Cold"), who)
	made.Rule = "Kept by the upgrade"
	blackbox.Rule(t, n, boss, made.Rule, "blacklist", map[string]any{"targetEntities": []string{"203.0.113.7"},
		"targetAllResources": true})
	if money {
		made.Balance = "12.5"
		n.Ok(t, "POST", blackbox.AdjustPath, map[string]any{"userId": made.User.ID, "currencyCode": "BTC",
			"networkCode": "BTC",
			"amount":      made.Balance, "type": "C", "uniqueId": "fixture"}, boss)
	}
	token, _ := n.Session(t, made.Other)
	app := blackbox.Enrolled(t, n, made.Other, blackbox.Headers{"x-auth": token})
	made.OtherSecret = base32.StdEncoding.EncodeToString(app.Secret)
	made.PAuth = n.Login(t, made.User).PAuth
	made.Device = blackbox.Enroll(t, n, made.User, made.Token, device.ES256, "").ID // logins may require it from now on
	n.Stop()

	key, err := os.ReadFile(filepath.Join(s.Dir, masterFile))
	storetest.Must(t, err)
	made.MasterKey = string(key)
	text, err := json.MarshalIndent(made, "", "\t")
	storetest.Must(t, err)
	file := filepath.Join(upgradeDir, *upgradeVersion, kind)
	storetest.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	storetest.Must(t, os.WriteFile(file+".json", append(text, '\n'), 0o644))
	packed, err := os.Create(file + ".gz")
	storetest.Must(t, err)
	pack, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
	storetest.Must(t, err)
	if _, err := pack.Write(content(t, s)); err != nil {
		t.Fatal(err)
	}
	storetest.Must(t, pack.Close())
	storetest.Must(t, packed.Close())
}

// forPsql are lines of a dump that only psql reads, or only the PostgreSQL that wrote it.
var forPsql = regexp.MustCompile(`(?m)^(\\.*|SET transaction_timeout.*|--.*|)\n`)

// content returns an idle database: the file of SQLite, or the statements that recreate it on PostgreSQL.
func content(t *testing.T, s *blackbox.Site) []byte {
	t.Helper()
	if path, ok := strings.CutPrefix(s.DSN, "sqlite:"); ok {
		s.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		file, err := os.ReadFile(path)
		storetest.Must(t, err)
		return file
	}
	dump := exec.Command("pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=200", s.DSN)
	dump.Stderr = os.Stderr
	statements, err := dump.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return forPsql.ReplaceAll(statements, nil)
}
