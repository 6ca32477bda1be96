package money_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/http/edge"
	httptransaction "castellan/http/money/transaction"
	"castellan/http/rest"
)

const previewing = "GET /admin/transaction/adjust-balance/preview"

// D-TX-12: both accounts before and after, to the last digit, and nothing is booked;
// what the adjustment is refused for, the preview is.
func TestPreviewAdjustment(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		ask := func(query string) string {
			t.Helper()
			status, got := s.Call(previewing+"?userId=jane&currencyCode=BTC&networkCode=BTC"+query, "")
			if status != 200 {
				t.Fatalf("%d %s", status, got)
			}
			return got
		}
		want := `{"user":{"before":{"balance":0,"available":0,"locked":0},` +
			`"after":{"balance":0.25,"available":0.25,"locked":0}},` +
			`"treasury":{"before":{"balance":0},"after":{"balance":-0.25}}}`
		if got := ask("&amount=0.25&type=C"); got != want {
			t.Errorf("nothing yet: %s, want %s", got, want)
		}
		s.Call(adjust, body())
		want = `{"user":{"before":{"balance":0.25,"available":0.25,"locked":0},` +
			`"after":{"balance":0.24999999,"available":0.24999999,"locked":0}},` +
			`"treasury":{"before":{"balance":-0.25},"after":{"balance":-0.24999999}}}`
		if got := ask("&amount=0.00000001&type=D"); got != want {
			t.Errorf("a debit: %s, want %s", got, want)
		}
		s.has("0.25")
		if s.count("transfer") != 1 {
			t.Error("a preview is booked")
		}
		for query, code := range map[string]string{
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0.26&type=D":  "INVALID_STATE",
			"userId=nobody&currencyCode=BTC&networkCode=BTC&amount=0.1&type=C": "RECORD_NOT_FOUND",
			"userId=jane&currencyCode=XYZ&networkCode=BTC&amount=0.1&type=C":   "RECORD_NOT_FOUND",
			"userId=jane&currencyCode=ETH&networkCode=ETH&amount=0.1&type=D":   "INVALID_STATE",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0&type=C":     "INVALID_FIELD",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=1e-9&type=C":  "INVALID_FIELD",
		} {
			if _, got := s.Call(previewing+"?"+query, ""); !strings.Contains(got, `"code":"`+code+`"`) {
				t.Errorf("%s: %s, want %s", query, got, code)
			}
		}
	})
}

// The reason of an adjustment goes to the audit log, and is not part of the identity of the adjustment.
func TestAdjustmentReason(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		_, first := s.Call(adjust, body("$more", `,"reason":" A deposit was booked short "`))
		s.Wants(adjust, body("$more", `,"reason":"something else"`), 200, first)
		if got := s.count("audit", "detail = 'C 0.25 BTC; A deposit was booked short'"); got != 1 {
			t.Errorf("%d rows of the audit with the reason, want one", got)
		}
	})
}

// The approver of a request sees the deposits and the withdrawal that it names, before and
// after. Nothing of them changes.
func TestChanges(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "10")
		one, other := s.deposit(transaction.WaitingTreasury, "1"), s.deposit(transaction.WaitingTreasury, "2")
		queued := s.enqueue(transaction.TimeOut, "3", func(*transaction.Queued) {})
		table := edge.NewIndex(httptransaction.Group{Service: s.service,
			Numbers: httptransaction.Numbers{FinalizedDeposit: 2, HotWallet: 6, TimeOut: 7}}.Endpoints())
		for _, c := range []struct{ key, body, want string }{
			{"POST /admin/update-status-transaction", `{"transactionIds":["` + one + `","` + other + `"],"status":2}`,
				"deposit " + one + ` {"userId":"jane","currencyCode":"BTC","amount":1,"status":"waitingTreasuryApproval"} ` +
					`{"userId":"jane","currencyCode":"BTC","amount":1,"status":"finalizedDeposit"}; deposit ` + other +
					` {"userId":"jane","currencyCode":"BTC","amount":2,"status":"waitingTreasuryApproval"} ` +
					`{"userId":"jane","currencyCode":"BTC","amount":2,"status":"finalizedDeposit"}`},
			{decide, decision(queued, "4", `"BTC"`), "withdrawal " + queued +
				` {"userId":"jane","currencyCode":"BTC","amount":3,"address":"bc1away","status":"timeOut"} ` +
				`{"userId":"jane","currencyCode":"BTC","amount":3,"address":"bc1away","status":"success"}`},
			{decide, decision("none", "4", `"BTC"`), "RECORD_NOT_FOUND"},
		} {
			in, _, err := table[c.key].Bind(rest.Query{}, []byte(c.body))
			storetest.Must(t, err)
			all, err := table[c.key].Preview(t.Context(), in)
			var got []string
			for _, ch := range all {
				before, _ := json.Marshal(ch.Before)
				after, _ := json.Marshal(ch.After)
				got = append(got, fmt.Sprintf("%s %s %s %s", ch.Of, ch.ID, before, after))
			}
			if text := strings.Join(got, "; "); text != c.want && string(fault.CodeOf(err)) != c.want {
				t.Errorf("%s: %v\n got %s\nwant %s", c.key, err, text, c.want)
			}
		}
	})
}
