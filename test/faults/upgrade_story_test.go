package faults

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

var (
	upgradeFrom    = flag.String("upgrade.from", "9db06a35", "the commit of the earlier version in the tests of upgrades")
	upgradeProgram = flag.String("upgrade.program", "", "the file of that version's program, if it is built")
	upgradeRounds  = flag.Int("upgrade.rounds", 1, "rounds of TestRollingUpgradeAndRollback; 10 before a release")
)

// earlier builds the program of the earlier version from the history of this repository.
func earlier(t *testing.T) (program string) {
	t.Helper()
	if *upgradeProgram != "" {
		return *upgradeProgram
	}
	dir := t.TempDir()
	program = filepath.Join(dir, "castellan")
	build := exec.Command("sh", "-c", `mkdir "$1/source" && git -C "$(git rev-parse --show-toplevel)" archive "$2" |
		tar -x -C "$1/source" && cd "$1/source" &&
		GOFLAGS= CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$3" ./cmd/castellan`, "sh", dir, *upgradeFrom, program)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s, which needs the history of git: %v: %s", *upgradeFrom, err, out)
	}
	return program
}

// wholePolicy is TwoMethods with an authenticator as a third choice.
const wholePolicy = `{"actionCode":"LOGIN","name":"p","expireAt":0,"required":2,"methods":[["SMS"],["MAIL"],["TOTP"]]}`

// platform is a site whose versions serve the same account story on one database.
type platform struct {
	site    *blackbox.Site
	wallet  blackbox.Headers // its service key
	stories int
	logins  int // of the stories
}

func newPlatform(t *testing.T, kind, program string) *platform {
	s := blackbox.NewSite(t, kind).Empty().Set("REGISTRATION_ENABLED=true", "LIMITS_ENABLED=false", "LOG_LEVEL=info")
	s.Program = program
	return &platform{site: s}
}

// open gives the platform a policy, a wallet and a price.
func (p *platform) open(t *testing.T, n *blackbox.Node, boss blackbox.Headers) {
	t.Helper()
	blackbox.Tune(t, n, boss, "SMS", 120_000, 1)
	blackbox.Tune(t, n, boss, "MAIL", 120_000, 1)
	n.Ok(t, "POST", "/admin/system/mfa/policies/common", wholePolicy, boss)
	p.site.Exec(`INSERT INTO exchange_pair (base, quote) VALUES ('BTC', 'TRY')`)
	p.site.Exec(`INSERT INTO exchange_rate (pair_id, at, rate, source, created_at) SELECT id, $1, '100', 'test', $1
		FROM exchange_pair WHERE base = 'BTC' AND quote = 'TRY'`, time.Now().Add(-time.Minute).UnixMilli())
	p.wallet = p.site.ServiceKey("wallet", "--role", "admin")
}

// customer adds an account with 1 BTC that may withdraw.
func (p *platform) customer(t *testing.T, n *blackbox.Node, boss blackbox.Headers) blackbox.Account {
	t.Helper()
	a := p.site.AddUser("user")
	p.site.Exec(`UPDATE users SET level = 1 WHERE id = $1`, a.ID)
	n.Ok(t, "POST", blackbox.AdjustPath, map[string]any{"userId": a.ID, "currencyCode": "BTC", "networkCode": "BTC",
		"amount": 1, "type": "C", "uniqueId": "of " + a.ID}, boss)
	return a
}

// login logs in with both methods, with the code of an authenticator if there is one.
func (p *platform) login(t *testing.T, n *blackbox.Node, a blackbox.Account, app *blackbox.Authenticator) string {
	t.Helper()
	p.logins++
	f := n.Login(t, a)
	if app != nil {
		n.Complete(t, f, f.Method(t, "TOTP"), app.Next(t)).Is(t, 200, "")
	} else {
		n.Complete(t, f, f.Method(t, "SMS"), n.CodeOf(t, f, a, "SMS")).Is(t, 200, "")
	}
	token := n.Complete(t, f, f.Method(t, "MAIL"), n.CodeOf(t, f, a, "MAIL")).Is(t, 200, "").Header.Get("x-auth")
	if token == "" {
		t.Fatal("a login without a token")
	}
	return token
}

const withdrawalsPath = "/integration/withdrawals"

func withdrawal(external string, a blackbox.Account) map[string]any {
	return map[string]any{"externalId": external, "userId": a.ID, "currencyCode": "BTC", "network": "BTC",
		"amount": 0.00001, "address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}
}

// lists are the lists of administrators that a story reads.
var lists = strings.Fields(`/admin/approvals /admin/audit /admin/cluster /admin/contracts /admin/dropdown-options
	/admin/get-corporate-application /admin/get-parameters /admin/get-waiting-info-transactions /admin/levels
	/admin/get-withdrawal-crypto-queue /admin/guard/routes /admin/jobs /admin/list-users /admin/refused-logins
	/admin/service-keys /admin/system/mfa/policies /admin/system/waf/rules /admin/user-roles /admin/roles`)

// story is what users, a wallet and an administrator do at one node.
func (p *platform) story(t *testing.T, n *blackbox.Node) {
	t.Helper()
	p.stories++
	name := fmt.Sprint("story-", p.stories)
	boss := blackbox.Headers{"x-auth": p.login(t, n, p.site.Seeded("admin"), nil)}
	a := p.customer(t, n, boss)
	first := blackbox.Headers{"x-auth": p.login(t, n, a, nil)}
	app := blackbox.Enrolled(t, n, a, first)
	who := blackbox.Headers{"x-auth": p.login(t, n, a, app)}
	n.Ok(t, "POST", "/auth/logout", nil, first)
	n.Do(t, "GET", blackbox.SessionsPath, nil, first).Is(t, 401, "TOKEN_REVOKED")
	n.Ok(t, "GET", blackbox.SessionsPath, nil, who)

	fresh := blackbox.NewAccount(5000 + p.stories)
	f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/register", n.SignUpBody(t, fresh), nil))
	n.Complete(t, f, f.Method(t, "SMS"), n.CodeOf(t, f, fresh, "SMS")).Is(t, 200, "")
	n.Complete(t, f, f.Method(t, "MAIL"), n.CodeOf(t, f, fresh, "MAIL")).Is(t, 200, "")
	p.login(t, n, fresh, nil)
	p.logins++ // the registration

	const address = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
	n.Ok(t, "POST", blackbox.AddressesPath, blackbox.AddressBody("BTC", "BTC", address, name), who)
	storetest.Contains(t, string(n.Ok(t, "GET", blackbox.AddressesPath, nil, who).Body), address, name, "the address book")
	deposit := map[string]any{"externalId": name, "userId": a.ID, "currencyCode": "BTC", "network": "BTC",
		"amount": "0.25", "txId": fmt.Sprintf("%064x", p.stories), "status": "waiting"}
	n.Ok(t, "POST", "/integration/deposits", deposit, p.wallet)
	deposit["senderInfo"] = map[string]string{"name": "Ada Lovelace"}
	n.Ok(t, "POST", "/integration/deposits", deposit, p.wallet)
	made := n.Ok(t, "POST", withdrawalsPath, withdrawal(name, a), p.wallet).At(t, "data", "id")
	for _, step := range []string{`{"status":"processing"}`, `{"status":"sent","txId":"` + name + `"}`,
		`{"status":"finalized"}`} {
		n.Ok(t, "PATCH", withdrawalsPath+"/"+made, step, p.wallet)
	}
	storetest.Contains(t, string(n.Ok(t, "GET", "/user/asset", nil, who).Body), "0.99999", name, "the balance")
	for _, path := range lists {
		n.Ok(t, "GET", path, nil, boss)
	}
	n.Ok(t, "POST", "/admin/currency-activate", `{"currency":{"id":1,"isActive":true},
		"currencyOfNetwork":{"id":1,"isActive":true}}`, boss)
}

// verify verifies the audit and the ledger.
func (p *platform) verify(t *testing.T) {
	t.Helper()
	for _, what := range []string{"audit", "ledger"} {
		p.site.Succeeds("", what, "verify")
	}
}

// On SQLite one process replaces the other: the earlier version works on the newer schema and leaves it usable.
func TestUpgradeAndRollbackOnSQLite(t *testing.T) {
	t.Parallel()
	old := earlier(t)
	p := newPlatform(t, "sqlite", old)
	for i, program := range []string{old, "", old, ""} {
		p.site.Program = program
		n := p.site.Start()
		if program != "" {
			n.Client = n.Client.OtherVersion()
		}
		if i == 0 {
			p.open(t, n, blackbox.Admin(t, p.site, n))
		}
		p.story(t, n)
		n.Stop()
		p.verify(t)
	}
}
