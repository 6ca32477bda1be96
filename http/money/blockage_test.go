package money_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/money/ledger"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpblockage "castellan/http/money/blockage"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// blockageSite is the section with the users jane, who has money, and mark, who has none.
type blockageSite struct {
	*apitest.Site
	*testing.T
	*persistencetest.Money
}

func blockageBoth(t *testing.T, test func(s blockageSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		m := persistencetest.MoneyIn(t, db, time.Now)
		m.User("jane", func(u *user.User) { u.Name, u.Surname, u.Phone = "Jane", "Doe", "+905321234567" })
		m.User("mark", func(u *user.User) { u.Phone = "+905321234568" })
		service := &blockage.Service{Store: money.NewBlockages(db), Ledger: m.Ledger, Users: accountstore.NewUsers(db),
			Currencies: m.Currencies, Now: time.Now}
		s := blockageSite{apitest.Serve(t, edge.Options{Idempotency: &auth.Idempotent{}},
			httpblockage.Group{Service: service}), t, m}
		for pair, sum := range map[string]string{"BTC/BTC": "10", "USDT/ETH": "5", "USDT/TRX": "3"} {
			storetest.Must(t, s.Pay("jane", pair, sum))
		}
		test(s)
		s.holdsAreThoseOfTheRows()
	})
}

// has checks what is posted, locked and available: "10 4 6".
func (s blockageSite) has(of, pair, want string) {
	s.Helper()
	if got := s.Has(of, pair); got != want {
		s.Errorf("%s has %s of %s, want %s", of, got, pair, want)
	}
}

// holdsAreThoseOfTheRows checks that the active holds of each blockage are its
// amount where it is active, and none where it is not.
func (s blockageSite) holdsAreThoseOfTheRows() {
	s.Helper()
	var rows []struct {
		ID, Hi, Lo int64
		Status     string
		Holds      int
	}
	storetest.Must(s, s.DB.Conn(s.Context()).NewSelect().Table("blockage").
		Column("id", "hi", "lo", "status", "holds").Scan(s.Context(), &rows))
	for _, r := range rows {
		var sum amount.Amount
		for n := 1; n <= r.Holds; n++ {
			h, err := s.Store.HoldByRef(s.Context(), "blockage", fmt.Sprintf("%d/%d", r.ID, n))
			storetest.Must(s, err)
			if h.State == ledger.Active {
				sum, err = sum.Add(h.Amount)
				storetest.Must(s, err)
			}
		}
		want := storetest.Value(amount.Of(r.Hi, r.Lo))(s)
		if r.Status != "active" {
			want = amount.Amount{}
		}
		if sum != want {
			s.Errorf("the blockage %d holds %s, want %s", r.ID, sum, want)
		}
	}
}

const (
	insert = "POST /blockage/insert-blockage-history"
	update = "POST /blockage/update-blockage-history"
	remove = "POST /blockage/delete-blockage-history"
	list   = "GET /blockage/get-blockage-history"
	all    = "GET /admin/blockage/get-all-block-histories"
)

var changing = regexp.MustCompile(`"(id|createdAt|updatedAt)":"[^"]*"`)

// block inserts a blockage and returns its id.
func (s blockageSite) block(of, code, sum string, kind int) string {
	s.Helper()
	status, got := s.Call(insert, fmt.Sprintf(`{"userId":%q,"currencyCode":%q,"blockTypeId":%d,"amount":%s}`, of, code,
		kind, sum))
	var in struct{ Data struct{ ID string } }
	if err := json.Unmarshal([]byte(got), &in); err != nil || status != 200 {
		s.Fatalf("%d %s", status, got)
	}
	return in.Data.ID
}

// answers checks an answer but for ids and instants.
func (s blockageSite) answers(line, body, want string) {
	s.Helper()
	status, got := s.Call(line, body)
	if got = changing.ReplaceAllString(got, `"$1":"?"`); status != 200 || got != want {
		s.Errorf("%s %s:\n got %d %s\nwant %s", line, body, status, got, want)
	}
}

func shape(of, code, kind, sum, status, description, updated string) string {
	return fmt.Sprintf(`{"id":"?","userId":%q,"currencyCode":%q,"blockTypeId":%s,"amount":%s,"status":%q,`+
		`"description":%s,"createdAt":"?","updatedAt":%s}`, of, code, kind, sum, status, description, updated)
}

// REQ-BLK-01 to REQ-BLK-08, D-BLK-02 to D-BLK-04: the shapes to the last key, and what
// is available after each move.
func TestLifeOfABlockage(t *testing.T) {
	blockageBoth(t, func(s blockageSite) {
		s.answers(insert, `{"userId":"jane","currencyCode":"btc","blockTypeId":"2","amount":"4.00000001",`+
			`"description":"Court order","blockSourceId":9,"descriptionJson":{"file":7},"status":"released","id":5,`+
			`"createdAt":"2020-01-01"}`, `{"data":`+shape("jane", "BTC", "2", "4.00000001", "active", `"Court order"`,
			"null")+`}`)
		s.has("jane", "BTC/BTC", "10 4.00000001 5.99999999")
		s.answers(list+"?userId=jane", "", "["+shape("jane", "BTC", "2", "4.00000001", "active", `"Court order"`, "null")+"]")
		s.answers(all, "", `[{"id":"?","userId":"jane","fullName":"Jane Doe","currencyCode":"BTC","blockTypeId":2,`+
			`"amount":4.00000001,"status":"active","createdAt":"?"}]`)
		if err := s.Pay("jane", "BTC/BTC", "-6"); err == nil {
			t.Error("what is blocked was taken")
		}
		first := s.block("jane", "BTC", "1", 3)
		for _, line := range []string{list, all} {
			if _, got := s.Call(line, ""); !strings.Contains(got, `"id":"`+first+`"`) {
				t.Errorf("%s: %s", line, got)
			}
		}
		s.has("jane", "BTC/BTC", "10 5.00000001 4.99999999")

		// The same status again changes nothing; a comment is kept and shows in no record.
		unchanged := `{"data":` + shape("jane", "BTC", "3", "1", "active", "null", "null") + `}`
		s.answers(update, `{"id":"`+first+`","status":"active"}`, unchanged)
		released := `{"data":` + shape("jane", "BTC", "3", "1", "released", "null", `"?"`) + `}`
		s.answers(update, `{"id":`+first+`,"status":"released","comment":"over","amount":5,"userId":"mark"}`, released)
		s.has("jane", "BTC/BTC", "10 4.00000001 5.99999999")
		_, before := s.Call(update, `{"id":"`+first+`","status":"released","comment":"over"}`)
		if _, again := s.Call(update, `{"id":"`+first+`","status":"released"}`); again != before {
			t.Errorf("the same again: %s, before %s", again, before)
		}
		s.has("jane", "BTC/BTC", "10 4.00000001 5.99999999")

		// Active again it locks again.
		s.answers(update, `{"id":"`+first+`","status":"active"}`, strings.Replace(released, "released", "active", 1))
		s.has("jane", "BTC/BTC", "10 5.00000001 4.99999999")
		s.Wants(remove, `{"id":"`+first+`"}`, 200, `{"data":{"id":"`+first+`","deleted":true}}`)
		s.has("jane", "BTC/BTC", "10 4.00000001 5.99999999")
		for _, line := range []string{remove, update} {
			s.Wants(line, `{"id":"`+first+`","status":"active"}`, 404, "RECORD_NOT_FOUND")
		}
		s.answers(list+"?blockTypeId=3", "", "[]")
		// A released one is deleted without a further effect.
		second := s.block("jane", "BTC", "1", 3)
		s.Call(update, `{"id":"`+second+`","status":"released"}`)
		s.Wants(remove, `{"id":`+second+`}`, 200, `{"data":{"id":"`+second+`","deleted":true}}`)
		s.has("jane", "BTC/BTC", "10 4.00000001 5.99999999")
		if n := persistencetest.Count(t, s.DB, "audit", "action LIKE 'BLOCKAGE_%'"); n != 8 {
			t.Errorf("%d rows in the audit", n)
		}
		for where, want := range map[string]int{`source_id = 9 AND description_json = '{"file":7}'`: 1, "comment = 'over'": 1,
			"source_id = 0 AND description_json = ''": 2} {
			storetest.Equal(t, persistencetest.Count(t, s.DB, "blockage", where), want, "blockages with", where)
		}
	})
}

// D-BLK-03, D-CUR-09: over several networks available falls by exactly the amount, and
// floors at 0; what exceeds it holds future funds.
func TestBlockedAcrossNetworks(t *testing.T) {
	blockageBoth(t, func(s blockageSite) {
		one := s.block("jane", "USDT", "6", 2)
		s.has("jane", "USDT/TRX", "3 3 0")
		s.has("jane", "USDT/ETH", "5 3 2")
		two := s.block("jane", "USDT", "10", 2)
		s.has("jane", "USDT/TRX", "3 3 0")
		s.has("jane", "USDT/ETH", "5 13 0")
		storetest.Must(t, s.Pay("jane", "USDT/ETH", "9"))
		s.has("jane", "USDT/ETH", "14 13 1")
		if err := s.Pay("jane", "USDT/ETH", "-1.01"); err == nil {
			t.Error("what is blocked was taken")
		}
		s.Wants(remove, `{"id":"`+one+`"}`, 200, `{"data":{"id":"`+one+`","deleted":true}}`)
		s.has("jane", "USDT/TRX", "3 0 3")
		s.has("jane", "USDT/ETH", "14 10 4")
		s.Call(update, `{"id":"`+two+`","status":"released"}`)
		s.has("jane", "USDT/ETH", "14 0 14")
		// Active again it is spread over what there is now.
		s.Call(update, `{"id":"`+two+`","status":"active"}`)
		s.has("jane", "USDT/TRX", "3 3 0")
		s.has("jane", "USDT/ETH", "14 7 7")
		// A user without an account gets one.
		s.block("mark", "USDT", "0.000001", 1)
		s.has("mark", "USDT/ETH", "0 0.000001 0")
		storetest.Must(t, s.Pay("mark", "USDT/ETH", "1"))
		s.has("mark", "USDT/ETH", "1 0.000001 0.999999")
	})
}

// D-BLK-01, D-BLK-02, D-BLK-05.
func TestListOfBlockages(t *testing.T) {
	blockageBoth(t, func(s blockageSite) {
		for i, b := range []string{"BTC jane", "USDT jane", "BTC mark", "ETH mark"} {
			code, of, _ := strings.Cut(b, " ")
			id := s.block(of, code, "1", i+1)
			if i == 3 {
				s.Call(update, `{"id":"`+id+`","status":"released"}`)
			}
		}
		usdt := fmt.Sprint(s.Pair("USDT/TRX").CurrencyID)
		for query, want := range map[string]string{
			"": "4321", "?userId=jane": "21", "?userId=nobody": "", "?currencyId=" + usdt: "2", "?currencyId=999": "",
			"?currencyCode=btc": "31", "?currencyCode=XYZ": "", "?currencyCode=BTC&currencyId=" + usdt: "",
			"?blockTypeId=1": "1", "?blockTypeId=1,4": "41", "?blockTypeId=1&blockTypeId=3": "31",
			"?blockTypeId[]=2&blockTypeId[]=3": "32", "?blockTypeId=%5B2,4%5D": "42", "?blockTypeId=9": "",
			"?status=active": "321", "?status=released": "4", "?userId=mark&status=active&blockTypeId=1,3": "3",
		} {
			s.lists(list+query, want)
		}
		s.lists(all, "4321")
		s.lists(all+"?currencyCode=BTC", "31")
		s.lists(all+"?currencyCode=XYZ", "")
		r, _ := s.Send(all+"?currencyCode=XYZ&count=true", "")
		storetest.Equal(t, r.Header.Get("X-Total-Count"), "0")
		r, _ = s.Send(list+"?limit=3&count=true", "")
		next, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Link"), "<"), ">")
		if s.lists("GET "+next, "1"); r.Header.Get("X-Total-Count") != "4" {
			t.Errorf("counted %s", r.Header.Get("X-Total-Count"))
		}
		_, got := s.Call(all+"?currencyCode=ETH", "")
		if !strings.Contains(got, `"fullName":null`) {
			t.Error(got)
		}
		s.Wants(list+"?blockTypeId=1,x", "", 400, "INVALID_FIELD blockTypeId[1]")
	})
}

// lists gets a list and compares the types of the blockages.
func (s blockageSite) lists(line, want string) {
	s.Helper()
	status, got := s.Call(line, "")
	var types strings.Builder
	for _, m := range regexp.MustCompile(`"blockTypeId":(\d+)`).FindAllStringSubmatch(got, -1) {
		types.WriteString(m[1])
	}
	if status != 200 || types.String() != want {
		s.Errorf("%s: %d %s, want %s", line, status, got, want)
	}
}

func TestBlockageRefuses(t *testing.T) {
	blockageBoth(t, func(s blockageSite) {
		body := func(change ...string) string {
			return strings.NewReplacer(append(change, "$user", `"jane"`, "$code", `"BTC"`, "$type", "1", "$sum", "1",
				"$more", "")...).Replace(`{"userId":$user,"currencyCode":$code,"blockTypeId":$type,"amount":$sum$more}`)
		}
		for in, want := range map[string]string{
			body("$user", `"nobody"`): "404 RECORD_NOT_FOUND", body("$code", `"XYZ"`): "404 RECORD_NOT_FOUND",
			body("$sum", "0"): "400 INVALID_FIELD amount", body("$sum", "-1"): "400 INVALID_FIELD amount",
			body("$sum", "0.000000001"):            "400 INVALID_FIELD amount",
			body("$sum", "9999999999999999999"):    "400 INVALID_FIELD amount",
			body("$type", "0"):                     "400 INVALID_FIELD blockTypeId",
			body("$user", `"nobody"`, "$sum", "0"): "400 INVALID_FIELD amount",
		} {
			s.Gets(insert, in, want)
		}
		s.block("jane", "BTC", "1", 1)
		for _, line := range []string{update, remove} {
			s.Wants(line, `{"id":99,"status":"released"}`, 404, "RECORD_NOT_FOUND")
		}
		s.has("jane", "BTC/BTC", "10 1 9")
	})
}

// In races each blockage has one effect, nothing is taken that is locked, and no read
// sees less than nothing.
func TestBlockagesInARace(t *testing.T) {
	blockageBoth(t, func(s blockageSite) {
		ids := make([]string, 24)
		var wg sync.WaitGroup
		race := func(n int, do func(i int)) {
			for i := range n {
				wg.Go(func() { do(i) })
			}
			wg.Wait()
		}
		race(24, func(i int) {
			if i%3 == 0 {
				if err := s.Pay("jane", "USDT/ETH", "-0.5"); err != nil && fault.CodeOf(err) != fault.InvalidState {
					t.Error(err)
				}
			}
			ids[i] = s.block("jane", "USDT", "0.3", 1)
			b, err := s.Balance(s.Context(), "jane", s.Pair("USDT/ETH").ID)
			if err != nil || b.Available().Sign() < 0 || b.Posted.Sign() < 0 {
				t.Errorf("%+v, %v", b, err)
			}
		})
		s.lists(list+"?userId=jane", strings.Repeat("1", 24))
		// Three at once for each: one is released, deleted and both.
		race(72, func(i int) {
			line, body := remove, `{"id":"`+ids[i%24]+`","status":"released"}`
			if i/24 == 0 {
				line = update
			}
			if status, got := s.Call(line, body); status != 200 && status != 404 {
				t.Errorf("%s %d %s", line, status, got)
			}
		})
		s.lists(list+"?userId=jane", "")
		for _, pair := range []string{"USDT/ETH", "USDT/TRX"} {
			b, err := s.Balance(s.Context(), "jane", s.Pair(pair).ID)
			if err != nil || b.Locked.Sign() != 0 {
				t.Errorf("%+v, %v", b, err)
			}
		}
		storetest.Equal(t, len(persistencetest.Did(t, s.DB, "BLOCKAGE_DELETE")), 24, "were deleted")
		// A user without an account gets exactly one.
		race(12, func(int) { s.block("mark", "BTC", "1", 1) })
		s.has("mark", "BTC/BTC", "0 12 0")
	})
}
