package faults

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// packed compresses a text with gzip.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	storetest.Must(t, storetest.Err(w.Write([]byte(text))))
	storetest.Must(t, w.Close())
	return b.Bytes()
}

// announced publishes an announcement and returns its HTML as readers get it.
func (st stage) announced(title, html string) string {
	st.T.Helper()
	var kept struct {
		Data struct{ ID int64 }
	}
	st.Ask("POST", "/announcement/add", map[string]any{"title": title, "message": "m", "startDate": "2026-01-01",
		"endDate": "2026-12-31", "isActive": true, "priority": 1, "htmlContent": html}, st.boss).Is(st.T, 200, "").
		Read(st.T, &kept)
	var list []struct {
		ID          int64
		HTMLContent string
	}
	st.Ask("GET", "/announcement/get?isActive=true", nil, nil).Is(st.T, 200, "").Read(st.T, &list)
	for _, one := range list {
		if one.ID == kept.Data.ID {
			return one.HTMLContent
		}
	}
	st.T.Fatalf("no announcement %d in %d", kept.Data.ID, len(list))
	return ""
}

// harmless fails the test if the HTML contains active content, or lacks the harmless parts.
func harmless(t *testing.T, html string, keeps ...string) {
	t.Helper()
	for _, bad := range []string{"<script", "<style", "<select", "<svg", "<iframe", "onerror", "onload",
		"javascript:", "data:"} {
		storetest.Lacks(t, strings.ToLower(html), bad)
	}
	for _, keep := range keeps {
		storetest.Contains(t, html, keep)
	}
}

// HTML and pictures.
var replaysOfTexts = []replay{
	{"CVE-2021-29272", "bluemonday: an element spelled with letters that become ASCII in lower case passed",
		func(t *testing.T, s stage) {
			for _, name := range []string{"\u017fcript", "scr\u0130pt", "scr\u0131pt", "SCR\u0130PT", "\uff53cript"} {
				harmless(t, s.announced("Letters", "<p>Hi <b>you</b></p><"+name+">alert(1)</"+name+">"), "<b>you</b>")
				lower := strings.ToLower(s.announced("Letters", "<p><b>x</b><"+name+">alert(1)</"+name+"></p>"))
				storetest.Lacks(t, lower, "<"+strings.ToLower(name))
			}
		}, nil},
	{"CVE-2021-42576", "bluemonday: a style within a select, and similar nestings, allowed a script",
		func(t *testing.T, s stage) {
			for _, html := range []string{"<select><option><style><script>alert(1)</script></style></option></select>",
				"<math><style><img src=x onerror=alert(1)></style></math>",
				"<svg><style><img src=x onerror=alert(1)></style></svg>",
				"<noscript><style></noscript><img src=x onerror=alert(1)>", "<style><!--</style><script>alert(1)//--></script>"} {
				harmless(t, s.announced("Styles", "<p>Hi <b>you</b></p>"+html), "<b>you</b>")
			}
		}, nil},
	{"CVE-2024-29891", "ZITADEL: a picture of an account could be a page with a script", func(t *testing.T, s stage) {
		_, me := s.known()
		for name, text := range map[string]string{"a.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
			"a.png": "<html><script>alert(1)</script>", "a.html": "<html>", "b.png": "GIF",
			"c.png": "\x89PNG\r\n\x1a\n<script>"} {
			data := base64.StdEncoding.EncodeToString([]byte(text))
			s.Ask("POST", "/admin/cdn/upload", map[string]any{"imageData": data, "imageName": name, "folderType": "logo",
				"useSuffix": true}, s.boss).Is(t, 400, "INVALID_FIELD")
			s.Ask("POST", "/document/upload-document", map[string]any{"base64Data": data, "fileName": name, "description": ""},
				me).Is(t, 400, "INVALID_FIELD")
		}
		s.Ask("POST", "/admin/cdn/upload", map[string]any{"imageData": blackbox.OnePixel,
			"imageName": "a.html", "folderType": "logo", "useSuffix": true}, s.boss).Is(t, 400, "INVALID_FIELD")
		kept := s.Ask("POST", "/admin/cdn/upload", map[string]any{"imageData": blackbox.OnePixel,
			"imageName": "a.png", "folderType": "logo", "useSuffix": true}, s.boss).Is(t, 200, "")
		u := storetest.Value(url.Parse(kept.At(t, "data", "imageUrl")))(t)
		s.Ask("GET", u.Path, nil, nil).Is(t, 200, "").With(t, "Content-Type", "image/png").
			With(t, "X-Content-Type-Options", "nosniff")
	}, nil},
}

// Bodies that cost more to read than to send.
var replaysOfBodies = []replay{
	{"CVE-2025-6203", "Vault: a small body of nested JSON exhausted time and memory", func(t *testing.T, s stage) {
		good := `{"email":"a@b.test","password":"x"`
		before := s.PeakMemory()
		for _, odd := range []string{strings.Repeat("[", 7000) + strings.Repeat("]", 7000),
			strings.Repeat(`{"a":`, 2500) + "1" + strings.Repeat("}", 2500),
			strings.Repeat("[", 40) + strings.Repeat("]", 40)} {
			s.Ask("POST", "/auth/login", good+`,"x":`+odd+`}`, nil).Is(t, 400, "INVALID_FIELD")
		}
		if grown := s.PeakMemory() - before; grown > 128<<20 {
			t.Errorf("%d MiB more", grown>>20)
		}
		s.Ask("POST", "/auth/login", good+`,"x":`+strings.Repeat("[", 20)+strings.Repeat("]", 20)+`}`, nil).
			Is(t, 401, "INVALID_CREDENTIALS")
	}, nil},
	{"CVE-2025-12044", "Vault: JSON was read completely before the sender was authorised",
		func(t *testing.T, s stage) {
			wide := `{"a":"` + strings.Repeat("x", 60<<10) + `"}`
			p := s.at(t)
			blackbox.Rule(t, s.Node, s.boss, "json "+p.IP, "blacklist",
				map[string]any{"targetEntities": []string{p.IP}, "targetResources": []string{"POST /auth/login"}})
			for _, body := range []string{wide[:12<<10], strings.Repeat(`{"a":`, 2000), "{", ""} {
				p.Ask("POST", "/auth/login", body, nil).Is(t, 403, "ACCESS_DENIED")
			}
			s.Ask("POST", "/auth/login", wide, nil).Is(t, 413, "PAYLOAD_TOO_LARGE")
			s.Ask("POST", "/admin/cdn/upload", "{", nil).Is(t, 401, "UNAUTHENTICATED")
			s.Ask("POST", "/auth/login", "{", nil).Is(t, 400, "INVALID_FIELD")
		}, nil},
	{"CVE-2023-6337", "Vault: requests of any size were read into memory", func(t *testing.T, s stage) {
		for length, want := range map[string]string{"16385": "413", "1099511627776": "413", "9223372036854775807": "413",
			"99999999999999999999": "400", "-1": "400"} {
			got := s.Raw(t, "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+
				length+"\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 "+want) && !strings.HasPrefix(got, "HTTP/1.1 413") {
				t.Errorf("a length of %s: %.60q", length, got)
			}
		}
		got := s.Raw(t, "POST /document/upload-document HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Content-Length: 8000000\r\n\r\n"+strings.Repeat(" ", 128<<10)) // the rest has not arrived
		if !strings.HasPrefix(got, "HTTP/1.1 401") {
			t.Errorf("a large body without a session: %.60q", got)
		}
		a := s.user()
		s.begin(a)
	}, nil},
	{"CVE-2023-40586", "Coraza: an unparsable body crashed the process", func(t *testing.T, s stage) {
		for _, kind := range []string{"multipart/form-data", "multipart/form-data; boundary=",
			"multipart/form-data; boundary=\"",
			"application/x-www-form-urlencoded;", ";", "/", "multipart/mixed; boundary=a; boundary=b",
			"text/" + strings.Repeat("x", 900)} {
			s.Ask("POST", "/auth/login", "--\r\n%zz=%", blackbox.Headers{"Content-Type": kind}).Is(t, 415, "UNSUPPORTED_MEDIA")
		}
		s.begin(s.user())
	}, nil},
}
