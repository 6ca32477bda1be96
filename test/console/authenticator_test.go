package console

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// An account holder registers a browser at the authenticator of the real service, below a base path, and approves,
// denies and reports logins there. The service requires that the device signs the intent.
func TestAuthenticator(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := blackbox.Patient(s).Start("HTTP_BASE_PATH=/gate")
	n.URL += "/gate"
	demo, boss := s.Seeded("user"), blackbox.Admin(t, s, n)
	tab := webtest.Browser(t)
	tab.View(webtest.View{Width: 360, Height: 740, Phone: true})
	tab.Open(strings.Replace(n.URL, "127.0.0.1", "localhost", 1) + "/authenticator") // not the address of the proofs
	tab.Until("document.body.dataset.ready === 'true'")
	answer := func() {
		t.Helper()
		tab.Type(mark("code-SMS"), n.Code(t, demo, "SMS"))
		tab.Click(mark("verify-SMS"))
	}
	tab.Choose("#language", "en")
	tab.Type("#country-code", demo.Country)
	tab.Type("#phone-number", demo.Phone)
	tab.Type("#password", demo.Password)
	tab.Click("#login-submit")
	tab.See("#challenge-step")
	answer()
	tab.See("#register-step")
	tab.Click("#register")
	tab.See("#challenge-step")
	answer()
	tab.See("#home-step")

	blackbox.Policy(t, n, boss, "LOGIN", 1, `[["PUSH"],["SMS"],["MAIL"]]`, `,"numberMatching":true,"intent":"required"`)
	open := func() {
		t.Helper()
		tab.Click(mark("request"))
		tab.See("#approval-title")
	}
	f := n.Login(t, demo)
	open()
	if rows := webtest.Value[int](tab, `document.querySelectorAll('[data-testid="rows"] dt').length`); rows < 3 {
		t.Errorf("%d rows", rows)
	}
	barriers(t, tab, "the approval of a login")
	tab.Type(mark("number"), f.Method(t, "PUSH").MatchNumber)
	tab.Click(mark("approve"))
	tab.See("#home-step")
	x := n.Result(t, f).Is(t, 200, "").Header.Get("x-auth")
	n.Ok(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x})

	f = n.Login(t, demo)
	open()
	tab.Click(mark("deny"))
	tab.See("#home-step")
	if a := n.Result(t, f); !strings.Contains(string(a.Body), `"success":false`) {
		t.Errorf("the denied login: %s", a)
	}
	n.Ok(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x})

	n.Login(t, demo)
	open()
	tab.Click(mark("not-me"))
	tab.Click("#confirm-yes")
	tab.Until(`document.getElementById('notice').textContent.includes('All sessions of your account have ended')`)
	n.Do(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
}
