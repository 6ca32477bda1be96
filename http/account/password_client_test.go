package account_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/storetest"
	"castellan/internal/apidoc"
)

// answer is what a request came to.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) field(name string) any {
	var m map[string]any
	json.Unmarshal([]byte(a.body), &m)
	return m[name]
}

// is checks status and error code; "" is a success.
func (a answer) is(t *testing.T, status int, code string) answer {
	t.Helper()
	got, _ := a.field("code").(string)
	if a.status != status || got != code {
		t.Fatalf("%d %s, want %d %q", a.status, a.body, status, code)
	}
	return a
}

// post makes a request; headers are pairs.
func (w *world) post(path string, body any, headers ...string) answer {
	return w.call("POST", path, body, headers...)
}

func (w *world) call(method, path string, body any, headers ...string) answer {
	w.skip(time.Millisecond)
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
	res, err := apidoc.Test(w.srv.App, r)
	if err != nil {
		w.t.Error(err)
		return answer{}
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b)}
}

// flow is a challenge as the client knows it.
type flow struct {
	ChallengeID string
	pauth       string
	methods     map[string]method
}

type method struct{ ID, Name, Hint string }

func (w *world) flow(a answer) flow {
	w.t.Helper()
	a.is(w.t, 200, "")
	var in struct {
		Challenge struct {
			ChallengeID string
			MethodList  []method
		}
	}
	storetest.Must(w.t, json.Unmarshal([]byte(a.body), &in))
	f := flow{in.Challenge.ChallengeID, a.header.Get("p-auth"), map[string]method{}}
	for _, m := range in.Challenge.MethodList {
		f.methods[m.Name] = m
	}
	return f
}

func phone(n int) map[string]string {
	return map[string]string{"countryCode": "90", "phoneNumber": fmt.Sprintf("532%07d", n)}
}

func (w *world) reset(n int) flow {
	w.t.Helper()
	return w.flow(w.post("/auth/password/reset", phone(n)))
}

func (w *world) code(f flow, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[f.methods[name].ID]
}

func (w *world) complete(f flow, name, value string) answer {
	return w.post("/auth/2fa/challenge/complete", map[string]string{"methodId": f.methods[name].ID, "method": name,
		"value": value}, "p-auth", f.pauth)
}

func (w *world) renew(f flow, name string) answer {
	return w.post("/auth/2fa/challenge/renew", map[string]string{"methodId": f.methods[name].ID, "method": name},
		"p-auth", f.pauth)
}

func (w *world) result(f flow) answer {
	return w.call("GET", "/auth/2fa/challenge/result", nil, "p-auth", f.pauth)
}

func (w *world) wrong(f flow, name string) answer {
	value := "000000"
	if w.code(f, name) == value {
		value = "000001"
	}
	return w.complete(f, name, value)
}

// otauth goes through a whole reset.
func (w *world) otauth(n int) string {
	w.t.Helper()
	f := w.reset(n)
	w.complete(f, "SMS", w.code(f, "SMS")).is(w.t, 200, "")
	raw := w.complete(f, "MAIL", w.code(f, "MAIL")).is(w.t, 200, "").header.Get("ot-auth")
	if raw == "" {
		w.t.Fatal("no ot-auth after SMS and MAIL")
	}
	return raw
}

func (w *world) update(otauth, secret string) answer {
	return w.post("/auth/password/update", map[string]string{"password": secret, "passwordVerify": secret},
		"ot-auth", otauth)
}

func (w *world) change(xauth, old, secret string) answer {
	return w.post("/auth/password", map[string]string{"oldPassword": old, "password": secret, "passwordVerify": secret},
		"x-auth", xauth)
}

// finish completes a change by SMS.
func (w *world) finish(a answer) answer {
	w.t.Helper()
	f := w.flow(a)
	return w.complete(f, "SMS", w.code(f, "SMS")).is(w.t, 200, "")
}

func (w *world) has(u user.User, secret string) bool {
	w.t.Helper()
	stored, err := w.users.Secret(w.t.Context(), u.ID)
	storetest.Must(w.t, err)
	right, _, err := w.hasher.Verify(w.t.Context(), secret, stored.Hash)
	storetest.Must(w.t, err)
	return right
}

// live reports whether the service takes a session's token.
func (w *world) live(xauth string) bool {
	a := w.post("/auth/password", map[string]string{"oldPassword": "x", "password": "y", "passwordVerify": "z"},
		"x-auth", xauth)
	return a.status == 400
}

// trace is every statement made by do.
func (w *world) trace(do func()) []string {
	w.mu.Lock()
	w.tracing, w.traced = true, nil
	w.mu.Unlock()
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tracing = false
	return w.traced
}
