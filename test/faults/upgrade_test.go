package faults

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		tar -x -C "$1/source" && cd "$1/source" && GOFLAGS= CGO_ENABLED=0 go build -buildvcs=false -o "$3" ./cmd/castellan`,
		"sh", dir, *upgradeFrom, program)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s, which needs the history of git: %v: %s", *upgradeFrom, err, out)
	}
	return program
}

// wholePolicy is TwoMethods with an authenticator as a third choice.
const wholePolicy = `{"actionCode":"LOGIN","name":"p","expireAt":0,"required":2,"methods":[["SMS"],["MAIL"],["TOTP"]]}`

// The limit of the firewall that the test uses up around each restart. The period is so long that nothing is refilled.
const upgradeLimit, upgradePeriod, upgradeKeys = 20, time.Hour, 6

// rolling is a cluster whose nodes change their version under load.
type rolling struct {
	*blackbox.Cluster
	*caravan
	boss, wallet blackbox.Headers
	stories      int
	limited      int // addresses that have used up the limit

	payer     blackbox.Account
	requested map[string]string // the withdrawals that were acknowledged, by their external id
	doubts    int               // of requests for withdrawals that were repeated
	renewals  int
	wrong     error
}

// Three nodes of the earlier version are upgraded one by one under load, downgraded and upgraded again. The clients
// repeat at another node what a node refused as unavailable, and see no other error. Every acknowledged login, renewal
// and withdrawal is known afterwards, each once; a limit admits exactly its number; and each version serves its whole
// account story on the newer schema.
func TestRollingUpgradeAndRollback(t *testing.T) {
	t.Parallel()
	old := earlier(t)
	s := blackbox.NewSite(t, "postgres").Empty()
	s.Program = old
	s.Set("HTTP_PUBLIC_URL="+publicURL, "HTTP_TRUSTED_PROXIES=127.0.0.1", "REGISTRATION_ENABLED=true",
		"LIMITS_ENABLED=false", "MFA_MAX_RENEWALS=100", "MFA_CHALLENGE_ATTEMPTS=30", "MFA_OTP_BUDGET=100",
		fmt.Sprint("MFA_METHOD_ATTEMPTS=", mayBeWrong), "MFA_OTP_BUDGET_WINDOW=1s", "LOG_LEVEL=info")
	c := s.Cluster()
	r := &rolling{Cluster: c, caravan: &caravan{starved: blackbox.WatchStarved(t)}, requested: map[string]string{}}
	k := r.prepare(t)
	before := s.Count("session") // of travellers and stories
	logins := 0
	r.story(t, c.Nodes[0], &logins)
	stop := make(chan struct{})
	r.start(t)
	r.ends.Go(func() { r.pay(stop) })
	r.ends.Go(func() { r.renew(t, k, stop) })
	began := time.Now()
	turns := []string{"", old, ""}
	for range *upgradeRounds - 1 {
		turns = append(turns, old, "")
	}
	for _, program := range turns {
		for range 3 {
			r.exactly(t, func() { r.replace(program) })
			for _, n := range []*blackbox.Node{c.Nodes[0], c.Nodes[2]} { // the oldest and the newest
				r.story(t, n, &logins)
			}
		}
	}
	took := time.Since(began)
	close(stop)
	r.check(t, "after the upgrades")
	if r.wrong != nil {
		t.Fatal(r.wrong)
	}
	visits := 0
	for i, v := range r.all {
		if err := errors.Join(v.finish(r.pick(i)), v.check(r.pick(i+1), len(v.past))); err != nil {
			t.Fatalf("traveller %d: %v\n%s", i, err, strings.Join(v.trail, "\n"))
		}
		visits += len(v.past)
	}
	if got := s.Count("session") - before; got != visits+logins {
		t.Errorf("%d sessions of %d logins", got, visits+logins)
	}
	r.settled(t)
	moved, _ := r.turned()
	t.Logf("%d rounds in %v: %d steps, %d logins, %d renewals, %d withdrawals (%d requests repeated), %d stories, "+
		"%d turns to another node", *upgradeRounds, took.Round(time.Second), r.steps.Load(), visits+logins, r.renewals,
		len(r.requested), r.doubts, r.stories, moved)
}

// prepare starts the nodes and gives the platform a policy, a wallet, an account with money and a session of it.
func (r *rolling) prepare(t *testing.T) *blackbox.Keyed {
	t.Helper()
	for range 3 {
		r.join()
	}
	r.route(r.Nodes...)
	blackbox.Whole(t, r.Cluster)
	n := r.Nodes[0]
	r.boss = blackbox.Admin(t, r.Site, n)
	k := &blackbox.Keyed{Key: blackbox.ECKey(t), At: publicURL}
	r.payer = r.customer(t)
	k.Login(t, n, r.payer)
	blackbox.Tune(t, n, r.boss, "SMS", 120_000, 1)
	blackbox.Tune(t, n, r.boss, "MAIL", 120_000, 1)
	n.Ok(t, "POST", "/admin/system/mfa/policies/common", wholePolicy, r.boss)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range 3 {
		r.all = append(r.all, &traveller{visitor: &visitor{a: r.AddUser("user"),
			rng: rand.New(rand.NewPCG(seed, uint64(i)))}, at: i})
	}
	blackbox.Rule(t, n, r.boss, "exact", "rate_limit", map[string]any{"period": upgradePeriod.Milliseconds(),
		"limit": upgradeLimit, "targetResources": []string{"GET " + blackbox.KeysPath}})
	r.Exec(`INSERT INTO exchange_pair (base, quote) VALUES ('BTC', 'TRY')`)
	r.Exec(`INSERT INTO exchange_rate (pair_id, at, rate, source, created_at) SELECT id, $1, '100', 'test', $1
		FROM exchange_pair WHERE base = 'BTC' AND quote = 'TRY'`, time.Now().Add(-time.Minute).UnixMilli())
	got := r.Command("", "service-key", "add", "--name", "wallet", "--role", "admin")
	r.wallet = blackbox.Headers{"service-auth": strings.TrimPrefix(strings.TrimSpace(got.Out), "key: ")}
	blackbox.Until(t, blackbox.Within(10), "the key and the rule on every node", func() bool {
		for _, n := range r.Nodes {
			if n.Do(t, "GET", "/integration/events", nil, r.wallet).Status != http.StatusOK {
				return false
			}
		}
		return true
	})
	return k
}

// customer adds an account with 1 BTC that may withdraw.
func (r *rolling) customer(t *testing.T) blackbox.Account {
	t.Helper()
	a := r.AddUser("user")
	r.Exec(`UPDATE users SET level = 1 WHERE id = $1`, a.ID)
	r.Nodes[0].Ok(t, "POST", blackbox.AdjustPath, map[string]any{"userId": a.ID, "currencyCode": "BTC",
		"networkCode": "BTC", "amount": 1, "type": "C", "uniqueId": "of " + a.ID}, r.boss)
	return a
}

// login logs in with both methods, with the code of an authenticator if there is one.
func (r *rolling) login(t *testing.T, n *blackbox.Node, a blackbox.Account, app *blackbox.Authenticator) string {
	t.Helper()
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

// replace stops the oldest node and starts one of a program, the present one if it is "".
func (r *rolling) replace(program string) {
	old := r.Nodes[0]
	old.Stop() // while clients still use it
	r.Forget(old)
	r.route(r.Nodes...)
	r.Program = program
	r.join()
	r.route(r.Nodes...)
}

// join starts a node of the current program.
func (r *rolling) join() {
	if n := r.Join(); r.Program != "" {
		n.Client = n.Client.OtherVersion()
	}
}

// ask sends a request as the documents ask: to the next node after 503 or a lost connection, until one serves it. again
// is set if an earlier one may have had its effect.
func (r *rolling) ask(at int, method, path string, body any, headers func() blackbox.Headers) (
	a blackbox.Answer, again bool, err error) {
	for first := time.Now(); ; at++ {
		a, err = r.pick(at).Try(method, path, body, headers())
		if err == nil {
			return a, again, nil
		}
		if again = true; time.Since(first) > givesUp+r.starved.Since(first) {
			return a, again, fmt.Errorf("%s %s: no node served it: %w", method, path, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// fail records the first broken promise to a client.
func (r *rolling) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrong == nil {
		r.wrong = err
	}
}

func (r *rolling) service() blackbox.Headers { return r.wallet }

// pay requests withdrawals with the service key of the wallet, which claims each one.
func (r *rolling) pay(stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(40 * time.Millisecond):
		}
		external := fmt.Sprint("payment-", i)
		a, again, err := r.ask(i, "POST", withdrawalsPath, withdrawal(external, r.payer), r.service)
		var made struct{ Data struct{ ID, Status string } }
		if err == nil && (a.Status != 200 || json.Unmarshal(a.Body, &made) != nil || made.Data.ID == "") {
			err = fmt.Errorf("the withdrawal %s, repeated %v: %s", external, again, a)
		}
		if err == nil {
			r.requested[external] = made.Data.ID
			if again {
				r.doubts++
			}
			a, again, err = r.ask(i+1, "PATCH", withdrawalsPath+"/"+made.Data.ID, `{"status":"processing"}`, r.service)
			if err == nil && again && a.Status == 409 { // as after a lost answer: read it
				a, _, err = r.ask(i+2, "GET", withdrawalsPath+"/"+made.Data.ID, nil, r.service)
			}
		}
		if err == nil && (a.Status != 200 || json.Unmarshal(a.Body, &made) != nil || made.Data.Status != "processing") {
			err = fmt.Errorf("the claim of %s, repeated %v: %s", external, again, a)
		}
		if err != nil {
			r.fail(err)
			return
		}
	}
}

// renew renews a session that is bound to a key.
func (r *rolling) renew(t *testing.T, k *blackbox.Keyed, stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(30 * time.Millisecond):
		}
		a, again, err := r.ask(i, "POST", blackbox.RenewSessionPath, nil, func() blackbox.Headers {
			return k.Proof(t, &blackbox.Node{}, "POST", blackbox.RenewSessionPath)
		})
		if err == nil && (a.Status != 200 || a.Header.Get("x-auth") == "") {
			err = fmt.Errorf("renewal %d, repeated %v: %s", i, again, a)
		}
		if err != nil {
			r.fail(err)
			return
		}
		k.Token = a.Header.Get("x-auth")
		r.renewals++
	}
}

const withdrawalsPath = "/integration/withdrawals"

func withdrawal(external string, a blackbox.Account) map[string]any {
	return map[string]any{"externalId": external, "userId": a.ID, "currencyCode": "BTC", "network": "BTC",
		"amount": 0.0001, "address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}
}

// exactly uses up a limit for new addresses, the half before do and the rest after it. It admits exactly its number.
// A request without an answer may have been admitted.
func (r *rolling) exactly(t *testing.T, do func()) {
	t.Helper()
	var admitted, unsure, refused [upgradeKeys]int
	r.limited++
	send := func(times int) {
		for i := range times * upgradeKeys {
			k := i % upgradeKeys
			from := blackbox.Headers{"X-Forwarded-For": fmt.Sprintf("198.51.%d.%d", r.limited, k+1)}
			for at, first := i, time.Now(); ; at++ {
				a, err := r.pick(at).Try("GET", blackbox.KeysPath, nil, from)
				switch {
				case err != nil && time.Since(first) < givesUp+r.starved.Since(first):
					unsure[k]++
					time.Sleep(5 * time.Millisecond)
					continue
				case err == nil && a.Status == 200:
					admitted[k]++
				case err == nil && a.Status == http.StatusTooManyRequests:
					refused[k]++
				default:
					t.Fatalf("a request with a limit: %s, %v", a, err)
				}
				break
			}
		}
	}
	send(upgradeLimit / 2)
	do()
	send(upgradeLimit)
	for k := range upgradeKeys {
		if admitted[k] > upgradeLimit || admitted[k]+unsure[k] < upgradeLimit {
			t.Errorf("restart %d: a limit of %d admitted %d, without an answer to %d", r.limited, upgradeLimit, admitted[k],
				unsure[k])
		}
	}
}

// lists are the lists of administrators that a story reads.
var lists = strings.Fields(`/admin/approvals /admin/audit /admin/cluster /admin/contracts /admin/dropdown-options
	/admin/get-corporate-application /admin/get-parameters /admin/get-waiting-info-transactions /admin/levels
	/admin/get-withdrawal-crypto-queue /admin/guard/routes /admin/jobs /admin/list-users /admin/refused-logins
	/admin/service-keys /admin/system/mfa/policies /admin/system/waf/rules /admin/user-roles /admin/roles`)

// story is what users, a wallet and an administrator do at one node.
func (r *rolling) story(t *testing.T, n *blackbox.Node, logins *int) {
	t.Helper()
	r.stories++
	name := fmt.Sprint("story-", r.stories)
	a := r.customer(t)
	first := blackbox.Headers{"x-auth": r.login(t, n, a, nil)}
	app := blackbox.Enrolled(t, n, a, first)
	who := blackbox.Headers{"x-auth": r.login(t, n, a, app)}
	n.Ok(t, "POST", "/auth/logout", nil, first)
	n.Do(t, "GET", blackbox.SessionsPath, nil, first).Is(t, 401, "TOKEN_REVOKED")
	n.Ok(t, "GET", blackbox.SessionsPath, nil, who)

	var contracts struct{ Data []struct{ ID int64 } }
	n.Ok(t, "GET", "/auth/register/contracts", nil, nil).Read(t, &contracts)
	accepted := []int64{}
	for _, c := range contracts.Data {
		accepted = append(accepted, c.ID)
	}
	fresh := blackbox.NewAccount(5000 + r.stories)
	f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/register", map[string]any{"countryCode": fresh.Country,
		"phoneNumber": fresh.Phone, "email": fresh.Mail, "name": "Ece", "password": fresh.Password,
		"passwordVerify": fresh.Password, "contracts": accepted}, nil))
	n.Complete(t, f, f.Method(t, "SMS"), n.CodeOf(t, f, fresh, "SMS")).Is(t, 200, "")
	n.Complete(t, f, f.Method(t, "MAIL"), n.CodeOf(t, f, fresh, "MAIL")).Is(t, 200, "")
	r.login(t, n, fresh, nil)
	*logins += 4 // a registration is one

	const address = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
	n.Ok(t, "POST", blackbox.AddressesPath, blackbox.AddressBody("BTC", "BTC", address, name), who)
	if got := n.Ok(t, "GET", blackbox.AddressesPath, nil, who); !strings.Contains(string(got.Body), address) {
		t.Errorf("%s: the address book is %s", name, got)
	}
	deposit := map[string]any{"externalId": name, "userId": a.ID, "currencyCode": "BTC", "network": "BTC",
		"amount": "0.25", "txId": fmt.Sprintf("%064x", r.stories), "status": "waiting"}
	n.Ok(t, "POST", "/integration/deposits", deposit, r.wallet)
	deposit["senderInfo"] = map[string]string{"name": "Ada Lovelace"}
	n.Ok(t, "POST", "/integration/deposits", deposit, r.wallet)
	var made struct{ Data struct{ ID string } }
	n.Ok(t, "POST", withdrawalsPath, withdrawal(name, a), r.wallet).Read(t, &made)
	for _, step := range []string{`{"status":"processing"}`, `{"status":"sent","txId":"` + name + `"}`,
		`{"status":"finalized"}`} {
		n.Ok(t, "PATCH", withdrawalsPath+"/"+made.Data.ID, step, r.wallet)
	}
	if got := n.Ok(t, "GET", "/user/asset", nil, who); !strings.Contains(string(got.Body), "0.9999") {
		t.Errorf("%s: the balance is %s", name, got)
	}
	for _, path := range lists {
		n.Ok(t, "GET", path, nil, r.boss)
	}
}

// settled compares the withdrawals with the acknowledged ones and verifies the ledger and the audit.
func (r *rolling) settled(t *testing.T) {
	t.Helper()
	if got := r.Count("withdrawal_queue"); got != len(r.requested)+r.stories {
		t.Errorf("%d withdrawals in the queue, %d were acknowledged", got, len(r.requested)+r.stories)
	}
	ids := map[string]bool{}
	for external, id := range r.requested {
		var is struct{ Data struct{ ID, Status string } }
		r.Nodes[0].Ok(t, "POST", withdrawalsPath, withdrawal(external, r.payer), r.wallet).Read(t, &is)
		if is.Data.ID != id || is.Data.Status != "processing" || ids[id] {
			t.Errorf("the withdrawal %s is %+v, want %s", external, is.Data, id)
		}
		ids[id] = true
	}
	for _, what := range []string{"audit", "ledger"} {
		if got := r.Command("", what, "verify"); got.Code != 0 {
			t.Errorf("%s verify: exit %d: %s%s", what, got.Code, got.Out, got.ErrOut)
		}
	}
}
