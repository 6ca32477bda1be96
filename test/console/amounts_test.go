package console

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// clerk adjusts balances in a browser.
type clerk struct {
	viewer
	s *blackbox.Site
}

// entry is a text in the amount field.
type entry struct {
	text   string
	pasted bool
	means  []string // if more than one, the field offers a choice
	sent   string   // the chosen and booked value; "": nothing is sent
}

const theAmount = `[data-testid="field-amount"]`

// The amount field accepts a comma and a point, groups, and Arabic digits, typed and pasted. It keeps every
// character and offers a choice if a text may mean two amounts. The service books the amount that the field
// showed.
func TestConsoleAmountField(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Set("LIMITS_ENABLED=false", "LOG_LEVEL=info")
	s.Start().Stop()
	s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	n := s.Start()
	boss, customer := s.Seeded("admin"), s.AddUser("user")
	c := clerk{viewer{webtest.Browser(t), t}, s}
	consoleLogin(t, c.Tab, n, boss, "/adjust?userId="+customer.ID)
	webtest.Value[bool](c.Tab, `(() => {
		const real = window.fetch;
		window.bodies = [];
		window.fetch = (to, init) => {
			if (init?.method === 'POST') bodies.push(init.body);
			return real(to, init);
		};
		return true;
	})()`)
	for _, by := range []struct {
		language string
		entries  []entry
	}{
		{"en", []entry{
			{text: "1,000", means: []string{"1000", "1"}, sent: "1000"},
			{text: "0.123456789"},
		}},
		{"tr", []entry{
			{text: " 3\u202f456,75 BTC ", pasted: true, sent: "3456.75"},
		}},
		{"ar", []entry{
			{text: "١٬٢٣٤٫٥", sent: "1234.5"},
		}},
	} {
		if by.language != "en" {
			fromChip(c.Tab, "language-"+by.language)
			c.Until(fmt.Sprintf(`document.documentElement.lang === %q`, by.language))
		}
		for i, e := range by.entries {
			c.enters(e, fmt.Sprintf("%s %d", by.language, i))
		}
	}
	c.looks()
}

// enters puts a text into the field, reads the field's interpretation, and books it.
func (c clerk) enters(e entry, reason string) {
	t := c.t
	t.Helper()
	c.Type(mark("field-currencyCode"), "BTC")
	c.Type(mark("field-networkCode"), "BTC")
	c.Type(mark("field-reason"), reason)
	if e.pasted {
		c.Paste(theAmount, e.text)
	} else {
		c.Keys(theAmount, e.text)
	}
	storetest.Equal(t, webtest.Value[string](c.Tab, `document.querySelector('`+theAmount+`').value`), e.text, reason,
		"the field holds")
	means := webtest.Value[[]string](c.Tab, `[...document.querySelectorAll('[data-testid="field-amount-means"]')]
		.map((e) => e.dataset.value)`)
	if !slices.Equal(means, e.means) && len(means)+len(e.means) > 0 {
		t.Errorf("%s: the field offers %q, want %q", reason, means, e.means)
	}
	if len(e.means) > 0 {
		c.unsent(reason)
		c.Click(fmt.Sprintf(`[data-testid="field-amount-means"][data-value=%q]`, e.sent))
	}
	if e.sent == "" {
		c.unsent(reason)
		c.Until(`document.querySelector('.reads[data-fault]')?.innerText.length > 10`)
		return
	}
	const sends = `document.querySelector('[data-testid="field-amount-sends"]').dataset.value`
	storetest.Equal(t, webtest.Value[string](c.Tab, sends), e.sent, reason, "the field shows")
	c.Click(theSend)
	c.See(mark("made"))
	body := webtest.Value[string](c.Tab, `bodies.at(-1)`)
	if !strings.Contains(body, fmt.Sprintf(`"amount":%q`, e.sent)) {
		t.Errorf("%s: the request is %s, want the amount %s", reason, body, e.sent)
	}
	c.s.Has(1, fmt.Sprintf("audit WHERE detail = 'C %s BTC; %s'", e.sent, reason))
	c.Click(mark("again"))
}

// unsent checks that the form cannot be sent.
func (c clerk) unsent(reason string) {
	c.t.Helper()
	if !webtest.Value[bool](c.Tab, `document.querySelector('[data-testid="send"]').disabled`) {
		c.t.Errorf("%s: the form can be sent", reason)
	}
}

// looks shows the question and the value in all colours, on a phone.
func (c clerk) looks() {
	c.t.Helper()
	c.View(webtest.Phone)
	c.Type(mark("field-currencyCode"), "BTC")
	for name, text := range map[string]string{"question": "12.345", "value": "1234567,5", "fault": "1,2,3"} {
		c.Keys(theAmount, text)
		c.NoBarriers(name)
		c.OtherColours(name)
		c.Screenshot(c.t, filepath.Join(c.t.ArtifactDir(), "amount", name+".png"))
	}
}
