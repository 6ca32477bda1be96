package identity_test

import (
	"context"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
	outbound "castellan/outbound/identity"
)

// register speaks SOAP 1.1 over TLS, as the national register does.
type register struct {
	*httptest.Server
	t      *testing.T
	asked  int
	answer func(w http.ResponseWriter)
	got    struct {
		Body struct {
			Ask struct {
				Fields []struct {
					XMLName xml.Name
					Text    string `xml:",chardata"`
				} `xml:",any"`
			} `xml:"http://tckimlik.nvi.gov.tr/WS TCKimlikNoDogrula"`
		} `xml:"http://schemas.xmlsoap.org/soap/envelope/ Body"`
	}
	header http.Header
}

const open, shut = `<?xml version="1.0" encoding="utf-8"?><soap:Envelope ` +
	`xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">` +
	`<soap:Body>`, `</soap:Body></soap:Envelope>`

func result(text string) string {
	return open + `<TCKimlikNoDogrulaResponse xmlns="http://tckimlik.nvi.gov.tr/WS"><TCKimlikNoDogrulaResult>` + text +
		`</TCKimlikNoDogrulaResult></TCKimlikNoDogrulaResponse>` + shut
}

func start(t *testing.T) (*register, outbound.Config) {
	t.Helper()
	r := &register{t: t}
	r.says(200, result("true"))
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked++
		r.header = q.Header
		r.got.Body.Ask.Fields = nil
		if err := xml.NewDecoder(q.Body).Decode(&r.got); err != nil || q.Method != "POST" {
			t.Errorf("%s: %v", q.Method, err)
		}
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		w.Header().Set("Location", "/elsewhere")
		r.answer(w)
	}))
	t.Cleanup(r.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	storetest.Must(t, os.WriteFile(file, block, 0o600))
	return r, outbound.Config{URL: r.URL + "/Service/KPSPublic.asmx", CAFile: file, Timeout: 5 * time.Second,
		Now: time.Now}
}

func (r *register) says(status int, text string) {
	r.answer = func(w http.ResponseWriter) { w.WriteHeader(status); fmt.Fprint(w, text) }
}

var person = identity.Person{Number: "10000000146", Name: "İlker ışıl", SecondName: "Çiğdem", Surname: "Şık-ıi",
	BirthDate: "1990-05-01"}

// ask returns the verdict, or the logged reason.
func ask(t *testing.T, c outbound.Config) (known bool, why string) {
	t.Helper()
	c.Failed = func(err error) { why = err.Error() }
	r, err := outbound.New(c)
	storetest.Must(t, err)
	known, err = r.Verify(t.Context(), person)
	var refusal *fault.Error
	if err != nil && (!errors.As(err, &refusal) || refusal.Code != fault.Unavailable || refusal.RetryAfter <= 0 || known) {
		t.Errorf("%v, %v", known, err)
	}
	if (err != nil) != (why != "") {
		t.Errorf("%v, but the log hears %q", err, why)
	}
	for _, secret := range []string{"10000000146", "lker", "LKER", "127.0.0.1", "1990"} {
		storetest.Lacks(t, why+fmt.Sprint(err), secret)
	}
	return known, why
}

// The query, and a verdict of either kind.
func TestVerdict(t *testing.T) {
	r, c := start(t)
	for text, want := range map[string]bool{"true": true, "1": true, " false\n": false, "0": false} {
		r.says(200, result(text))
		if known, why := ask(t, c); known != want || why != "" {
			t.Errorf("%q: %v, %s", text, known, why)
		}
	}
	var got []string
	for _, f := range r.got.Body.Ask.Fields {
		storetest.Equal(t, f.XMLName.Space, "http://tckimlik.nvi.gov.tr/WS", f.XMLName.Local)
		got = append(got, f.XMLName.Local+"="+f.Text)
	}
	want := "TCKimlikNo=10000000146 Ad=İLKER IŞIL ÇİĞDEM Soyad=ŞIK-Iİ DogumYili=1990"
	if s := strings.Join(got, " "); s != want || r.header.Get("Content-Type") != "text/xml; charset=utf-8" ||
		r.header.Get("SOAPAction") != `"http://tckimlik.nvi.gov.tr/WS/TCKimlikNoDogrula"` {
		t.Errorf("asked %s with %v", s, r.header)
	}
}

// An answer without a verdict is UNAVAILABLE.
func TestNoVerdict(t *testing.T) {
	r, c := start(t)
	soapFault := open + `<soap:Fault><faultcode>soap:Server</faultcode><faultstring>x</faultstring></soap:Fault>` + shut
	for _, tc := range []struct {
		status     int
		text, want string
	}{
		{500, soapFault, "answered 500"}, {200, soapFault, "no result"}, {302, "", "answered 302"},
		{200, "", "not a SOAP envelope"}, {200, "true", "not a SOAP envelope"},
		{200, "<html>true</html>", "not a SOAP envelope"},
		{200, result("yes"), "neither true nor false"}, {200, result(""), "neither true nor false"},
		{200, result("true</TCKimlikNoDogrulaResult><TCKimlikNoDogrulaResult>false"), "no result"},
		{200, strings.Replace(result("true"), "gov.tr/WS", "gov.tr/XX", 1), "no result"},
		{200, strings.Replace(result("true"), "xmlsoap.org/soap", "xmlsoap.org/x", 1), "not a SOAP envelope"},
		{200, result("true")[:len(result("true"))-9], "not a SOAP envelope"},
		{200, result("true") + result("false"), "trailing data"},
		{200, strings.Repeat(" ", 64<<10) + result("true"), "64 KiB"},
		{200, `<!DOCTYPE x [<!ENTITY t "true">]>` + result("&t;")[strings.Index(result(""), "<soap:"):],
			"not a SOAP envelope"},
		{200, strings.Replace(result("true"), "utf-8", "utf-7", 1), "not a SOAP envelope"},
	} {
		r.says(tc.status, tc.text)
		if known, why := ask(t, c); known || !strings.Contains(why, tc.want) {
			t.Errorf("%d %.90s: %v, %q, want %q", tc.status, tc.text, known, why, tc.want)
		}
	}
	storetest.Equal(t, r.asked, 16, "asked", "times: a redirect was followed")
	stranger := c
	stranger.CAFile = ""
	if _, why := ask(t, stranger); !strings.Contains(why, "certificate") {
		t.Errorf("a stranger's certificate: %s", why)
	}
	stop := make(chan struct{})
	defer close(stop)
	r.answer = func(http.ResponseWriter) { <-stop }
	c.Timeout = 50 * time.Millisecond
	if _, why := ask(t, c); !strings.Contains(why, "cannot be reached") {
		t.Errorf("too slow: %s", why)
	}
}

// After three failures in a row the service is paused for 15 s; then one query tests it.
func TestBreaker(t *testing.T) {
	r, c := start(t)
	now := time.Unix(1_800_000_000, 0)
	c.Now = func() time.Time { return now }
	service := storetest.Value(outbound.New(c))(t)
	asks := func(after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		before := r.asked
		service.Verify(t.Context(), person)
		storetest.Equal(t, r.asked > before, want, "after", after, "asked")
	}
	r.says(200, result("false")) // a "no" is not a failure
	for range 5 {
		asks(0, true)
	}
	r.says(503, "")
	for range 3 {
		asks(0, true)
	}
	asks(0, false)
	asks(15*time.Second-1, false)
	asks(1, true)
	asks(0, false)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r.says(200, result("true"))
	now = now.Add(15 * time.Second)
	storetest.Wants(t, storetest.Err(service.Verify(gone, person)), fault.Unavailable, "a caller who went away")
	asks(15*time.Second, true)
	for range 4 {
		asks(0, true)
	}
}

func TestConfig(t *testing.T) {
	for address, want := range map[string]bool{"https://kps.example.com/x": true, "http://kps.example.com/x": false,
		"http://127.0.0.1:1/x": true, "": false, "https://u:p@kps.example.com/x": false, "https:///x": false} {
		if _, err := outbound.New(outbound.Config{URL: address, Plain: true}); (err == nil) != want {
			t.Errorf("%q in development mode: %v", address, err)
		}
	}
	if _, err := outbound.New(outbound.Config{URL: "http://127.0.0.1:1/x"}); err == nil {
		t.Error("a service without TLS outside of development mode")
	}
}
