package web_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/web/webtest"
)

// No page has an accessibility barrier. The test checks each page in light and dark, in both directions of writing, on
// a phone and on a wide screen. It reaches every step at least once.
func TestNoBarriers(t *testing.T) {
	tab := webtest.Browser(t)
	t.Run("steps", func(t *testing.T) { stepsWithoutBarriers(t, tab.For(t)) })
	t.Run("outbox", func(t *testing.T) { outboxWithoutBarriers(t, tab.For(t)) })
	t.Run("docs", func(t *testing.T) { docsWithoutBarriers(t, tab.For(t)) })
}

// stepsWithoutBarriers goes from the login to the session.
func stepsWithoutBarriers(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	tab.Open(s.URL + "/")
	tab.Until("document.body.dataset.ready === 'true'")
	everyView(t, tab, "login")
	tab.Login(demoCountry, demoPhone, "wrong")
	tab.See("#error")
	noBarriers(t, tab, "login refused")

	tab.Login(demoCountry, demoPhone, demoPassword)
	tab.See("#challenge-step")
	tab.FreshCode("SMS")
	tab.Type(`[data-testid="code-SMS"]`, "999 999")
	tab.Click(`[data-testid="verify-SMS"]`)
	tab.Until(`document.querySelector('[data-testid="note-SMS"]').dataset.kind === 'bad'`)
	noBarriers(t, tab, "a wrong code")
	tab.Click("#cancel")
	later(tab, s, time.Second)
	tab.Login(demoCountry, demoPhone, demoPassword)
	tab.See(`[data-testid="outbox-item"][data-old="true"]`)
	code := tab.FreshCode("SMS")
	everyView(t, tab, "verify")

	tab.Type(`[data-testid="code-SMS"]`, code)
	tab.Click(`[data-testid="verify-SMS"]`)
	tab.See("#session-step")
	tab.Click(`[data-testid="log-entry"] summary`)
	everyView(t, tab, "session")
}

func outboxWithoutBarriers(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	openChallenge(t, tab, s)
	tab.Open(s.URL + "/dev/outbox/page")
	tab.See(`[data-testid="outbox-item"]`)
	everyView(t, tab, "outbox")
	tab.Type("#to", "nobody")
	tab.Until(`document.querySelectorAll('[data-testid="outbox-item"]').length === 0`)
	noBarriers(t, tab, "empty outbox")
}

func docsWithoutBarriers(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	tab.Open(s.URL + "/docs")
	tab.Until("document.getElementById('main').dataset.ready === 'true'")
	noBarriers(t, tab, "docs, closed")
	for _, id := range webtest.Value[[]string](tab, "[...document.querySelectorAll('.op')].map((one) => one.id)") {
		tab.Click("#" + id + " > summary")
		tab.Until(fmt.Sprintf("document.querySelector('#%s .op-body').childElementCount > 0", id))
	}
	tab.Click(`#login [data-testid="try-send"]`)
	tab.See(`[data-testid="try-status"]`)
	everyView(t, tab, "docs")
}

// everyView checks the page in its present state in all possible views, and saves a picture of each. In dark it checks
// what depends on colours, in one language: the direction of writing has no colours.
func everyView(t *testing.T, tab *webtest.Tab, step string) {
	t.Helper()
	shot := shotsOf(t, tab)
	for _, size := range []webtest.View{webtest.Phone, webtest.Desktop} {
		for _, language := range []string{"ar", "en"} {
			for _, dark := range []bool{true, false} {
				view := size
				view.Dark, view.Language = dark, language
				name := fmt.Sprintf("%s-%d-%s-dark=%v", step, view.Width, language, dark)
				tab.View(view)
				switch {
				case !dark:
					noBarriers(t, tab, name)
				case language == "en":
					tab.NoColourBarriers(name)
				}
				shot(name)
			}
		}
	}
	tab.View(webtest.View{Width: 820, Height: 1180, Language: "tr"})
	fits(t, tab, step+" on a tablet")
}

// noBarriers fails if the page has an accessibility barrier or is wider than the screen.
func noBarriers(t *testing.T, tab *webtest.Tab, step string) {
	t.Helper()
	tab.NoBarriers(step)
	fits(t, tab, step)
}

func fits(t *testing.T, tab *webtest.Tab, step string) {
	t.Helper()
	const excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
	if wide := webtest.Value[int](tab, excess); wide > 0 {
		t.Errorf("%s is %d pixels too wide", step, wide)
	}
}
