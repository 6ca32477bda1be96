package money_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

const adjust = "POST /admin/transaction/adjust-balance"

// body is a good request of which a case changes a part.
func body(change ...string) string {
	return strings.NewReplacer(append(change, "$user", `"jane"`, "$currency", `"BTC"`, "$network", `"BTC"`,
		"$amount", "0.25", "$type", `"C"`, "$id", `"u1"`, "$more", "")...).Replace(`{"userId":$user,` +
		`"currencyCode":$currency,"networkCode":$network,"amount":$amount,"type":$type,"uniqueId":$id$more}`)
}

// D-TX-05, D-TX-10: a deposit and a withdrawal, with their rows and one address.
func TestAdjustBalance(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		status, first := s.Call(adjust, body("$more", `,"timestamp":1700000000000,"status":9,"address":"x"`))
		for _, want := range []string{`{"code":null,"data":{"transactionId":"`, `"userId":"jane"`, `"currencyCode":"BTC"`,
			`"networkCode":"BTC"`, `"amount":0.25,`, `"type":"C"`, `"uniqueId":"u1"`, `"status":1,`,
			`"timestamp":1700000000000`, `"address":"castellan:`} {
			if status != 200 || !strings.Contains(first, want) {
				t.Errorf("%d %s, want %s", status, first, want)
			}
		}
		s.has("0.25")
		status, second := s.Call(adjust, body("$type", `"D"`, "$amount", `"0.05"`, "$id", `"u2"`))
		if status != 200 || !strings.Contains(second, `"toAddress":"bc1treasury"`) ||
			!strings.Contains(second, `"amount":0.05,"type":"D"`) {
			t.Errorf("%d %s", status, second)
		}
		s.has("0.2")
		if s.count("deposit") != 1 || s.count("withdrawal") != 1 || s.count("coin_address") != 1 {
			t.Error("the rows of the business")
		}
		// D-TX-06: the same again gets the first answer.
		s.Wants(adjust, body("$more", `,"timestamp":1700000000000`), 200, first)
		s.Wants(adjust, body("$type", `"D"`, "$amount", `"0.05"`, "$id", `"u2"`), 200, second)
		s.has("0.2")
	})
}

func TestAdjustBalanceRefuses(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.Call(adjust, body())
		refused := func(message string) string { return fmt.Sprintf(`{"code":1,"data":null,"message":%q}`, message) }
		for in, want := range map[string]string{
			body("$currency", `"XYZ"`, "$id", `"a"`):              "there is no such currency on this network",
			body("$network", `"XYZ"`, "$id", `"b"`):               "there is no such currency on this network",
			body("$user", `"nobody"`, "$id", `"c"`):               "there is no such user",
			body("$type", `"D"`, "$amount", "0.26", "$id", `"d"`): "the available balance is insufficient",
			body("$amount", "0.26"):                               "the reference belongs to another movement",
			body("$type", `"D"`):                                  "the reference belongs to another movement",
			body("$more", `,"timestamp":5`):                       "the reference belongs to another movement",
			body("$currency", `"ETH"`, "$network", `"ETH"`, "$type", `"D"`, "$id", `"e"`): "the treasury has no address " +
				"for this currency and network",
		} {
			s.Wants(adjust, in, 200, refused(want))
		}
		for in, field := range map[string]string{
			body("$amount", "0"):                                "amount",
			body("$amount", "-1"):                               "amount",
			body("$amount", "0.123456789"):                      "amount",
			body("$id", `"z"`, "$amount", "999999999999999999"): "amount",
			body("$id", `"z"`, "$more", `,"timestamp":0`):       "timestamp",
			body("$id", `"z"`, "$more", `,"timestamp":9e18`):    "timestamp",
			`{"currencyCode":"BTC"}`:                            "userId",
			body("$id", `"z"`, "$amount", "0.3", "$more", `,"`): "",
		} {
			status, got := s.Call(adjust, in)
			if status != 400 || !strings.Contains(got, `"code":1,"data":null,"message":"`+field) ||
				!strings.Contains(got, `"error":"INVALID_FIELD"`) {
				t.Errorf("%s: %d %s", in, status, got)
			}
		}
		s.has("0.25")
		if s.count("deposit") != 1 || s.count("withdrawal") != 0 || s.count("transfer") != 1 {
			t.Error("something was written")
		}
	})
}

// 64 at once with one uniqueId are one movement and equal
// answers; with 64 contents one is made and 63 are refused.
func TestAdjustBalanceInARace(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		race := func(in func(i int) string) map[string]int {
			answers := map[string]int{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					status, got := s.Call(adjust, in(i))
					if status != 200 {
						t.Errorf("%d %s", status, got)
					}
					mu.Lock()
					defer mu.Unlock()
					answers[got]++
				})
			}
			wg.Wait()
			return answers
		}
		if got := race(func(int) string { return body() }); len(got) != 1 {
			t.Errorf("answers: %v", got)
		}
		s.has("0.25")
		got := race(func(i int) string { return body("$id", `"u2"`, "$amount", fmt.Sprint(i+1)) })
		if len(got) != 2 || got[`{"code":1,"data":null,"message":"the reference belongs to another movement"}`] != 63 {
			t.Errorf("answers: %v", got)
		}
		if s.count("transfer") != 2 {
			t.Errorf("%d transfers", s.count("transfer"))
		}
	})
}
