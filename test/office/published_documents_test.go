package office

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Documents, pages and their parts are sent compressed, and not at all to a client that has them.
func TestDocumentsAreCompressedAndCached(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start()
	for path, most := range map[string]int{
		"/openapi.json": 112_000, "/openapi.json?tag=Jobs": 5_000, "/asyncapi.json": 4_000, "/docs": 2_000,
		"/": 10_000, "/authenticator": 4_000,
		"/static/style.css": 8_000, "/static/docs.js": 6_000,
	} {
		plain := n.Ok(t, "GET", path, nil, nil)
		packed := n.Ok(t, "GET", path, nil, blackbox.Headers{"Accept-Encoding": "gzip"})
		if len(packed.Body) > most || packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("Vary") == "" {
			t.Errorf("%s: %d bytes of %d, %v", path, len(packed.Body), len(plain.Body), packed.Header)
		}
		again := n.Do(t, "GET", path, nil, blackbox.Headers{"If-None-Match": plain.Header.Get("Etag")})
		if again.Status != 304 || len(again.Body) != 0 || again.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s again: %d with %d bytes, %v", path, again.Status, len(again.Body), again.Header)
		}
	}
	for _, query := range []string{"?tag=", "?tag=None", "?tag=Jobs%20"} {
		a := n.Do(t, "GET", "/openapi.json"+query, nil, nil)
		text := string(a.Body)
		if a.Status != 400 || !strings.Contains(text, `"field":"tag"`) || !strings.Contains(text, "Jobs, Setup") {
			t.Errorf("%s: %s", query, a)
		}
	}
}
