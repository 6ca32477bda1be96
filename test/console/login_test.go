package console

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
	"castellan/web/webtest"
)

// Administrators log in by each method of a challenge: on a device with the number that the page shows, with
// an authenticator, and with a code that was sent again. The page reports every failure on the way and
// continues. The failures are a wrong code, a locked method, a denial on the device, a broken connection, a
// killed service and an expired challenge.
func TestConsoleLogin(t *testing.T) {
	blackbox.OnOne(t, "postgres", func(t *testing.T, s *blackbox.Site) {
		addr := porttest.Free(t)
		s.Set("HTTP_ADDR="+addr, "MFA_METHOD_ATTEMPTS=2")
		n := blackbox.Patient(s).Start()
		boss, chief := s.Seeded("admin"), s.AddUser("admin")
		head := n.Auth(t, boss)
		n.Ok(t, "PATCH", "/admin/system/mfa/methods", `{"methodCode":"MAIL","renewStartMs":1000}`, head)
		policy := blackbox.Policy(t, n, head, "LOGIN", 1, `[["PUSH"],["TOTP"],["SMS"],["MAIL"]]`, `,"numberMatching":true`)
		theirs, _ := n.Session(t, chief)
		between := blackbox.NewProxy(t, addr)
		d := &doorway{viewer: viewer{webtest.Browser(t), t}, n: n, at: "http://" + between.Addr(),
			boss: boss, chief: chief,
			app: blackbox.Enrolled(t, n, boss, head), phone: blackbox.Enroll(t, n, chief, theirs, device.ES256, "")}
		d.speaks()
		d.byDevice()
		d.byCode()
		d.throughCuts(between)
		d.n.Kill()
		d.restarts(s)
		d.expires(s, head, policy)
	})
}

// doorway is a browser before the login.
type doorway struct {
	viewer
	n           *blackbox.Node
	at          string // the proxy between the browser and the service
	boss, chief blackbox.Account
	app         *blackbox.Authenticator // of boss
	phone       blackbox.Pocket         // of chief
}

// speaks chooses a language before the login. Typed text stays while the reading direction changes.
func (d *doorway) speaks() {
	d.Open(d.at + "/console")
	d.Type(mark("email"), d.boss.Mail)
	d.Click(mark("login-language-tr"))
	d.Until(`document.querySelector('[data-testid="login"]').innerText === 'Giriş yap'`)
	d.Until(fmt.Sprintf(`document.querySelector('[data-testid="email"]').value === %q`, d.boss.Mail))
	d.Click(mark("login-language-ar"))
	d.Until(`document.documentElement.dir === 'rtl' && document.documentElement.lang === 'ar'`)
	d.look("arabic")
	d.Click(mark("login-language-en"))
	d.Until(`document.documentElement.dir === 'ltr'`)
}

// begins logs in as far as the challenge.
func (d *doorway) begins(who blackbox.Account) {
	d.t.Helper()
	d.Type(mark("email"), who.Mail)
	d.Type(mark("password"), who.Password)
	d.Click(mark("login"))
	d.See(mark("challenge"))
}

// asked returns the challenge that waits for the device.
func (d *doorway) asked() blackbox.Flow {
	d.t.Helper()
	all := d.phone.List(d.t)
	if len(all) == 0 {
		d.t.Fatal("the device is asked nothing")
	}
	one := all[0].Data
	return blackbox.Flow{Challenge: blackbox.Challenge{ChallengeID: one.ChallengeID,
		MethodList: []blackbox.Method{{ID: one.MethodID, Name: "PUSH"}}}}
}

// approves approves on the device, with the number of the page.
func (d *doorway) approves() {
	d.t.Helper()
	d.phone.Answer(d.t, d.asked(), "APPROVED:"+d.Text(mark("match-number"))).Is(d.t, 200, "")
}

// enters waits for the screen that the address names.
func (d *doorway) enters() {
	d.t.Helper()
	d.See(mark("row"))
	d.Until(`location.pathname === '/console/users' && location.search === ''`)
}

func (d *doorway) leaves() {
	d.t.Helper()
	fromChip(d.Tab, "logout")
	d.See(mark("login"))
}

// refused waits for a refusal, by its code or its words, above a form that still has the mail address and no
// password.
func (d *doorway) refused(who blackbox.Account, words string) {
	d.t.Helper()
	d.See(mark("login"))
	if text := d.Text(mark("problem")); !strings.Contains(text, words) || strings.Contains(text, "reached") {
		d.t.Errorf("the page says %q, want %s", text, words)
	}
	if typed := webtest.Value[string](d.Tab, `document.querySelector('[data-testid="email"]').value + ' ' +
		document.querySelector('[data-testid="password"]').value`); typed != who.Mail+" " {
		d.t.Errorf("the form holds %q", typed)
	}
}

func (d *doorway) byDevice() {
	d.Open(d.at + "/console/users")
	d.begins(d.chief)
	number := d.Text(mark("match-number"))
	d.look("push")
	f := d.asked()
	d.phone.Answer(d.t, f, "APPROVED:"+blackbox.WrongFor(number)).Is(d.t, 422, "OTP_INVALID")
	d.phone.Answer(d.t, f, "DENIED").Is(d.t, 200, "")
	d.refused(d.chief, "Rejected on the device")
	d.look("push-refused")
	d.Type(mark("password"), d.chief.Password) // the address is still there
	d.Click(mark("login"))
	d.See(mark("match-number"))
	d.approves()
	d.enters()
	d.leaves()
}

func (d *doorway) byCode() {
	t := d.t
	const digits = `[data-testid="code-TOTP"] input`
	d.begins(d.boss)
	good := d.app.Next(t)
	for left := 1; left >= 0; left-- {
		d.Type(digits, blackbox.WrongFor(good))
		d.Until(fmt.Sprintf(`document.querySelector('[data-testid="method-TOTP"] [data-testid="problem"]')
			?.innerText.includes('Attempts left: %d')`, left))
		d.Until(fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, digits))
	}
	d.look("totp-wrong")
	d.Type(digits, good)
	d.Until(`document.querySelector('[data-testid="method-TOTP"]').innerText.includes('METHOD_LOCKED')`)
	d.look("totp-locked")
	first := d.n.Code(t, d.boss, "MAIL")
	d.Click(mark("method-MAIL") + " " + mark("renew"))
	blackbox.Until(t, blackbox.Within(10), "another code sent",
		func() bool { return d.n.Code(t, d.boss, "MAIL") != first })
	d.Type(`[data-testid="code-MAIL"] input`, d.n.Code(t, d.boss, "MAIL"))
	d.enters()
	d.leaves()
	d.begins(d.boss)
	d.Type(digits, d.app.Next(t))
	d.enters()
	d.leaves()
}

// throughCuts breaks every connection while the device is asked; another one carries the answer.
func (d *doorway) throughCuts(between *blackbox.Proxy) {
	d.begins(d.chief)
	number := d.Text(mark("match-number"))
	between.Become(blackbox.Resets)
	between.Become(blackbox.Good)
	d.phone.Answer(d.t, d.asked(), "APPROVED:"+number).Is(d.t, 200, "")
	d.enters()
	d.leaves()
	d.begins(d.chief)
}

// restarts kills the service while the device is asked, and starts it again.
func (d *doorway) restarts(s *blackbox.Site) {
	d.See(mark("away"))
	d.look("away")
	d.n = s.Start()
	d.phone.N = d.n
	d.approves()
	d.enters()
	d.leaves()
}

// expires lets the challenge expire.
func (d *doorway) expires(s *blackbox.Site, head blackbox.Headers, policy int64) {
	d.t.Helper()
	blackbox.ChangePolicy(d.t, d.n, head, policy, `,"methods":[["TOTP"]]`)
	d.n.Stop()
	d.n = s.Start("MFA_CHALLENGE_TTL=2s")
	d.begins(d.boss)
	d.refused(d.boss, "CHALLENGE_EXPIRED")
	d.look("expired")
}
