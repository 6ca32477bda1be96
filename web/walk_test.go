package web_test

import (
	"path/filepath"
	"testing"

	"castellan/web/webtest"
)

func TestWalk(t *testing.T) {
	views := map[string]webtest.View{
		"desktop-light": webtest.Desktop,
		"phone-dark-ar": {Width: 390, Height: 844, Phone: true, Dark: true, Language: "ar"},
	}
	for name, view := range views {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.required = 2
			webtest.Browser(t).Walk(s.URL, demoCountry, demoPhone, demoPassword, filepath.Join(t.ArtifactDir(), name), view)
		})
	}
}

func TestWalkDocs(t *testing.T) {
	s := newService(t)
	webtest.WalkDocs(t, s.URL, t.ArtifactDir())
}
