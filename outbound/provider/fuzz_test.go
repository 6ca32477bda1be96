package provider

import (
	"encoding/json"
	"testing"
)

// FuzzAccount checks that only balances of at least zero are kept from an exchange's answer; the others are
// counted.
func FuzzAccount(f *testing.F) {
	f.Add([]byte(`[{"asset":"BTC","free":"1.5","locked":0}]`))
	f.Add([]byte(`[{"asset":"btc","free":"-1","locked":1e400},{"asset":"","free":null},{}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var all []told
		if json.Unmarshal(body, &all) != nil {
			return
		}
		a := account("main", all)
		if len(a.Balances)+a.LeftOut != len(all) {
			t.Fatalf("%q: %d balances and %d left out of %d", body, len(a.Balances), a.LeftOut, len(all))
		}
		for _, b := range a.Balances {
			if b.Asset == "" || b.Free.Sign() < 0 || b.Locked.Sign() < 0 {
				t.Fatalf("%q gives %+v", body, b)
			}
		}
	})
}
