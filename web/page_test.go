package web_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/web/webtest"
)

// later moves the service's clock and the page's together.
func later(tab *webtest.Tab, s *service, d time.Duration) {
	s.advance(d)
	webtest.Value[bool](tab,
		fmt.Sprintf("((real) => { Date.now = () => real() + %d; return true; })(Date.now)", d.Milliseconds()))
}

func openChallenge(t *testing.T, tab *webtest.Tab, s *service) {
	t.Helper()
	tab.Open(s.URL + "/")
	tab.Until("document.body.dataset.ready === 'true'")
	tab.Login(demoCountry, demoPhone, demoPassword)
	tab.See("#challenge-step")
}

func shotsOf(t *testing.T, tab *webtest.Tab) func(name string) {
	dir := t.ArtifactDir()
	return func(name string) { t.Helper(); tab.Screenshot(t, filepath.Join(dir, name+".png")) }
}

func contains(t *testing.T, what, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s says %q, want %q in it", what, text, want)
	}
}

// The pages in their states, in one browser.
func TestPages(t *testing.T) {
	tab := webtest.Browser(t)
	t.Run("method states", func(t *testing.T) { methodStates(t, tab.For(t)) })
	t.Run("challenge ends", func(t *testing.T) { challengeEnds(t, tab.For(t)) })
	t.Run("page without socket", func(t *testing.T) { pageWithoutSocket(t, tab.For(t)) })
	t.Run("login refused", func(t *testing.T) { loginRefused(t, tab.For(t)) })
	t.Run("after the login", func(t *testing.T) { afterTheLogin(t, tab.For(t)) })
	t.Run("outbox page", func(t *testing.T) { outboxPage(t, tab.For(t)) })
	t.Run("docs errors", func(t *testing.T) { docsErrors(t, tab.For(t)) })
	t.Run("docs languages", func(t *testing.T) { docsLanguages(t, tab.For(t)) })
}

// A method goes through its states: wrong codes, locked, renewal gate, unlocked by a new code, expired, no more
// renewal.
func methodStates(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	shot := shotsOf(t, tab)
	openChallenge(t, tab, s)
	const method, note, renew = `[data-testid="method-SMS"]`, `[data-testid="note-SMS"]`, `[data-testid="renew-SMS"]`

	contains(t, "the renewal before its gate", tab.Text(renew), "New code in")
	if !webtest.Value[bool](tab, fmt.Sprintf("document.querySelector(%q).disabled", renew)) {
		t.Error("the renewal can be pressed before its gate")
	}
	for left := 4; left >= 0; left-- {
		tab.Type(`[data-testid="code-SMS"]`, "999 999")
		tab.Click(`[data-testid="verify-SMS"]`)
		want := map[int]string{1: "One attempt left.", 0: "No attempt left."}[left]
		if want == "" {
			want = fmt.Sprintf("%d attempts left.", left)
		}
		tab.Until(fmt.Sprintf("document.querySelector(%q).textContent.includes(%q)", note, want))
	}
	tab.See(method + `[data-state="locked"]`)
	contains(t, "a locked method", tab.Text(note), "Send a new code")
	shot("locked")

	later(tab, s, renewGate+time.Second)
	tab.Click(renew)
	tab.See(method + `[data-state="open"]`)
	contains(t, "a renewed method", tab.Text(note), "A new code is on its way")

	later(tab, s, methodLife+time.Second)
	tab.See(method + `[data-state="expired"]`)
	tab.See(`[data-testid="method-TOTP"][data-state="open"]`)
	shot("expired")
	tab.Click(renew)
	tab.See(method + `[data-state="open"]`)

	later(tab, s, challengeLife-cutOff-renewGate-methodLife)
	tab.Until(fmt.Sprintf("document.querySelector(%q).textContent === 'No more new codes'", renew))
}

// The end without an outcome is shown with its reason, and the page offers a next step.
func challengeEnds(t *testing.T, tab *webtest.Tab) {
	for code, want := range map[string]string{"CHALLENGE_EXPIRED": "expired", "CHALLENGE_CLOSED": "without an outcome"} {
		s := newService(t)
		openChallenge(t, tab, s)
		tab.Until(`document.querySelector('[data-testid="transport"]').dataset.transport === 'socket'`)
		s.end(code, 4410)
		tab.See("#ended-step")
		contains(t, "the end", tab.Text("#ended-text"), want)
		contains(t, "the end", tab.Text("#ended-code"), code)
		shotsOf(t, tab)(code)
		tab.Click("#again")
		tab.See("#login-form")
	}
}

// Without a socket the page still gets its outcome.
func pageWithoutSocket(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	s.holdOutcome, s.sockets = true, []string{"refuse"}
	openChallenge(t, tab, s)
	tab.Until(`document.querySelector('[data-testid="transport"]').dataset.transport === 'poll'`)
	code := tab.FreshCode("MAIL")
	tab.Type(`[data-testid="code-MAIL"]`, code)
	tab.Click(`[data-testid="verify-MAIL"]`)
	tab.See("#session-step")
}

// Refusals of the login are shown with text, code, fields and waiting time.
func loginRefused(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	shot := shotsOf(t, tab)
	tab.Open(s.URL + "/")
	tab.Login(demoCountry, demoPhone, "wrong")
	contains(t, "the error", tab.Text("#error"), "INVALID_CREDENTIALS")
	tab.Login(demoCountry, demoPhone, "too often")
	tab.Until("document.getElementById('error').dataset.code === 'RATE_LIMITED'")
	contains(t, "the waiting time", tab.Text("#error-wait"), "1:")
	shot("rate-limited")
	tab.Click("#error-close")
	tab.Until("document.getElementById('error').hidden")
	tab.Click("#reveal")
	tab.Until("document.getElementById('password').type === 'text'")
}

// After the login the page links to the account's pages of the console, below the base path of the service. It never
// shows a complete token.
func afterTheLogin(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	openChallenge(t, tab, s)
	tab.Type(`[data-testid="code-SMS"]`, tab.FreshCode("SMS"))
	tab.Click(`[data-testid="verify-SMS"]`)
	tab.See("#account")
	got := webtest.Value[[]string](tab, "[...document.querySelectorAll('#account a')].map((a) => a.href)")
	var want []string
	for _, screen := range []string{"", "/account", "/countries", "/addresses", "/notifications"} {
		want = append(want, s.URL+"/console/me"+screen)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the links are %v, want %v", got, want)
	}
	tab.Until(`document.querySelector('[data-event="ACTION_COMPLETE"]') !== null`)
	if webtest.Value[bool](tab, `/eyJ[\w-]+\.[\w-]+\./.test(document.body.textContent)`) {
		t.Error("a token stands in the page")
	}
}

// The outbox page lists, filters and handles HTML mail.
func outboxPage(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	shot := shotsOf(t, tab)
	openChallenge(t, tab, s)
	tab.Open(s.URL + "/dev/outbox/page")
	tab.Until(`document.querySelectorAll('[data-testid="outbox-item"]').length === 2`)
	mail := tab.Text(`[data-channel="MAIL"] .message-body`)
	contains(t, "the mail", mail, "Your code for Log in is:")
	if strings.ContainsAny(mail, "<{") {
		t.Errorf("markup is shown as text: %q", mail)
	}
	shot("outbox")
	tab.Type("#to", "+"+demoCountry+demoPhone)
	tab.Until(`document.querySelectorAll('[data-testid="outbox-item"]').length === 1`)
}
