package console

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"castellan/domain/proof/totp"
	"castellan/internal/blackbox"
	"castellan/test/harness"
	"castellan/web/webtest"
)

// In production mode the log names the command and no link. The link of the command makes the first administrator in
// the browser, by a passkey and by an authenticator; then it is void, and so is a new one.
func TestSetupLinkInTheBrowser(t *testing.T) {
	for name, factor := range map[string]func(t *testing.T, tab *webtest.Tab){
		"passkey": byPasskey, "authenticator": byAuthenticator} {
		t.Run(name, func(t *testing.T) {
			blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
				n := harness.Patient(s.Production()).Start()
				made := s.Command("", "setup-link")
				link, err := url.Parse(strings.TrimSpace(made.Out))
				if err != nil || made.Code != 0 || link.Path != "/setup" || len(link.Fragment) != 26 {
					t.Fatalf("setup-link: exit %d, %q %s", made.Code, made.Out, made.ErrOut)
				}
				link.Host = strings.Replace(strings.TrimPrefix(n.URL, "http://"), "127.0.0.1", "localhost", 1)
				tab := webtest.Browser(t)
				tab.Authenticator()
				tab.Open(link.String())
				tab.Until(`document.body.dataset.step === 'details' && location.hash === ''`)
				tab.Type("#email", "boss@example.com")
				tab.Type("#phone-number", "5321234567")
				tab.Type("#password", "short")
				tab.Click("#begin")
				tab.Until(`document.getElementById('password').getAttribute('aria-invalid') === 'true'`)
				for _, language := range []string{"tr", "ar", "en"} {
					tab.Choose("#language", language)
					tab.NoBarriers("details " + language)
				}
				tab.Type("#password", "tall-lantern-orchard")
				factor(t, tab)
				tab.Until(`document.body.dataset.step === 'done'`)
				if got := s.Count("user_role WHERE role = $1", "admin"); got != 1 {
					t.Errorf("%d administrators", got)
				}
				// The same link again, in another tab.
				tab.Open("about:blank")
				tab.Open(link.String())
				tab.Until(`document.body.dataset.step === 'details'`)
				tab.Type("#email", "other@example.com")
				tab.Type("#phone-number", "5327654321")
				tab.Type("#password", "tall-lantern-orchard")
				tab.Click("#begin")
				tab.Until(`document.body.dataset.step === 'absent'`)
				if again := s.Command("", "setup-link"); again.Code != 1 || again.Out != "" {
					t.Errorf("a second link: exit %d, %s%s", again.Code, again.Out, again.ErrOut)
				}
				if log := n.Log(); !strings.Contains(log, "castellan setup-link") || strings.Contains(log, link.Fragment) {
					t.Error("the log must name the command and never the link")
				}
			})
		})
	}
}

func byPasskey(_ *testing.T, tab *webtest.Tab) {
	tab.Click("#begin")
	tab.Until(`document.body.dataset.step === 'passkey'`)
	tab.Click("#create")
}

func byAuthenticator(t *testing.T, tab *webtest.Tab) {
	tab.Click(`.switch label:last-child`)
	tab.Click("#begin")
	tab.Until(`document.body.dataset.step === 'totp' && document.getElementById('qr').naturalWidth > 0`)
	tab.NoBarriers("authenticator")
	secret, err := totp.ParseSecret(tab.Text(`[data-testid="secret"]`))
	if err != nil {
		t.Fatal(err)
	}
	tab.Type("#value", "000000")
	tab.Click("#finish")
	tab.Until(`document.getElementById('error').dataset.code === 'OTP_INVALID'`)
	tab.Type("#value", totp.CodeAt(secret, totp.StepAt(time.Now())))
	tab.Click("#finish")
}
