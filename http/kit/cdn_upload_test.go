package kit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/blob"
	domaincdn "castellan/domain/kit/cdn"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/http/kit/cdn"
	"castellan/outbound/folder"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

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
		files, err := folder.Open(t.TempDir())
		storetest.Must(t, err)
		t.Cleanup(func() { storetest.Must(t, files.Close()) })
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
		for _, c := range []struct{ body, path, kind string }{
			{upload(png, "logo.png", "logo"), "logo/logo_1700000000000.png", "image/png"},
			{upload(png, "logo.png", "logo", "useSuffix", false), "logo/logo.png", "image/png"},
			{upload(jpeg, "logo.jpg", "logo", "useSuffix", false), "logo/logo.jpg", "image/jpeg"},
			{upload(jpeg, "banner", "banner"), "banner/banner_1700000000000.jpg", "image/jpeg"},
			{upload(png, `C:\a\..\Büyük logo v1.2.PNG`, "logo"), "logo/Byklogov1.2_1700000000000.PNG", "image/png"},
			{upload(png, "../../etc/passwd", "logo"), "logo/passwd_1700000000000.png", "image/png"},
			{upload(picturetest.WebP(8, 8), "a.webp", "logo"), "logo/a_1700000000000.webp", "image/png"},
			{upload(picturetest.GIF(8, 8), "a.gif", "logo"), "logo/a_1700000000000.gif", "image/png"},
		} {
			s.Wants(line, c.body, 200, `{"data":{"imageUrl":"https://cdn.example.com/upload/`+c.path+`"}}`)
			res, got := s.As("nobody").Send("GET /cdn/upload/"+c.path, "")
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
		if n, err := kit.NewAudit(s.db).Verify(t.Context(), []byte(persistencetest.AuditKey)); n != 9 || err != nil {
			t.Errorf("%d audit rows, %v", n, err)
		}
	})
}

func TestRefusedUploads(t *testing.T) {
	both(t, func(t *testing.T, s *uploads) {
		png := picturetest.PNG(8, 8)
		for text, want := range map[string]string{
			`{}`:                                               "INVALID_FIELD imageData imageName folderType",
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
		s.Wants(line, `{"imageData":1,"imageName":2,"folderType":[],"useSuffix":3}`, 400,
			"INVALID_FIELD imageData imageName folderType useSuffix")
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
