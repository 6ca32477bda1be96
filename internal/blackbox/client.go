package blackbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/apidoc"
)

// Client sends requests to one address. It is safe for concurrent use; the methods with a test parameter are for the
// test's own goroutine.
type Client struct {
	URL  string
	http *http.Client
	tell func(line string) // called for every request; nil: not used
	// otherDocument: answers are of another version's document and are not checked.
	otherDocument bool
}

// OtherVersion returns the client for nodes of another version, whose answers have another document.
func (c Client) OtherVersion() Client {
	c.otherDocument = true
	return c
}

// Telling returns the client with a function that receives every request and its result in a line.
func (c Client) Telling(tell func(line string)) Client {
	c.tell = tell
	return c
}

// requestTime bounds a request, including the longest long poll.
const requestTime = 45 * time.Second

// NewClient returns a client of a base URL.
func NewClient(url string) Client {
	dial := &net.Dialer{Timeout: patience}
	return Client{URL: url, http: &http.Client{Timeout: requestTime, Transport: &http.Transport{
		DialContext: dial.DialContext, MaxIdleConnsPerHost: 256, IdleConnTimeout: 3 * time.Second, DisableCompression: true}}}
}

// Impatient returns the client as used with a cluster: after silence for longer than d, and after 503, it acts as after
// a lost connection and calls another node. Time in which this process itself got no processor, as lost reports, does
// not count.
func (c Client) Impatient(d time.Duration, lost func(since time.Time) time.Duration) Client {
	return Client{
		URL:  c.URL,
		http: &http.Client{Timeout: requestTime, Transport: impatient{c.http.Transport, d, lost}},
		tell: c.tell, otherDocument: c.otherDocument,
	}
}

type impatient struct {
	http.RoundTripper
	d    time.Duration
	lost func(since time.Time) time.Duration
}

func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	began := time.Now()
	var look *time.Timer
	armed := make(chan struct{})
	look = time.AfterFunc(i.d, func() {
		<-armed // look is set
		if left := i.d + i.lost(began) - time.Since(began); left > 0 {
			look.Reset(left)
		} else {
			cancel()
		}
	})
	close(armed)
	defer look.Stop()
	a, err := i.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode == http.StatusServiceUnavailable {
		err = errors.New("503")
	}
	if err != nil {
		return nil, err
	}
	a.Body = io.NopCloser(bytes.NewReader(text))
	return a, nil
}

// Answer is a whole answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Headers are the headers of a request, name by name.
type Headers map[string]string

// Try sends one request. The body is sent as JSON; a string or bytes are sent unchanged, nil is no body.
func (c Client) Try(method, path string, body any, headers Headers) (Answer, error) {
	return c.tryContext(context.Background(), method, path, body, headers)
}

// tryContext is Try until ctx ends.
func (c Client) tryContext(ctx context.Context, method, path string, body any, headers Headers) (Answer, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, r)
	if err != nil {
		return Answer{}, err
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
		} else {
			req.Header[http.CanonicalHeaderKey(name)] = []string{value}
		}
	}
	began := time.Now()
	a, err := c.answer(req)
	if err == nil && !c.otherDocument {
		err = apidoc.Published().Check(method, path, a.Status, a.Header, a.Body)
	}
	if c.tell != nil {
		given, _ := body.(map[string]string)
		c.tell(fmt.Sprintf("%s +%v %s %s%s %v: %d %s %v", began.Format("15:04:05.000"),
			time.Since(began).Round(time.Millisecond), method, c.URL, path, given, a.Status, a.Code(), err))
	}
	return a, err
}

func (c Client) answer(req *http.Request) (Answer, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, text}, err
}

// Do sends a request as a client does (Patiently) and fails the test if no answer arrives.
func (c Client) Do(t testing.TB, method, path string, body any, headers Headers) Answer {
	t.Helper()
	a, err := Patiently(func() (Answer, error) { return c.Try(method, path, body, headers) })
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

const (
	tries   = 3
	maxWait = 5 * time.Second
)

// Patiently sends a request again, as clients must, if the service refuses it as unavailable and names a time to wait.
// On a stalling machine the database may not answer in time. The last answer counts, so a service that stays
// unavailable is seen. A test of a single refusal uses Try.
func Patiently(send func() (Answer, error)) (Answer, error) {
	for n := 1; ; n++ {
		a, err := send()
		seconds, _ := strconv.Atoi(a.Header.Get("Retry-After"))
		wait := time.Duration(seconds) * time.Second
		if err != nil || a.Code() != "UNAVAILABLE" || wait == 0 || wait > maxWait || n == tries {
			return a, err
		}
		time.Sleep(wait)
	}
}

// Ok is Do for a request that must be answered with 200.
func (c Client) Ok(t testing.TB, method, path string, body any, headers Headers) Answer {
	t.Helper()
	return c.Do(t, method, path, body, headers).Is(t, http.StatusOK, "")
}

// Awaits repeats a request until it is answered with the status.
func (c Client) Awaits(t testing.TB, within time.Duration, status int, method, path string, body any,
	headers Headers) {
	t.Helper()
	Until(t, within, fmt.Sprint(method, " ", path, " answered with ", status), func() bool {
		a, err := c.Try(method, path, body, headers)
		return err == nil && a.Status == status
	})
}

// Problem is the body of a refusal (D-GEN-09).
type Problem struct {
	Type         string `json:"type"`
	Title        string `json:"title"`
	Status       int    `json:"status"`
	Code         string `json:"code"`
	Detail       string `json:"detail"`
	Message      string `json:"message"`
	Field        string `json:"field"`
	AttemptsLeft *int   `json:"attemptsLeft"`
	RequestID    string `json:"requestId"`
	Errors       []struct{ Field, Message string }
}

// Problem decodes a refusal; for any other answer it returns the zero Problem.
func (a Answer) Problem() (p Problem) {
	if a.Header.Get("Content-Type") == "application/problem+json" {
		json.Unmarshal(a.Body, &p)
	}
	return p
}

// Code returns the error code of a refusal, "" for any other answer.
func (a Answer) Code() string { return a.Problem().Code }

// String returns the answer in short form: status and body.
func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Status, a.Body) }

// Is fails the test unless the answer has the status and the code; "" is the code of a success. For a refusal it also
// checks the shape.
func (a Answer) Is(t testing.TB, status int, code string) Answer {
	t.Helper()
	if a.Status != status || a.Code() != code {
		t.Fatalf("got %s, want %d %s", a, status, code)
	}
	id := a.Header.Get("X-Request-Id")
	if id == "" {
		t.Fatalf("%s: no x-request-id", a)
	}
	if code == "" {
		return a
	}
	p := a.Problem()
	if p.Status != status || p.RequestID != id || p.Title == "" || p.Detail == "" || p.Message == "" ||
		p.Type != "urn:castellan:problem:"+strings.ReplaceAll(strings.ToLower(code), "_", "-") {
		t.Fatalf("not the shape of a problem: %s", a)
	}
	return a
}

// Read decodes the body into v.
func (a Answer) Read(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
}

// At returns the value at a path of keys in the body: a string as its text, "" if there is none.
func (a Answer) At(t testing.TB, path ...string) (text string) {
	t.Helper()
	at := json.RawMessage(a.Body)
	for _, key := range path {
		at = Keys(t, at)[key]
	}
	if json.Unmarshal(at, &text) != nil {
		return string(at)
	}
	return text
}

// Keys fails the test unless the body is an object of exactly these keys.
func (a Answer) Keys(t testing.TB, want ...string) Answer {
	t.Helper()
	var object map[string]json.RawMessage
	a.Read(t, &object)
	got := slices.Sorted(maps.Keys(object))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("got the keys %v of %s, want %v", got, a, want)
	}
	return a
}

// Raw sends bytes on a new connection and returns the response until the other side closes or is silent for a moment.
func (c Client) Raw(t testing.TB, request string) string {
	t.Helper()
	conn := storetest.Value(net.Dial("tcp", strings.TrimPrefix(c.URL, "http://")))(t)
	defer conn.Close()
	storetest.Must(t, storetest.Err(io.WriteString(conn, request)))
	var all []byte
	buf := make([]byte, 4096)
	conn.SetReadDeadline(time.Now().Add(patience))
	for {
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return string(all)
		}
		conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	}
}

// With fails the test unless the answer has the header.
func (a Answer) With(t testing.TB, name, value string) Answer {
	t.Helper()
	if got := a.Header.Get(name); got != value {
		t.Fatalf("got %s: %q with %s, want %q", name, got, a, value)
	}
	return a
}
