package provider_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/provider"
	outbound "castellan/outbound/provider"
)

var now = time.UnixMilli(1_800_000_000_000)

// exchange is a spot exchange over TLS that verifies keys and signatures, as real ones do.
type exchange struct {
	*httptest.Server
	secrets map[string]string // by key
	answer  string
	status  int
	asked   int
}

func start(t *testing.T) (*exchange, outbound.Config) {
	t.Helper()
	x := &exchange{secrets: map[string]string{"swordfish": "hunter2"}, status: 200}
	x.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.asked++
		if err := x.verify(r); err != nil {
			w.WriteHeader(401)
			fmt.Fprintf(w, `{"code":-1022,"msg":%q}`, err)
			return
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(x.status)
		fmt.Fprint(w, x.answer)
	}))
	t.Cleanup(x.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.Certificate().Raw})
	storetest.Must(t, os.WriteFile(file, block, 0o600))
	return x, outbound.Config{URL: x.URL + "/", Header: "X-Mbx-Apikey", Key: "swordfish", Secret: "hunter2", CAFile: file,
		Timeout: 5 * time.Second, Now: func() time.Time { return now }}
}

func (x *exchange) verify(r *http.Request) error {
	signed, signature, _ := strings.Cut(r.URL.RawQuery, "&signature=")
	secret, known := x.secrets[r.Header.Get("X-Mbx-Apikey")]
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	at, err := strconv.ParseInt(r.URL.Query().Get("timestamp"), 10, 64)
	switch {
	case r.Method != http.MethodGet || r.URL.Path != "/api/v3/account":
		return errors.New("no such endpoint")
	case !known || hex.EncodeToString(mac.Sum(nil)) != signature:
		return errors.New("signature is not valid")
	case err != nil || at != now.UnixMilli() || r.URL.Query().Get("recvWindow") != "5000":
		return errors.New("timestamp is outside of the window")
	}
	return nil
}

// fetch returns the accounts of a source, in the order of names.
func fetch(t *testing.T, s provider.Source) string {
	t.Helper()
	accounts, err := s.Fetch(t.Context())
	if err != nil {
		for _, secret := range []string{"hunter2", "swordfish", "signature=", "recvWindow"} {
			storetest.Lacks(t, err.Error(), secret)
		}
		return err.Error()
	}
	slices.SortFunc(accounts, func(a, b provider.Account) int { return cmp.Compare(a.Name, b.Name) })
	return fmt.Sprint(accounts)
}

func source(t *testing.T, c outbound.Config) provider.Source {
	t.Helper()
	return storetest.Value(outbound.NewExchange(c))(t)
}

// Amounts keep all digits; invalid balances are counted.
func TestExchange(t *testing.T) {
	x, c := start(t)
	x.answer = `{"makerCommission":15,"canTrade":true,"balances":[{"asset":"BTC","free":"4723846.898500000000000001",` +
		`"locked":"0.10000000"},{"asset":"LTC","free":"0.00000000","locked":"0.00000000"},{"asset":"usdt","free":5,` +
		`"locked":0.5},{"asset":"NEG","free":"-1","locked":"0"},{"asset":"BIG","free":"1e400","locked":"0"},` +
		`{"asset":"A B","free":"1","locked":"0"},{"asset":"NIL","free":null,"locked":"0"},{"free":"1","locked":"1"}]}`
	want := "[{ [{BTC 4723846.898500000000000001 0.1} {LTC 0 0} {USDT 5 0.5}] 5}]"
	storetest.Equal(t, fetch(t, source(t, c)), want)
	for _, change := range []func(*outbound.Config){
		func(c *outbound.Config) { c.Secret = "other" }, func(c *outbound.Config) { c.Key = "other" },
		func(c *outbound.Config) { c.Header = "X-Other" }, func(c *outbound.Config) { c.URL += "v2" },
		func(c *outbound.Config) { c.Now = func() time.Time { return now.Add(time.Hour) } },
	} {
		wrong := c
		change(&wrong)
		storetest.Equal(t, fetch(t, source(t, wrong)), "the provider answered 401")
	}
}

func TestFaults(t *testing.T) {
	x, c := start(t)
	for _, tc := range []struct {
		status       int
		answer, want string
	}{
		{500, `{}`, "answered 500"}, {200, ``, "is not"}, {200, `[]`, "is not"},
		{200, `{"balances":{}}`, "is not"}, {200, `{"code":-2015,"msg":"Invalid API-key"}`, "is not"},
		{200, `{"balances":null}`, "is not"}, {200, `{"balances":[]}`, "[{ [] 0}]"},
	} {
		x.status, x.answer = tc.status, tc.answer
		if got := fetch(t, source(t, c)); !strings.Contains(got, tc.want) {
			t.Errorf("%d %.60s: %s, want %s", tc.status, tc.answer, got, tc.want)
		}
	}
	x.status = 503
	failing, before := source(t, c), x.asked
	for range 3 {
		fetch(t, failing)
	}
	if got := fetch(t, failing); !strings.Contains(got, "is paused") || x.asked != before+3 {
		t.Errorf("asked %d times: %s", x.asked-before, got)
	}
}

func TestSettings(t *testing.T) {
	good := outbound.Config{URL: "https://exchange.test", Header: "X-Key", Key: "k", Secret: "s"}
	storetest.Is(t, storetest.Err(outbound.NewExchange(good)), nil)
	for want, change := range map[string]func(*outbound.Config){
		"loopback":           func(c *outbound.Config) { c.URL = "http://exchange.test" },
		"control characters": func(c *outbound.Config) { c.Key = "a\nb" },
		"a key and a secret": func(c *outbound.Config) { c.Secret = "" },
	} {
		c := good
		change(&c)
		storetest.Fails(t, storetest.Err(outbound.NewExchange(c)), want)
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "balances.json")
	for text, want := range map[string]string{
		`{"main":[{"asset":"BTC","free":"1.5","locked":"0"},{"asset":"x","free":"?","locked":"0"}],"cold":[]}`: "[{cold " +
			"[] 0} {main [{BTC 1.5 0}] 1}]",
		`{}`: "[]", ``: "is not", `{"main":{}}`: "is not", `{"AllAccounts":[]}`: "not a valid", `{"":[]}`: "not a valid",
		`{"main":[]` + strings.Repeat(" ", 1<<20) + `}`: "1 MiB",
	} {
		storetest.Must(t, os.WriteFile(file, []byte(text), 0o600))
		if got := fetch(t, outbound.File(file)); !strings.Contains(got, want) {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
	storetest.Is(t, storetest.Err(outbound.File(file+".not").Fetch(context.Background())), os.ErrNotExist)
}
