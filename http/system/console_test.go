//go:build !noconsole

package system

import (
	"bytes"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/storetest"
	"castellan/web/console"
)

// A file of the console comes in gzip or uncompressed, with the same contents.
func TestConsoleFile(t *testing.T) {
	built, _ := console.Built()
	name := built.Entry["main"]
	packed, _ := console.File(name)
	want, err := plain(packed)
	if err != nil || len(want) == 0 {
		t.Fatalf("%d bytes of %s (%v)", len(want), name, err)
	}
	app := fiber.New()
	app.Get("/:file", consoleFile)
	for accept, coding := range map[string]string{"gzip, deflate, br": "gzip", "br, gzip;q=0": "", "": ""} {
		r := httptest.NewRequest("GET", "/"+name, nil)
		r.Header.Set("Accept-Encoding", accept)
		res := storetest.Value(app.Test(r))(t)
		body, err := io.ReadAll(res.Body)
		storetest.Must(t, err)
		if coding == "gzip" {
			body, err = plain(body)
		}
		got, header := res.Header.Get("Content-Encoding"), res.Header
		if err != nil || !bytes.Equal(body, want) || got != coding || header.Get("Vary") != "Accept-Encoding" ||
			!strings.Contains(header.Get("Cache-Control"), "immutable") || header.Get("Content-Type") != consoleTypes[".js"] {
			t.Errorf("%q: %d bytes in %q, want %d in %q; %v (%v)", accept, len(body), got, len(want), coding, header, err)
		}
	}
}
