package people_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/document"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpdocument "castellan/http/people/document"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// documentService is the section over a real database, a folder, and a clock that goes on with each look.
type documentService struct {
	*apitest.Site
	t         *testing.T
	db        *persistence.DB
	files     blob.Store
	documents *document.Service
}

func docBoth(t *testing.T, test func(t *testing.T, s *documentService)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, serve(t, db)) })
}

func serve(t *testing.T, db *persistence.DB) *documentService {
	t.Helper()
	files := persistencetest.Files(t)
	var ticks atomic.Int64
	now := func() time.Time { return time.UnixMilli(1_800_000_000_123 + ticks.Add(1)) }
	users := account.NewUsers(db)
	for _, id := range []string{"u1", "u2", "admin"} {
		u := user.New(id, now())
		u.Email, u.Name, u.Surname = id+"@example.com", "Ada", id
		if id == "u1" {
			u.Language, u.Phone, u.CountryCode, u.BirthDate = "tr", "+905321234567", "90", "1990-05-01"
		}
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
	s := &documentService{t: t, db: db, files: files}
	s.documents = &document.Service{Store: people.NewDocuments(db), Users: users, Files: files,
		Pictures: picture.NewDecoder(), Ring: keyringtest.Ring(t, now), Changes: admin.Changes{Commit: db, Now: now},
		Values: parameter.NewCache(kit.NewParameters(db)).Set, Quota: 1 << 20}
	s.Site = apitest.Serve(t, edge.Options{}, httpdocument.Group{Service: s.documents})
	return s
}

const (
	upload    = "POST /document/upload-document"
	save      = "POST /admin/save-document"
	docChange = "POST /user/update-document"
	docList   = "GET /user/get-documents"
	file      = "GET /admin/get-document-file"
)

// docBody is a JSON object of the fields, as pairs.
func docBody(fields ...any) string {
	m := map[string]any{}
	for i := 0; i < len(fields); i += 2 {
		m[fields[i].(string)] = fields[i+1]
	}
	b, _ := json.Marshal(m)
	return string(b)
}

func coded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// upload uploads as a user and returns the path.
func (s *documentService) upload(who, name string, content []byte) string {
	s.t.Helper()
	status, answer := s.As(who).Call(upload, docBody("base64Data", coded(content), "fileName", name, "description", "d"))
	var got struct{ Data struct{ FilePath string } }
	if status != 200 || json.Unmarshal([]byte(answer), &got) != nil {
		s.t.Fatalf("%d %s", status, answer)
	}
	return got.Data.FilePath
}

// listed is the documents that a caller sees, newest first.
func (s *documentService) listed(who, query string) (all []map[string]any) {
	s.t.Helper()
	status, answer := s.As(who).Call(docList+query, "")
	if status != 200 || json.Unmarshal([]byte(answer), &all) != nil {
		s.t.Fatalf("%d %s", status, answer)
	}
	return all
}

func names(all []map[string]any) string {
	out := make([]string, len(all))
	for i, d := range all {
		out[i], _ = d["name"].(string)
	}
	return strings.Join(out, " ")
}

var docPDF = []byte("%PDF-1.7\nany\n%%EOF\n")

// REQ-DOC-01 to 03, D-DOC-01 to 03 and 06.
func TestUploadAndSave(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		png := picturetest.PNG(20, 10)
		status, answer := s.As("u1").Call(upload, docBody("base64Data", "data:text/html;base64,"+coded(png),
			"fileName", `C:\scans\Kimlik ön.PNG`, "description", "Kimliğim", "fileNameJson", map[string]string{"en": "id"},
			"descriptionJson", map[string]string{"tr": "Kimliğim", "en": "My id", "ar": "هويتي"},
			// Server-owned fields are ignored (SEC-26).
			"userId", "u2", "identityNo", "1", "mimeType", "text/html", "status", "deActive", "type", 3,
			"reason", "approved", "filePath", "document/x", "id", "x"))
		all := s.listed("u1", "")
		if status != 200 || len(all) != 1 {
			t.Fatalf("%d %s %v", status, answer, all)
		}
		path := all[0]["filePath"]
		if want := fmt.Sprintf(`{"data":{"userId":"u1","identityNo":"","name":"Kimlik ön.PNG","mimeType":"image/png",`+
			`"type":3,"description":"Kimliğim","status":"active","reason":"waitingApproval","filePath":"%s"}}`,
			path); answer != want {
			t.Errorf("\n got %s\nwant %s", answer, want)
		}
		s.upload("u2", strings.Repeat("ü", 196)+".pdf", docPDF) // the longest name
		for _, kind := range []any{2, "2"} {
			status, answer = s.Call(save, docBody("userId", "u2", "base64String", coded(docPDF), "documentName", "contract.pdf",
				"type", kind, "nameJson", map[string]string{"tr": "sözleşme"}))
			d := s.listed("u2", "")[0]
			if want := fmt.Sprintf(`{"data":{"id":"%s","userId":"u2","name":"contract.pdf","mimeType":"application/pdf",`+
				`"type":2,"description":null,"status":"active","reason":"waitingApproval","filePath":"%s",`+
				`"createdAt":"%s"}}`, d["id"], d["filePath"], d["createdAt"]); status != 200 || answer != want {
				t.Errorf("\n got %d %s\nwant %s", status, answer, want)
			}
		}
	})
}

// Stored documents are sealed: neither the bytes nor the head of a picture are found in them, and another row's
// id does not open them.
func TestSealed(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		jpeg := picturetest.WithEXIF(picturetest.JPEG(64, 48), 6)
		path := s.upload("u1", "face.jpg", jpeg)
		kept := storetest.Value(blob.Read(t.Context(), s.files, path, 1<<20))(t)
		for _, part := range [][]byte{jpeg[:4], []byte("JFIF"), []byte("Exif"), jpeg[len(jpeg)/2 : len(jpeg)/2+16]} {
			if bytes.Contains(kept, part) {
				t.Errorf("%q is in the clear", part)
			}
		}
		other := s.upload("u1", "other.jpg", picturetest.JPEG(8, 8))
		storetest.Must(t, s.files.Put(t.Context(), other, kept)) // swapped behind the service's back
		if status, answer := s.Call(file, docBody("documentInfo", map[string]string{"filePath": other})); status != 500 ||
			strings.Contains(answer, "JFIF") {
			t.Errorf("bytes of another row: %d", status)
		}
		res, answer := s.Send(file, docBody("documentInfo", map[string]string{"filePath": path}))
		h := res.Header
		if res.StatusCode != 200 || answer != string(jpeg) || h.Get("Content-Type") != "image/jpeg" ||
			h.Get("Content-Disposition") != "attachment; filename=face.jpg" || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cache-Control") != "no-store" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%d, %d bytes of %d, %v", res.StatusCode, len(answer), len(jpeg), h)
		}
	})
}

// D-DOC-04, D-DOC-05, SEC-25: another user's document is answered like an unknown one.
func TestAccess(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		path := s.upload("u1", "mine.pdf", docPDF)
		s.upload("u2", "theirs.pdf", docPDF)
		id := s.listed("u1", "")[0]["id"].(string)
		theirs := s.listed("u2", "")[0]["id"].(string)

		for who, want := range map[string]string{"u1": "mine.pdf", "u2": "theirs.pdf", "admin": "theirs.pdf mine.pdf"} {
			storetest.Equal(t, names(s.listed(who, "")), want, who, "sees")
		}
		storetest.Equal(t, names(s.listed("u1", "?userId=u1"))+names(s.listed("admin", "?userId=u1")), "mine.pdfmine.pdf")
		s.As("u1").Wants(docList+"?userId=u2", "", 403, "FORBIDDEN")
		s.As("u1").Wants(docChange, docBody("id", theirs, "userId", "u2", "description", "x"), 403, "FORBIDDEN")
		for _, other := range []string{theirs, "01JD3XE5GNZ4M7R8Q2TB6WV0XK", "' OR 1=1 --", "1"} {
			s.As("u1").Wants(docChange, docBody("id", other, "description", "x"), 404, "RECORD_NOT_FOUND")
			s.As("u1").Wants(docChange, docBody("id", other, "userId", "u1", "description", "x"), 404, "RECORD_NOT_FOUND")
		}
		for _, field := range []string{"status", "reason"} {
			s.As("u1").Wants(docChange, docBody("id", id, field, "deActive"), 403, "FORBIDDEN")
		}
		s.Wants(docChange, docBody("id", id, "userId", "u2", "status", "deActive"), 404, "RECORD_NOT_FOUND")
		s.As("u1").Wants(upload, docBody("base64Data", coded(docPDF), "fileName", "x.pdf", "description", "x", "type", 6),
			400, "INVALID_FIELD type")

		for _, c := range []struct {
			info   any
			status int
			want   string
		}{
			{map[string]string{"id": id}, 200, string(docPDF)},
			{map[string]string{"documentId": id}, 200, string(docPDF)},
			{map[string]string{"filePath": path}, 200, string(docPDF)},
			{map[string]string{"id": id, "filePath": path}, 200, string(docPDF)},
			{map[string]string{"id": theirs, "filePath": path}, 404, "RECORD_NOT_FOUND"},
			{map[string]string{"id": "x"}, 404, "RECORD_NOT_FOUND"},
			{map[string]string{"filePath": path + "/"}, 404, "RECORD_NOT_FOUND"},
			{map[string]string{"filePath": "../../etc/passwd"}, 404, "RECORD_NOT_FOUND"},
			{map[string]string{"filePath": "document/aa/bb/cc"}, 404, "RECORD_NOT_FOUND"},
			{map[string]string{}, 400, "INVALID_FIELD documentInfo"},
			{map[string]any{"id": nil, "filePath": ""}, 400, "INVALID_FIELD documentInfo"},
			{map[string]any{"id": "a", "documentId": "b"}, 400, "INVALID_FIELD documentInfo.id"},
		} {
			s.Wants(file, docBody("documentInfo", c.info), c.status, c.want)
		}
		s.Wants(file+`?documentInfo=%7B%22id%22:%22`+id+`%22%7D`, "", 200, string(docPDF))
	})
}

// REQ-DOC-04, 06, D-DOC-03.
func TestChangeAndFilters(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		s.upload("u1", "a.pdf", docPDF)
		id := s.listed("u1", "")[0]["id"].(string)
		s.upload("u1", "b.pdf", docPDF)
		get := func(field string) any { return s.listed("admin", "")[1][field] }

		if status, answer := s.As("u1").Call(docChange, docBody("id", id, "description", "new", "userId", "u1",
			"descriptionJson", map[string]string{"en": "new"}, "name", "x", "mimeType", "x", "type", 3,
			"filePath", "x", "createdAt", 1)); status != 200 || !strings.Contains(answer, `"description":"new"`) {
			t.Errorf("%d %s", status, answer)
		}
		if get("name") != "a.pdf" || get("type") != 0.0 || get("mimeType") != "application/pdf" {
			t.Errorf("%v", s.listed("admin", ""))
		}
		s.As("u1").Call(docChange, docBody("id", id, "description", nil)) // null clears (D-GEN-10)
		storetest.Equal(t, get("description"), nil)
		s.Call(docChange, docBody("id", id, "type", "1")) // an administrator
		storetest.Equal(t, get("type"), 1.0, "type")
		s.Call(docChange, docBody("id", id, "type", 0))
		s.Call(docChange, docBody("id", id, "status", "deActive", "reason", "blurred at the edge"))
		if get("status") != "deActive" || get("reason") != "blurred at the edge" {
			t.Errorf("%v", s.listed("admin", ""))
		}
		for query, want := range map[string]string{
			"?status=deActive": "a.pdf", "?status=active": "b.pdf", "?reason=waitingApproval": "b.pdf", "?type=0": "b.pdf a.pdf",
			"?type=1": "", "?status=x": "", "?reason=blurred%20at%20the%20edge&userId=u1": "a.pdf", "?limit=1": "b.pdf",
			"?userId=u2": "", "?order=oldest": "a.pdf b.pdf", "?order=oldest&limit=1": "a.pdf", "?order=newest": "b.pdf a.pdf",
			"?kycConfirm=waitingApproval": "b.pdf a.pdf", "?kycConfirm=rejected": "",
		} {
			storetest.Equal(t, names(s.listed("admin", query)), want, query)
		}
		if get("fullName") != "Ada u1" || get("kycConfirm") != "waitingApproval" { // D-DOC-07
			t.Errorf("%v", s.listed("admin", ""))
		}
		for _, d := range s.listed("u1", "?kycConfirm=rejected") {
			if _, told := d["kycConfirm"]; told {
				t.Errorf("a user sees %v", d)
			}
		}
		storetest.Equal(t, names(s.listed("u1", "?kycConfirm=rejected")), "b.pdf a.pdf", "a user does not filter by it")
		res, _ := s.Send(docList+"?limit=1&count=true", "")
		if res.Header.Get("X-Total-Count") != "2" || !strings.Contains(res.Header.Get("Link"), `rel="next"`) {
			t.Errorf("%v", res.Header)
		}
		before := s.listed("admin", "")
		for text, want := range map[string]string{
			docBody("id", id, "status", "x"):                                "INVALID_FIELD status",
			docBody("id", id, "type", 6):                                    "INVALID_FIELD type",
			docBody("id", id, "descriptionJson", map[string]any{"de": "x"}): "INVALID_FIELD descriptionJson",
			docBody("id", id, "descriptionJson", map[string]any{"en": 1}):   "INVALID_FIELD descriptionJson.en",
		} {
			s.Wants(docChange, text, 400, want)
		}
		storetest.Same(t, s.listed("admin", ""), before)
	})
}

func TestRefusedUploads(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		png, long := coded(picturetest.PNG(8, 8)), strings.Repeat("x", 2001)
		sent := func(name any, more ...any) string {
			return docBody(append([]any{"base64Data", png, "fileName", name, "description", "d"}, more...)...)
		}
		for text, want := range map[string]string{
			sent("a/"):            "INVALID_FIELD fileName",
			sent("a.jpg"):         "INVALID_FIELD fileName",
			sent("a.exe"):         "INVALID_FIELD fileName",
			sent("gnp.\u202eexe"): "INVALID_FIELD fileName",
			sent("a\a.png"):       "INVALID_FIELD fileName",
			sent("a", "type", -1): "INVALID_FIELD type",
			sent("a", "descriptionJson", map[string]string{"tr": long}):                       "INVALID_FIELD descriptionJson",
			docBody("base64Data", coded([]byte("%PDF")), "fileName", "a", "description", "d"): "INVALID_FIELD base64Data",
			sent("a", "fileNameJson", map[string]string{"xx": ""}):                            "INVALID_FIELD fileNameJson",
		} {
			s.As("u1").Wants(upload, text, 400, want)
		}
		for text, want := range map[string]string{
			docBody("userId", "u1", "base64String", png, "documentName", "a", "type", 77):     "INVALID_FIELD type",
			docBody("userId", "u1", "base64String", "dGV4dA", "documentName", "a", "type", 1): "INVALID_FIELD base64String",
		} {
			s.Wants(save, text, 400, want)
		}
		s.Wants(save, docBody("userId", "nobody", "base64String", png, "documentName", "a", "type", 1), 404,
			"RECORD_NOT_FOUND")
		storetest.Equal(t, len(s.listed("admin", "")), 0, "rows")
		storetest.Equal(t, len(persistencetest.Kept(t, s.files, document.Area)), 0, "files")
	})
}
