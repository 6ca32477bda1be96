package office_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
)

var published = regexp.MustCompile(`"publishedAt":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)

// answers checks an answer without its instants.
func (s *contractSite) answers(line, body, want string) {
	s.t.Helper()
	status, got := s.Call(line, body)
	got = published.ReplaceAllString(instant.ReplaceAllString(got, `"createdAt":T`), `"publishedAt":T`)
	if status != 200 || got != want {
		s.t.Errorf("%s %s: %d\n%s, want\n%s", line, body, status, got, want)
	}
}

func record(id int64, code, name, version, tr, ar, status, published string) string {
	quote := func(text string) string {
		if text == "" {
			return "null"
		}
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf(`{"id":%d,"code":%q,"name":%q,"version":%s,"isActive":%t,"createdAt":T,"nameTr":%s,"nameAr":%s,`+
		`"status":%q,"publishedAt":%s}`, id, code, name, quote(version), status == "active", quote(tr), quote(ar), status,
		published)
}

// D-INT-14: a contract from its draft to its replacement.
func TestVersions(t *testing.T) {
	contractBoth(t, func(s *contractSite) {
		const post, patch, version = "POST contracts", "PATCH contracts", "POST contracts/versions"
		const publish, deactivate = "POST contracts/publish", "POST contracts/deactivate"
		s.Wants(post, `{"code":"a","name":"n"}`, 400, "INVALID_FIELD code")
		draft := record(3, "SALES", "Sales", "1", "Satış", "", "draft", "null")
		s.answers(post, `{"code":"SALES","name":"Sales","nameTr":"Satış","version":"1","isActive":true}`,
			`{"data":`+draft+`}`)
		s.Wants(post, `{"code":"SALES","name":"Sales","version":"2"}`, 409, "RECORD_ALREADY_EXIST")
		s.answers(patch, `{"id":3,"name":"Distance sales","nameTr":null,"nameAr":"بيع"}`,
			`{"data":`+record(3, "SALES", "Distance sales", "1", "", "بيع", "draft", "null")+`}`)
		s.Wants(patch, `{"id":9,"name":"x"}`, 404, "RECORD_NOT_FOUND")
		s.Wants(patch, `{"id":3,"name":""}`, 400, "INVALID_FIELD name")
		s.answers(publish, `{"id":3}`, `{"data":`+record(3, "SALES", "Distance sales", "1", "", "بيع", "active", "T")+`}`)
		s.Wants(patch, `{"id":3,"version":"1.1"}`, 409, "INVALID_STATE")
		s.Wants("POST create-contract-detail", `{"contractId":3,"title":"Scope","content":"<p>a</p>"}`, 200,
			`{"data":{"id":1,"contractId":3,"title":"Scope","content":"<p>a</p>","orderNo":1}}`)

		s.Wants(version, `{"id":9,"version":"2"}`, 404, "RECORD_NOT_FOUND")
		s.answers(version, `{"id":"3","version":"2"}`,
			`{"data":`+record(4, "SALES", "Distance sales", "2", "", "بيع", "draft", "null")+`}`)
		for _, taken := range []string{"1", "2"} {
			s.Wants(version, `{"id":3,"version":"`+taken+`"}`, 409, "RECORD_ALREADY_EXIST")
		}
		s.has(4, "2 Scope <p>a</p> 1")
		for range 2 {
			s.answers(publish, `{"id":4}`, `{"data":`+record(4, "SALES", "Distance sales", "2", "", "بيع", "active", "T")+`}`)
		}
		s.Wants(publish, `{"id":3}`, 409, "INVALID_STATE")
		s.Wants(publish, `{"id":9}`, 404, "RECORD_NOT_FOUND")
		s.Wants(patch, `{"id":3,"name":"x"}`, 409, "INVALID_STATE")
		s.Wants("POST create-contract-detail", `{"contractId":3}`, 409, "INVALID_STATE")
		s.Wants("POST update-contract-detail", `{"id":1,"title":"x"}`, 409, "INVALID_STATE")
		s.Wants("POST delete-contract-detail", `{"id":1}`, 409, "INVALID_STATE")
		s.has(3, "1 Scope <p>a</p> 1")
		for range 2 {
			s.answers(deactivate, `{"id":4}`,
				`{"data":`+record(4, "SALES", "Distance sales", "2", "", "بيع", "inactive", "T")+`}`)
		}
		s.Wants(deactivate, `{"id":9}`, 404, "RECORD_NOT_FOUND")
		s.answers("GET contracts", "", "["+strings.Join([]string{
			record(1, "TERMS_OF_USE", "Terms of use", "", "Kullanım koşulları", "شروط الاستخدام", "active", "T"),
			record(2, "PRIVACY", "Privacy notice", "", "Aydınlatma metni", "إشعار الخصوصية", "active", "T"),
			record(3, "SALES", "Distance sales", "1", "", "بيع", "replaced", "T"),
			record(4, "SALES", "Distance sales", "2", "", "بيع", "inactive", "T")}, ",")+"]")
		if _, got := s.Call("GET get-contracts?code=SALES", ""); strings.Count(got, `"code":"SALES"`) != 2 ||
			strings.Contains(got, `"isActive":true`) {
			t.Errorf("the interface lists %s", got)
		}
		if got := audited(t, s.db); got != `CONTRACT_ADD SALES  code "SALES", name "Sales", turkish "Satış", version "1"`+
			"\nCONTRACT_DEACTIVATE 4  SALES 2\nCONTRACT_DETAIL_ADD 1  contract 3\nCONTRACT_PUBLISH 3  SALES 1\n"+
			"CONTRACT_PUBLISH 4  SALES 2\n"+`CONTRACT_UPDATE 3  SALES 1: name "Sales" -> "Distance sales", `+
			`turkish "Satış" -> "", arabic "" -> "بيع"`+"\nCONTRACT_VERSION_ADD 4  SALES 2 from 3\n" {
			t.Errorf("audited\n%s", got)
		}
	})
}

// Concurrent publications leave one active version of a code.
func TestPublishRace(t *testing.T) {
	contractBoth(t, func(s *contractSite) {
		for i := range 4 {
			if status, answer := s.Call("POST contracts/versions", fmt.Sprintf(`{"id":1,"version":"%d"}`, i)); status != 200 {
				t.Fatal(answer)
			}
		}
		won := make(chan int, 4)
		for i := range 4 {
			go func() {
				status, _ := s.Call("POST contracts/publish", fmt.Sprintf(`{"id":%d}`, i+3))
				won <- status
			}()
		}
		for range 4 {
			if status := <-won; status != 200 && status != 409 {
				t.Errorf("a publication answered %d", status)
			}
		}
		all, err := s.store.Contracts(t.Context(), contract.Query{Code: new("TERMS_OF_USE")})
		storetest.Must(t, err)
		for _, c := range all {
			if c.Active != (c.ID == 6) {
				t.Errorf("version %q is active: %t", c.Version, c.Active)
			}
		}
	})
}
