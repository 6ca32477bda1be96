package rate_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
	outbound "castellan/outbound/rate"
)

// server answers as a provider over TLS and counts the requests.
type server struct {
	*httptest.Server
	status  int
	answer  string
	asked   int
	headers http.Header
	pause   time.Duration
}

func start(t *testing.T) (*server, outbound.Config) {
	t.Helper()
	s := &server{status: 200}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked++
		s.headers = r.Header
		select {
		case <-time.After(s.pause):
		case <-r.Context().Done():
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(s.status)
		fmt.Fprint(w, s.answer)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	storetest.Must(t, os.WriteFile(file, block, 0o600))
	return s, outbound.Config{URL: s.URL + "/latest?app=hunter2", Header: "X-Api-Key", Key: "swordfish", CAFile: file,
		Timeout: 5 * time.Second, Now: time.Now}
}

func provider(t *testing.T, c outbound.Config) *outbound.Provider {
	t.Helper()
	return storetest.Value(outbound.New(c))(t)
}

// fetch returns the rates in order, and how many were left out.
func fetch(t *testing.T, p *outbound.Provider) string {
	t.Helper()
	quotes, leftOut, err := p.Fetch(t.Context())
	if err != nil {
		for _, secret := range []string{"hunter2", "swordfish", "127.0.0.1"} {
			storetest.Lacks(t, err.Error(), secret)
		}
		return err.Error()
	}
	var all []string
	for _, q := range quotes {
		all = append(all, fmt.Sprint(q.Base, "/", q.Quote, "=", q.Rate))
	}
	slices.Sort(all)
	return fmt.Sprint(strings.Join(all, " "), ", ", leftOut, " left out")
}

// Numbers keep all digits, over a real connection with the key in its header.
func TestFetch(t *testing.T) {
	s, c := start(t)
	p := provider(t, c)
	s.answer = `{"timestamp":1,"base":"usd","rates":{"TRY":41.735200000000000001,"BTC":1.45e-05,"USD":1,"EUR":0.1,` +
		`"BAD":"x","NEG":-1,"NIL":null,"A B":2,"BIG":1e400,"TXT":"2"}}`
	const all = "USD/BTC=0.0000145 USD/EUR=0.1 USD/TRY=41.735200000000000001, 6 left out"
	storetest.Equal(t, fetch(t, p), all)
	if s.headers.Get("X-Api-Key") != "swordfish" || s.headers.Get("Authorization") != "" || p.Host() == "" {
		t.Errorf("sent %v", s.headers)
	}
	c.Codes = []string{"TRY", "BAD"}
	storetest.Equal(t, fetch(t, provider(t, c)), "USD/TRY=41.735200000000000001, 2 left out")
}

func TestFaults(t *testing.T) {
	s, c := start(t)
	for _, tc := range []struct {
		status       int
		answer, want string
	}{
		{500, `{}`, "answered 500"}, {302, `{}`, "answered 302"}, {401, `{}`, "answered 401"},
		{200, ``, "the answer is not"}, {200, `[]`, "the answer is not"},
		{200, `{"base":"USD","rates":[]}`, "the answer is not"},
		{200, `{"rates":{"TRY":1}}`, "no base"}, {200, `{"base":"USD","rates":{"TRY":0}}`, "no rate"},
		{200, `{"base":"USD"}`, "no rate"},
		{200, `{"base":"USD","rates":{"TRY":1}` + strings.Repeat(" ", 1<<20) + `}`, "1024 KiB"},
	} {
		s.status, s.answer = tc.status, tc.answer
		if got := fetch(t, provider(t, c)); !strings.Contains(got, tc.want) {
			t.Errorf("%d %.60s: %s, want %s", tc.status, tc.answer, got, tc.want)
		}
	}
	storetest.Equal(t, s.asked, 10, "asked", "times: a redirect was followed")
	stranger := c
	stranger.CAFile = ""
	storetest.Contains(t, fetch(t, provider(t, stranger)), "certificate", "a stranger's certificate")
	s.pause, c.Timeout = 5*time.Second, 50*time.Millisecond
	storetest.Contains(t, fetch(t, provider(t, c)), "cannot be reached", "too slow")
}

// After three failures in a row no request is sent for a minute, then twice as long after each failure.
func TestPausesAfterFailures(t *testing.T) {
	s, c := start(t)
	now := time.Unix(1_800_000_000, 0)
	c.Now = func() time.Time { return now }
	p := provider(t, c)
	asks := func(after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		before := s.asked
		fetch(t, p)
		storetest.Equal(t, s.asked > before, want, "after", after, "asked")
	}
	s.status = 503
	for range 3 {
		asks(0, true)
	}
	asks(time.Minute-1, false)
	asks(1, true)
	asks(2*time.Minute-1, false)
	asks(1, true)
	for range 20 {
		asks(30*time.Minute, true)
	}
	asks(30*time.Minute-1, false)
	s.status, s.answer = 200, `{"base":"USD","rates":{"TRY":1}}`
	asks(1, true)
	s.status = 503
	for range 3 { // counted again
		asks(0, true)
	}
	asks(0, false)
}

func TestSettings(t *testing.T) {
	good := outbound.Config{URL: "https://rates.example.com/latest", Header: "X-Key", Key: "k", Codes: []string{"TRY"}}
	storetest.Is(t, storetest.Err(outbound.New(good)), nil)
	for want, change := range map[string]func(*outbound.Config){
		"url":                     func(c *outbound.Config) { c.URL = "http://rates.example.com/" },
		"loopback":                func(c *outbound.Config) { c.URL = "http://localhost/" },
		"without a user":          func(c *outbound.Config) { c.URL = "https://u:p@rates.example.com/" },
		"https://host/path":       func(c *outbound.Config) { c.URL = "rates.example.com" },
		"control characters":      func(c *outbound.Config) { c.Key = "a\nb" },
		`currencies: "try"`:       func(c *outbound.Config) { c.Codes = []string{"try"} },
		"no such file":            func(c *outbound.Config) { c.CAFile = "/no/such/file" },
		"contains no certificate": func(c *outbound.Config) { c.CAFile = "rate_test.go" },
	} {
		c := good
		change(&c)
		storetest.Fails(t, storetest.Err(outbound.New(c)), want)
	}
	storetest.Is(t, storetest.Err(outbound.New(outbound.Config{URL: "http://[::1]:8080/"})), nil)
	var _ rate.Provider = (*outbound.Provider)(nil)
}
