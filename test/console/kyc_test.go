package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// cases are people whose documents wait for a reviewer without any other permission.
type cases struct {
	*blackbox.Node
	t        *testing.T
	site     *blackbox.Site
	admin    blackbox.Headers
	reviewer blackbox.Account
	ids      []string
}

var reviewerMay = []string{"GET /admin/list-users", "GET /user/get-documents", "GET /admin/get-document-file",
	"POST /user/update-document", "POST /admin/save-document", "GET /admin/levels-info", "GET /user/get-kyc-images",
	"POST /user/update-kyc", "POST /user/update-confirmed", "GET /admin/user/get-users-without-aml-confirmed",
	"POST /admin/user/update-user-aml-confirmed", "POST /level/update-level", "GET /admin/kyc-case",
	"POST /admin/presence"}

// newCases starts a service with a reviewer and n people, each with a front and, if wanted, a selfie.
func newCases(t *testing.T, s *blackbox.Site, n int, kinds ...int) *cases {
	t.Helper()
	node := s.Start()
	boss := s.Seeded("admin")
	c := &cases{Node: node, t: t, site: s, admin: node.Auth(t, boss), reviewer: s.AddUser("user")}
	blackbox.Role(t, node, c.admin, c.reviewer, "reviewer", reviewerMay...)
	for i := range n {
		c.ids = append(c.ids, c.person(i))
		for _, kind := range kinds {
			c.Ok(t, "POST", "/admin/save-document", map[string]any{"userId": c.ids[i], "type": kind,
				"documentName": fmt.Sprintf("%d-%d.png", i, kind), "base64String": noise(i*10 + kind)}, c.admin)
		}
	}
	return c
}

// person makes an account as a copy of the reviewer's, which saves hashing a password.
func (c *cases) person(i int) string {
	c.t.Helper()
	id := fmt.Sprintf("01JD3X4Q7V0S8D4T2M6B9Q%04d", i)
	columns := c.site.Columns("users")
	values := make([]string, len(columns))
	for n, name := range columns {
		switch name {
		case "id":
			values[n] = "'" + id + "'"
		case "email":
			values[n] = fmt.Sprintf("'case%d@example.test'", i)
		case "phone":
			values[n] = fmt.Sprintf("'+90533%07d'", i)
		case "name":
			values[n] = fmt.Sprintf("'Case %d'", i)
		default:
			values[n] = name
		}
	}
	c.site.Exec("INSERT INTO users (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM users WHERE id = '" + c.reviewer.ID + "'")
	return id
}

// noise is a picture that does not compress, so that kept copies show in the memory.
func noise(seed int) string {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	m := image.NewGray(image.Rect(0, 0, 320, 240))
	for y := range 240 {
		for x := range 320 {
			m.SetGray(x, y, color.Gray{uint8(random.Uint32())})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// state returns the decision on a person.
func (c *cases) state(id string) string {
	c.t.Helper()
	return c.Ok(c.t, "GET", "/admin/kyc-case?userId="+id, nil, c.admin).At(c.t, "kycConfirm")
}

func caseIs(id string) string {
	return fmt.Sprintf(`document.querySelector('[data-testid="case"][data-ready]')?.dataset.case === %q`, id)
}

// On a phone the decision is at the lower edge of the window beside every picture, with targets of 44 pixels, and an
// AML finding is above the pictures.
func TestConsoleKYCOnPhone(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	c := newCases(t, s, 1, 1, 2, 3)
	s.Exec("UPDATE users SET aml_status = 'risky' WHERE email = 'case0@example.test'")
	tab := webtest.Browser(t)
	tab.View(webtest.View{Width: 390, Height: 844, Phone: true})
	consoleLogin(t, tab, c.Node, c.reviewer, "/kyc")
	tab.Click(`[data-testid="kyc-begin"]`)
	tab.Until(caseIs(c.ids[0]))
	const bar = `[...document.querySelectorAll('[data-testid="kyc-decision"] button')].filter((e) => e.checkVisibility())
		.map((e) => e.getBoundingClientRect())`
	for _, part := range []string{"0", "0.5", "1"} { // of the height of the page
		tab.Until(fmt.Sprintf(`(scrollTo(0, document.documentElement.scrollHeight * %s), %s.length >= 3 &&
			%[2]s.every((box) => box.bottom <= innerHeight && box.top > innerHeight / 2 && box.height >= 44))`, part, bar))
	}
	tab.Until(`(scrollTo(0, 0), document.querySelector('[data-testid="aml-warning"]').getBoundingClientRect().bottom <
		document.querySelector('[data-testid="shot"]').getBoundingClientRect().top)`)
	tab.Click(`[data-testid="verdict-manuelApproved"]`)
	tab.See(`[data-testid="aml-sure"]`)
	tab.Until(`document.querySelector('[data-testid="confirm"]').getBoundingClientRect().bottom <= innerHeight`)
	barriers(t, tab, "phone")
	tab.Screenshot(t, filepath.Join(t.ArtifactDir(), "kyc", "phone.png"))
	webtest.Value[bool](tab, `(document.querySelector('[data-testid="aml-sure"]').click(), true)`)
	tab.Click(`[data-testid="confirm"]`)
	tab.See(`[data-testid="undo"]`)
}

// A reviewer opens the queue and decides by keys alone. An undone decision is not sent, a sent one is in the
// audit with its reason, and a refused one returns to the queue. Two accounts that the AML check found are
// confirmed at once, and a document is opened.
func TestConsoleKYC(t *testing.T) {
	blackbox.OnOne(t, "postgres", func(t *testing.T, s *blackbox.Site) {
		c := newCases(t, s, 4, 1, 3)
		s.Exec("UPDATE users SET aml_status = 'risky' WHERE email IN ('case0@example.test', 'case1@example.test')")
		first, second, third, fourth := c.ids[0], c.ids[1], c.ids[2], c.ids[3] // the longest waiting comes first
		decided := c.site.AddUser("user")
		c.Ok(t, "POST", "/admin/save-document", map[string]any{"userId": decided.ID, "type": 4, // the address alone waits
			"documentName": "bill.png", "base64String": noise(99)}, c.admin)
		s.Exec("UPDATE users SET kyc_confirm = 'manuelApproved' WHERE id = '" + decided.ID + "'")
		tab := webtest.Browser(t)
		shot := func(name string) { tab.Screenshot(t, filepath.Join(t.ArtifactDir(), "kyc", name+".png")) }
		consoleLogin(t, tab, c.Node, c.reviewer, "/kyc")
		const queued = `[...document.querySelectorAll('[data-testid="row"]')].map((row) => row.innerText)`
		tab.Until(queued + `.length === 4 && ` + queued + `.every((text, n) => text.includes('Case ' + n))`)
		tab.Click(`[data-testid="kyc-all"]`)
		tab.Until(queued + `.length === 5`)
		tab.Click(`[data-testid="kyc-all"]`)
		tab.Until(queued + `.length === 4`)
		shot("queue")
		barriers(t, tab, "queue")

		tab.Press("j\r")
		tab.Until(caseIs(first))
		tab.Press("++r")
		tab.Until(`document.querySelector('[data-testid="viewer"]').dataset.turn === '90'`)
		tab.Until(`new Set([...document.querySelector('[data-testid="case"]').querySelectorAll('[data-testid="shot"]')]
			.map((e) => e.style.transform)).size === 1`)
		shot("case-turned")
		tab.Press("0l?")
		tab.See(`[role="dialog"] table`)
		shot("keys")
		tab.Press("\x1b")
		tab.Until(`!document.querySelector('[role="dialog"]')`)
		barriers(t, tab, "case")

		tab.Until(`document.querySelector('[data-testid="absent"]').innerText.includes('Back')`)
		tab.Press("1\r") // the account has AML findings: the approval needs a confirmation
		tab.See(`[data-testid="aml-warning"]`)
		tab.See(`[data-testid="aml-sure"]`)
		tab.Until(`document.querySelector('[data-testid="confirm"]').disabled && ` + caseIs(first))
		if under := webtest.Value[int](tab, `Math.ceil(document.querySelector('[data-testid="confirm"]')
			.getBoundingClientRect().bottom - innerHeight)`); under > 0 {
			t.Errorf("the decision is %d pixels below the screen", under)
		}
		release := hold(tab)
		c.nextIsThere(tab, second, "1a\r")
		tab.See(`[data-testid="undo"]`)
		const leaves = `dispatchEvent(new Event('beforeunload', { cancelable: true }))`
		if webtest.Value[bool](tab, leaves) {
			t.Error("the page goes without a question while a decision waits")
		}
		shot("undo")
		barriers(t, tab, "undo")
		tab.Press("u")
		release()
		tab.Until(caseIs(first))
		tab.Until(`!document.querySelector('[data-testid="undo"]') && ` + leaves)
		tab.Press("22\r") // rejected, because a part is missing
		tab.Until(caseIs(second))
		c.Ok(t, "POST", "/admin/presence", map[string]any{"subject": "kyc/" + third}, c.admin) // counts for 30 s
		tab.Press("1a\r")
		tab.Until(caseIs(third))
		tab.See(`[data-testid="others"]`)
		shot("others")
		tab.Press("1\r") // another reviewer came first: nothing happens
		tab.Click(`[data-testid="anyway"]`)
		release = hold(tab)
		tab.Press("3\r")
		tab.Until(caseIs(fourth))
		c.Ok(t, "POST", "/user/update-kyc", map[string]any{"userId": third, "kycConfirm": "rejected",
			"rejectedResult": "x", "userDocumentId": c.papers(third), "documentId": c.papers(third)[0]}, c.admin)

		goTo(tab, "/aml")
		tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 2`)
		barriers(t, tab, "aml")
		tab.Click(`thead input[type="checkbox"]`)
		tab.Click(`[data-testid="bulk-/admin/user/update-user-aml-confirmed"]`)
		tab.See(`[data-testid="bulk-send"]`)
		shot("aml")
		tab.Click(`[data-testid="bulk-send"]`)
		tab.Until(`!document.querySelector('[data-testid="row"]') && !document.querySelector('[role="dialog"]')`)

		release()
		tab.Until(caseIs(third)) // refused by the service, it is back
		tab.See(`[data-testid="failed"] [data-testid="problem"]`)
		tab.Until(`document.querySelector('[data-testid="failed"]').innerText.includes('INVALID_STATE')`)
		shot("failed")
		if got := []string{c.state(first), c.state(second), c.state(third), c.state(fourth)}; strings.Join(got, " ") !=
			"rejected manuelApproved rejected waitingApproval" {
			t.Errorf("decided is %q", got)
		}
		c.audited(first, second)
		c.documents(tab, shot)
		c.views(tab, fourth)
		c.leftNothing(tab)
	})
}

// nextIsThere presses the keys of a decision. The next case was loaded before, so it is shown at once.
func (c *cases) nextIsThere(tab *webtest.Tab, next, keys string) {
	tab.Until(fmt.Sprintf(`performance.getEntriesByType('resource').some((e) => e.name.includes('get-kyc-images?userId=%s')
		&& e.responseEnd > 0)`, next))
	webtest.Value[bool](tab, fmt.Sprintf(`(() => {
		addEventListener('keydown', (e) => { if (e.key === 'Enter') window.pressed = performance.now(); }, { capture: true });
		const look = () => { if (%s) window.shown = performance.now(); else requestAnimationFrame(look); };
		look();
		return true; })()`, caseIs(next)))
	tab.Press(keys)
	tab.Until("window.shown > 0")
	took := webtest.Value[float64](tab, "window.shown - window.pressed")
	late := webtest.Value[int](tab, fmt.Sprintf(`performance.getEntriesByType('resource')
		.filter((e) => e.name.includes('get-kyc-images?userId=%s') && e.responseEnd > window.pressed).length`, next))
	c.t.Logf("the next case is shown after %.0f ms", took) // 200 ms at most, on an idle machine
	storetest.Equal(c.t, late, 0, "the pictures of the next case were read", "times after the decision")
}

// papers returns the ids of a person's documents.
func (c *cases) papers(userID string) (ids []string) {
	c.t.Helper()
	var all []struct{ ID string }
	c.Ok(c.t, "GET", "/user/get-documents?userId="+userID, nil, c.admin).Read(c.t, &all)
	for _, d := range all {
		ids = append(ids, d.ID)
	}
	return ids
}

// audited expects one decision of the reviewer on each of these.
func (c *cases) audited(ids ...string) {
	var entries []struct{ UserID, ActorID, Action, Detail string }
	c.Ok(c.t, "GET", "/admin/audit?action=KYC_UPDATE&actorId="+c.reviewer.ID, nil, c.admin).Read(c.t, &entries)
	storetest.Equal(c.t, len(entries), len(ids), "the audit has", entries)
	for _, id := range ids {
		found := 0
		for _, e := range entries {
			if e.UserID == id && e.ActorID == c.reviewer.ID {
				found++
			}
		}
		storetest.Equal(c.t, found, 1, "the audit has", "decisions on", id, entries)
	}
	// The account owner reads the reason in their own language.
	storetest.Equal(c.t, c.site.Count("account_decision WHERE user_id = '"+ids[0]+"' AND reasons LIKE '%eksik%'"), 1,
		"reasons in Turkish")
}

// documents finds the documents of one account, opens one and changes it.
func (c *cases) documents(tab *webtest.Tab, shot func(string)) {
	goTo(tab, "/documents")
	filterBy(tab, "userId", c.ids[0])
	tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 2`)
	barriers(c.t, tab, "documents")
	tab.Click(`[data-testid="row"]`)
	tab.Click(`[data-testid="look"]`)
	tab.Until(`document.querySelector('[data-testid="looked"] img')?.naturalWidth === 320`)
	shot("document")
	barriers(c.t, tab, "document")
	tab.Click(`[data-testid="write-/user/update-document"]`)
	tab.Type(`[data-testid="field-description"]`, "looked at twice")
	tab.Click(`[data-testid="send"]`)
	tab.Until(`document.body.innerText.includes('looked at twice') && !document.querySelector('[data-testid="send"]')`)
}

// views shows the cockpit in the dark, from right to left, and on a phone.
func (c *cases) views(tab *webtest.Tab, id string) {
	tab.Press("\x1b")
	tab.Until(`!document.querySelector('[role="dialog"]')`)
	goTo(tab, "/kyc")
	tab.Click(`[data-testid="kyc-begin"]`)
	tab.Until(caseIs(id))
	shot := func(name string) { tab.Screenshot(c.t, filepath.Join(c.t.ArtifactDir(), "kyc", name+".png")) }
	fromChip(tab, "theme")
	barriers(c.t, tab, "case in the dark")
	shot("case-dark")
	tab.View(webtest.Phone)
	tab.Until(caseIs(id))
	shot("case-phone")
	barriers(c.t, tab, "case on a phone")
	if wide := webtest.Value[int](tab, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
		c.t.Errorf("the case is %d pixels too wide for a phone", wide)
	}
	tab.View(webtest.Desktop)
}

// leftNothing expects no picture of the cases in the files of the browser.
func (c *cases) leftNothing(tab *webtest.Tab) {
	for _, id := range c.ids[:2] {
		images := c.Ok(c.t, "GET", "/user/get-kyc-images?userId="+id, nil, c.admin)
		_, text, _ := strings.Cut(images.At(c.t, "data", "frontImage"), ",")
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) < 4096 {
			c.t.Fatalf("a picture of %d bytes: %v", len(raw), err)
		}
		if found := tab.OnDisk(raw[1000:1064], []byte(text[2000:2064])); len(found) > 0 {
			c.t.Errorf("pictures are on the disk: %q", found)
		}
	}
}

// Sixty cases leave no blobs, buffers or elements in memory.
func TestConsoleKYCReleasesMemory(t *testing.T) {
	const people, walked = 60, 60
	c := newCases(t, blackbox.NewSite(t, "sqlite"), people+2, 1)
	tab := webtest.Browser(t)
	consoleLogin(t, tab, c.Node, c.reviewer, "/kyc")
	webtest.Value[bool](tab, `(() => { window.blobs = 0;
		const [make, revoke] = [URL.createObjectURL, URL.revokeObjectURL];
		URL.createObjectURL = (b) => { window.blobs++; window.made = (window.made ?? 0) + 1; return make.call(URL, b); };
		URL.revokeObjectURL = (u) => { window.blobs--; revoke.call(URL, u); };
		return true; })()`)
	tab.Click(`[data-testid="kyc-begin"]`)
	var before int
	began := time.Now()
	for i := range walked {
		tab.Until(caseIs(c.ids[i]))
		if i == 5 {
			before = tab.Memory()
		}
		tab.Press("n")
	}
	tab.Until(caseIs(c.ids[walked]))
	after := tab.Memory()
	t.Logf("%d cases in %s; memory %d kB, then %d kB", walked, time.Since(began), before>>10, after>>10)
	if after-before > 50<<20 {
		t.Errorf("memory grew from %d to %d bytes", before, after)
	}
	var seen struct{ Made, Blobs int }
	state := webtest.Value[string](tab, "JSON.stringify({ Made: window.made, Blobs: window.blobs })")
	if err := json.Unmarshal([]byte(state), &seen); err != nil || seen.Made < walked || seen.Blobs > 2 {
		t.Errorf("%s, %v: of the pictures more than those of two cases are kept", state, err)
	}
}
