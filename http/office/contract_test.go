package office_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpcontract "castellan/http/office/contract"
	"castellan/persistence"
	"castellan/persistence/office"
)

type contractSite struct {
	*apitest.Site
	t     *testing.T
	db    *persistence.DB
	store contract.Store
}

// contractBoth runs a test on a fresh installation on each database: the contracts 1 and
// 2 of the seed.
func contractBoth(t *testing.T, test func(s *contractSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := office.NewContracts(db)
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error { return contract.Seed(ctx, store) }))
		service := &contract.Service{Store: store, HTML: richtext.New("https://cdn.example.com"),
			Changes: admin.Changes{Commit: db, Now: time.Now, Lock: store.Lock}}
		s := apitest.Serve(t, edge.Options{}, httpcontract.Group{Service: service}).Below("/admin/")
		test(&contractSite{s, t, db, store})
	})
}

// has checks the details of a contract: "id title content orderNo" of each.
func (s *contractSite) has(contractID int64, want ...string) {
	s.t.Helper()
	all := storetest.Value(s.store.Details(s.t.Context(), contractID))(s.t)
	got := []string{}
	for _, d := range all {
		got = append(got, fmt.Sprintf("%d %s %s %d", d.ID, d.Title, d.Content, d.OrderNo))
	}
	storetest.Same(s.t, got, append([]string{}, want...))
}

var instant = regexp.MustCompile(`"createdAt":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)

func TestContracts(t *testing.T) {
	contractBoth(t, func(s *contractSite) {
		const terms = `{"id":1,"code":"TERMS_OF_USE","name":"Terms of use","version":null,"isActive":true,"createdAt":T}`
		const privacy = `{"id":2,"code":"PRIVACY","name":"Privacy notice","version":null,"isActive":true,"createdAt":T}`
		for query, want := range map[string]string{"": terms + "," + privacy, "?id=2": privacy, "?code=PRIVACY": privacy,
			"?id=1&code=PRIVACY": "", "?code=privacy": "", "?id=9": "", "?code='%20OR%201=1": ""} {
			status, got := s.Call("GET get-contracts"+query, "")
			if got = instant.ReplaceAllString(got, `"createdAt":T`); status != 200 || got != "["+want+"]" {
				t.Errorf("%s: %d %s", query, status, got)
			}
		}
		s.Wants("GET get-contract-details?contractId=9", "", 200, "[]")
		storetest.Must(t, storetest.Err(s.store.Add(t.Context(), contract.Contract{Code: "V", Name: "v", Version: "3"})))
		if _, got := s.Call("GET get-contracts?code=V", ""); !strings.Contains(got, `"version":"3","isActive":false`) {
			t.Error(got)
		}
	})
}

// One detail: added, changed, moved, deleted.
func TestDetail(t *testing.T) {
	contractBoth(t, func(s *contractSite) {
		const post = "POST create-contract-detail"
		s.Wants(post, `{"contractId":1,"title":"<b>","content":"<p onclick=x()>a</p><script>b</script>","id":7,"policy":"x"}`,
			200, `{"data":{"id":1,"contractId":1,"title":"<b>","content":"<p>a</p>","orderNo":1}}`)
		s.Wants(post, `{"contractId":"1","orderNo":7}`, 200,
			`{"data":{"id":2,"contractId":1,"title":"","content":"","orderNo":7}}`)
		s.Wants(post, `{"contractId":1,"title":null,"orderNo":null}`, 200,
			`{"data":{"id":3,"contractId":1,"title":"","content":"","orderNo":8}}`)
		s.Wants(post, `{"contractId":3}`, 404, "RECORD_NOT_FOUND")
		s.has(1, "1 <b> <p>a</p> 1", "2   7", "3   8")

		const update = "POST update-contract-detail"
		s.Wants(update, `{"id":2,"title":"t"}`, 200, `{"data":{"id":2,"contractId":1,"title":"t","content":"","orderNo":7}}`)
		s.Wants(update, `{"id":"2","contractId":2,"content":"<i>c</i>","orderNo":0}`, 200,
			`{"data":{"id":2,"contractId":2,"title":"t","content":"<i>c</i>","orderNo":0}}`)
		s.Wants(update, `{"id":2,"title":null}`, 200,
			`{"data":{"id":2,"contractId":2,"title":"t","content":"<i>c</i>","orderNo":0}}`)
		s.Wants(update, `{"id":2,"contractId":3}`, 404, "RECORD_NOT_FOUND")
		s.Wants(update, `{"id":9,"title":"x"}`, 404, "RECORD_NOT_FOUND")
		s.has(2, "2 t <i>c</i> 0")

		s.Wants("POST delete-contract-detail", `{"id":"1"}`, 200, `{"data":{"id":1}}`)
		s.Wants("POST delete-contract-detail", `{"id":1}`, 404, "RECORD_NOT_FOUND")
		s.has(1, "3   8")
	})
}

// A bulk write affects all details or none (D-CON-03).
func TestMany(t *testing.T) {
	contractBoth(t, func(s *contractSite) {
		const create, update = "POST bulk-create-contract-details", "POST bulk-update-contract-details"
		const reorder, remove = "POST reorder-contract-details", "POST delete-multiple-contract-details"
		s.Wants(create, `{"contractId":1,"details":[{"title":"a","content":"A"},{"title":"b","content":"B","orderNo":9},`+
			`{"title":"c","content":"<img src='https://example.com/track.png'>C"}]}`, 200,
			`{"data":[{"id":1,"contractId":1,"title":"a","content":"A","orderNo":1},`+
				`{"id":2,"contractId":1,"title":"b","content":"B","orderNo":9},`+
				`{"id":3,"contractId":1,"title":"c","content":"C","orderNo":10}]}`)
		s.Wants(create, `{"contractId":2,"details":[{"title":"d","content":"D"}]}`, 200,
			`{"data":[{"id":4,"contractId":2,"title":"d","content":"D","orderNo":1}]}`)
		there := []string{"1 a A 1", "2 b B 9", "3 c C 10"}
		one := `{"title":"x","content":"x"}`
		for _, c := range []struct {
			line, body string
			status     int
			want       string
		}{
			{create, `{"contractId":3,"details":[` + one + `]}`, 404, "RECORD_NOT_FOUND"},
			{create, `{"contractId":1,"details":[]}`, 400, "INVALID_FIELD details"},
			{create, `{"contractId":1,"details":[` + one + `,{"title":"y"},{"content":" ","title":1},null,7]}`, 400,
				"INVALID_FIELD details[1].content details[2].title details[2].content details[3] details[4]"},
			{create, `{"contractId":1,"details":[` + strings.Repeat(one+",", 500) + one + `]}`, 400, "INVALID_FIELD details"},
			{update, `{"details":[]}`, 400, "INVALID_FIELD details"},
			{update, `{"details":[{"id":1,"title":"x"},{"id":9,"title":"x"}]}`, 404, "RECORD_NOT_FOUND"},
			{update, `{"details":[{"id":1,"title":"x"},{"id":2},{"id":"1"}]}`, 400, "INVALID_FIELD details[2].id"},
			{reorder, `{"contractId":1,"details":[{"id":1,"orderNo":5},{"id":4,"orderNo":6}]}`, 400,
				"INVALID_FIELD details[1].id"},
			{reorder, `{"contractId":1,"details":[{"id":1,"orderNo":5},{"id":9,"orderNo":6}]}`, 404, "RECORD_NOT_FOUND"},
			{reorder, `{"contractId":9,"details":[{"id":1,"orderNo":5}]}`, 404, "RECORD_NOT_FOUND"},
			{reorder, `{"contractId":1,"details":[{"id":1,"orderNo":5},{"id":1,"orderNo":6}]}`, 400,
				"INVALID_FIELD details[1].id"},
			{reorder, `{"contractId":1,"details":[]}`, 400, "INVALID_FIELD details"},
			{reorder, `{"contractId":1,"details":[{"id":1},{"orderNo":-1}]}`, 400,
				"INVALID_FIELD details[0].orderNo details[1].orderNo details[1].id"},
			{remove, `{"ids":[1,9]}`, 404, "RECORD_NOT_FOUND"},
			{remove, `{"ids":[]}`, 400, "INVALID_FIELD ids"},
			{remove, `{"ids":[1,"1"]}`, 400, "INVALID_FIELD ids[1]"},
			{remove, `{"ids":[` + strings.Repeat("1,", 500) + `2]}`, 400, "INVALID_FIELD ids[1]"},
		} {
			s.Wants(c.line, c.body, c.status, c.want)
			s.has(1, there...)
		}
		s.Wants(update, `{"details":[{"id":3,"title":"cc"},{"id":4,"content":"<script>x</script>DD","orderNo":2}]}`, 200,
			`{"data":[{"id":3,"contractId":1,"title":"cc","content":"C","orderNo":10},`+
				`{"id":4,"contractId":2,"title":"d","content":"DD","orderNo":2}]}`)
		const after = `[{"id":3,"contractId":1,"title":"cc","content":"C","orderNo":0},` +
			`{"id":1,"contractId":1,"title":"a","content":"A","orderNo":5},` +
			`{"id":2,"contractId":1,"title":"b","content":"B","orderNo":5}]`
		s.Wants(reorder, `{"contractId":"1","details":[{"id":2,"orderNo":5},{"id":"1","orderNo":5},{"id":3,"orderNo":0}]}`,
			200, `{"data":`+after+`}`)
		s.Wants("GET get-contract-details?contractId=1", "", 200, after)
		s.Wants(remove, `{"ids":[1,"3"]}`, 200, `{"data":{"ids":[1,3],"count":2}}`)
		s.has(1, "2 b B 5")
		many := `{"contractId":1,"details":[` + strings.Repeat(one+",", 499) + one + `]}`
		s.Gets(create, many, "200")
	})
}

// Each write has one audit row, and none holds a text (D-EXT-03).
func TestContractAudit(t *testing.T) {
	contractBoth(t, func(s *contractSite) {
		lines := map[string]string{
			"POST create-contract-detail":           `{"contractId":1,"title":"secret","content":"secret"}`,
			"POST bulk-create-contract-details":     `{"contractId":1,"details":[{"title":"secret","content":"secret"}]}`,
			"POST update-contract-detail":           `{"id":1,"title":"secret"}`,
			"POST bulk-update-contract-details":     `{"details":[{"id":1,"content":"secret","orderNo":3}]}`,
			"POST reorder-contract-details":         `{"contractId":1,"details":[{"id":1,"orderNo":4}]}`,
			"POST delete-contract-detail":           `{"id":1}`,
			"POST delete-multiple-contract-details": `{"ids":[1]}`,
		}
		s.has(1)
		for _, name := range []string{"create-contract-detail", "bulk-create-contract-details", "update-contract-detail",
			"bulk-update-contract-details", "reorder-contract-details", "delete-contract-detail"} {
			s.Gets("POST "+name, lines["POST "+name], "200")
		}
		s.Wants("POST delete-multiple-contract-details", lines["POST delete-multiple-contract-details"], 404,
			"RECORD_NOT_FOUND")
		if got := audited(t, s.db); got != "CONTRACT_DETAIL_ADD 1  contract 1\nCONTRACT_DETAIL_ADD 2  contract 1\n"+
			"CONTRACT_DETAIL_DELETE 1  \nCONTRACT_DETAIL_REORDER 1  1 orderNo 3 -> 4\n"+
			"CONTRACT_DETAIL_UPDATE 1  1 orderNo 1 -> 3\nCONTRACT_DETAIL_UPDATE 1  1 unchanged\n" {
			t.Errorf("audited\n%s", got)
		}
	})
}

// A row of an older policy is cleaned when it is read, and stays as it is.
func TestOlderPolicy(t *testing.T) {
	contractBoth(t, func(s *contractSite) {
		_, err := s.store.AddDetail(t.Context(),
			contract.Detail{ContractID: 1, Content: `<i onclick="x()">a</i>`, Policy: "0"})
		storetest.Must(t, err)
		const shown = `{"id":1,"contractId":1,"title":"","content":"<i>a</i>","orderNo":0}`
		s.Wants("GET get-contract-details?contractId=1", "", 200, "["+shown+"]")
		s.Wants("POST update-contract-detail", `{"id":1,"title":""}`, 200, `{"data":`+shown+`}`)
		s.has(1, `1  <i onclick="x()">a</i> 0`)
		s.Wants("POST update-contract-detail", `{"id":1,"content":"<i>b</i>"}`, 200,
			`{"data":{"id":1,"contractId":1,"title":"","content":"<i>b</i>","orderNo":0}}`)
	})
}

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
		s.Wants(patch, `{"id":3,"name":" "}`, 400, "INVALID_FIELD name")
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
			s.Gets("POST contracts/versions", fmt.Sprintf(`{"id":1,"version":"%d"}`, i), "200")
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
		all := storetest.Value(s.store.Contracts(t.Context(), contract.Query{Code: new("TERMS_OF_USE")}))(t)
		for _, c := range all {
			storetest.Equal(t, c.Active, (c.ID == 6), "version", c.Version, "is active")
		}
	})
}
