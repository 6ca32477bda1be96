package webtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Person is the user of a walk: an account, and the folder for pictures of the walk.
type Person struct {
	Country, Phone, Password string
	Shots                    string
}

// Account is the view in which an account is walked through.
var Account = View{Width: 1280, Height: 900, Language: "en"}

// Visit opens the page of the service at baseURL.
func (tab *Tab) Visit(baseURL string) {
	tab.t.Helper()
	tab.Open(strings.TrimSuffix(baseURL, "/") + "/")
	tab.Until("document.body.dataset.ready === 'true'")
	tab.View(Account)
}

// Enter logs in with codes from the outbox.
func (tab *Tab) Enter(who Person) {
	tab.t.Helper()
	tab.Login(who.Country, who.Phone, who.Password)
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.See(`[data-testid="session-item"][data-current="true"]`)
}

// Leave logs out.
func (tab *Tab) Leave() {
	tab.t.Helper()
	tab.Click("#logout")
	tab.See("#login-form")
}

// inArabic is the other view of each picture.
var inArabic = View{Width: 360, Height: 780, Phone: true, Dark: true, Language: "ar"}

// Shot writes two pictures of the page: on a wide screen, light and in English, and on a phone, dark and from right to
// left. Nothing may be wider than the screen.
func (tab *Tab) Shot(who Person, name string) {
	tab.t.Helper()
	look := func(name string) {
		tab.t.Helper()
		if wide := Value[int](tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide > 0 {
			tab.t.Errorf("%s is %d pixels too wide", name, wide)
		}
		tab.Screenshot(tab.t, filepath.Join(who.Shots, name+".png"))
	}
	look(name)
	tab.View(inArabic)
	look(name + "-phone")
	tab.View(Account)
}

// Refused waits until the page shows a refusal with this code, in the service's words.
func (tab *Tab) Refused(code string) {
	tab.t.Helper()
	tab.Until(
		fmt.Sprintf("!document.getElementById('error').hidden && document.getElementById('error').dataset.code === %q", code),
	)
	if text := tab.Text("#error-text p"); text == "" || text == code {
		tab.t.Errorf("%s is refused with the words %q", code, text)
	}
}

// Told waits until the page shows its notice.
func (tab *Tab) Told(want string) {
	tab.t.Helper()
	tab.Until(
		fmt.Sprintf(
			"!document.getElementById('notice').hidden && document.getElementById('notice').textContent.includes(%q)",
			want,
		),
	)
}

// WalkReset resets a forgotten password at the login and sets another one; it returns logged in with it. Refused
// passwords on the way do not consume the token.
func (tab *Tab) WalkReset(who Person, fresh string) Person {
	tab.t.Helper()
	tab.Type("#phone-number", who.Phone)
	tab.Click("#forgot")
	tab.See("#reset-step")
	if phone := Value[string](tab, "document.getElementById('reset-phone').value"); phone != who.Phone {
		tab.t.Errorf("the reset begins with the phone %q", phone)
	}
	tab.Shot(who, "reset-1-phone")
	tab.Click("#reset-form button")
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.See("#renew-step")
	tab.Type("#renew-password", "short")
	tab.Type("#renew-again", "short")
	tab.Click("#renew-form button")
	tab.Refused("INVALID_FIELD")
	if bad := Value[string](tab, "document.querySelector('[aria-invalid]').id"); bad != "renew-password" {
		tab.t.Errorf("the faulty field is %q", bad)
	}
	tab.Shot(who, "reset-2-refused")
	tab.Type("#renew-password", who.Password)
	tab.Type("#renew-again", who.Password)
	tab.Click("#renew-form button")
	tab.Refused("PASSWORD_REUSED")
	tab.Type("#renew-password", fresh)
	tab.Type("#renew-again", fresh)
	tab.Click("#renew-form button")
	tab.See("#login-form")
	tab.Told("The password is set.")
	who.Password = fresh
	tab.Enter(who)
	return who
}

// WalkAuthenticator sets the app up, logs in with a code of it, reads the secret again with a recovery code, and
// deactivates it. It begins and ends logged in.
func (tab *Tab) WalkAuthenticator(who Person) {
	t := tab.t
	t.Helper()
	tab.Click("#tab-authenticator")
	tab.Shot(who, "totp-1-before")
	tab.Click("#totp-deactivate")
	tab.Refused("TOTP_NOT_DEFINED")
	tab.Click("#totp-setup")
	tab.See("#challenge-step")
	if what := tab.Text("#challenge-what"); what != "To set up an authenticator app" {
		t.Errorf("the challenge is %q", what)
	}
	tab.AnswerByOutbox()
	tab.See("#totp-result")
	tab.Until("document.querySelector('.qr').naturalWidth > 100")
	codes := Value[[]string](
		tab,
		`[...document.querySelectorAll('[data-testid="recovery-code"]')].map((e) => e.textContent)`,
	)
	if slices.Sort(codes); len(slices.Compact(codes)) != 5 {
		t.Errorf("recovery codes %q", codes)
	}
	secret := tab.Text(`[data-testid="totp-secret"]`)
	tab.Shot(who, "totp-2-ready")
	tab.printsCodes()
	tab.Click(`[data-testid="totp-kept"]`)
	tab.Until("document.getElementById('totp-result').hidden")
	for _, once := range append(codes, strings.ReplaceAll(secret, " ", "")) {
		if Value[bool](tab, fmt.Sprintf("document.body.textContent.includes(%q)", once)) {
			t.Errorf("%s stays in the page", once)
		}
	}
	tab.Click("#totp-setup")
	tab.Refused("TOTP_ALREADY_DEFINED")

	tab.Leave()
	tab.Login(who.Country, who.Phone, who.Password)
	tab.See(testID("method", "TOTP"))
	tab.Until("document.getElementById('totp-use').textContent === 'Use this code'")
	tab.Click("#totp-use")
	tab.Until(
		fmt.Sprintf(
			"document.querySelector(%q).value === document.getElementById('totp-code').textContent",
			testID("code", "TOTP"),
		),
	)
	tab.Shot(who, "totp-3-login")
	tab.Click(testID("verify", "TOTP"))
	tab.See("#session-step")

	tab.Click("#tab-authenticator")
	tab.Type("#recovery-code", "abcde-fghij")
	tab.Click("#recover-form button")
	tab.Refused("RECOVERY_CODE_INVALID")
	tab.Type("#recovery-code", strings.ToUpper(codes[0]))
	tab.Click("#recover-form button")
	if again := tab.Text(`[data-testid="totp-secret"]`); again != secret {
		t.Errorf("the secret is %q, and was %q", again, secret)
	}
	if Value[bool](tab, `document.querySelector('[data-testid="recovery-code"]') !== null`) {
		t.Error("the recovery shows recovery codes")
	}
	tab.Shot(who, "totp-4-recovered")
	tab.Click("#totp-deactivate")
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.Told("deactivated")
	if Value[bool](
		tab,
		"!document.getElementById('authenticator-pane').hidden || !document.getElementById('totp-result').hidden",
	) {
		t.Error("the secret outlives the authenticator")
	}
}

// printsCodes presses the button that prints the recovery codes; nothing else may be printed.
func (tab *Tab) printsCodes() {
	t := tab.t
	t.Helper()
	Value[bool](tab, "(() => { window.print = () => { window.printed = true; }; return true; })()")
	tab.Click(`[data-testid="totp-print"]`)
	tab.Until("window.printed")
	tab.media("print")
	const shown = `['.recovery-codes', '.secret', '.top', '.side', '#session-title', '#recover-form', '#tabs']
		.filter((part) => document.querySelector(part).checkVisibility()).join(' ')`
	if paper := Value[string](tab, shown); paper != ".recovery-codes" {
		t.Errorf("printed are %q", paper)
	}
	tab.media("screen")
	Value[bool](tab, "dispatchEvent(new Event('afterprint'))")
}

// WalkPassword changes the password of the logged-in user and returns with the new one. others is how many further
// sessions the account has; the change ends them.
func (tab *Tab) WalkPassword(who Person, fresh string, others int) Person {
	t := tab.t
	t.Helper()
	fill := func(old, password, again string) {
		t.Helper()
		tab.Type("#old-password", old)
		tab.Type("#new-password", password)
		tab.Type("#new-again", again)
		tab.Click("#change-form button")
	}
	tab.sessions(others + 1)
	tab.Click("#tab-password")
	fill("not the one", fresh, fresh)
	tab.Refused("PASSWORD_WRONG")
	fill(who.Password, fresh, fresh+"x")
	tab.Refused("INVALID_FIELD")
	tab.Shot(who, "password-1-refused")
	fill(who.Password, fresh, fresh)
	tab.See("#challenge-step")
	tab.Click("#cancel") // cancelling leads back to the account
	tab.See("#panel-password")
	tab.Click("#change-form button")
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.Told("The password was changed.")
	if left := Value[string](tab, "document.getElementById('new-password').value + "+
		"document.getElementById('old-password').value"); left != "" {
		t.Error("the passwords stay in the form")
	}
	tab.Shot(who, "password-2-changed")
	tab.sessions(1)
	who.Password = fresh
	return who
}

// WalkSessions ends one session and then all others; the account has that many besides, at least two.
func (tab *Tab) WalkSessions(who Person, others int) {
	tab.t.Helper()
	tab.sessions(others + 1)
	tab.Shot(who, "sessions")
	tab.Click(`[data-testid="session-item"][data-current="false"] [data-testid="session-end"]`)
	tab.sessions(others)
	tab.Click("#end-others")
	tab.sessions(1)
	tab.Until("document.getElementById('end-others').hidden")
}

// WalkAddresses adds a withdrawal address, tries a wrong one, which is refused, and removes the first.
func (tab *Tab) WalkAddresses(who Person, right, wrong string) {
	t := tab.t
	t.Helper()
	add := func(address string) {
		t.Helper()
		tab.Type("#address", address)
		tab.Type("#address-name", "Cold wallet")
		tab.Click("#address-form button")
	}
	tab.Click("#tab-addresses")
	tab.See("#addresses-empty")
	add(wrong)
	tab.Refused("WD_NETWORK_ASSET_MISMATCH")
	add(right)
	tab.Told("The address was added.")
	if text := tab.Text(`[data-testid="address-item"] code`); text != right {
		t.Errorf("the address book shows %s", text)
	}
	tab.Shot(who, "addresses")
	tab.Click(`[data-testid="address-remove"]`)
	tab.Told("The address was removed.")
	tab.See("#addresses-empty")
}

// WalkNotifications reads the account's notifications: that many, the newest with the title. It marks that one as read,
// and then all.
func (tab *Tab) WalkNotifications(who Person, want int, title string) {
	t := tab.t
	t.Helper()
	unread := func(n int) {
		t.Helper()
		const open = `'[data-testid="notification-item"][data-read="false"]'`
		tab.Until(fmt.Sprintf("document.querySelectorAll(%s).length === %d", open, n))
	}
	tab.Click("#tab-notifications")
	unread(want)
	if text := tab.Text(`[data-testid="notification-item"] .row-name bdi`); text != title {
		t.Errorf("the newest notification is %q, want %q", text, title)
	}
	tab.Shot(who, "notifications")
	tab.Click(`[data-testid="notification-read"]`)
	unread(want - 1)
	tab.Click("#notifications-read")
	unread(0)
	tab.Until("document.getElementById('notifications-read').hidden")
}

// WalkCountries adds a country and removes it; each ends every session and leads back to the login.
func (tab *Tab) WalkCountries(who Person, country string) {
	t := tab.t
	t.Helper()
	tab.Click("#tab-countries")
	tab.See("#countries-empty")
	tab.Choose("#country", country)
	tab.Click("#country-form button")
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.See("#login-form")
	tab.Told("every session ended")
	tab.Enter(who)
	tab.Click("#tab-countries")
	tab.See(fmt.Sprintf(`[data-testid="country-item"][data-code=%q]`, country))
	tab.Until("document.querySelector('.flag').naturalWidth > 0")
	tab.Click("#country-form button")
	tab.Refused("RECORD_ALREADY_EXIST")
	tab.Shot(who, "countries")
	tab.Click(`[data-testid="country-remove"]`)
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.See("#login-form")
	tab.Told("every session ended")
}

// sessions reloads the list until it has that many.
func (tab *Tab) sessions(want int) {
	tab.t.Helper()
	tab.Click("#tab-sessions")
	tab.Until(fmt.Sprintf(`document.querySelectorAll('[data-testid="session-item"]').length === %d`, want))
}
