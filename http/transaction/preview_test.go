package transaction_test

import (
	"strings"
	"testing"
)

const previewing = "GET /admin/transaction/adjust-balance/preview"

// D-TX-12: both accounts before and after, to the last digit, and nothing is booked;
// what the adjustment is refused for, the preview is.
func TestPreviewAdjustment(t *testing.T) {
	both(t, func(s site) {
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
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0.26&type=D":      "INVALID_STATE",
			"userId=nobody&currencyCode=BTC&networkCode=BTC&amount=0.1&type=C":     "RECORD_NOT_FOUND",
			"userId=jane&currencyCode=XYZ&networkCode=BTC&amount=0.1&type=C":       "RECORD_NOT_FOUND",
			"userId=jane&currencyCode=ETH&networkCode=ETH&amount=0.1&type=D":       "INVALID_STATE",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0&type=C":         "INVALID_FIELD",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0.1&type=X":       "INVALID_FIELD",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=1e-9&type=C":      "INVALID_FIELD",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=1.2.3&type=C":     "INVALID_FIELD",
			"userId=jane&currencyCode=BTC&networkCode=BTC&type=C":                  "INVALID_FIELD",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0.123456789&type": "INVALID_FIELD",
		} {
			if _, got := s.Call(previewing+"?"+query, ""); !strings.Contains(got, `"code":"`+code+`"`) {
				t.Errorf("%s: %s, want %s", query, got, code)
			}
		}
	})
}

// The reason of an adjustment goes to the audit, and tells no adjustment from another.
func TestAdjustmentReason(t *testing.T) {
	both(t, func(s site) {
		_, first := s.Call(adjust, body("$more", `,"reason":" A deposit was booked short "`))
		s.Wants(adjust, body("$more", `,"reason":"something else"`), 200, first)
		if got := s.count("audit", "detail = 'C 0.25 BTC; A deposit was booked short'"); got != 1 {
			t.Errorf("%d rows of the audit with the reason, want one", got)
		}
	})
}
