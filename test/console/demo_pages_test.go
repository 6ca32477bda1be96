package console

import (
	"path/filepath"
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/test/harness"
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
		harness.TwoMethods(t, n, harness.Admin(t, s, n))
		view := webtest.View{Width: 390, Height: 844, Phone: true, Dark: true, Language: "ar"}
		webtest.Browser(t).Walk(n.URL, demo.Country, demo.Phone, demo.Password, filepath.Join(t.ArtifactDir(), "phone"), view)
	})
	t.Run("docs", func(t *testing.T) {
		webtest.WalkDocs(t, n.URL, filepath.Join(t.ArtifactDir(), "docs"))
	})
	t.Run("docs below a base path", func(t *testing.T) {
		n.Stop()
		n := s.Start("HTTP_BASE_PATH=/auth-service")
		webtest.WalkDocs(t, n.URL+"/auth-service", filepath.Join(t.ArtifactDir(), "docs-below"))
	})
}

// An account holder uses the security pages in the browser. The pages cover a forgotten password, an
// authenticator, a device with its own key, a new password, the sessions, the address book and the countries.
func TestAccountPages(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := harness.Patient(s).Start()
	demo, boss := s.Seeded("user"), harness.Admin(t, s, n)
	who := webtest.Person{
		Country:  demo.Country,
		Phone:    demo.Phone,
		Password: demo.Password,
		Shots:    filepath.Join(t.ArtifactDir(), "account"),
	}
	others := func() {
		demo.Password = who.Password
		n.Session(t, demo)
		n.Session(t, demo)
	}
	tab := webtest.Browser(t)
	at := strings.Replace(n.URL, "127.0.0.1", "localhost", 1) // not the address that proofs name
	tab.Visit(at)
	who = tab.WalkReset(who, "another-lantern-orchard")
	tab.WalkAuthenticator(who)
	tab.WalkDevice(at, who, func() {
		n.Ok(
			t,
			"POST",
			"/admin/system/mfa/policies/common",
			`{"actionCode":"LOGIN","name":"number","expireAt":0,"required":1,`+
				`"numberMatching":true,"methods":[["PUSH"],["SMS"],["MAIL"]]}`,
			boss,
		)
	})
	others()
	tab.WalkSessions(who, 3) // one is that of the page before its reload
	others()
	who = tab.WalkPassword(who, "a-third-lantern", 2)
	tab.WalkAddresses(who, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T")
	tab.WalkCountries(who, "TR")
}
