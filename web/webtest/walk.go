package webtest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods bounds the walk: no policy of the demonstration requires more.
const maxMethods = 4

// Walk performs the whole demonstration against the service at baseURL as a new user would. It logs in, mistypes a code
// once, and uses the codes of the outbox until the outcome arrives. Then it views the session and logs out. A picture
// of every step is written to shotsDir.
func Walk(t *testing.T, baseURL, countryCode, phone, password string, shotsDir string) {
	t.Helper()
	Browser(t).Walk(baseURL, countryCode, phone, password, shotsDir, Desktop)
}

// Walk is the package's Walk in a tab and a view of the caller's choice.
func (tab *Tab) Walk(baseURL, countryCode, phone, password, shotsDir string, view View) {
	t := tab.t
	t.Helper()
	shot := tab.lookAt(shotsDir)

	tab.Open(strings.TrimSuffix(baseURL, "/") + "/")
	tab.Until("document.body.dataset.ready === 'true'")
	tab.View(view)
	shot("1-login")

	tab.Login(countryCode, phone, password)
	tab.See("#challenge-step")
	tab.Until(logged("OPEN", "socket"))
	shot("2-challenge")

	method := tab.OpenMethod()
	code := tab.FreshCode(method)
	tab.Type(testID("code", method), otherCode(code))
	tab.Click(testID("verify", method))
	tab.Until(fmt.Sprintf("document.querySelector(%q).dataset.kind === 'bad'", testID("note", method)))
	shot("3-wrong-code")

	tab.AnswerByOutbox()
	tab.See("#session-step")
	tab.Until(logged("METHOD_COMPLETE", "socket"))
	tab.Until(logged("ACTION_COMPLETE", "socket"))
	if key := tab.Text("#session-key"); key == "" {
		t.Error("the session shows no session key")
	}
	if claims := Value[int](tab, "document.querySelectorAll('#claims tr').length"); claims < 5 {
		t.Errorf("the token shows %d claims", claims)
	}
	shot("4-session")

	tab.Click("#logout")
	tab.See("#login-form")
	tab.See("#notice")
	if left := Value[string](tab, "document.getElementById('password').value"); left != "" {
		t.Error("the password is still in the page after the login")
	}
	shot("5-logged-out")
}

// Login fills the form and sends it.
func (tab *Tab) Login(countryCode, phone, password string) {
	tab.t.Helper()
	tab.Type("#country-code", countryCode)
	tab.Type("#phone-number", phone)
	tab.Type("#password", password)
	tab.Click("#login-submit")
}

// AnswerByOutbox completes the challenge on the page with codes of the outbox until it is over.
func (tab *Tab) AnswerByOutbox() {
	tab.t.Helper()
	for range maxMethods {
		method := tab.OpenMethod()
		code := tab.FreshCode(method)
		tab.Click(freshMessage(method) + ` [data-testid="use-code"]`)
		tab.Until(fmt.Sprintf("document.querySelector(%q).value === %q", testID("code", method), code))
		tab.Click(testID("verify", method))
		tab.Until(
			fmt.Sprintf(
				"document.body.dataset.step !== 'challenge' || document.querySelector(%q)?.dataset.key === 'moreNeeded'",
				testID("note", method),
			),
		)
		if tab.Step() != "challenge" {
			return
		}
	}
	tab.t.Fatalf("the challenge goes on after %d methods", maxMethods)
}

// Step names the current step of the page: login, challenge, ended or session.
func (tab *Tab) Step() string {
	tab.t.Helper()
	return Value[string](tab, "document.body.dataset.step")
}

// OpenMethod waits for an unanswered method whose code arrives in the outbox, and names it: SMS or MAIL.
func (tab *Tab) OpenMethod() string {
	tab.t.Helper()
	const open = `.method[data-state="open"]:is([data-method="SMS"], [data-method="MAIL"])`
	tab.See(open)
	return Value[string](tab, fmt.Sprintf("document.querySelector(%q).dataset.method", open))
}

// FreshCode waits for the newest code of this challenge on the channel and reads it from the outbox pane.
func (tab *Tab) FreshCode(channel string) string {
	tab.t.Helper()
	return tab.Text(freshMessage(channel) + ` [data-testid="outbox-code"]`)
}

// WalkDocs opens the interface viewer at baseURL and uses it: search, open an endpoint, read its fields, send a request
// that is refused for missing fields.
func WalkDocs(t *testing.T, baseURL, shotsDir string) {
	t.Helper()
	Browser(t).WalkDocs(baseURL, shotsDir, Desktop)
}

// WalkDocs is the package's WalkDocs in a tab and a view of the caller's choice.
func (tab *Tab) WalkDocs(baseURL, shotsDir string, view View) {
	t := tab.t
	t.Helper()
	shot := tab.lookAt(shotsDir)

	tab.View(view)
	tab.Open(strings.TrimSuffix(baseURL, "/") + "/docs")
	tab.Until("document.getElementById('main').dataset.ready === 'true'")
	if failed := Value[bool](tab, "!document.getElementById('docs-error').hidden"); failed {
		t.Errorf("the viewer could not read a document: %s", tab.Text("#docs-error"))
	}
	all := Value[int](tab, "document.querySelectorAll('.op').length")
	groups := Value[int](tab, "document.querySelectorAll('.group').length")
	if all == 0 || groups < 2 {
		t.Errorf("the viewer shows %d endpoints in %d groups", all, groups)
	}
	shot("1-docs")

	tab.Type("#search", "auth login")
	tab.Until(fmt.Sprintf("document.querySelectorAll('.op:not([hidden])').length < %d", all))
	tab.See("#login")
	tab.Click("#login > summary")
	tab.Until("[...document.querySelectorAll('#login .fields th code')].some((e) => e.textContent === 'password')")
	shot("2-endpoint")

	tab.Type(`#login [data-testid="try-body"]`, "{}")
	tab.Click(`#login [data-testid="try-send"]`)
	if status := tab.Text(`#login [data-testid="try-status"]`); status != "400" {
		t.Errorf("an empty login was answered with %s", status)
	}
	if answer := tab.Text(`#login [data-testid="try-result"]`); !strings.Contains(answer, "INVALID_FIELD") {
		t.Errorf("an empty login was refused with %s", answer)
	}
	shot("3-try-it")

	tab.Type("#search", "METHOD_COMPLETE")
	tab.See(`.op[id^="socket"] > summary`)
	tab.Click(`.op[id^="socket"]:not([hidden]) > summary`)
	tab.Until(
		"[...document.querySelectorAll('.op[id^=\"socket\"][open] .fields th code')].some((e) => e.textContent === " +
			"'challengeId')",
	)
	shot("4-socket")
}

// lookAt returns the function that checks a step: the page may have no barrier, and a picture is saved in dir. Without
// dir it checks nothing, for a page that was checked at another address.
func (tab *Tab) lookAt(dir string) func(step string) {
	if dir == "" {
		return func(string) {}
	}
	return func(step string) {
		tab.t.Helper()
		tab.NoBarriers(step)
		tab.Screenshot(tab.t, filepath.Join(dir, step+".png"))
	}
}

func testID(part, method string) string {
	return fmt.Sprintf(`[data-testid="%s-%s"]`, part, method)
}

func freshMessage(channel string) string {
	return fmt.Sprintf(`[data-testid="outbox-item"][data-channel="%s"][data-old="false"]`, channel)
}

func logged(event, via string) string {
	return fmt.Sprintf(
		`document.querySelector('[data-testid="log-entry"][data-event="%s"][data-via="%s"]') !== null`,
		event,
		via,
	)
}

// otherCode differs from code in its last digit.
func otherCode(code string) string {
	last := code[len(code)-1]
	return code[:len(code)-1] + string('0'+(last-'0'+1)%10)
}
