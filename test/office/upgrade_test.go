package office

import (
	"compress/gzip"
	"encoding/base32"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

var (
	upgradeProgram = flag.String("upgrade.program", "", "make the databases of a version with this program first")
	upgradeVersion = flag.String("upgrade.version", "", "the name of that version")
)

// upgradeDir holds the databases of the published versions. Its README.md describes how they are made.
const upgradeDir = "testdata/upgrade"

// left is the state that a version left in a database, recorded beside it.
type left struct {
	MasterKey   string
	Admin       string // token
	User        blackbox.Account
	Token       string   // of the user
	Sessions    []string // open ones of the user, oldest first
	PAuth       string   // of an open challenge of the user
	Device      string   // of the user
	Address     string   // in the user's address book
	Rule        string   // of the firewall
	Other       blackbox.Account
	OtherSecret string // of the other user's authenticator
	Balance     string // of the user; "" for a version without money
}

// A database of each published version opens under the current program without loss. Its sessions stay valid,
// its users log in, and its audit and its ledger verify.
func TestUpgrade(t *testing.T) {
	if *upgradeProgram != "" {
		for _, kind := range blackbox.Databases {
			makeUpgradeFixture(t, kind)
		}
	}
	folders := storetest.Value(os.ReadDir(upgradeDir))(t)
	versions := 0
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		versions++
		for _, kind := range blackbox.Databases {
			t.Run(folder.Name()+"/"+kind, func(t *testing.T) {
				t.Parallel()
				testUpgrade(t, filepath.Join(upgradeDir, folder.Name(), kind), kind)
			})
		}
	}
	if versions < 2 {
		t.Errorf("%d versions in %s", versions, upgradeDir)
	}
}

func testUpgrade(t *testing.T, fixture, kind string) {
	s := blackbox.NewSite(t, kind).Empty()
	old := restore(t, s, fixture)
	who, boss := blackbox.Headers{"x-auth": old.Token}, blackbox.Headers{"x-auth": old.Admin}
	for _, start := range []string{"the first start", "a start after the migration"} {
		n := s.Start()
		n.Ok(t, "GET", "/admin/audit", nil, boss)
		var live []string
		for _, one := range blackbox.Sessions(t, n, old.Token) {
			live = append(live, one.SessionID)
		}
		slices.Reverse(live)
		storetest.Same(t, live, old.Sessions, start, "sessions that live")
		// The challenge is found, but has expired, because the fixture is older. When the fixture is made, it
		// is still open.
		got := n.Do(t, "GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": old.PAuth})
		if code := got.Code(); code != "TOKEN_EXPIRED" && code != "CHALLENGE_NOT_COMPLETED" {
			t.Errorf("%s: the challenge answers %s", start, got)
		}
		for path, want := range map[string]string{
			blackbox.DevicesPath: old.Device, blackbox.AddressesPath: old.Address, "/user/asset": old.Balance,
		} {
			storetest.Contains(t, string(n.Ok(t, "GET", path, nil, who).Body), want, start, path)
		}
		storetest.Contains(t, string(n.Ok(t, "GET", "/admin/system/waf/rules", nil, boss).Body), old.Rule, start, "the rules")
		if start != "the first start" {
			newEntries(t, n, old, who)
		}
		n.Stop()
		verifies(t, s)
	}
}

// newEntries uses what the earlier version has stored.
func newEntries(t *testing.T, n *blackbox.Node, old left, who blackbox.Headers) {
	_, key := n.Session(t, old.User) // the password's hash, and the phone number
	n.Do(t, "DELETE", blackbox.SessionsPath+"?sessionId="+key, nil, who).Is(t, 200, "")
	app := blackbox.NewAuthenticator(t, old.OtherSecret)
	f := n.Login(t, old.Other)
	n.Complete(t, f, f.Method(t, "TOTP"), app.Next(t)).Is(t, 200, "")
	n.Ok(t, "POST", "/auth/logout", nil, who)
	n.Do(t, "GET", blackbox.SessionsPath, nil, who).Is(t, 401, "TOKEN_REVOKED")
}

func verifies(t *testing.T, s *blackbox.Site) {
	t.Helper()
	for _, what := range []string{"audit", "ledger"} {
		s.Succeeds("", what, "verify")
	}
}

// restore fills the database and the data folder of a site.
func restore(t *testing.T, s *blackbox.Site, fixture string) (old left) {
	t.Helper()
	text, err := os.ReadFile(fixture + ".json")
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err == nil {
		err = os.MkdirAll(s.Dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Dir, masterFile), []byte(old.MasterKey), 0o600)
	}
	storetest.Must(t, err)
	packed := storetest.Value(os.Open(fixture + ".gz"))(t)
	defer packed.Close()
	unpack := storetest.Value(gzip.NewReader(packed))(t)
	content := storetest.Value(io.ReadAll(unpack))(t)
	if path, ok := strings.CutPrefix(s.DSN, "sqlite:"); ok {
		storetest.Must(t, os.WriteFile(path, content, 0o600))
		return old
	}
	conn := storetest.Value(pgx.Connect(t.Context(), s.DSN))(t)
	defer conn.Close(t.Context())
	storetest.Must(t, storetest.Err(conn.PgConn().Exec(t.Context(), string(content)).ReadAll()))
	return old
}

// masterFile is the master key of a site, in its data folder.
const masterFile = "master.key"

// makeUpgradeFixture writes a database as another version of the program leaves it. The program must allow
// tokens of any lifetime: scripts/upgrade-fixture.sh builds one that does.
func makeUpgradeFixture(t *testing.T, kind string) {
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
	n.Ok(t, "POST", "/auth/logout", nil, n.Auth(t, made.User))
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
	app := blackbox.Enrolled(t, n, made.Other, n.Auth(t, made.Other))
	made.OtherSecret = base32.StdEncoding.EncodeToString(app.Secret)
	made.PAuth = n.Login(t, made.User).PAuth
	made.Device = blackbox.Enroll(t, n, made.User, made.Token, device.ES256, "").ID // logins may require it from now on
	n.Stop()

	key := storetest.Value(os.ReadFile(filepath.Join(s.Dir, masterFile)))(t)
	made.MasterKey = string(key)
	text := storetest.Value(json.MarshalIndent(made, "", "\t"))(t)
	file := filepath.Join(upgradeDir, *upgradeVersion, kind)
	storetest.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	storetest.Must(t, os.WriteFile(file+".json", append(text, '\n'), 0o644))
	packed := storetest.Value(os.Create(file + ".gz"))(t)
	pack := storetest.Value(gzip.NewWriterLevel(packed, gzip.BestCompression))(t)
	storetest.Must(t, storetest.Err(pack.Write(content(t, s))))
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
		return storetest.Value(os.ReadFile(path))(t)
	}
	dump := exec.Command("pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=200", s.DSN)
	dump.Stderr = os.Stderr
	statements, err := dump.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return forPsql.ReplaceAll(statements, nil)
}
