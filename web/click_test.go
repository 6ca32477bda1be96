package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"castellan/web/webtest"
)

// A button moves as the click arrives, and another one takes its place. The other one receives nothing, and the click
// is repeated where the button is now.
func TestClickReachesNoOtherElement(t *testing.T) {
	tab := webtest.Browser(t)
	for _, kind := range []string{"pointerdown", "mousedown"} {
		t.Run(kind, func(t *testing.T) {
			page := fmt.Sprintf(`<!doctype html><html lang="en"><title>x</title><link rel="icon" href="data:,">
				<div id="room"></div>
				<button id="meant" style="height: 40px" onclick="this.dataset.n = +(this.dataset.n ?? 0) + 1">meant</button><br>
				<script>
					addEventListener(%q, () => {
						if (document.getElementById('other')) return;
						room.innerHTML = '<button id="other" style="height: 40px" onclick="this.textContent = 1">other</button><br>';
						room.firstChild.addEventListener('mousedown', () => { room.firstChild.textContent = 1; });
					}, true);
				</script>`, kind)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, page)
			}))
			defer s.Close()
			tab := tab.For(t)
			tab.Open(s.URL)
			tab.Click("#meant")
			if n := webtest.Value[string](tab, "meant.dataset.n ?? ''"); n != "1" {
				t.Errorf("the button was clicked %q times, want 1", n)
			}
			if other := webtest.Value[string](tab, "other.textContent"); other != "other" {
				t.Error("the other button was clicked")
			}
		})
	}
}
