package console

import (
	"path/filepath"
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

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
