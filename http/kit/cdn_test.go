package kit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/blob/blobtest"
	domaincdn "castellan/domain/kit/cdn"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/http/kit/cdn"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func serve(t *testing.T) (blob.Store, *apitest.Site) {
	t.Helper()
	files := persistencetest.Files(t)
	site := apitest.Serve(t, edge.Options{})
	cdn.Mount(site.Server, files)
	return files, site.As("anonymous")
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
		storetest.Equal(t, res.StatusCode, status, have, body)
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

// broken is a storage that fails.
type broken struct{ blob.Store }

func (broken) Put(context.Context, string, []byte) error {
	return blob.Failed("put", context.DeadlineExceeded)
}

type uploads struct {
	*apitest.Site
	t       *testing.T
	db      *persistence.DB
	service *domaincdn.Service
}

func both(t *testing.T, test func(t *testing.T, s *uploads)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		files := persistencetest.Files(t)
		s := &uploads{t: t, db: db, service: &domaincdn.Service{Files: files, Pictures: picture.NewDecoder(),
			Changes: admin.Changes{Commit: db, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }},
			Values:  parameter.NewCache(kit.NewParameters(db)).Set, URL: "https://cdn.example.com"}}
		s.Site = apitest.Serve(t, edge.Options{}, cdn.Group{Service: s.service})
		cdn.Mount(s.Server, files)
		test(t, s)
	})
}

const line = "POST /admin/cdn/upload"

func upload(content []byte, name, folder string, more ...any) string {
	m := map[string]any{"imageData": base64.StdEncoding.EncodeToString(content), "imageName": name, "folderType": folder}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	b, _ := json.Marshal(m)
	return string(b)
}

// REQ-ADM-10 to 12, D-ADM-06.
func TestUpload(t *testing.T) {
	both(t, func(t *testing.T, s *uploads) {
		png, jpeg := picturetest.PNG(20, 10), picturetest.WithEXIF(picturetest.JPEG(20, 10), 6)
		long := strings.Repeat("a", 100)
		for _, c := range []struct{ body, path, kind string }{
			{upload(png, "logo.png", "logo"), "logo/logo_1700000000000.png", "image/png"},
			{upload(png, "logo.png", "logo", "useSuffix", false), "logo/logo.png", "image/png"},
			{upload(jpeg, "logo.jpg", "logo", "useSuffix", false), "logo/logo.jpg", "image/jpeg"},
			{upload(jpeg, "banner", "banner"), "banner/banner_1700000000000.jpg", "image/jpeg"},
			{upload(png, `C:\a\..\Büyük logo v1.2.PNG`, "logo"), "logo/Byklogov1.2_1700000000000.PNG", "image/png"},
			{upload(png, "../../etc/passwd", "logo"), "logo/passwd_1700000000000.png", "image/png"},
			{upload(picturetest.WebP(8, 8), "a.webp", "logo"), "logo/a_1700000000000.webp", "image/png"},
			{upload(picturetest.GIF(8, 8), "a.gif", "logo"), "logo/a_1700000000000.gif", "image/png"},
			{upload(png, ".x.", "logo", "useSuffix", false), "logo/x.png", "image/png"},
			{upload(png, long+".png", "logo", "useSuffix", false), "logo/" + long + ".png", "image/png"},
			{upload(jpeg, "v1.0", "logo", "useSuffix", false), "logo/v1.0.jpg", "image/jpeg"},
		} {
			s.Wants(line, c.body, 200, `{"data":{"imageUrl":"https://cdn.example.com/upload/`+c.path+`"}}`)
			res, got := s.As("anonymous").Send("GET /cdn/upload/"+c.path, "")
			if _, _, err := image.Decode(bytes.NewReader([]byte(got))); res.StatusCode != 200 || err != nil ||
				res.Header.Get("Content-Type") != c.kind || strings.Contains(got, "Exif") {
				t.Errorf("%s: %d %v, %v", c.path, res.StatusCode, res.Header, err)
			}
		}
		// The same name takes the place of the old picture.
		_, before := s.Call("GET /cdn/upload/logo/logo.png", "")
		s.Wants(line, upload(picturetest.PNG(9, 9), "logo.png", "logo", "useSuffix", false), 200,
			`{"data":{"imageUrl":"https://cdn.example.com/upload/logo/logo.png"}}`)
		if _, after := s.Call("GET /cdn/upload/logo/logo.png", ""); after == before {
			t.Error("the old picture is there")
		}
		acts := persistencetest.Acts(t, s.db)
		if len(acts) != 12 || !slices.Contains(acts, "CDN_UPLOAD|admin||upload/logo/logo_1700000000000.png|") {
			t.Error(acts)
		}
	})
}

func TestRefusedUploads(t *testing.T) {
	both(t, func(t *testing.T, s *uploads) {
		png := picturetest.PNG(8, 8)
		for text, want := range map[string]string{
			upload(png, "logo.png", "elsewhere"):               "INVALID_FIELD folderType",
			upload(png, "logo.png", "../logo"):                 "INVALID_FIELD folderType",
			upload(png, "///", "logo"):                         "INVALID_FIELD imageName",
			upload(png, "ü.png", "x"):                          "INVALID_FIELD imageName folderType",
			upload(png, "..", "logo"):                          "INVALID_FIELD imageName",
			upload(png, "con.png", "logo", "useSuffix", false): "INVALID_FIELD imageName",
			upload(png, strings.Repeat("x", 101), "logo"):      "INVALID_FIELD imageName",
			upload(png, "logo.jpg", "logo"):                    "INVALID_FIELD imageName",
			upload(png, "logo.svg", "logo"):                    "INVALID_FIELD imageName",
			upload(png, "logo.html", "logo"):                   "INVALID_FIELD imageName",
			upload(nil, "logo.png", "logo"):                    "INVALID_FIELD imageData",
			upload([]byte("text"), "logo.png", "logo"):         "INVALID_FIELD imageData",
		} {
			s.Wants(line, text, 400, want)
		}
		files := picturetest.Hostile()
		for _, name := range slices.Sorted(maps.Keys(files)) {
			s.Wants(line, upload(files[name], "logo", "logo"), 400, "INVALID_FIELD imageData")
		}
		for info, err := range s.service.Files.List(t.Context(), blob.Public) {
			t.Errorf("kept %v %v", info, err)
		}
		s.service.Files = broken{s.service.Files}
		s.Wants(line, upload(png, "logo.png", "logo"), 503, string(fault.Unavailable))
		if n, err := kit.NewAudit(s.db).Verify(t.Context(), []byte(persistencetest.AuditKey)); n != 0 || err != nil {
			t.Errorf("%d audit rows, %v", n, err)
		}
	})
}
