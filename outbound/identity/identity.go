// Package identity queries the national register of persons of Turkey. The query is whether an identity number, a name
// and a year of birth belong together: one operation, TCKimlikNoDogrula, of a SOAP 1.1 service (design D, decision
// D-INF-06).
//
// The one idea: "no" differs from "unknown". Only a complete answer of the operation with true or false is a verdict.
// Everything else, including a SOAP fault, is UNAVAILABLE with the time to wait. Personal data is only in the body of
// the request: no error of this package contains any of it.
//
// Start reading at Register.Verify.
package identity

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"castellan/domain/kit/fault"
	"castellan/domain/people/identity"
	"castellan/outbound/fetch"
)

// Config describes the service.
type Config struct {
	URL     string        // https, or with Plain http to a loopback address
	Plain   bool          // for development mode
	CAFile  string        // trusted certificates (PEM); "": those of the system
	Timeout time.Duration // of one query
	Now     func() time.Time
	// Failed receives the reason when there is no verdict; nil disables it.
	Failed func(error)
}

const (
	namespace      = "http://tckimlik.nvi.gov.tr/WS"
	maxAnswerBytes = 64 << 10
	// After this many failures in a row the service is not called for a while; then one query tests it.
	failuresInARow = 3
	pause          = 15 * time.Second
)

// Register is an identity.Registry. It is safe for concurrent use.
type Register struct {
	cfg    Config
	client *http.Client

	mu       sync.Mutex
	failures int
	until    time.Time // no query before
}

var _ identity.Registry = (*Register)(nil)

// New checks cfg. It opens no connection.
func New(cfg Config) (*Register, error) {
	if u, _ := url.Parse(cfg.URL); fetch.Address(cfg.URL) != nil || u.Scheme != "https" && !cfg.Plain {
		return nil, errors.New("identity_url must be https://host/path without a user")
	}
	roots, err := fetch.Roots(cfg.CAFile, false)
	if err != nil {
		return nil, fmt.Errorf("identity_ca_file: %w", err)
	}
	return &Register{cfg: cfg, client: fetch.HTTPClient(cfg.Timeout, roots, &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: 16, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
	})}, nil
}

func (r *Register) Verify(ctx context.Context, p identity.Person) (bool, error) {
	if wait := r.wait(); wait > 0 {
		return false, unavailable(wait)
	}
	known, err := r.ask(ctx, p)
	if ctx.Err() != nil && err != nil { // the caller has gone: the service may be healthy
		return false, unavailable(pause)
	}
	r.judge(err)
	if err != nil {
		if r.cfg.Failed != nil {
			r.cfg.Failed(err)
		}
		return false, unavailable(pause)
	}
	return known, nil
}

func unavailable(wait time.Duration) error {
	return fault.New(fault.Unavailable, "the national register is not available at the moment").After(wait)
}

// wait returns how long the service is still paused. After that one caller tests it, and the others wait for the
// result.
func (r *Register) wait() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures < failuresInARow {
		return 0
	}
	now := r.cfg.Now()
	if wait := r.until.Sub(now); wait > 0 {
		return wait
	}
	r.until = now.Add(pause)
	return 0
}

func (r *Register) judge(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.failures = 0
		return
	}
	if r.failures++; r.failures >= failuresInARow {
		r.until = r.cfg.Now().Add(pause)
	}
}

// question is the request of TCKimlikNoDogrula.
type question struct {
	XMLName xml.Name `xml:"http://schemas.xmlsoap.org/soap/envelope/ Envelope"`
	Body    struct {
		Ask struct {
			XMLName   xml.Name `xml:"http://tckimlik.nvi.gov.tr/WS TCKimlikNoDogrula"`
			Number    string   `xml:"TCKimlikNo"`
			Names     string   `xml:"Ad"`
			Surname   string   `xml:"Soyad"`
			BirthYear int      `xml:"DogumYili"`
		}
	} `xml:"http://schemas.xmlsoap.org/soap/envelope/ Body"`
}

// answer is its response. A fault has no result.
type answer struct {
	XMLName xml.Name `xml:"http://schemas.xmlsoap.org/soap/envelope/ Envelope"`
	Body    struct {
		Response []struct {
			Result []string `xml:"http://tckimlik.nvi.gov.tr/WS TCKimlikNoDogrulaResult"`
		} `xml:"http://tckimlik.nvi.gov.tr/WS TCKimlikNoDogrulaResponse"`
	} `xml:"http://schemas.xmlsoap.org/soap/envelope/ Body"`
}

// ask sends one query. Its errors contain nothing of the person, the address and the answer.
func (r *Register) ask(ctx context.Context, p identity.Person) (bool, error) {
	var q question
	ask := &q.Body.Ask
	ask.Number, ask.BirthYear = string(p.Number), p.BirthYear()
	ask.Names, ask.Surname = upper(p.GivenNames()), upper(p.Surname)
	body, err := xml.Marshal(q)
	if err != nil {
		return false, errors.New("the query cannot be encoded")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.cfg.URL, bytes.NewReader(append([]byte(xml.Header),
		body...)))
	if err != nil {
		return false, errors.New("no request can be made to the address")
	}
	request.Header.Set("Content-Type", "text/xml; charset=utf-8")
	request.Header.Set("SOAPAction", `"`+namespace+`/TCKimlikNoDogrula"`)
	text, err := fetch.Body(r.client, request, "register", maxAnswerBytes)
	if err != nil {
		return false, err
	}
	return read(text)
}

// read returns the verdict of an answer, which must be one document with one result.
func read(text []byte) (bool, error) {
	var a answer
	decoder := xml.NewDecoder(bytes.NewReader(text))
	if decoder.Decode(&a) != nil {
		return false, errors.New("the answer is not a SOAP envelope")
	}
	for { // only comments and space may follow
		next, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if space, ok := next.(xml.CharData); err != nil || !ok || len(bytes.TrimSpace(space)) > 0 {
			return false, errors.New("the answer has trailing data")
		}
	}
	if len(a.Body.Response) != 1 || len(a.Body.Response[0].Result) != 1 {
		return false, errors.New("the answer has no result")
	}
	switch strings.TrimSpace(a.Body.Response[0].Result[0]) { // xsd:boolean
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, errors.New("the result is neither true nor false")
}

// composed are the Turkish letters that some keyboards send as two characters.
var composed = strings.NewReplacer("i\u0307", "i", "I\u0307", "İ", "s\u0327", "ş", "S\u0327", "Ş", "c\u0327", "ç",
	"C\u0327", "Ç", "g\u0306", "ğ", "G\u0306", "Ğ", "u\u0308", "ü", "U\u0308", "Ü", "o\u0308", "ö", "O\u0308", "Ö")

// upper converts a name to the register's form: Turkish capitals, where i becomes İ and ı becomes I.
func upper(name string) string {
	return strings.ToUpperSpecial(unicode.TurkishCase, composed.Replace(name))
}
