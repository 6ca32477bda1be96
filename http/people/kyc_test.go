package people_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/document"
	"castellan/domain/people/identity"
	"castellan/domain/people/kyc"
	"castellan/domain/proof/stepup"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpkyc "castellan/http/people/kyc"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

const (
	images     = "GET /user/get-kyc-images"
	decide     = "POST /user/update-kyc"
	kycConfirm = "POST /user/update-confirmed"
)

// kycSite is the section over a real database, with users u1 (Turkish, with a phone) and u2.
type kycSite struct {
	*documentService
	users   account.Users
	service *kyc.Service
}

func kycBoth(t *testing.T, test func(s *kycSite)) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(kycServe(t, db)) })
}

func kycServe(t *testing.T, db *persistence.DB) *kycSite {
	t.Helper()
	s := &kycSite{documentService: serve(t, db), users: account.NewUsers(db)}
	book := storetest.Value(message.NewBook("Castellan", nil))(t)
	messenger := &stepup.Messenger{Config: stepup.Config{Language: "en"}, Book: book, Ring: s.documents.Ring,
		Dispatch: post{}, Now: s.documents.Changes.Now}
	s.service = &kyc.Service{Store: people.NewDecisions(db),
		Users: s.users, Documents: s.documents.Store, Originals: s.documents, Pictures: s.documents.Pictures,
		Changes: s.documents.Changes, Types: kyc.Types{Front: 1, Back: 2, Selfie: 3, Address: 4}, Language: "en",
		Levels: money.NewLevels(db), Values: s.documents.Values, Notify: messenger.Notify,
		Checks: func(_ context.Context, u user.User) (identity.Checks, error) {
			return identity.Checks{Number: new(true), Name: new(u.ID == "u1"), Same: 2}, nil
		}}
	s.Site = apitest.Serve(t, edge.Options{}, httpkyc.Group{Service: s.service})
	return s
}

// add keeps a document and returns its id.
func (s *kycSite) add(userID string, kind int64, content []byte) string {
	s.t.Helper()
	d, err := s.documents.Add(s.t.Context(), audit.By{UserID: userID}, document.Document{UserID: userID, Name: "a",
		Type: kind}, content, document.Fields{Name: "n", NameTexts: "t", Content: "c"})
	storetest.Must(s.t, err)
	return d.ID
}

// state is status/reason of a document.
func (s *kycSite) state(id string) string {
	d := storetest.Value(s.documents.Store.Get(s.t.Context(), id))(s.t)
	return d.Status + "/" + *d.Reason
}

func (s *kycSite) user(id string) user.User {
	return storetest.Value(s.users.Get(s.t.Context(), id))(s.t)
}

// told returns the notifications of a user, oldest first: in the account, then by mail and SMS in sealed form.
func (s *kycSite) told(userID string) (inside, sent []string) {
	s.t.Helper()
	list, err := delivery.NewNotifications(s.db).List(s.t.Context(), notification.Query{UserID: userID},
		page.Query[notification.Place]{})
	storetest.Must(s.t, err)
	for _, n := range slices.Backward(list.Records) {
		inside = append(inside, n.Title+": "+n.Body)
	}
	rows := storetest.Value(delivery.NewOutbox(s.db).Recent(s.t.Context(), nil, 0))(s.t)
	for _, m := range rows {
		if m.UserID != userID {
			continue
		}
		plain := storetest.Value(s.documents.Ring.Open(m.Payload, challenge.PayloadData("", m.MethodID, 0)))(s.t)
		var text message.Rendered
		storetest.Must(s.t, text.UnmarshalBinary(plain))
		sent = append(sent, fmt.Sprint(text.Channel, " ", text.To, " ", text.Text))
	}
	slices.Reverse(sent)
	return inside, sent
}

// audited is the actions and details of the audit, oldest first.
func (s *kycSite) audited() (rows []string) {
	list := storetest.Value(kit.NewAudit(s.db).List(s.t.Context(), audit.Query{}, page.Query[audit.Place]{}))(s.t)
	for _, r := range slices.Backward(list.Records) {
		if r.Action != document.ActionUpload {
			rows = append(rows, strings.TrimSpace(r.Action+" "+r.UserID+" "+r.Detail))
		}
	}
	return rows
}

// Section 3.5, D-KYC-01, D-KYC-09: a pending account is decided on once, with its documents and notifications.
func TestKYCApproval(t *testing.T) {
	kycBoth(t, func(s *kycSite) {
		for i, value := range []string{user.ManuelApproved, user.OCROrNFCApproved} {
			id := fmt.Sprint("u", i+1)
			front, other := s.add(id, 1, picturetest.PNG(9, 9)), s.add(id, 1, docPDF)
			request := docBody("userId", id, "kycConfirm", value, "userDocumentId", []string{front}, "documentId", front,
				"rejectedResult", "ignored", "rejectedResultJson", map[string]string{"tr": "x"})
			s.Wants(decide, request, 200, `{"data":{"userId":"`+id+`","kycConfirm":"`+value+`","rejectedResult":null,`+
				`"userDocumentId":["`+front+`"],"documentId":"`+front+`"}}`)
			if u := s.user(id); u.KYCConfirm != value || s.state(front) != "active/approved" ||
				s.state(other) != "active/waitingApproval" {
				t.Errorf("%s is %s; %s, %s", id, u.KYCConfirm, s.state(front), s.state(other))
			}
			for _, next := range []string{value, user.Rejected, user.ManuelApproved} { // a repeat, and another decision
				s.Wants(decide, docBody("userId", id, "kycConfirm", next, "userDocumentId", []string{other}, "documentId", other,
					"rejectedResult", "x"), 409, "INVALID_STATE")
			}
			last, err := people.NewDecisions(s.db).Last(t.Context(), id, kyc.Identity)
			if err != nil || last.DocumentID != front || last.DecidedBy != "admin" || last.Reason != "" ||
				s.state(other) != "active/waitingApproval" {
				t.Errorf("%+v, %v", last, err)
			}
		}
		inside, sent := s.told("u1")
		if got := strings.Join(append(inside, sent...), "\n"); len(inside) != 1 || len(sent) != 1 ||
			!strings.HasPrefix(inside[0], "Castellan kimliğiniz onaylandı: ") ||
			!strings.HasPrefix(sent[0], "MAIL u1@example.com Castellan kimliğiniz onaylandı") {
			t.Errorf("told: %s", got)
		}
		storetest.Same(t, s.audited(), []string{"KYC_UPDATE u1 kycConfirm=waitingApproval -> manuelApproved",
			"KYC_UPDATE u2 kycConfirm=waitingApproval -> ocrOrNfcApproved"})
	})
}

// D-KYC-02: a rejection says why, in the language of the user.
func TestRejection(t *testing.T) {
	kycBoth(t, func(s *kycSite) {
		front, back, theirs := s.add("u1", 1, docPDF), s.add("u1", 2, docPDF), s.add("u2", 1, docPDF)
		good := func(fields ...any) string {
			return docBody(append([]any{"userId", "u1", "kycConfirm", "rejected", "rejectedResult", "Blurred",
				"userDocumentId", []string{front, back}, "documentId", back}, fields...)...)
		}
		for _, c := range []struct {
			request string
			status  int
			want    string
		}{
			{good("kycConfirm", "waitingApproval"), 400, "INVALID_FIELD kycConfirm"},
			{good("rejectedResult", nil), 400, "INVALID_FIELD rejectedResult"},
			{good("rejectedResult", " \t"), 400, "INVALID_FIELD rejectedResult"},
			{good("rejectedResultJson", map[string]any{"tr": strings.Repeat("ü", 2001)}), 400,
				"INVALID_FIELD rejectedResultJson"},
			{good("userDocumentId", []string{front, theirs}), 400, "INVALID_FIELD userDocumentId"},
			{good("userDocumentId", []string{"' OR 1=1 --"}, "documentId", theirs), 400,
				"INVALID_FIELD userDocumentId documentId"},
			{good("documentId", "x"), 400, "INVALID_FIELD documentId"},
			{good("userId", "u9"), 404, "RECORD_NOT_FOUND"},
		} {
			s.Wants(decide, c.request, c.status, c.want)
		}
		if u := s.user("u1"); u.KYCConfirm != user.WaitingApproval || s.state(front) != "active/waitingApproval" ||
			s.state(theirs) != "active/waitingApproval" || len(s.audited()) > 0 {
			t.Fatalf("a refusal changed something: %+v", u)
		}
		s.Wants(decide, good("rejectedResultJson", map[string]any{"tr": "Bulanık", "en": 7, "fields": []int{1}}), 200,
			`{"data":{"userId":"u1","kycConfirm":"rejected","rejectedResult":"Blurred","userDocumentId":["`+front+`","`+
				back+`"],"documentId":"`+back+`"}}`)
		if u := s.user("u1"); u.KYCConfirm != user.Rejected || s.state(front) != "deActive/rejected" ||
			s.state(back) != "deActive/rejected" || s.state(theirs) != "active/waitingApproval" {
			t.Errorf("%+v", u)
		}
		s.Wants(decide, docBody("userId", "u2", "kycConfirm", "rejected", "rejectedResult", "Blurred", "userDocumentId",
			[]string{theirs}, "documentId", theirs, "rejectedResultJson", map[string]string{"ar": "ضبابية"}), 200,
			`{"data":{"userId":"u2","kycConfirm":"rejected","rejectedResult":"Blurred","userDocumentId":["`+theirs+
				`"],"documentId":"`+theirs+`"}}`)
		for id, why := range map[string]string{"u1": "Bulanık", "u2": "ضبابية"} {
			inside, sent := s.told(id)
			if len(inside) != 1 || len(sent) != 1 || !strings.HasSuffix(inside[0], ". "+why) ||
				!strings.Contains(sent[0], ". "+why+"\n") {
				t.Errorf("%s was told %q, %q", id, inside, sent)
			}
		}
		if all := strings.Join(s.audited(), " "); strings.Contains(all, "lurred") || strings.Contains(all, "Bulan") {
			t.Errorf("the audit holds texts: %s", all)
		}
	})
}

// Of administrators who decide at the same time one wins.
func TestKYCRace(t *testing.T) {
	kycBoth(t, func(s *kycSite) {
		front := s.add("u1", 1, docPDF)
		values := []string{"rejected", "manuelApproved"}
		var winner atomic.Value
		won := storetest.Race(t, 8, fault.InvalidState, func(i int) error {
			err := s.Try(decide, docBody("userId", "u1", "kycConfirm", values[i%2], "rejectedResult", "x",
				"userDocumentId", []string{front}, "documentId", front))
			if err == nil {
				winner.Store(values[i%2])
			}
			return err
		})
		state := map[string]string{"rejected": "deActive/rejected", "manuelApproved": "active/approved"}
		inside, sent := s.told("u1")
		if won != 1 || s.user("u1").KYCConfirm != winner.Load() || s.state(front) != state[s.user("u1").KYCConfirm] ||
			len(inside) != 1 || len(sent) != 1 || len(s.audited()) != 1 {
			t.Errorf("%d won; %s %s, told %d and %d times", won, s.user("u1").KYCConfirm, s.state(front), len(inside), len(sent))
		}
	})
}

// Section 3.5, D-KYC-05: an address can be decided again; a repeated decision sends no notification.
func TestAddress(t *testing.T) {
	kycBoth(t, func(s *kycSite) {
		first, front, theirs := s.add("u1", 4, docPDF), s.add("u1", 1, docPDF), s.add("u2", 4, docPDF)
		step := func(value, description, shown, state string, notices int) {
			t.Helper()
			fields, text := []any{"userId", "u1", "addressConfirmed", value}, "null"
			if description != "" {
				fields, text = append(fields, "addressDescription", description), `"`+description+`"`
			}
			s.Wants(kycConfirm, docBody(fields...), 200, `{"data":{"userId":"u1","addressConfirmed":"`+shown+
				`","addressDescription":`+text+`}}`)
			inside, sent := s.told("u1")
			if u := s.user("u1"); u.AddressConfirmed != shown || s.state(first) != state || len(inside) != notices ||
				len(sent) != 2*notices {
				t.Errorf("%s: %s, %s, told %d and %d times", value, u.AddressConfirmed, s.state(first), len(inside), len(sent))
			}
		}
		step("waitingApproval", "", "waitingApproval", "active/waitingApproval", 0) // as it is
		step("rejected", "Too old", "rejected", "deActive/Too old", 1)
		step("rejected", "Too old", "rejected", "deActive/Too old", 1) // again
		step("rejected", "", "rejected", "deActive/rejected", 2)
		step("approved", "", "manuelApproved", "active/approved", 3)
		step("manuelApproved", "", "manuelApproved", "active/approved", 3) // the same in other words
		step("waitingApproval", "", "waitingApproval", "active/approved", 3)
		step("manuelApproved", "", "manuelApproved", "active/approved", 4)
		later := s.add("u1", 4, docPDF)
		step("manuelApproved", "", "manuelApproved", "active/approved", 5) // for the new document
		if s.state(later) != "active/approved" || s.state(front) != "active/waitingApproval" ||
			s.state(theirs) != "active/waitingApproval" || s.user("u2").AddressConfirmed != user.WaitingApproval {
			t.Errorf("%s %s %s", s.state(later), s.state(front), s.state(theirs))
		}
		_, sent := s.told("u1")
		if !strings.Contains(sent[0], "Too old") || !strings.HasPrefix(sent[1], "SMS +905321234567 ") ||
			strings.Contains(sent[1], "Too old") {
			t.Errorf("sent %q", sent[:2])
		}
		s.Wants(kycConfirm, docBody("userId", "u9", "addressConfirmed", "rejected"), 404, "RECORD_NOT_FOUND")
		storetest.Equal(t, len(s.audited()), 6, s.audited())
	})
}

// D-KYC-07: shown pictures are re-encoded, and belong to the caller alone.
func TestImages(t *testing.T) {
	kycBoth(t, func(s *kycSite) {
		for _, who := range []string{"u1", "admin"} {
			s.As(who).Wants(images, "", 200, `{"documentId":"","data":{}}`)
		}
		read := func(who, query string) (got struct {
			DocumentID string
			Data       map[string]*string
		}) {
			t.Helper()
			res, answer := s.As(who).Send(images+query, "")
			if res.StatusCode != 200 || json.Unmarshal([]byte(answer), &got) != nil ||
				res.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %.200s %v", res.StatusCode, answer, res.Header)
			}
			return got
		}
		untyped := s.add("u1", 0, picturetest.PNG(7, 7))
		if got := read("u1", ""); got.DocumentID != untyped || got.Data["frontImage"] == nil || got.Data["backImage"] != nil {
			t.Errorf("a picture of no type: %+v", got)
		}
		s.add("u1", 1, picturetest.PNG(3, 3))
		original := picturetest.WithEXIF(picturetest.JPEG(40, 30), 1)
		s.add("u1", 1, original)
		selfie := s.add("u1", 3, picturetest.WebP(8, 8))
		got := read("u1", "")
		front := strings.TrimPrefix(*got.Data["frontImage"], "data:image/jpeg;base64,")
		b, err := base64.StdEncoding.DecodeString(front)
		if err != nil || got.DocumentID != selfie || got.Data["backImage"] == nil || len(got.Data) != 3 ||
			got.Data["selfieImage"] == nil || strings.Contains(string(b), "Exif") || len(b) > len(original)+1000 {
			t.Errorf("%s, %d keys, %d bytes, %v", got.DocumentID, len(got.Data), len(b), err)
		}
		storetest.Same(t, read("admin", "?userId=u1"), got)
		storetest.Same(t, read("u1", "?userId=u1"), got)
		paper := s.add("u1", 2, docPDF)
		if got := read("u1", ""); got.DocumentID != paper || got.Data["backImage"] != nil {
			t.Errorf("a PDF is no picture: %s", got.DocumentID)
		}
		s.As("u2").Wants(images+"?userId=u1", "", 403, "FORBIDDEN")
		s.Wants(images+"?userId=u9", "", 404, "RECORD_NOT_FOUND")
		storetest.Same(t, s.audited(), []string{"KYC_IMAGES_READ u1"})

		// A document that decided stands for the front.
		decided := s.add("u2", 0, picturetest.PNG(6, 6))
		s.Call(decide, docBody("userId", "u2", "kycConfirm", "manuelApproved", "userDocumentId", []string{decided},
			"documentId", decided))
		if got := read("u2", ""); got.DocumentID != decided || got.Data["frontImage"] == nil {
			t.Errorf("%+v", got)
		}
		persistencetest.Exec(t, s.db, "ALTER TABLE audit RENAME TO broken")
		if status, answer := s.Call(images+"?userId=u1", ""); status != 500 || strings.Contains(answer, "base64") {
			t.Errorf("shown without a row in the audit: %d %.200s", status, answer)
		}
	})
}

// D-KYC-11: a case is the account as it is, with what was found out and what was decided last.
func TestCase(t *testing.T) {
	const path = "GET /admin/kyc-case?userId="
	kycBoth(t, func(s *kycSite) {
		shown := func(state, decision string) string {
			return `{"userId":"u1","fullName":"Ada u1","birthDate":"1990-05-01","status":"active","levelId":0,` +
				`"kycConfirm":"` + state + `","addressConfirmed":"waitingApproval","amlStatus":"notRisky","createdAt":"` +
				s.user("u1").CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z") +
				`","types":{"front":1,"back":2,"selfie":3,"address":4},"checks":{"identityNumber":true,"register":null,` +
				`"name":true,"birthDate":null,"sameNumber":2},"decision":` + decision + `}`
		}
		s.Wants(path+"u1", "", 200, shown("waitingApproval", "null"))
		front := s.add("u1", 1, picturetest.PNG(8, 8))
		s.Wants(decide, fmt.Sprintf(`{"userId":"u1","kycConfirm":"rejected","rejectedResult":"Blurred",`+
			`"userDocumentId":["%s"],"documentId":"%[1]s"}`, front), 200, fmt.Sprintf(`{"data":{"userId":"u1",`+
			`"kycConfirm":"rejected","rejectedResult":"Blurred","userDocumentId":["%s"],"documentId":"%[1]s"}}`, front))
		_, answer := s.Call(path+"u1", "")
		for _, part := range []string{`"kycConfirm":"rejected","addressConfirmed"`, `"decision":{"kycConfirm":"rejected",` +
			`"rejectedResult":"Blurred","documentId":"` + front + `","decidedBy":"admin","decidedAt":"20`} {
			storetest.Contains(t, answer, part)
		}
		s.Wants(path+"nobody", "", 404, "RECORD_NOT_FOUND")
	})
}
