package money_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
)

const (
	btc     = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
	segwit  = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
	eth     = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	otherEV = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
	trx     = "TAzaZg1EuULzZTuJtJdrBdbSjCp5AbZEVP"
	xrp     = "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh"
	sol     = "kqG1DhAJwqS6TdgLZS4rQ2YVF6Fo4oAdGNKBPdDvdeu"
)

// REQ-WAD-01, 02, D-WAD-01, D-WAD-07, D-GEN-05: the shapes, to the last key.
func TestShapes(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		s.wants("user1", "GET", "", 200, `[]`)
		first := s.add("user1", "USDT", "TRX", " "+trx+" ", "  Cold wallet ")
		if _, err := strconv.ParseUint(first, 10, 53); err != nil {
			t.Errorf("the id %q", first)
		}
		cur, net, err := s.books.Currencies.Catalog().Withdrawal("USDT", "TRX")
		storetest.Must(t, err)
		record := func(name, address string) string {
			return fmt.Sprintf(`{"id":"%s","name":"%s","address":"%s","currencyId":%d,"networkId":%d,`+
				`"currencyCode":"USDT","networkCode":"TRX"}`, first, name, address, cur.ID, net.ID)
		}
		s.wants("user1", "GET", "", 200, `[`+record("Cold wallet", trx)+`]`)
		s.wants("user1", "PATCH", `{"id":`+first+`,"name":"Warm"}`, 200, `{"data":`+record("Warm", trx)+`}`)
		const next = "TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7"
		s.wants("user1", "PATCH", `{"id":"`+first+`","name":"Hot","address":" `+next+`"}`, 200,
			`{"data":`+record("Hot", next)+`}`)
		s.wants("user1", "GET", "", 200, `[`+record("Hot", next)+`]`)
		s.wants("user1", "DELETE", `{"id":`+first+`}`, 200, `{"data":{"id":"`+first+`"}}`)
		s.wants("user1", "GET", "", 200, `[]`)

		// D-GEN-02, D-GEN-07: by the query, by digits, by a whole number in any notation.
		second := s.add("user1", "BTC", "BTC", btc, "a")
		s.wants("user1", "DELETE ?id="+second, "", 200, `{"data":{"id":"`+second+`"}}`)
		third := s.add("user1", "BTC", "BTC", btc, "a")
		s.wants("user1", "DELETE", `{"id":`+third+`.0}`, 200, `{"data":{"id":"`+third+`"}}`)
		if first == second || second == third {
			t.Errorf("ids %s %s %s", first, second, third)
		}
	})
}

// REQ-WAD-03, 06, 07, D-WAD-05: every pair that is seeded works with an address
// of its network; everything else is INVALID_FIELD or a mismatch.
func TestAddresses(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		for i, c := range []struct{ currency, network, address string }{
			{"BTC", "BTC", btc}, {"BTC", "BTC", segwit}, {"ETH", "ETH", eth}, {"USDT", "ETH", strings.ToLower(otherEV)},
			{"USDT", "TRX", trx},
			{"TRX", "TRX", "TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7"}, {"XRP", "XRP", xrp}, {"SOL", "SOL", sol},
			{"USDC", "SOL", "Eq8dXTypgMVDHZQ2w3gx2CkNFWkYBCepBqHNXfDpGXyR"},
			{"DOGE", "DOGE", nth(1)}, {"DOGE", "DOGE", strings.Repeat("x", 10)},
			{"DOGE", "DOGE", strings.Repeat("x", 128)},
		} {
			s.add("user1", c.currency, c.network, c.address, fmt.Sprint("n", i))
		}
		for _, c := range []struct{ currency, network, address, want string }{
			{"NONE", "BTC", btc, "currencyCode"},
			{"btc", "BTC", btc, "currencyCode"},
			{"ETH", "ETH", "0x0000000000000000000000000000000000000000", "address"},
			{"USDT", "TRX", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "address"}, // the token's own contract
			{"OFF", "DOGE", nth(2), "currencyCode"},                          // inactive
			{"BTC", "NONE", btc, "networkCode"},
			{"DOGE", "DOWN", nth(2), "networkCode"}, // inactive
			{"BTC", "ETH", eth, "networkCode"},      // not linked
			{"DOGE", "SHUT", nth(2), "networkCode"}, // withdrawEnable false
			{"DOGE", "DEAD", nth(2), "networkCode"}, // the pair inactive
			{"NONE", "NONE", "x", "currencyCode networkCode address"},
			{"DOGE", "DOGE", strings.Repeat("x", 9), "address"},
		} {
			s.wants("user1", "POST", post(c.currency, c.network, c.address, "name"), 400, "INVALID_FIELD "+c.want)
		}
		for _, c := range []struct{ currency, network, address string }{
			{"BTC", "BTC", btc[:len(btc)-1] + "b"}, {"USDT", "TRX", eth}, {"USDT", "ETH", trx},
		} {
			s.wants("user1", "POST", post(c.currency, c.network, c.address, "name"), 422,
				"WD_NETWORK_ASSET_MISMATCH address")
		}
	})
}

// REQ-WAD-08, REQ-ERR-05, D-WAD-04: the NFC form of a name is kept and compared. However long it is, it is refused for
// its length.
func TestNames(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		id := s.add("user1", "DOGE", "DOGE", nth(102), "Cafe\u0301")
		s.wants("user1", "POST", post("DOGE", "DOGE", nth(103), "Caf\u00e9"), 409, "RECORD_ALREADY_EXIST name")
		long := strings.Repeat("a", 100_000)
		s.wants("user1", "POST", post("DOGE", "DOGE", nth(103), long), 400, "CHAR_LIMIT_EXCEEDED name")
		s.wants("user1", "PATCH", `{"id":`+id+`,"name":"`+long+`"}`, 400, "CHAR_LIMIT_EXCEEDED name")
		storetest.Equal(t, s.book("user1"), "Caf\u00e9="+nth(102), "the book")
	})
}

// REQ-WAD-09, D-WAD-02, D-WAD-06: names and addresses are unique per user,
// whatever the network; hexadecimal in any case is one address.
func TestUnique(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		s.add("user1", "ETH", "ETH", eth, "one")
		two := s.add("user1", "DOGE", "DOGE", nth(1), "two")
		three := s.add("user1", "USDT", "ETH", otherEV, "three")
		for _, c := range []struct{ currency, network, address, name, field string }{
			{"DOGE", "DOGE", nth(2), "one", "name"},
			{"DOGE", "DOGE", nth(2), " one ", "name"},
			{"DOGE", "DOGE", nth(1), "four", "address"},
			{"DOGE", "DOGE", " " + nth(1), "four", "address"},
			{"ETH", "ETH", strings.ToLower(eth), "four", "address"},
			{"USDT", "ETH", eth, "four", "address"},                              // another pair
			{"DOGE", "DOGE", "0x" + strings.ToUpper(eth[2:]), "four", "address"}, // another network
			{"DOGE", "DOGE", nth(1), "one", "name"},
		} {
			s.wants("user1", "POST", post(c.currency, c.network, c.address, c.name), 409,
				"RECORD_ALREADY_EXIST "+c.field)
		}
		s.add("user1", "DOGE", "DOGE", strings.ToUpper(nth(1)), "One") // exact where it is not hexadecimal

		s.wants("user1", "PATCH", `{"id":`+two+`,"name":"one"}`, 409, "RECORD_ALREADY_EXIST name")
		s.wants("user1", "PATCH", `{"id":`+two+`,"address":"`+strings.ToLower(eth)+`"}`, 409,
			"RECORD_ALREADY_EXIST address")
		s.wants("user1", "PATCH", `{"id":`+three+`,"address":"`+strings.ToLower(eth)+`"}`, 409,
			"RECORD_ALREADY_EXIST address")

		// Its own values are no obstacle, and another case of them is a change.
		before := s.rows()
		for range 2 {
			if status, answer := s.as("user1", "PATCH",
				`{"id":`+three+`,"name":"three","address":"`+otherEV+`"}`); status != 200 {
				t.Errorf("its own values: %d %s", status, answer)
			}
		}
		storetest.Equal(t, s.rows(), before, "nothing changed, and it was audited")
		if status, answer := s.as("user1", "PATCH",
			`{"id":`+three+`,"address":"`+strings.ToLower(otherEV)+`"}`); status != 200 ||
			!strings.Contains(answer, strings.ToLower(otherEV)) {
			t.Errorf("its own address in another case: %d %s", status, answer)
		}

		// Two users may have the same.
		s.add("user2", "ETH", "ETH", eth, "one")
	})
}

// D-WAD-03: of several errors the first in the order is returned.
func TestOrderOfErrors(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		long := strings.Repeat("n", 33)
		var id string
		for i := range 20 {
			id = s.add("user1", "DOGE", "DOGE", nth(i), fmt.Sprint("n", i))
		}
		eve := s.add("user2", "BTC", "BTC", btc, "mine")
		for _, c := range []struct {
			body   string
			status int
			want   string
		}{
			{post("NONE", "BTC", "short", long), 400, "INVALID_FIELD currencyCode address"},
			{post("BTC", "BTC", eth, long), 422, "WD_NETWORK_ASSET_MISMATCH address"},
			{post("DOGE", "DOGE", nth(0), long), 400, "CHAR_LIMIT_EXCEEDED name"},
			{post("DOGE", "DOGE", nth(0), "new"), 409, "RECORD_ALREADY_EXIST address"},
			{post("DOGE", "DOGE", nth(20), "n3"), 409, "RECORD_ALREADY_EXIST name"},
			{post("DOGE", "DOGE", nth(20), "new"), 409, "RECORD_LIMIT_REACHED"},
		} {
			s.wants("user1", "POST", c.body, c.status, c.want)
		}
		for _, c := range []struct {
			body   string
			status int
			want   string
		}{
			{`{"id":` + eve + `,"address":"short","name":"` + long + `"}`, 400, "INVALID_FIELD address"},
			{`{"id":` + eve + `,"name":" "}`, 400, "INVALID_FIELD name"},
			{`{"id":` + eve + `,"name":"","address":""}`, 400, "INVALID_FIELD address name"},
			{`{"id":` + eve + `}`, 400, "INVALID_FIELD address name"},
			{`{"id":` + eve + `,"address":"` + eth + `","name":"` + long + `"}`, 404, "RECORD_NOT_FOUND"},
			{`{"id":` + id + `,"address":"` + nth(0) + `","name":"` + long + `"}`, 400, "CHAR_LIMIT_EXCEEDED name"},
			{`{"id":` + id + `,"address":"` + nth(0) + `"}`, 409, "RECORD_ALREADY_EXIST address"},
		} {
			s.wants("user1", "PATCH", c.body, c.status, c.want)
		}
		s.wants("user2", "PATCH", `{"id":`+eve+`,"address":"`+eth+`","name":"`+long+`"}`, 422,
			"WD_NETWORK_ASSET_MISMATCH address")
		s.wants("user2", "PATCH", `{"id":`+eve+`,"address":"`+btc[:len(btc)-1]+`b"}`, 422,
			"WD_NETWORK_ASSET_MISMATCH address")

		// REQ-WAD-10: a full book takes changes, and one more after a removal.
		if status, answer := s.as("user1", "PATCH",
			`{"id":`+id+`,"name":"renamed","address":"`+nth(30)+`"}`); status != 200 {
			t.Errorf("a change in a full book: %d %s", status, answer)
		}
		s.as("user1", "DELETE", `{"id":`+id+`}`)
		s.add("user1", "DOGE", "DOGE", nth(20), "new")
		s.wants("user1", "POST", post("DOGE", "DOGE", nth(21), "newer"), 409, "RECORD_LIMIT_REACHED")
	})
}

// D-WAD-08, REQ-WAD-04, 05: another user's id is answered like an unknown id.
func TestSomeoneElsesID(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		id := s.add("user1", "BTC", "BTC", btc, "mine")
		for _, other := range []string{id, "0", "999999", "9007199254740991"} {
			s.wants("user2", "PATCH", `{"id":`+other+`,"name":"theirs"}`, 404, "RECORD_NOT_FOUND")
			s.wants("user2", "DELETE", `{"id":`+other+`}`, 404, "RECORD_NOT_FOUND")
		}
		storetest.Equal(t, s.book("user1")+s.book("user2"), "mine="+btc, "the books")
		s.as("user1", "DELETE", `{"id":`+id+`}`)
		s.wants("user1", "DELETE", `{"id":`+id+`}`, 404, "RECORD_NOT_FOUND")
	})
}

// REQ-WAD-10, REQ-LIM-06, REQ-ERR-06, D-WAD-03: twenty additions at once to a
// book of fifteen leave exactly twenty.
func TestParallelAdditions(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		for i := range 15 {
			s.add("user1", "DOGE", "DOGE", nth(i), fmt.Sprint("n", i))
		}
		count := s.race(20, func(i int) (int, string) {
			return s.as("user1", "POST", post("DOGE", "DOGE", nth(100+i), fmt.Sprint("m", i)))
		})
		if !maps.Equal(count, map[string]int{"200": 5, "409 RECORD_LIMIT_REACHED": 15}) {
			t.Errorf("answers %v", count)
		}
		if n := len(strings.Fields(s.book("user1"))); n != 20 || s.rows() != 20 {
			t.Errorf("%d addresses, %d audit rows", n, s.rows())
		}

		// One name and one address, however many requests run concurrently.
		count = s.race(8, func(i int) (int, string) {
			return s.as("user2", "POST", post("DOGE", "DOGE", nth(i), "the name"))
		})
		if !maps.Equal(count, map[string]int{"200": 1, "409 RECORD_ALREADY_EXIST name": 7}) {
			t.Errorf("one name: %v", count)
		}
		count = s.race(8, func(i int) (int, string) {
			return s.as("user3", "POST", post("DOGE", "DOGE", nth(0), fmt.Sprint("n", i)))
		})
		if !maps.Equal(count, map[string]int{"200": 1, "409 RECORD_ALREADY_EXIST address": 7}) {
			t.Errorf("one address: %v", count)
		}
	})
}

// race makes requests at once and counts their answers.
func (s *addressbookService) race(n int, do func(i int) (int, string)) map[string]int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := map[string]int{}
	for i := range n {
		wg.Go(func() {
			status, answer := do(i)
			key := "200"
			if status != 200 {
				key = fmt.Sprint(status, " ", answer)
			}
			mu.Lock()
			count[key]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return count
}

// D-EXT-03: every change is audited with it, and a refusal leaves nothing.
func TestAudit(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		id := s.add("user1", "BTC", "BTC", btc, "secret of the name")
		s.as("user1", "PATCH", `{"id":`+id+`,"name":"another","address":"`+segwit+`"}`)
		s.wants("user1", "POST", post("BTC", "BTC", segwit, "another"), 409, "RECORD_ALREADY_EXIST name")
		s.wants("user1", "PATCH", `{"id":`+id+`,"address":"`+eth+`"}`, 422, "WD_NETWORK_ASSET_MISMATCH address")
		s.wants("user2", "DELETE", `{"id":`+id+`}`, 404, "RECORD_NOT_FOUND")
		s.as("user1", "DELETE", `{"id":`+id+`}`)
		acts := persistencetest.Acts(t, s.db)
		slices.Sort(acts) // several have the same time
		storetest.Same(t, acts, []string{"WITHDRAWAL_ADDRESS_ADD|user1|user1|" + id + "|BTC on BTC: " + btc,
			"WITHDRAWAL_ADDRESS_REMOVE|user1|user1|" + id + "|" + segwit,
			"WITHDRAWAL_ADDRESS_UPDATE|user1|user1|" + id + "|" + btc + " -> " + segwit + ", name changed"})
	})
}

// The extension: with a waiting time records say from when they may be used. It
// counts from when the address was entered; a new name does not start it again.
func TestWaitingTime(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		usable := func(answer string) string {
			var got struct{ Data map[string]any }
			storetest.Must(t, json.Unmarshal([]byte(answer), &got))
			at, _ := got.Data["usableFrom"].(string)
			if keys := slices.Sorted(maps.Keys(got.Data)); len(keys) != 8 {
				t.Errorf("keys %v", keys)
			}
			return at
		}
		old := s.add("user1", "BTC", "BTC", btc, "old") // before it was configured
		s.books.Waiting = 24 * time.Hour
		s.now = s.now.Add(time.Hour)
		_, answer := s.as("user1", "POST", post("ETH", "ETH", eth, "new"))
		storetest.Equal(t, usable(answer), "2027-01-16T09:00:00.123Z", "usable from")
		var list []struct{ ID, UsableFrom string }
		_, all := s.as("user1", "GET", "")
		storetest.Must(t, json.Unmarshal([]byte(all), &list))
		if len(list) != 2 || list[0].ID != old || list[0].UsableFrom != "2027-01-16T08:00:00.123Z" ||
			list[1].UsableFrom != "2027-01-16T09:00:00.123Z" {
			t.Errorf("listed %s", all)
		}
		id := list[1].ID
		s.now = s.now.Add(time.Hour)
		for body, want := range map[string]string{
			`"name":"renamed"`:                         "2027-01-16T09:00:00.123Z",
			`"address":"` + strings.ToLower(eth) + `"`: "2027-01-16T09:00:00.123Z",
			`"address":"` + eth + `","name":"renamed"`: "2027-01-16T09:00:00.123Z",
		} {
			if _, answer := s.as("user1", "PATCH", `{"id":`+id+`,`+body+`}`); usable(answer) != want {
				t.Errorf("%s: %s", body, answer)
			}
		}
		if _, answer := s.as("user1", "PATCH", `{"id":`+id+`,"address":"`+otherEV+`"}`); usable(
			answer) != "2027-01-16T10:00:00.123Z" {
			t.Errorf("another address: %s", answer)
		}
		s.books.Waiting = 0
		if _, all := s.as("user1", "GET", ""); strings.Contains(all, "usableFrom") {
			t.Errorf("nothing is configured: %s", all)
		}
	})
}
