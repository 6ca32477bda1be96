package office

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device/devicetest"
	"castellan/internal/blackbox"
)

// losing drops the next answers: the service has executed the request, but the client does not learn the
// result.
type losing struct{ lost atomic.Int32 }

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.lost.Add(-1) >= 0 {
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return a, err
}

// Package client logs in by each factor, with and without the socket, and repeats only requests that are safe
// to repeat.
func TestGoClientLogsInByEveryFactor(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		ctx, n, link := t.Context(), s.Start(), &losing{}
		demo := s.Seeded("user")
		must := func(err error) {
			t.Helper()
			storetest.Must(t, err)
		}
		login := func(who blackbox.Account) (*client.Client, *client.Flow) {
			t.Helper()
			c, err := client.New(n.URL + "/")
			must(err)
			c.HTTP = &http.Client{Transport: link}
			f, err := c.Login(ctx, client.Credentials{Email: who.Mail, Password: who.Password})
			must(err)
			return c, f
		}
		complete := func(f *client.Flow, name, code string) client.Outcome {
			t.Helper()
			m, ok := f.Method(name)
			if !ok {
				t.Fatalf("no %s in %+v", name, f.Methods)
			}
			o, err := f.Complete(ctx, m, code)
			must(err)
			if !o.Done || !o.Success {
				t.Fatalf("%s came to %+v", name, o)
			}
			return o
		}

		c, f := login(demo)
		wrong := *c
		_, err := wrong.Login(ctx, client.Credentials{Email: demo.Mail, Password: "wrong"})
		if client.CodeOf(err) != "INVALID_CREDENTIALS" || !strings.HasPrefix(err.Error(), "INVALID_CREDENTIALS: ") {
			t.Errorf("a wrong password: %v", err)
		}
		sms, _ := f.Method("SMS")
		_, err = f.Complete(ctx, sms, blackbox.WrongFor(n.Code(t, demo, "SMS")))
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != "OTP_INVALID" || *e.AttemptsLeft != 4 {
			t.Errorf("a wrong code: %v", err)
		}
		storetest.Equal(t, client.CodeOf(f.Renew(ctx, sms)), "RENEW_TOO_EARLY", "an early renewal")
		link.lost.Store(1) // the completion is repeated
		if o := complete(f, "SMS", n.Code(t, demo, "SMS")); o.Action != "LOGIN" || o.XAuth != c.Token || c.Token == "" {
			t.Errorf("the login came to %+v, token %q", o, c.Token)
		}
		var sessions []struct{ Current bool }
		link.lost.Store(2)
		must(c.Call(ctx, "GET", "/auth/sessions", nil, &sessions))
		if len(sessions) != 1 || !sessions[0].Current {
			t.Errorf("sessions %+v", sessions)
		}

		signer, _ := devicetest.Signer(t, "ES256")
		phone := &client.Device{Key: signer}
		f, err = c.Enroll(ctx, phone, client.About{Brand: "Acme", Model: "One", Platform: "android"})
		must(err)
		must(phone.Enrolled(complete(f, "SMS", n.Code(t, demo, "SMS"))))
		second, f := login(demo)
		socket, err := f.Socket(ctx)
		must(err)
		defer socket.Close()
		var waiting []client.Approval
		must(second.Ongoing(ctx, phone, &waiting))
		if len(waiting) != 1 || waiting[0].Data.Action != "LOGIN" {
			t.Fatalf("waiting %+v", waiting)
		}
		if o, err := second.Answer(ctx, phone, waiting[0], client.Approved); err != nil || !o.Success || o.XAuth != "" {
			t.Errorf("the device gets %+v, %v", o, err)
		}
		for _, want := range []string{client.MethodComplete, client.ActionComplete} {
			e, err := socket.Next(ctx)
			must(err)
			if e.Event != want || e.ChallengeID != f.ID || len(e.Data) != 1 || want == client.ActionComplete &&
				(!e.Data[0].Success || e.Data[0].Headers["x-auth"] == "") {
				t.Errorf("%s on the socket: %+v", want, e)
			}
		}
		if o, err := f.Wait(ctx); err != nil || o.XAuth == "" || o.XAuth != second.Token {
			t.Errorf("waited for %+v, %v", o, err)
		}

		var set struct{ Base32 string }
		f, err = c.Start(ctx, "POST", "/auth/totp/setup", nil)
		must(err)
		must(json.Unmarshal(complete(f, "SMS", n.Code(t, demo, "SMS")).Data, &set))
		_, f = login(demo)
		complete(f, "TOTP", blackbox.NewAuthenticator(t, set.Base32).Next(t))

		// One key is one job, however many answers are lost. Without a key the loss is reported.
		boss, f := login(s.Seeded("admin"))
		complete(f, "SMS", n.Code(t, s.Seeded("admin"), "SMS"))
		var job struct{ Data struct{ ID string } }
		text := map[string]any{"sendAllUsers": true, "messageBody": "hello"}
		link.lost.Store(2)
		must(boss.Call(ctx, "POST", "/send-bulk-sms", text, &job, client.Once("k1")))
		link.lost.Store(1)
		if err := boss.Call(ctx, "POST", "/send-bulk-sms", text, nil); err == nil || client.CodeOf(err) != "" {
			t.Errorf("a lost answer without a key: %v", err)
		}
		if jobs := s.Count("job WHERE kind = 'send-bulk-sms'"); jobs != 2 || job.Data.ID == "" {
			t.Errorf("%d jobs, the first one %q", jobs, job.Data.ID)
		}
	})
}

// A client with a key works on one login for longer than its tokens live, also with several requests at once and where
// each request needs a proof. Without the key its token is not enough there. It has itself remembered, and gets its
// next session without a code.
func TestGoClientRenewsByItsKey(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		ctx := t.Context()
		n := s.Start("LIMITS_ENABLED=false", "TOKENS_X_AUTH_TTL=5s", "SESSIONS_BIND=requests")
		demo := s.Seeded("user")
		blackbox.Policy(t, n, blackbox.Admin(t, s, n), "LOGIN", 1, `[["SMS"]]`, `,"remember":7`)
		link, who := &losing{}, client.Credentials{Email: demo.Mail, Password: demo.Password}
		c := storetest.Value(client.New(n.URL))(t)
		c.HTTP, c.Key = &http.Client{Transport: link}, client.NewKey(blackbox.ECKey(t))
		f := storetest.Value(c.Login(ctx, who))(t)
		m, _ := f.Method("SMS")
		o, err := f.CompleteAndRemember(ctx, m, n.Code(t, demo, "SMS"))
		if err != nil || !o.Success || f.Completed || f.RememberDays != 7 {
			t.Fatalf("%+v, %+v, %v", f, o, err)
		}
		first := c.Token
		until := time.Now().Add(11 * time.Second)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for time.Now().Before(until) {
					var sessions []struct{ Current bool }
					if err := c.Call(ctx, "GET", "/auth/sessions?count=false", nil, &sessions); err != nil || len(sessions) != 1 {
						t.Errorf("%+v, %v", sessions, err)
						return
					}
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if c.Token == first {
			t.Error("the token was never renewed")
		}
		link.lost.Store(1) // a lost answer of a renewal costs nothing
		r, err := c.RenewSession(ctx)
		if left := time.Until(r.SessionEndsAt); err != nil || left < 11*time.Hour || left > 12*time.Hour {
			t.Errorf("%+v, %v", r, err)
		}
		thief := &client.Client{URL: c.URL, Token: c.Token}
		storetest.Equal(t, client.CodeOf(thief.Call(ctx, "GET", "/auth/sessions", nil, nil)), "DPOP_INVALID",
			"a copied token")
		storetest.Must(t, c.Call(ctx, "POST", "/auth/logout", nil, nil))
		if _, err := c.RenewSession(ctx); client.CodeOf(err) != "TOKEN_REVOKED" {
			t.Errorf("after the logout: %v", err)
		}
		if f, err = c.Login(ctx, who); err != nil || !f.Completed || !f.Methods[0].Completed {
			t.Fatalf("remembered: %+v, %v", f, err)
		}
		if o, err := f.Wait(ctx); err != nil || o.XAuth == "" {
			t.Errorf("remembered: %+v, %v", o, err)
		}
	})
}

// A clock that is wrong by an hour makes no renewal due, and after a renewal that failed the client uses its token for
// a while before it tries again.
func TestGoClientRenewsNoMoreThanNeeded(t *testing.T) {
	now, status, renewals := time.Now(), http.StatusOK, 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/auth/sessions/renew" {
			return
		}
		renewals++
		w.Header().Set("X-Auth", boundToken(now.Add(-time.Hour)))
		w.WriteHeader(status)
		io.WriteString(w, `{"data":{}}`)
	}))
	defer service.Close()
	for name, one := range map[string]struct {
		issued time.Time
		status int
	}{
		"behind": {now.Add(-time.Hour), http.StatusOK}, "failing": {now.Add(-28 * time.Minute), http.StatusBadRequest},
	} {
		c := &client.Client{URL: service.URL, Token: boundToken(one.issued), Key: client.NewKey(blackbox.ECKey(t))}
		status, renewals = one.status, 0
		for range 3 {
			if err := c.Call(t.Context(), "GET", "/auth/sessions", nil, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		storetest.Equal(t, renewals, 1, name, "renewals")
	}
}

// A token that expires on its way is renewed and the request repeated. If the renewal is refused, the request fails.
func TestGoClientRenewsTokenThatExpiredOnItsWay(t *testing.T) {
	for name, refused := range map[string]bool{"renewed": false, "refused": true} {
		old, now := boundToken(time.Now()), boundToken(time.Now().Add(time.Second))
		var calls []string
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls = append(calls, r.URL.Path)
			switch renewal := r.URL.Path == "/auth/sessions/renew"; {
			case renewal && !refused:
				w.Header().Set("X-Auth", now)
				io.WriteString(w, `{"data":{}}`)
			case renewal || r.Header.Get("X-Auth") == old:
				w.WriteHeader(http.StatusUnauthorized)
				io.WriteString(w, `{"status":401,"code":"TOKEN_EXPIRED"}`)
			}
		}))
		c := &client.Client{URL: service.URL, Token: old, Key: client.NewKey(blackbox.ECKey(t))}
		err := c.Call(t.Context(), "POST", "/auth/own", nil, nil)
		service.Close()
		want := []string{"/auth/own", "/auth/sessions/renew"}
		if !refused {
			want = append(want, "/auth/own")
		}
		if (client.CodeOf(err) == "TOKEN_EXPIRED") != refused || !slices.Equal(calls, want) {
			t.Errorf("%s: %v after %v", name, err, calls)
		}
	}
}

// boundToken returns a token of half an hour whose session is bound to a key.
func boundToken(issued time.Time) string {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d,"cnf":{"jkt":"k"}}`, issued.Unix(), issued.Add(30*time.Minute).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// The client under the path of another repository: "go get" finds its tag there, and brings no module of the service.
// An integrator's program builds with it.
func TestGoClientModule(t *testing.T) {
	t.Parallel()
	const address = "git.example/us/castellan.git"
	root := storetest.Value(filepath.Abs(filepath.Join("..", "..")))(t)
	repository, program := t.TempDir(), t.TempDir()
	cache := strings.TrimSpace(ran(t, root, nil, "go", "env", "GOMODCACHE"))
	env := append(os.Environ(), "GOPROXY=file://"+filepath.Join(cache, "cache", "download")+",direct", "GONOSUMDB=*",
		"GONOPROXY=git.example", "GOMODCACHE="+t.TempDir(), "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GOFLAGS=-trimpath -modcacherw", // with -trimpath the standard library comes from the build cache
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+repository+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+strings.TrimSuffix(address, ".git"))
	storetest.Must(t, os.CopyFS(filepath.Join(repository, "client"), os.DirFS(filepath.Join(root, "client"))))
	storetest.Must(t, os.WriteFile(filepath.Join(repository, "VERSION"), []byte("0.10.0\n"), 0o600))
	ran(t, repository, env, "git", "init", "--quiet")
	ran(t, repository, env, "git", "add", ".")
	ran(t, repository, env, filepath.Join(root, "scripts", "client-path.sh"), address+"/client")
	ran(t, repository, env, "git", "commit", "--quiet", "--all", "--message", "m")
	ran(t, repository, env, "git", "tag", "client/v0.10.0")

	ran(t, program, env, "go", "mod", "init", "shop.example/orders")
	ran(t, program, env, "go", "get", address+"/client@v0.10.0")
	text := `package main

import "` + address + `/client"

func main() {
	c, err := client.New("https://id.example.com")
	println(c.URL, err == nil && client.CodeOf(err) == "")
}
`
	storetest.Must(t, os.WriteFile(filepath.Join(program, "main.go"), []byte(text), 0o600))
	storetest.Equal(t, ran(t, program, env, "go", "run", "."), "https://id.example.com true\n", "the program printed")
	modules := strings.Fields(ran(t, program, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	for _, m := range modules {
		if m != "shop.example/orders" && m != address+"/client" && !strings.HasPrefix(m, "github.com/gobwas/") &&
			m != "github.com/golang-jwt/jwt/v5" {
			t.Errorf("the program depends on %s", m)
		}
	}
	if len(modules) < 3 {
		t.Errorf("the modules are %v", modules)
	}
}

// ran returns the output of a command in a folder; a nil env is that of the test.
func ran(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}
