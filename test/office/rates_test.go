package office

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// castellan rates import (D-CUR-07): all or nothing, with the number of an invalid line; the same file can be
// repeated.
func TestRatesImportIsAllOrNothing(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		file := filepath.Join(t.TempDir(), "rates.csv")
		run := func(code int, text string, want ...string) {
			t.Helper()
			storetest.Must(t, os.WriteFile(file, []byte(text), 0o600))
			s.Says(code, "rates import "+file, want...)
		}
		const two = "base,quote,rate,date\nUSD,TRY,41.7352,2026-01-31\nEUR,USD,1.2,2026-01-31T10:00:00Z\n"
		run(1, two+"EUR,USD,0,2026-02-01\n", "line 4", "nothing is stored")
		s.Says(1, "rates import "+file+".not")
		run(0, two, "storing 2 rates", "stored 2 rates, 2 of them new or changed")
		run(0, two, "stored 2 rates, 0 of them")
		run(0, strings.Replace(two, "1.2", "1.3", 1), "stored 2 rates, 1 of them")
		for clause, want := range map[string]int{"exchange_rate": 2, "exchange_rate WHERE source = 'import'": 2,
			"audit WHERE action = 'RATES_IMPORT' AND actor_id = 'operator'": 2, "audit WHERE detail = 'rates=2 changed=1'": 1} {
			s.Has(want, clause)
		}
	})
}

// Nodes read each slot once: the rates, which they serve to a scheduled client, and the balances of an exchange that
// verifies signatures and of a file. A failing account does not affect the others, and no key is stored.
func TestRatesAndBalancesAreReadOncePerSlot(t *testing.T) {
	t.Parallel()
	for kind, start := range map[string]func(*blackbox.Site, []string) []*blackbox.Node{
		"sqlite": func(s *blackbox.Site, settings []string) []*blackbox.Node {
			return []*blackbox.Node{s.Start(settings...)}
		},
		"postgres": func(s *blackbox.Site, settings []string) []*blackbox.Node {
			c := s.Cluster()
			return []*blackbox.Node{c.Join(settings...), c.Join(settings...)}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ratesAndBalancesArrive(t, blackbox.NewSite(t, kind), start)
		})
	}
}

func ratesAndBalancesArrive(t *testing.T, s *blackbox.Site, start func(*blackbox.Site, []string) []*blackbox.Node) {
	var ratesAsked, balancesAsked, refused atomic.Int64
	rates := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ratesAsked.Add(1)
		if r.Header.Get("Authorization") != "Bearer swordfish" {
			w.WriteHeader(401)
			return
		}
		fmt.Fprint(w, `{"base":"USD","rates":{"TRY":41.735200000000000001,"EUR":0.8}}`)
	}))
	t.Cleanup(rates.Close)
	exchange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed, signature, _ := strings.Cut(r.URL.RawQuery, "&signature=")
		mac := hmac.New(sha256.New, []byte("hunter2"))
		mac.Write([]byte(signed))
		if r.URL.Path != "/api/v3/account" || r.Header.Get("X-MBX-APIKEY") != "swordfish" ||
			signature != hex.EncodeToString(mac.Sum(nil)) {
			refused.Add(1)
			w.WriteHeader(401)
			return
		}
		balancesAsked.Add(1)
		fmt.Fprint(w, `{"balances":[{"asset":"BTC","free":"41.735200000000000001","locked":"0.10000000"},`+
			`{"asset":"XRP","free":"0.0","locked":"0.0"}]}`)
	}))
	t.Cleanup(exchange.Close)
	file := filepath.Join(t.TempDir(), "vault.json")
	storetest.Must(t, os.WriteFile(file, []byte(`{"cold":[{"asset":"ETH","free":7,"locked":0}]}`), 0o600))
	cron := blackbox.Headers{"cron-auth": strings.TrimSpace(s.Says(0, "cron-key add rates").Out)}
	nodes := start(s, []string{"RATES_URL=" + rates.URL + "/latest", "RATES_KEY=Bearer swordfish", "RATES_EVERY=24h",
		"PROVIDERS_EXCHANGES=spot=" + exchange.URL, "PROVIDERS_FILES=vault=" + file,
		"PROVIDERS_ACCOUNTS=spot/main=swordfish:hunter2,spot/bad=swordfish:hunter3"})
	const atRates, atBalances = "/rates/get-currency-rates", "/process/get-provider-balances"
	boss := blackbox.Admin(t, s, nodes[0])
	for _, n := range nodes {
		for _, c := range []struct {
			path, want string
			who        blackbox.Headers
		}{
			{atRates, `{"base":"USD","quote":"TRY","rate":41.735200000000000001}`, cron},
			{atRates + "?base=EUR", `{"base":"EUR","quote":"TRY","rate":52.169}`, cron},
			{atBalances + "?provider=spot", `[{"accountname":"main","assetObject":{"asset":"BTC",` +
				`"free":41.735200000000000001,"locked":0.1}}]`, boss},
			{atBalances + "?provider=vault",
				`[{"accountname":"cold","assetObject":{"asset":"ETH","free":7,"locked":0}}]`, boss},
		} {
			blackbox.Until(t, blackbox.Within(20), c.path+" answers "+c.want, func() bool {
				return string(n.Do(t, "GET", c.path, nil, c.who).Body) == c.want
			})
		}
	}
	slots := s.Count("job WHERE kind = 'fetch-rates'") // two, if midnight passes meanwhile
	if n := ratesAsked.Load(); n != int64(slots) || s.Count("exchange_rate") != 2*slots {
		t.Errorf("asked for rates %d times in %d slots, %d rates", n, slots, s.Count("exchange_rate"))
	}
	s.Has(2*slots, "exchange_rate WHERE source = $1", strings.TrimPrefix(rates.URL, "http://"))
	slots = s.Count("job WHERE kind = 'fetch-balances'") // two, if five minutes pass meanwhile
	if n := balancesAsked.Load(); n != int64(slots) || s.Count("provider_snapshot") != 2*slots || refused.Load() == 0 {
		t.Errorf("asked for balances %d times in %d slots, %d refused", n, slots, refused.Load())
	}
	for _, secret := range []string{"swordfish", "hunter2", "hunter3"} {
		if hits := blackbox.Find(s.AtRest(), secret); len(hits) > 0 {
			t.Errorf("%s is kept in %v", secret, hits)
		}
	}
}
