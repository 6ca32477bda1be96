package people_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpdocument "castellan/http/people/document"
	httpidentity "castellan/http/people/identity"
	httpkyc "castellan/http/people/kyc"
	httpstanding "castellan/http/people/standing"
	"castellan/http/rest"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// Every file that is made to harm is refused, under whatever name.
func TestHostile(t *testing.T) {
	s := serve(t, persistencetest.SQLite(t))
	files := picturetest.Hostile()
	delete(files, "pdf")          // which is one
	delete(files, "pdf and jpeg") // which is kept as a PDF, and never shown
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s.As("u1").Wants(upload, docBody("base64Data", coded(files[name]), "fileName", "a", "description", "d"), 400,
			"INVALID_FIELD base64Data")
	}
	status, answer := s.As("u1").Call(upload, `{"base64Data":"`+strings.Repeat("A", 20<<20)+`"}`)
	storetest.Equal(t, status, 413, "beyond 20 MiB", answer)
}

// Files of cameras, telephones, scanners and signers are kept as evidence, unchanged, and only sent as attachments.
func TestHabitsAreKept(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		s.documents.Quota = 16 << 20
		files := picturetest.Habits()
		for name, content := range picturetest.PDFs() {
			files["PDF, "+name] = content
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			path := s.upload("u1", "a", files[name])
			res, answer := s.Send(file, docBody("documentInfo", map[string]string{"filePath": path}))
			if res.StatusCode != 200 || answer != string(files[name]) ||
				!strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
				t.Errorf("%s: %d, %d of %d bytes, %v", name, res.StatusCode, len(answer), len(files[name]), res.Header)
			}
		}
		s.As("u1").Wants(upload, docBody("base64Data", coded(append(make([]byte, 1025), docPDF...)), "fileName", "a",
			"description", "d"), 400, "INVALID_FIELD base64Data")
		_, answer := s.As("u1").Call(upload, docBody("base64Data", coded(picturetest.HEIC()), "fileName", "IMG_1.HEIC",
			"description", "d"))
		storetest.Contains(t, answer, "Most Compatible")
	})
}

// The quota bounds bytes and number, also when many come at once.
func TestQuota(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		large := docBody("base64Data", coded(append(append(slices.Clone(docPDF), make([]byte, 200<<10)...), docPDF...)),
			"fileName", "a.pdf", "description", "d")
		won := storetest.Race(t, 8, fault.RecordLimitReached, func(int) error {
			return s.As("u1").Try(upload, large)
		})
		if won != 5 || len(s.listed("u1", "")) != 5 {
			t.Errorf("%d of 8 fit into 1 MiB", won)
		}
		s.As("u1").Wants(upload, large, 409, "RECORD_LIMIT_REACHED")
		s.upload("u2", "a.pdf", docPDF)
		n := 1
		small := docBody("base64Data", coded(docPDF), "fileName", "a", "description", "d")
		for status := 200; n < 100; n++ {
			if status, _ = s.As("u2").Call(upload, small); status != 200 {
				break
			}
		}
		storetest.Equal(t, n, 32, "small documents fit into 1 MiB")
	})
}

// A document whose bytes cannot be stored has no row.
func TestBytesComeFirst(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		s.documents.Files = full{s.documents.Files}
		s.As("u1").Wants(upload, docBody("base64Data", coded(docPDF), "fileName", "a.pdf", "description", "d"), 503,
			"UNAVAILABLE")
		if acts := persistencetest.Acts(t, s.db); len(s.listed("u1", "")) != 0 || len(acts) != 0 {
			t.Errorf("a row without its bytes: %v", acts)
		}
	})
}

// full is a storage that rejects every file.
type full struct{ blob.Store }

func (full) Put(context.Context, string, []byte) error {
	return blob.Failed("write", errors.New("full"))
}

// D-EXT-03: each upload, change and download is in the audit, and no text of a user.
func TestAudit(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		path := s.upload("u1", "name of the file.pdf", docPDF)
		id := s.listed("u1", "")[0]["id"].(string)
		s.Call(docChange, docBody("id", id, "status", "deActive", "description", "text of the user"))
		s.Call(file, docBody("documentInfo", map[string]string{"filePath": path}))
		s.Wants(file, docBody("documentInfo", map[string]string{"filePath": path + "x"}), 404, "RECORD_NOT_FOUND")
		n, err := kit.NewAudit(s.db).Verify(t.Context(), []byte(persistencetest.AuditKey))
		if n != 3 || err != nil {
			t.Errorf("%d audit rows, %v", n, err)
		}
	})
}

// D-DOC-02: the identity number of the caller's profile is shown to the caller, and where it cannot be read nothing is
// kept.
func TestIdentityNo(t *testing.T) {
	docBoth(t, func(t *testing.T, s *documentService) {
		var refusal error
		s.Site = apitest.Serve(t, edge.Options{}, httpdocument.Group{Service: s.documents,
			IdentityNo: func(_ context.Context, userID string) (string, error) { return "10000000146 of " + userID, refusal }})
		request := docBody("base64Data", coded(docPDF), "fileName", "a.pdf", "description", "d")
		if status, answer := s.As("u1").Call(upload, request); status != 200 ||
			!strings.Contains(answer, `"identityNo":"10000000146 of u1"`) {
			t.Errorf("%d %s", status, answer)
		}
		refusal = fault.New(fault.Unavailable, "no")
		s.As("u1").Wants(upload, request, 503, "UNAVAILABLE")
		storetest.Equal(t, len(s.listed("admin", "")), 1, "kept")
	})
}

// A body may have each character of its longest texts as an escape of 6 bytes (D-GEN-12).
func TestLongestTextsFit(t *testing.T) {
	chars := map[string]int{"POST /user/update-document": 10_000, "POST /user/update-kyc": 8_000,
		"POST /user/insert-additional-info": 5_000, "POST /user/confirm-user-identity": 6_000,
		"POST /admin/user/close-user-authentication": 4_000}
	for _, e := range slices.Concat(httpdocument.Group{}.Endpoints(), httpkyc.Group{}.Endpoints(),
		httpidentity.Group{}.Endpoints(), httpstanding.Group{}.Endpoints()) {
		if need := 6 * chars[e.Key()]; need > max(e.BodyLimit, rest.DefaultBodyLimit) {
			t.Errorf("%s takes bodies of %d bytes, its texts have %d", e.Key(), e.BodyLimit, need)
		}
	}
}
