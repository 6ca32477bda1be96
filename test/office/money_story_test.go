package office

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The whole business of a platform on an empty database in production mode, without SQL, demo data or
// development pages. On PostgreSQL three nodes serve, and requests alternate between them.
func TestPlatformFromFirstStartToWithdrawal(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, site *blackbox.Site) {
		s := newStory(t, site, storyRates, "")
		storetest.Must(t, s.wallet.start("--poll", "50ms", "--mine", "100ms"))
		if site.Kind == "postgres" {
			s.signUp()
		} else { // registration is off
			s.bringIn()
		}
		s.identify()
		s.deposit("1.5")
		entry := s.address()
		id := s.withdraw(entry, "0.5")
		s.becomes(id, "hotWalletInsufficientBalance")
		s.has(1.5, 0.5)
		s.wallet.must(t, "pay", "--to", s.wallet.must(t, "address"), "--amount", "10")
		s.boss.Ok(t, "POST", "/admin/withdrawals/"+id+"/resume", `{"reason":"the hot wallet was refilled"}`)
		s.becomes(id, "sent", "finalized")
		s.becomes(id, "finalized")
		s.has(1, 0)
		sent := 0
		for _, tx := range s.wallet.chain(t) {
			if tx.Memo == id && tx.Amount == "0.5" && tx.To == coldWallet {
				sent++
			}
		}
		storetest.Equal(t, sent, 1, "the withdrawal is on the chain", "times")
		for _, command := range []string{"ledger", "audit"} {
			site.Succeeds("", command, "verify")
		}
	})
}

const coldWallet = "0x52908400098527886e0f7030069857d2e4169ee7"

// storyRates are the rates for limits and the money policy in TRY. The latter needs current ones.
var storyRates = func() string {
	at := time.Now().UTC().Format(time.RFC3339)
	return "base,quote,rate,date\nUSD,TRY,40," + at + "\nETH,USD,100," + at + "\n"
}()

// story is a platform from its first start.
type story struct {
	*testing.T
	site      *blackbox.Site
	cluster   *blackbox.Cluster // nil: one node
	nodes     []*blackbox.Node
	turn      int
	sms, mail *blackbox.Postbox
	wallet    *walletProcess
	boss      actor
	app       *blackbox.Authenticator
	customer  actor
	account   blackbox.Account
}

// actor is a person or a service with a credential. Its requests alternate between the nodes.
type actor struct {
	s    *story
	with blackbox.Headers
}

func (a actor) Do(t *testing.T, method, path string, body any, more ...string) blackbox.Answer {
	t.Helper()
	headers := blackbox.Headers{}
	maps.Copy(headers, a.with)
	for i := 0; i < len(more); i += 2 {
		headers[more[i]] = more[i+1]
	}
	return a.s.node().Do(t, method, path, body, headers)
}

func (a actor) Ok(t *testing.T, method, path string, body any, more ...string) blackbox.Answer {
	t.Helper()
	return a.Do(t, method, path, body, more...).Is(t, 200, "")
}

func (s *story) node() *blackbox.Node {
	s.turn++
	return s.nodes[s.turn%len(s.nodes)]
}

// newStory starts the service, imports rates, makes the first administrator, and gives the wallet its key.
//
// With rule it begins with that rule of the money policy, and otherwise with those of a new platform.
func newStory(t *testing.T, site *blackbox.Site, prices, rule string) *story {
	t.Helper()
	s := &story{T: t, site: site}
	site.Empty().Production().Set("PASSWORD_ARGON2_MEMORY_KIB=", "PASSWORD_ARGON2_TIME=", "LOG_LEVEL=info",
		"FILES_FOLDER="+filepath.Join(t.TempDir(), "files"))
	s.sms, s.mail = site.Gateway(), site.Relay()
	if rule != "" {
		file := filepath.Join(t.TempDir(), "rules.json")
		err := os.WriteFile(file, []byte(rule), 0o600)
		for _, args := range [][]string{{"migrate"}, {"money", "rule", "add", file}} {
			if got := site.Command("", args...); err != nil || got.Code != 0 {
				t.Fatalf("%v: %s%s, %v", args, got.Out, got.ErrOut, err)
			}
		}
	}
	if site.Kind == "postgres" {
		s.cluster = site.Set("REGISTRATION_ENABLED=true").Cluster()
		for range 3 {
			s.cluster.Join()
		}
		s.nodes = s.cluster.Nodes
	} else {
		s.nodes = []*blackbox.Node{site.Start()}
	}
	rates := filepath.Join(t.TempDir(), "rates.csv")
	storetest.Must(t, os.WriteFile(rates, []byte(prices), 0o600))
	site.Succeeds("", "rates", "import", rates)
	boss := site.AddUser("admin")
	s.boss = s.login(boss)
	for _, n := range s.nodes { // each learns that the account is an administrator
		n.Awaits(t, blackbox.Within(5), 200, "GET", "/admin/roles", nil, s.boss.with)
	}
	f := blackbox.FlowOf(t, s.boss.Do(t, "POST", "/auth/totp/setup", nil))
	s.app = blackbox.NewAuthenticator(t, s.complete(f, boss, "SMS").At(t, "execResult", "data", "base32"))
	blackbox.Role(t, s.nodes[0], s.boss.with, blackbox.Account{}, "wallet", "GET /integration/events",
		"POST /integration/deposits", "GET /integration/withdrawals/{id}", "PATCH /integration/withdrawals/{id}")
	s.wallet = newWallet(t, site, s.nodes[len(s.nodes)-1].URL, "wallet")
	return s
}

// service makes a service client that may call POST on a path, and returns when every node accepts it.
func (s *story) service(name, path string) actor {
	s.Helper()
	blackbox.Role(s.T, s.nodes[0], s.boss.with, blackbox.Account{}, name, "POST "+path)
	a := actor{s, s.site.ServiceKey(name, "--role", name)}
	for _, n := range s.nodes { // each learns of the key and its grant
		n.Awaits(s.T, blackbox.Within(2), 400, "POST", path, `{}`, a.with)
	}
	return a
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// code returns the newest code that was delivered to an account. Each challenge of the story sends its codes
// to another contact than the one before, or later.
func (s *story) code(a blackbox.Account, method string, after int) string {
	s.Helper()
	box, to := s.sms, a.Number()
	if method == "MAIL" {
		box, to = s.mail, a.Mail
	}
	var code string
	blackbox.Until(s.T, blackbox.Within(20), "a code by "+method, func() bool {
		for i, d := range box.Deliveries() {
			if i >= after && d.To == to && sixDigits.MatchString(d.Text) {
				code = sixDigits.FindString(d.Text)
			}
		}
		return code != ""
	})
	return code
}

// complete answers one method of a challenge that was just started.
func (s *story) complete(f blackbox.Flow, a blackbox.Account, method string) blackbox.Answer {
	s.Helper()
	var got blackbox.Answer
	blackbox.Until(s.T, blackbox.Within(20), "the code of this challenge", func() bool { // an older one may arrive first
		got = s.node().Complete(s.T, f, f.Method(s.T, method), s.code(a, method, 0))
		return got.Code() != "OTP_INVALID"
	})
	return got.Is(s.T, 200, "")
}

func (s *story) login(a blackbox.Account) actor {
	s.Helper()
	f := s.node().Login(s.T, a)
	return actor{s, blackbox.Headers{"x-auth": s.complete(f, a, "SMS").Header.Get("x-auth")}}
}

// signUp registers the customer.
func (s *story) signUp() {
	s.account = blackbox.NewAccount(501)
	body := s.node().SignUpBody(s.T, s.account)
	f := blackbox.FlowOf(s.T, actor{s, nil}.Do(s.T, "POST", "/auth/register", body))
	s.complete(f, s.account, "SMS")
	final := s.complete(f, s.account, "MAIL")
	s.account.ID = blackbox.ReadFinal(s.T, final).ExecResult.Data["userId"]
	s.customer = actor{s, blackbox.Headers{"x-auth": final.Header.Get("x-auth")}}
}

// bringIn registers the customer through the registration page's service client. The first login is a reset.
func (s *story) bringIn() {
	s.account = blackbox.NewAccount(502)
	pages := s.service("pages", "/integration/users")
	body := map[string]string{"externalId": "customer-1", "countryCode": s.account.Country,
		"phoneNumber": s.account.Phone, "email": s.account.Mail, "name": "Ece"}
	s.account.ID = pages.Ok(s.T, "POST", "/integration/users", body).At(s.T, "data", "id")
	public := actor{s, nil}
	public.Do(s.T, "POST", "/auth/register", map[string]any{"countryCode": s.account.Country,
		"phoneNumber": s.account.Phone, "email": s.account.Mail, "name": "Ece", "password": s.account.Password,
		"passwordVerify": s.account.Password, "contracts": []int64{}}).Is(s.T, 404, "NOT_FOUND")
	f := blackbox.FlowOf(s.T, public.Do(s.T, "POST", "/auth/password/reset",
		map[string]string{"countryCode": s.account.Country, "phoneNumber": s.account.Phone}))
	s.complete(f, s.account, "SMS")
	final := s.complete(f, s.account, "MAIL")
	public.Ok(s.T, "POST", "/auth/password/update",
		map[string]string{"password": s.account.Password, "passwordVerify": s.account.Password},
		"ot-auth", final.Header.Get("ot-auth"))
	s.customer = s.login(s.account)
}

// identify uploads the customer's documents, and the administrator approves them.
func (s *story) identify() {
	for kind, name := range []string{1: "passport.png", 4: "bill.png"} {
		if name != "" {
			s.customer.Ok(s.T, "POST", "/document/upload-document", map[string]any{"type": kind, "fileName": name,
				"description": name, "base64Data": blackbox.OnePixel})
		}
	}
	of := "?userId=" + s.account.ID
	document := s.boss.Ok(s.T, "GET", "/user/get-kyc-images"+of, nil).At(s.T, "documentId")
	s.boss.Ok(s.T, "POST", "/user/update-kyc", map[string]any{"userId": s.account.ID, "kycConfirm": "manuelApproved",
		"userDocumentId": []string{document}, "documentId": document})
	s.boss.Ok(s.T, "POST", "/user/update-confirmed", map[string]any{"userId": s.account.ID,
		"addressConfirmed": "manuelApproved"})
	kyc := s.boss.Ok(s.T, "GET", "/admin/kyc-case"+of, nil)
	for _, decision := range []string{"kycConfirm", "addressConfirmed"} {
		storetest.Equal(s.T, kyc.At(s.T, decision), "manuelApproved", decision)
	}
	s.boss.Ok(s.T, "POST", "/level/update-level", map[string]any{"userId": s.account.ID, "levelId": 1})
}

// deposit pays to the customer. The deposit waits for its sender, then for the treasury, which credits it.
func (s *story) deposit(amount string) {
	s.Helper()
	to := s.wallet.must(s.T, "address", "--user", s.account.ID)
	tx := s.wallet.must(s.T, "pay", "--to", to, "--amount", amount)
	var waiting []struct {
		TransactionID, TxID string
		Status              int
	}
	status := func(want int) {
		s.Helper()
		blackbox.Until(s.T, blackbox.Within(20), fmt.Sprint("a deposit in status ", want), func() bool {
			s.customer.Ok(s.T, "GET", "/user/get-waiting-info-transactions", nil).Read(s.T, &waiting)
			return len(waiting) == 1 && waiting[0].TxID == tx && waiting[0].Status == want
		})
	}
	status(-5)
	s.has(0, 0)
	s.wallet.must(s.T, "sender", "--tx", tx, "--name", "Ada Lovelace")
	status(-9)
	s.boss.Ok(s.T, "POST", "/admin/update-status-transaction", map[string]any{"transactionIds": []string{
		waiting[0].TransactionID}, "status": "finalizedDeposit"}, "otp", s.app.Next(s.T))
	s.has(1.5, 0)
}

// address adds the cold wallet to the customer's address book.
func (s *story) address() (id string) {
	s.Helper()
	return s.customer.Ok(s.T, "POST", "/asset/withdrawal-addresses", map[string]string{"currencyCode": "ETH",
		"networkCode": "ETH", "address": coldWallet, "name": "Cold wallet"}).At(s.T, "data", "id")
}

// withdraw requests a withdrawal through the platform's service client, which passes on the customer's token. The
// customer approves it with the methods that the policy requires. Repetitions start nothing else.
func (s *story) withdraw(addressID, amount string) string {
	platform := s.service("platform", "/integration/withdrawals")
	body := map[string]any{"externalId": "withdrawal-1", "userToken": s.customer.with["x-auth"], "currencyCode": "ETH",
		"network": "ETH", "amount": json.Number(amount), "addressId": addressID}
	sent := map[string]int{"SMS": len(s.sms.Deliveries()), "MAIL": len(s.mail.Deliveries())}
	first := blackbox.FlowOf(s.T, platform.Do(s.T, "POST", "/integration/withdrawals", body))
	f := blackbox.FlowOf(s.T, platform.Do(s.T, "POST", "/integration/withdrawals", body)) // as after a lost answer
	if f.Challenge.ChallengeID != first.Challenge.ChallengeID {
		s.Fatalf("the request started %s, its repetition %s", first.Challenge.ChallengeID, f.Challenge.ChallengeID)
	}
	var final blackbox.Answer
	for _, m := range f.MethodList {
		code := s.code(s.account, m.Name, sent[m.Name])
		final = s.node().Complete(s.T, f, f.Method(s.T, m.Name), code).Is(s.T, 200, "")
		if strings.Contains(string(final.Body), `"execResult"`) { // the policy requires no other method
			break
		}
	}
	id := withdrawn(s.T, final)
	again := platform.Ok(s.T, "POST", "/integration/withdrawals", body)
	storetest.Equal(s.T, again.At(s.T, "data", "id"), id, "id in the repetition")
	return id
}

// becomes waits until a withdrawal has one of some statuses.
func (s *story) becomes(id string, statuses ...string) {
	s.Helper()
	blackbox.Until(s.T, blackbox.Within(20), "the withdrawal "+strings.Join(statuses, " or "), func() bool {
		is := s.boss.Ok(s.T, "GET", "/integration/withdrawals/"+id, nil)
		return slices.Contains(statuses, is.At(s.T, "data", "status"))
	})
}

// has checks the customer's balance.
func (s *story) has(balance, locked float64) {
	s.Helper()
	var assets []struct{ Balance, Locked float64 }
	s.customer.Ok(s.T, "GET", "/user/asset", nil).Read(s.T, &assets)
	var got struct{ Balance, Locked float64 }
	if len(assets) > 0 {
		got = assets[0]
	}
	if got.Balance != balance || got.Locked != locked {
		s.Errorf("the customer has %+v, want %v, of which %v is locked", got, balance, locked)
	}
}
