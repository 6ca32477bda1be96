package system

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/storetest"
	"castellan/web"
)

// A file comes compressed to a client that accepts it, and not again to one that has it.
func TestFile(t *testing.T) {
	for _, size := range []int{maxPlain / 10, 2 * maxPlain} { // in both forms, and only compressed
		testFile(t, strings.Repeat("castellan ", size/10))
	}
}

func testFile(t *testing.T, long string) {
	const short = "x"
	app := fiber.New()
	app.Get("/long", func(c *fiber.Ctx) error { return newFile([]byte(long), "text/plain").send(c, "no-cache") })
	app.Get("/short", func(c *fiber.Ctx) error { return newFile([]byte(short), "text/plain").send(c, "no-cache") })
	ask := func(path, accept, have string) (status int, header map[string][]string, body string) {
		r := httptest.NewRequest("GET", path, nil)
		for name, value := range map[string]string{"Accept-Encoding": accept, "If-None-Match": have} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		res := storetest.Value(app.Test(r, -1))(t)
		b := storetest.Value(io.ReadAll(res.Body))(t)
		return res.StatusCode, res.Header, string(b)
	}
	tag := func(header map[string][]string) string { return strings.Join(header["Etag"], "") }

	_, plain, body := ask("/long", "", "")
	if body != long || plain["Content-Encoding"] != nil || strings.Join(plain["Vary"], "") != "Accept-Encoding" {
		t.Errorf("without Accept-Encoding: %d bytes, %v", len(body), plain)
	}
	_, packed, body := ask("/long", "br, gzip;q=0.5", "")
	r := storetest.Value(gzip.NewReader(bytes.NewReader([]byte(body))))(t)
	if b, err := io.ReadAll(r); err != nil || string(b) != long || len(body) > len(long)/10 {
		t.Errorf("compressed: %d bytes to %d, %v", len(body), len(b), err)
	}
	if tag(plain) == "" || tag(plain) == tag(packed) {
		t.Errorf("the tags of both forms are %s and %s", tag(plain), tag(packed))
	}
	for _, c := range []struct {
		accept, have string
		want         int
	}{
		{"", tag(plain), 304}, {"", "W/" + tag(plain), 304}, {"gzip", `"a", ` + tag(packed), 304}, {"gzip", "*", 304},
		{"gzip", tag(plain), 200}, {"", tag(packed), 200}, {"", `"other"`, 200},
	} {
		status, header, body := ask("/long", c.accept, c.have)
		if status != c.want || status == 304 && (body != "" || tag(header) == "") {
			t.Errorf("%q with %s: %d and %d bytes", c.accept, c.have, status, len(body))
		}
	}
	for accept, want := range map[string]string{
		"gzip;q=0": "", "gzip; q=0.000": "", "identity": "", "*": "gzip", "*;q=0": "", "*, gzip;q=0": "",
		"GZIP":   "gzip",
		"x-gzip": "gzip",
	} {
		if _, header, _ := ask("/long", accept, ""); strings.Join(header["Content-Encoding"], "") != want {
			t.Errorf("%q gets %v, want %q", accept, header["Content-Encoding"], want)
		}
	}
	if _, header, body := ask("/short", "gzip", ""); body != short || header["Content-Encoding"] != nil ||
		header["Vary"] != nil {
		t.Errorf("a file that compression makes larger: %q, %v", body, header)
	}
}

// A release serves the client modules at the address of its version for good, and nothing else there. A program that is
// no release revalidates them.
func TestModulesAtTheirVersion(t *testing.T) {
	app := fiber.New()
	app.Get("/release/:file", module(web.Version))
	app.Get("/dev/:file", module("dev"))
	want, _, _ := web.Page("castellan-client.js")
	for path, age := range map[string]string{"/release/castellan-client.js": "public, max-age=31536000, immutable",
		"/dev/castellan-client.js": "no-cache", "/release/app.js": "", "/release/castellan-none.js": ""} {
		res := storetest.Value(app.Test(httptest.NewRequest("GET", path, nil), -1))(t)
		body, err := io.ReadAll(res.Body)
		if got := res.Header.Get("Cache-Control"); err != nil || got != age || bytes.Equal(body, want) != (age != "") {
			t.Errorf("%s: %d, %d bytes, %q; %v", path, res.StatusCode, len(body), got, err)
		}
	}
}
