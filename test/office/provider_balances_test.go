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

// Nodes read each slot once, from an exchange that verifies signatures and from a file. A failing account does
// not affect the others, and no key is stored.
func TestProviderBalancesAreReadOncePerSlot(t *testing.T) {
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
			balancesArrive(t, blackbox.NewSite(t, kind), start)
		})
	}
}

func balancesArrive(t *testing.T, s *blackbox.Site, start func(*blackbox.Site, []string) []*blackbox.Node) {
	var asked, refused atomic.Int64
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
		asked.Add(1)
		fmt.Fprint(w, `{"balances":[{"asset":"BTC","free":"41.735200000000000001","locked":"0.10000000"},`+
			`{"asset":"XRP","free":"0.0","locked":"0.0"}]}`)
	}))
	t.Cleanup(exchange.Close)
	file := filepath.Join(t.TempDir(), "vault.json")
	storetest.Must(t, os.WriteFile(file, []byte(`{"cold":[{"asset":"ETH","free":7,"locked":0}]}`), 0o600))
	settings := []string{"PROVIDERS_EXCHANGES=spot=" + exchange.URL, "PROVIDERS_FILES=vault=" + file,
		"PROVIDERS_ACCOUNTS=spot/main=swordfish:hunter2,spot/bad=swordfish:hunter3"}
	nodes := start(s, settings)
	token, _ := nodes[0].Session(t, s.Seeded("admin"))
	for _, n := range nodes {
		for query, want := range map[string]string{
			"?provider=spot": `[{"accountname":"main","assetObject":{"asset":"BTC","free":41.735200000000000001,` +
				`"locked":0.1}}]`,
			"?provider=vault": `[{"accountname":"cold","assetObject":{"asset":"ETH","free":7,"locked":0}}]`,
		} {
			blackbox.Until(t, blackbox.Within(20), "the balances are there", func() bool {
				return string(n.Do(t, "GET", "/process/get-provider-balances"+query, nil,
					blackbox.Headers{"x-auth": token}).Body) == want
			})
		}
	}
	slots := s.Count("job WHERE kind = 'fetch-balances'") // two, if five minutes pass meanwhile
	if n := asked.Load(); n != int64(slots) || s.Count("provider_snapshot") != 2*slots || refused.Load() == 0 {
		t.Errorf("asked %d times in %d slots, %d refused", n, slots, refused.Load())
	}
	for _, secret := range []string{"swordfish", "hunter2", "hunter3"} {
		if hits := blackbox.Find(s.AtRest(), secret); len(hits) > 0 {
			t.Errorf("%s is kept in %v", secret, hits)
		}
	}
}
