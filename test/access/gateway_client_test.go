package access

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The Go client completes the challenge of a gateway and sends the same request again, with its body.
func TestGoClientBehindGateway(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		s.Set("SESSIONS_BIND=requests")
		g := newGate(t, s)
		g.route(t, `{"method":"POST","path":"/pay","mode":"guarded","actionCode":"PAYOUT",`+
			`"rows":[{"key":"to","label":"To","from":"path","index":0}]}`)
		var digest, leaked string
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			leaked = r.Header.Get("x-auth")
		}))
		t.Cleanup(other.Close)
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/away" {
				http.Redirect(w, r, other.URL, http.StatusFound)
				return
			}
			body, _ := io.ReadAll(r.Body)
			digest = r.Header.Get("content-digest")
			a := g.ask(t, r.Method, r.RequestURI, blackbox.Headers{"x-auth": r.Header.Get("x-auth"), "x-to": "",
				"castellan-grant": r.Header.Get("castellan-grant"), "content-digest": digest, "X-Original-Host": r.Host,
				"dpop": r.Header.Get("dpop")})
			if a.Status != 204 {
				w.Header().Set("p-auth", a.Header.Get("p-auth"))
				w.WriteHeader(a.Status)
				w.Write(a.Body)
				return
			}
			io.WriteString(w, a.Header.Get("castellan-user")+" "+string(body))
		}))
		t.Cleanup(gateway.Close)
		c := storetest.Value(client.New(g.URL))(t)
		c.Token = g.xAuth
		send := func(value string) (string, error) {
			r, err := http.NewRequestWithContext(t.Context(), "POST", gateway.URL+"/pay", strings.NewReader(`{"pay":1}`))
			storetest.Must(t, err)
			a, err := c.Guarded(r, func(ctx context.Context, f *client.Flow) (client.Outcome, error) {
				if len(f.Rows) == 0 || f.Rows[0].Value == "" {
					t.Errorf("the client gets the rows %v", f.Rows)
				}
				m, _ := f.Method("SMS")
				return f.Complete(ctx, m, value+g.Code(t, g.owner, "SMS"))
			})
			if err != nil {
				return "", err
			}
			defer a.Body.Close()
			text, err := io.ReadAll(a.Body)
			return string(text), err
		}
		if got, err := send(""); err != nil || got != g.owner.ID+` {"pay":1}` {
			t.Errorf("%q, %v", got, err)
		}
		if !strings.HasPrefix(digest, "sha-256=:") {
			t.Errorf("the digest of the body is %q", digest)
		}
		away, err := http.NewRequestWithContext(t.Context(), "GET", gateway.URL+"/away", nil)
		storetest.Must(t, err)
		a := storetest.Value(c.Guarded(away, nil))(t)
		a.Body.Close()
		if a.StatusCode != http.StatusFound || leaked != "" {
			t.Errorf("a redirect to another server: %d, which got the token %q", a.StatusCode, leaked)
		}
		// A session that is bound to a key needs a proof for each request, also behind a gateway.
		c.Key = client.NewKey(blackbox.ECKey(t))
		f, err := c.Login(t.Context(), client.Credentials{Email: g.owner.Mail, Password: g.owner.Password})
		storetest.Must(t, err)
		m, _ := f.Method("SMS")
		storetest.Must(t, storetest.Err(f.Complete(t.Context(), m, g.Code(t, g.owner, "SMS"))))
		if got, err := send(""); err != nil || got != g.owner.ID+` {"pay":1}` {
			t.Errorf("with a key: %q, %v", got, err)
		}
		g.ask(t, "POST", "/pay", blackbox.Headers{"x-auth": c.Token}).Is(t, 401, "DPOP_INVALID")
		if got, err := send("0"); client.CodeOf(err) == "" {
			t.Errorf("a wrong code: %q, %v", got, err)
		}
	})
}
