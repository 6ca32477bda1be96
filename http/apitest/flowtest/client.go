package flowtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/apidoc"
)

// Answer is what a request came to.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

func (a Answer) Field(name string) any {
	var m map[string]any
	json.Unmarshal([]byte(a.Body), &m)
	return m[name]
}

// Is checks status and error code; "" is a success.
func (a Answer) Is(t *testing.T, status int, code string) Answer {
	t.Helper()
	got, _ := a.Field("code").(string)
	if a.Status != status || got != code {
		t.Fatalf("%d %s, want %d %q", a.Status, a.Body, status, code)
	}
	return a
}

// Call makes a request; headers are pairs.
func (e *Engine) Call(method, path string, body any, headers ...string) Answer {
	e.Skip(time.Millisecond)
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(string(text)))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := apidoc.Test(e.server.App, r)
	if err != nil {
		e.T.Error(err)
		return Answer{}
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, string(b)}
}

// Post makes a request; headers are pairs.
func (e *Engine) Post(path string, body any, headers ...string) Answer {
	return e.Call("POST", path, body, headers...)
}

// Flow is a challenge as the client knows it.
type Flow struct {
	ChallengeID string
	PAuth       string
	Methods     map[string]Method
}

// Method is a way to answer a challenge.
type Method struct{ ID, Name, Hint string }

// Flow is the challenge that an answer starts.
func (e *Engine) Flow(a Answer) Flow {
	e.T.Helper()
	a.Is(e.T, 200, "")
	var in struct {
		Challenge struct {
			ChallengeID string
			MethodList  []Method
		}
	}
	storetest.Must(e.T, json.Unmarshal([]byte(a.Body), &in))
	f := Flow{in.Challenge.ChallengeID, a.Header.Get("p-auth"), map[string]Method{}}
	for _, m := range in.Challenge.MethodList {
		f.Methods[m.Name] = m
	}
	return f
}

// Code is the last code of a method, "" if none was sent.
func (e *Engine) Code(f Flow, name string) string { return e.Sent(f.Methods[name].ID) }

// Complete answers a method with a value.
func (e *Engine) Complete(f Flow, name, value string) Answer {
	return e.Post("/auth/2fa/challenge/complete", map[string]string{"methodId": f.Methods[name].ID, "method": name,
		"value": value}, "p-auth", f.PAuth)
}

// Answer answers a method with its code.
func (e *Engine) Answer(f Flow, name string) Answer {
	e.T.Helper()
	return e.Complete(f, name, e.Code(f, name)).Is(e.T, 200, "")
}

// Wrong answers a method with another value than its code.
func (e *Engine) Wrong(f Flow, name string) Answer {
	value := "000000"
	if e.Code(f, name) == value {
		value = "000001"
	}
	return e.Complete(f, name, value)
}

// Renew asks for another code.
func (e *Engine) Renew(f Flow, name string) Answer {
	return e.Post("/auth/2fa/challenge/renew", map[string]string{"methodId": f.Methods[name].ID, "method": name},
		"p-auth", f.PAuth)
}

// Result asks what a challenge came to.
func (e *Engine) Result(f Flow) Answer {
	return e.Call("GET", "/auth/2fa/challenge/result", nil, "p-auth", f.PAuth)
}

// Same does a step for two sides and checks that an outsider cannot tell them apart.
func (e *Engine) Same(what string, do func(side int) Answer) {
	e.T.Helper()
	var seen [2]string
	for side := range seen {
		var a Answer
		statements := e.Trace(func() { a = do(side) })
		seen[side] = Seen(a, statements)
	}
	if seen[0] != seen[1] {
		e.T.Errorf("%s: known\n%s\nunknown\n%s", what, seen[0], seen[1])
	}
}

var (
	anID    = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)
	aHint   = regexp.MustCompile(`"hint":"[^"]*"`)
	instant = regexp.MustCompile(`1[0-9]{12}`)
	inChain = regexp.MustCompile(`(INSERT INTO "?audit"? .* VALUES \('[^']*',) [0-9]+,`)
	aText   = regexp.MustCompile(`'[^']*'`)
	version = regexp.MustCompile(`, 0\) = [01]$`) // with and without a user
	request = regexp.MustCompile(`"requestId":"[^"]*"`)
)

// Seen is everything that an outsider, or an observer of the database's load, sees of a request. That is the status,
// the headers and the statements with their lengths, and the order of keys.
func Seen(a Answer, statements []string) string {
	body := anID.ReplaceAllString(a.Body, "ID")
	body = aHint.ReplaceAllStringFunc(body, func(h string) string { return fmt.Sprintf("hint of %d", len(h)) })
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", a.Status, WithoutRequestID(instant.ReplaceAllString(body, "INSTANT")))
	names := make([]string, 0, len(a.Header))
	for name, values := range a.Header {
		names = append(names, fmt.Sprintf("%s %d", http.CanonicalHeaderKey(name), len(values[0])))
	}
	slices.Sort(names)
	fmt.Fprintln(&b, names)
	for _, s := range statements {
		s = inChain.ReplaceAllString(s, "$1 0,") // counts the rows of all accounts
		fmt.Fprintf(&b, "%4d bytes: %s\n", len(s), shape(s))
	}
	return b.String()
}

// WithoutRequestID is a refusal without the id of its request.
func WithoutRequestID(body string) string { return request.ReplaceAllString(body, "requestId") }

// shape is a statement without its values. A discarded message and a queued one differ in one digit.
func shape(s string) string {
	s = aText.ReplaceAllString(anID.ReplaceAllString(s, "ID"), "'…'")
	s = version.ReplaceAllString(s, ", 0) = N")
	s = strings.NewReplacer("FALSE, 2,", "FALSE, 0,", "TRUE, 2,", "TRUE, 0,").Replace(s)
	return instant.ReplaceAllString(s, "INSTANT")
}
