package main

import (
	"path/filepath"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// A newcomer walks through the demonstration and the interface viewer of the
// real service, in a browser; pictures of every step are kept as artifacts.
func TestBrowser(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	demo := s.Seeded("user")
	t.Run("walk", func(t *testing.T) {
		webtest.Walk(t, n.URL, demo.Country, demo.Phone, demo.Password, filepath.Join(t.ArtifactDir(), "walk"))
	})
	t.Run("two methods on a phone in Arabic", func(t *testing.T) {
		twoMethods(t, n, admin(t, s, n))
		view := webtest.View{Width: 390, Height: 844, Phone: true, Dark: true, Language: "ar"}
		webtest.Browser(t).Walk(n.URL, demo.Country, demo.Phone, demo.Password, filepath.Join(t.ArtifactDir(), "phone"), view)
	})
	t.Run("docs", func(t *testing.T) {
		webtest.WalkDocs(t, n.URL, filepath.Join(t.ArtifactDir(), "docs"))
	})
}
