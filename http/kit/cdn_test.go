package kit_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/blob/blobtest"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/http/kit/cdn"
	"castellan/outbound/folder"
)

func serve(t *testing.T) (blob.Store, *apitest.Site) {
	t.Helper()
	files, err := folder.Open(t.TempDir())
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, files.Close()) })
	site := apitest.Serve(t, edge.Options{})
	cdn.Mount(site.Server, files)
	return files, site.As("nobody")
}

func TestHeaders(t *testing.T) {
	files, site := serve(t)
	png := picturetest.PNG(40, 30)
	own := blob.PublicPath(blob.NewKey("public/announcement", ".png", time.Now()))
	for path, content := range map[string]string{
		own: string(png), "upload/logo.png": string(png), "upload/page.html": "<script>alert(1)</script>",
		"upload/drawing.svg": "<svg/>", "upload/photo.webp": string(picturetest.JPEG(8, 8)), "upload/empty": "",
	} {
		storetest.Must(t, files.Put(t.Context(), blob.PublicKey(path), []byte(content)))
	}
	for path, want := range map[string]struct{ kind, disposition, cache string }{
		own:                  {"image/png", "", "public, max-age=31536000, immutable"},
		"upload/logo.png":    {"image/png", "", "public, no-cache"},
		"upload/photo.webp":  {"image/jpeg", "", "public, no-cache"},
		"upload/page.html":   {"application/octet-stream", "attachment", "public, no-cache"},
		"upload/drawing.svg": {"application/octet-stream", "attachment", "public, no-cache"},
		"upload/empty":       {"application/octet-stream", "attachment", "public, no-cache"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			res, body := site.Send(method+" /cdn/"+path, "")
			h := res.Header
			if res.StatusCode != 200 || h.Get("Content-Type") != want.kind ||
				h.Get("Content-Disposition") != want.disposition || h.Get("Cache-Control") != want.cache ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Accept-Ranges") != "bytes" || h.Get("Etag") == "" ||
				h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
				t.Errorf("%s %s: %d %v", method, path, res.StatusCode, h)
			}
			content, err := blob.Read(t.Context(), files, blob.PublicKey(path), 1<<20)
			if storetest.Must(t, err); method == "GET" && body != string(content) || method == "HEAD" && body != "" {
				t.Errorf("%s %s: %d bytes", method, path, len(body))
			}
		}
	}
}

// Conditions and parts (RFC 9110, sections 13 and 14).
func TestConditions(t *testing.T) {
	files, site := serve(t)
	storetest.Must(t, files.Put(t.Context(), "public/upload/x", []byte("0123456789")))
	first, _ := site.Send("GET /cdn/upload/x", "")
	tag, at := first.Header.Get("Etag"), first.Header.Get("Last-Modified")
	for _, c := range []struct {
		name, value string
		status      int
		body, part  string
	}{
		{"If-None-Match", tag, 304, "", ""},
		{"If-None-Match", `"other", W/` + tag, 304, "", ""},
		{"If-None-Match", "*", 304, "", ""},
		{"If-None-Match", `"other"`, 200, "0123456789", ""},
		{"If-Modified-Since", at, 304, "", ""},
		{"If-Modified-Since", "Mon, 01 Jan 2024 00:00:00 GMT", 200, "0123456789", ""},
		{"If-Modified-Since", "nonsense", 200, "0123456789", ""},
		{"Range", "bytes=0-0", 206, "0", "bytes 0-0/10"},
		{"Range", "bytes=3-5", 206, "345", "bytes 3-5/10"},
		{"Range", "bytes=7-", 206, "789", "bytes 7-9/10"},
		{"Range", "bytes=-2", 206, "89", "bytes 8-9/10"},
		{"Range", "bytes=5-99", 206, "56789", "bytes 5-9/10"},
		{"Range", "bytes=10-", 416, "", "bytes */10"},
		{"Range", "bytes=0-1,3-4", 200, "0123456789", ""},
	} {
		res, body := site.Send("GET /cdn/upload/x", "", c.name, c.value)
		if res.StatusCode != c.status || body != c.body || res.Header.Get("Content-Range") != c.part {
			t.Errorf("%s: %s: %d %q %v", c.name, c.value, res.StatusCode, body, res.Header)
		}
	}
	for have, status := range map[string]int{tag: 206, `"other"`: 200, "W/" + tag: 200} {
		res, body := site.Send("GET /cdn/upload/x", "", "Range", "bytes=0-0", "If-Range", have)
		if res.StatusCode != status {
			t.Errorf("%s: %d %q", have, res.StatusCode, body)
		}
	}
	storetest.Must(t, files.Put(t.Context(), "public/upload/x", []byte("9876543210")))
	res, body := site.Send("GET /cdn/upload/x", "", "If-None-Match", tag)
	if res.StatusCode != 200 || body != "9876543210" {
		t.Errorf("the file was replaced: %d %q", res.StatusCode, body)
	}
}

// Nothing but public files is handed out, and no list of them.
func TestNothingElse(t *testing.T) {
	files, site := serve(t)
	storetest.Must(t, files.Put(t.Context(), "public/upload/x", []byte("public")))
	storetest.Must(t, files.Put(t.Context(), "document/x", []byte("a secret")))
	paths := []string{"", "upload", "upload/", "upload/y", "document/x", "../document/x", "%2e%2e/document/x",
		"..%2fdocument/x", "upload/..%2f..%2fdocument%2fx", "upload/%2e%2e/%2e%2e/document/x", "upload//x", "/upload/x",
		"upload/x%00", "upload/x%00.png", "./upload/x", "upload%2fx", "upload/X", "public/upload/x", "..;/document/x",
		"upload\\..\\..\\document\\x", "%252e%252e/document/x", strings.Repeat("a", 4096)}
	for _, key := range blobtest.Hostile {
		if !strings.ContainsAny(key, " \x00\n?\u202eü") {
			paths = append(paths, key)
		}
	}
	for _, path := range paths {
		res, body := site.Send("GET /cdn/"+path, "")
		if res.StatusCode < 400 || res.StatusCode > 499 || strings.Contains(body, "a secret") {
			t.Errorf("%.60q: %d %s", path, res.StatusCode, body)
		}
	}
	for _, method := range []string{"PUT", "POST", "DELETE", "PATCH"} {
		if res, _ := site.Send(method+" /cdn/upload/x", ""); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
	if got, err := blob.Read(t.Context(), files, "public/upload/x", 10); !bytes.Equal(got, []byte("public")) {
		t.Errorf("%q %v", got, err)
	}
}
