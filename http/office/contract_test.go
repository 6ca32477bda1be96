package office_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpcontract "castellan/http/office/contract"
	"castellan/persistence"
	"castellan/persistence/kit"
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
	all, err := s.store.Details(s.t.Context(), contractID)
	storetest.Must(s.t, err)
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
		if _, err := s.store.Add(t.Context(), contract.Contract{Code: "V", Name: "v", Version: "3"}); err != nil {
			t.Error(err)
		}
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
		if status, _ := s.Call(create, many); status != 200 {
			t.Errorf("500 details: %d", status)
		}
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
			if status, answer := s.Call("POST "+name, lines["POST "+name]); status != 200 {
				t.Errorf("%s: %d %s", name, status, answer)
			}
		}
		s.Wants("POST delete-multiple-contract-details", lines["POST delete-multiple-contract-details"], 404,
			"RECORD_NOT_FOUND")
		rows, err := kit.NewAudit(s.db).List(t.Context(), audit.Query{ActorID: "admin"}, page.Query[audit.Place]{
			Limit: 100})
		storetest.Must(t, err)
		var got []string
		for _, r := range rows.Records {
			got = append(got, fmt.Sprintf("%s %s [%s]", r.Action, r.Target, r.Detail))
		}
		slices.Sort(got) // acts of one millisecond have no order
		if want := []string{"CONTRACT_DETAIL_ADD 1 [contract 1]", "CONTRACT_DETAIL_ADD 2 [contract 1]",
			"CONTRACT_DETAIL_DELETE 1 []", "CONTRACT_DETAIL_REORDER 1 [1 orderNo 3 -> 4]",
			"CONTRACT_DETAIL_UPDATE 1 [1 orderNo 1 -> 3]",
			"CONTRACT_DETAIL_UPDATE 1 [1 unchanged]"}; !slices.Equal(got, want) {
			t.Errorf("got\n%q\nwant\n%q", got, want)
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
