package rate

import "testing"

// FuzzAnswer checks that only rates of two different currencies are kept from a provider's answer.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"base":"USD","rates":{"TRY":41.5,"BTC":1e-5,"x":"1"}}`))
	f.Add([]byte(`{"base":"usd","rates":{"USD":1,"EUR":-1,"TRY":null}}`))
	p := &Provider{}
	f.Fuzz(func(t *testing.T, body []byte) {
		quotes, leftOut, err := p.read(body)
		if err == nil && (len(quotes) == 0 || leftOut < 0) {
			t.Fatalf("%q: %d rates, %d left out", body, len(quotes), leftOut)
		}
		for _, q := range quotes {
			if q.Base == q.Quote || q.Base == "" || q.Quote == "" {
				t.Fatalf("%q gives %+v", body, q)
			}
		}
	})
}
