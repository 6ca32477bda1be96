package rate_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/money/rate"
)

// FuzzReadCSV: an accepted file holds rates above zero between two currencies, none later than now.
func FuzzReadCSV(f *testing.F) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f.Add("base,quote,rate,date\nBTC,USD,1.5,2026-01-31\n")
	f.Add("\ufeffdate,rate,quote,base,x\n2026-01-31T10:00:00Z,0.1,TRY,USD,\"a\nb\"\n")
	f.Add("base,quote,rate,date\nBTC,BTC,-1,2999-01-01\n")
	f.Fuzz(func(t *testing.T, text string) {
		quotes, err := rate.ReadCSV(strings.NewReader(text), now, func(int) {})
		if err != nil {
			return
		}
		for _, q := range quotes {
			_, base := rate.Code(q.Base)
			_, quote := rate.Code(q.Quote)
			if !base || !quote || q.Base == q.Quote || q.At.After(now) {
				t.Fatalf("%q gives %+v", text, q)
			}
			if again, err := rate.Parse(q.Rate.String()); err != nil || again.String() != q.Rate.String() {
				t.Fatalf("%q gives the rate %s: %v", text, q.Rate, err)
			}
		}
	})
}
