package console

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/child"
	"castellan/internal/porttest"
	"castellan/web/webtest"
)

// openShop starts the service with the demo data, and examples/shop beside it as make shop does.
func openShop(t *testing.T, settings ...string) (s *blackbox.Site, n *blackbox.Node, page string) {
	t.Helper()
	s = blackbox.NewDemoSite(t)
	listen, program := porttest.Free(t), filepath.Join(t.TempDir(), "shop")
	n = blackbox.Patient(s).Start(append(settings, "HTTP_TRUSTED_PROXIES=127.0.0.1",
		"HTTP_CORS_ORIGINS=http://"+listen)...)
	storetest.Must(t, child.Build(program, "castellan/examples/shop"))
	shop := storetest.Value(child.Start(exec.Command(program, "-listen", listen, "-castellan", n.URL)))(t)
	t.Cleanup(shop.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	storetest.Must(t, child.AwaitListener(ctx, listen))
	return s, n, "http://" + listen
}

// customer is the person with a shop in one tab.
type customer struct {
	*webtest.Tab
	t  *testing.T
	n  *blackbox.Node
	me blackbox.Account
}

// enter logs in at the shop with a code.
func (c *customer) enter(page string) {
	c.t.Helper()
	c.Open(page + "/")
	c.Until("document.body.dataset.ready === 'true'")
	// The test keeps the credentials that the page sends.
	webtest.Value[bool](c.Tab, `((set) => { window.sent = {}; Headers.prototype.set = function (name, value) {
		sent[name] = value; return set.call(this, name, value); }; return true; })(Headers.prototype.set)`)
	c.Type("#country", c.me.Country)
	c.Type("#phone", c.me.Phone)
	c.Type("#password", c.me.Password)
	c.Click("#login button")
	c.Type(`[data-method="SMS"] input`, c.codeOf())
	c.Click(`[data-method="SMS"] button`)
	c.at("withdraw")
}

func (c *customer) codeOf() string {
	c.t.Helper()
	c.See(`[data-method="SMS"]`)
	return c.n.Code(c.t, c.me, "SMS")
}

func (c *customer) at(step string) {
	c.t.Helper()
	c.Until(fmt.Sprintf("document.body.dataset.step === %q", step))
}

// asks fills in the form of the shop and returns when its challenge is shown.
func (c *customer) asks(amount string) {
	c.t.Helper()
	c.Front()
	if webtest.Value[bool](c.Tab, "document.body.dataset.step === 'result'") {
		c.Click("#again")
	}
	c.Clear("#amount")
	c.Type("#amount", amount)
	c.Click("#withdraw button")
	c.at("challenge")
}

func (c *customer) gets(title, text string) {
	c.t.Helper()
	c.Front()
	c.at("result")
	if got := c.Text("#result-title") + ": " + c.Text("#result-text"); !strings.HasPrefix(got, title+": ") ||
		!strings.Contains(got, text) {
		c.t.Errorf("the shop says %q, want %q: %q", got, title, text)
	}
}

// A page of another origin withdraws through the gateway of examples/shop. Its owner approves in the authenticator, in
// another tab. Each grant pays out once, and a denied withdrawal does not.
func TestShopBehindTheGuard(t *testing.T) {
	t.Parallel()
	_, n, page := openShop(t)
	me := blackbox.DemoAccount(5)
	tab := webtest.Browser(t)
	phone := tab.Another().Front()
	phone.View(webtest.View{Width: 360, Height: 740, Phone: true})
	register(t, phone, n, me)

	shop := &customer{tab.Front(), t, n, me}
	shop.enter(page)
	barriers(t, tab, "the shop")
	open := func() {
		t.Helper()
		phone.Front().Click(mark("request"))
		phone.See("#approval-title")
	}

	shop.asks("12.50")
	barriers(t, tab, "the challenge of the shop")
	storetest.Contains(t, tab.Text("#rows"), "12.50", "the shop shows")
	number := tab.Text(".number")
	open()
	rows := webtest.Value[string](phone, `document.querySelector('[data-testid="rows"]').textContent`)
	if !strings.Contains(rows, "12.50") || !strings.Contains(rows, "IBAN") {
		t.Errorf("the request shows %q", rows)
	}
	phone.Type(mark("number"), number)
	phone.Click(mark("approve"))
	phone.See("#home-step")
	shop.gets("Paid out", "Withdrawal 1: 12.50 EUR to DE02")
	barriers(t, tab, "the result of the shop")

	again := func(amount string) string {
		t.Helper()
		return webtest.Value[string](tab, fmt.Sprintf(`fetch('/withdrawals?amount=%s&iban=DE02120300000000202051',
			{ method: 'POST', headers: sent }).then(async (r) => r.status + ' ' + (await r.json()).code)`, amount))
	}
	storetest.Equal(t, again("12.50"), "403 GRANT_USED", "the second use of the grant")
	storetest.Equal(t, again("99.00"), "403 GRANT_MISMATCH", "the grant of another amount")

	shop.asks("13.00")
	open()
	phone.Click(mark("deny"))
	phone.See("#home-step")
	shop.gets("Not paid out", "DENIED")

	// The shop loses its network while it waits, and gets the outcome when it is back.
	shop.asks("14.00")
	number = tab.Text(".number")
	tab.Offline(true)
	open()
	phone.Type(mark("number"), number)
	phone.Click(mark("approve"))
	phone.See("#home-step")
	tab.Front().Offline(false)
	shop.gets("Paid out", "Withdrawal 2: 14.00 EUR")

	// Without the authenticator a code does it; a closed challenge pays nothing.
	shop.asks("15.00")
	tab.Click("#cancel")
	shop.gets("Not paid out", "ABANDONED")
	shop.asks("16.00")
	tab.Type(`[data-method="SMS"] input`, shop.codeOf())
	tab.Click(`[data-method="SMS"] button`)
	shop.gets("Paid out", "Withdrawal 3: 16.00 EUR")

	// The service answers the listed origin only.
	for origin, want := range map[string]string{page: page, strings.Replace(page, "127.0.0.1", "localhost", 1): ""} {
		a := n.Do(t, "GET", "/auth/2fa/challenge/result", nil, blackbox.Headers{"Origin": origin})
		storetest.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), want, "allowed for", origin)
	}
}

// register makes the browser of a tab a device of an account.
func register(t *testing.T, tab *webtest.Tab, n *blackbox.Node, me blackbox.Account) {
	t.Helper()
	tab.Open(n.URL + "/authenticator")
	tab.Until("document.body.dataset.ready === 'true'")
	tab.Choose("#language", "en")
	answer := func() {
		t.Helper()
		tab.See(mark("code-SMS"))
		tab.Type(mark("code-SMS"), n.Code(t, me, "SMS"))
		tab.Click(mark("verify-SMS"))
	}
	tab.Type("#country-code", me.Country)
	tab.Type("#phone-number", me.Phone)
	tab.Type("#password", me.Password)
	tab.Click("#login-submit")
	answer()
	tab.See("#register-step")
	tab.Click("#register")
	answer()
	tab.See("#home-step")
}

// A challenge without an answer ends, and nothing is paid out.
func TestShopChallengeExpires(t *testing.T) {
	t.Parallel()
	s, n, page := openShop(t, "MFA_CHALLENGE_TTL=5s") // or longer, as the methods require
	shop := &customer{webtest.Browser(t), t, n, blackbox.DemoAccount(5)}
	shop.enter(page)
	boss := blackbox.Admin(t, s, n)
	for _, method := range []string{"SMS", "MAIL", "PUSH"} {
		blackbox.Tune(t, n, boss, method, 3000, 0)
	}
	shop.asks("12.50")
	shop.gets("Not paid out", "EXPIRED")
}

// A newcomer walks through the demonstration and the API viewer of the real service, in a browser. Pictures of
// every step are kept as artifacts.
func TestDemonstrationPages(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	demo := s.Seeded("user")
	t.Run("walk", func(t *testing.T) {
		webtest.Walk(t, n.URL, demo.Country, demo.Phone, demo.Password, filepath.Join(t.ArtifactDir(), "walk"))
	})
	t.Run("two methods on a phone in Arabic", func(t *testing.T) {
		blackbox.TwoMethods(t, n, blackbox.Admin(t, s, n))
		view := webtest.View{Width: 390, Height: 844, Phone: true, Dark: true, Language: "ar"}
		webtest.Browser(t).Walk(n.URL, demo.Country, demo.Phone, demo.Password, filepath.Join(t.ArtifactDir(), "phone"), view)
	})
	t.Run("docs", func(t *testing.T) {
		webtest.WalkDocs(t, n.URL, filepath.Join(t.ArtifactDir(), "docs"))
	})
	t.Run("docs below a base path", func(t *testing.T) {
		n.Stop()
		n := s.Start("HTTP_BASE_PATH=/auth-service")
		webtest.WalkDocs(t, n.URL+"/auth-service", "")
	})
}

// An account holder makes the browser a device at the authenticator, below a base path. It approves and denies logins
// of the demonstration page with its own key, also where the device must sign the intent. The console removes it.
func TestDemoDevice(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := blackbox.Patient(s).Start("HTTP_BASE_PATH=/gate")
	n.URL += "/gate"
	demo, boss := s.Seeded("user"), blackbox.Admin(t, s, n)
	who := webtest.Person{
		Country:  demo.Country,
		Phone:    demo.Phone,
		Password: demo.Password,
		Shots:    filepath.Join(t.ArtifactDir(), "device"),
	}
	tab := webtest.Browser(t)
	at := strings.Replace(n.URL, "127.0.0.1", "localhost", 1) // not the address that proofs name
	tab.Visit(at)
	tab.Enter(who)
	tab.WalkDevice(at, who, func() {
		blackbox.Policy(t, n, boss, "LOGIN", 1, `[["PUSH"],["SMS"],["MAIL"]]`, `,"numberMatching":true,"intent":"required"`)
	}, func() {
		const devices = "/auth/devices"
		o := &owner{viewer{tab.Another().Front(), t}, n, demo}
		consoleLogin(t, o.Tab, n, demo, "/me")
		o.rows(devices, 1)
		o.Click(row(devices) + ` input[type="checkbox"]`)
		o.Click(mark("bulk-" + devices))
		o.Click(mark("bulk-send"))
		o.confirms()
		o.rows(devices, 0)
		tab.Front()
	})
}
