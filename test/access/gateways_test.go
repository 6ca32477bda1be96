package access

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/child"
	"castellan/internal/porttest"
)

// settings is the folder of the settings that docs/guard.md shows.
const settings = "../../deploy/gateways"

// upstream answers with the method, the target and the headers of the guard that it received.
func upstream(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var rewritten string
		for name := range r.Header {
			switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
			case "x-original-url", "x-rewrite-url", "x-http-method-override", "x-http-method", "x-method-override":
				rewritten += name
			}
		}
		json.NewEncoder(w).Encode(map[string]string{"method": r.Method, "uri": r.RequestURI,
			"user": strings.Join(r.Header["Castellan-User"], ","), "grant": r.Header.Get("castellan-grant"),
			"assertion": strings.Join(r.Header["Castellan-Assertion"], ","),
			"cgi":       r.Header.Get("castellan_user") + r.Header.Get("castellan_assertion"),
			"rewritten": rewritten})
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// gateways are the programs of Debian, with their arguments. Each runs in the foreground, with its own settings, ports
// and files.
var gateways = map[string]func(t *testing.T, dir, listen, castellan, upstream string) *exec.Cmd{
	"nginx": func(t *testing.T, dir, listen, castellan, upstream string) *exec.Cmd {
		own, _ := filepath.Abs(filepath.Join(settings, "nginx.conf"))
		var temp string
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			temp += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
		}
		main := filepath.Join(dir, "main.conf")
		write(t, main, fmt.Sprintf("daemon off;\nmaster_process off;\npid %s/pid;\nerror_log stderr;\nevents {}\n"+
			"http {\n"+
			"access_log off;\n%supstream castellan { server %s; }\nupstream upstream { server %s; }\n"+
			"server { listen %s default_server;\nreturn 421;\n}\n"+
			"server { listen %s;\nserver_name shop.example;\ninclude %s;\n}\n}\n", dir, temp, castellan, upstream, listen,
			listen, own))
		return exec.Command("nginx", "-c", main, "-p", dir)
	},
	"haproxy": func(t *testing.T, _, listen, castellan, upstream string) *exec.Cmd {
		cmd := exec.Command("haproxy", "-db", "-f", "haproxy.cfg")
		cmd.Dir = settings
		cmd.Env = append(os.Environ(), "LISTEN="+listen, "CASTELLAN="+castellan, "UPSTREAM="+upstream,
			"HOST=shop.example")
		return cmd
	},
	"caddy": func(t *testing.T, dir, listen, castellan, upstream string) *exec.Cmd {
		file := filepath.Join(dir, "Caddyfile")
		text := storetest.Value(os.ReadFile(filepath.Join(settings, "Caddyfile")))(t)
		write(t, file, "{\n\tadmin off\n\tauto_https off\n}\n"+string(text))
		_, port, _ := net.SplitHostPort(listen)
		cmd := exec.Command("caddy", "run", "--config", file, "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "LISTEN=http://:"+port, "HOST=shop.example", "CASTELLAN="+castellan,
			"UPSTREAM="+upstream, "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		return cmd
	},
}

func write(t *testing.T, file, text string) {
	t.Helper()
	storetest.Must(t, os.WriteFile(file, []byte(text), 0o600))
}

// begin starts a gateway and returns its address. It ends with the test.
func begin(t *testing.T, name, castellan, upstream string) string {
	listen := porttest.Free(t)
	cmd := gateways[name](t, t.TempDir(), listen, castellan, upstream)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatalf("%v; apt-get install %s", err, name)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	storetest.Must(t, child.AwaitListener(ctx, listen))
	return listen
}

// front is a client of a gateway.
type front struct {
	addr string
	g    *gate
}

func (f front) send(t *testing.T, method, uri string, headers blackbox.Headers) (blackbox.Answer, map[string]string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+f.addr+uri, nil)
	if method == "POST" {
		req, err = http.NewRequestWithContext(t.Context(), method, "http://"+f.addr+uri, strings.NewReader(`{"pay":1}`))
	}
	storetest.Must(t, err)
	req.Host = "shop.example"
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res := storetest.Value(http.DefaultTransport.RoundTrip(req))(t)
	defer res.Body.Close()
	a := blackbox.Answer{Status: res.StatusCode, Header: res.Header}
	var body bytes.Buffer
	body.ReadFrom(res.Body)
	a.Body = body.Bytes()
	var got map[string]string
	json.Unmarshal(a.Body, &got) // of the upstream; a refusal has numbers
	return a, got
}

// refuses fails the test unless a request is answered with the status and, if one is given, the code.
func (f front) refuses(t *testing.T, status int, code, method, uri string, headers blackbox.Headers) {
	t.Helper()
	if a, _ := f.send(t, method, uri, headers); a.Status != status || code != "" && a.Code() != code {
		t.Errorf("%s %s: %s, want %d %s", method, uri, a, status, code)
	}
}

// Each gateway of Debian, with the settings in deploy/gateways, guards a small upstream (D-EXT-11). Without the
// database no request passes: not even one that has no route.
func TestGateways(t *testing.T) {
	blackbox.OnOne(t, "postgres", func(t *testing.T, s *blackbox.Site) {
		network := s.Behind()
		g := newGate(t, s)
		g.route(t, `{"host":"shop.example","method":"POST","path":"/orders/*/pay","mode":"guarded","actionCode":"PAYOUT",`+
			`"rows":[{"key":"order","label":"Order","from":"path","index":1}]}`)
		g.route(t, `{"method":"*","path":"/me","mode":"session"}`)
		behind := upstream(t)
		fronts := map[string]front{}
		for name := range gateways {
			fronts[name] = front{begin(t, name, strings.TrimPrefix(g.URL, "http://"), behind), g}
		}
		for name, f := range fronts {
			t.Run(name, func(t *testing.T) { f.guards(t) })
		}
		blackbox.Rule(t, g.Node, g.boss, "few", "rate_limit", map[string]any{"targetEntities": []string{"127.0.0.1"},
			"targetResources": []string{"GET " + checkPath}, "period": 600_000, "limit": 1})
		for name, f := range fronts {
			var a blackbox.Answer
			blackbox.Until(t, 20*time.Second, name+" limits", func() bool {
				a, _ = f.send(t, "GET", "/free", nil)
				return a.Status == 403
			})
			if a.Code() != "RATE_LIMITED" || a.Header.Get("Retry-After") == "" {
				t.Errorf("a limit at %s: %s %v", name, a, a.Header)
			}
		}
		blackbox.Status(t, g.Node, "few", "INACTIVE", g.boss)
		network.Become(blackbox.Resets)
		for name, f := range fronts {
			blackbox.Until(t, 20*time.Second, name+" refuses without the database", func() bool {
				a, _ := f.send(t, "GET", "/free", nil)
				return a.Status == 503
			})
			f.refuses(t, 503, "", "POST", "/orders/7/pay", blackbox.Headers{"x-auth": g.xAuth})
		}
	})
}

// refusesOtherReadings sends what the gateway, the guard and an upstream may read in different ways.
func (f front) refusesOtherReadings(t *testing.T) {
	for _, head := range []string{
		"POST http://shop.example/orders/7/pay HTTP/1.1\r\nHost: other.example\r\n",
		"POST http://shop.example/orders/7/pay HTTP/1.1\r\nHost:\r\n",
		"POST http://shop.example/orders/7/pay HTTP/1.0\r\n",
		"POST /orders/7/pay HTTP/1.1\r\nHost: shop.example:80:80\r\n",
		"GET /free HTTP/1.1\r\nHost: other.example\r\n",
		"GET /free HTTP/1.1\r\nHost: 127.0.0.1\r\n",
		"POST /orders/7/pay.json HTTP/1.1\r\nHost: shop.example\r\n",
		"POST /orders/7/pay HTTP/1.1\r\nHost:\r\n",
		"POST /orders/7/pay HTTP/1.1\r\nHost: .\r\n",
		"post /orders/7/pay HTTP/1.1\r\nHost: shop.example\r\n",
		"POST /ORDERS/7/pay HTTP/1.1\r\nHost: shop.example\r\n",
	} {
		c := storetest.Value(net.Dial("tcp", f.addr))(t)
		fmt.Fprint(c, head+"Content-Length: 0\r\nConnection: close\r\n\r\n")
		if got, err := io.ReadAll(c); err != nil || bytes.Contains(got, []byte(`"uri"`)) {
			t.Errorf("%q is answered %s, %v", head, got, err)
		}
		c.Close()
	}
	a, got := f.send(t, "GET", "/free", blackbox.Headers{"castellan_user": "root", "castellan_assertion": "x",
		"X-Original-URL": "/orders/7/pay", "X-Rewrite-URL": "/orders/7/pay", "X-HTTP-Method-Override": "POST",
		"x_original_url": "/orders/7/pay", "x_rewrite_url": "/orders/7/pay", "X_HTTP_Method_Override": "POST",
		"X-HTTP_Method-Override": "POST", "X-HTTP-Method": "POST", "X_HTTP_Method": "POST", "X-Method-Override": "POST",
		"x_method-override": "POST"})
	if a.Status != 200 || got["cgi"] != "" || got["rewritten"] != "" {
		t.Errorf("headers with underscores, or of another request: %s", a)
	}
	a, got = f.send(t, "GET", "/me", blackbox.Headers{"x-auth": f.g.xAuth, "Connection": "castellan-user, x"})
	if a.Status == 200 && got["user"] != f.g.owner.ID {
		t.Errorf("a connection that names a header of the guard: %s", a)
	}
}

func (f front) guards(t *testing.T) {
	const pay = "/orders/7/pay?amount=12"
	f.refusesOtherReadings(t)
	forged := blackbox.Headers{"castellan-user": "root", "castellan-assertion": "x", "X-Original-URI": "/free",
		"X-Original-Method": "GET"}
	a, got := f.send(t, "GET", "/free?a=b", blackbox.Headers{"castellan-user": "root", "castellan-assertion": "x"})
	if a.Status != 200 || got["uri"] != "/free?a=b" || got["user"] != "" || got["assertion"] != "" {
		t.Fatalf("an unguarded request: %s", a)
	}
	a, got = f.send(t, "GET", "/me", blackbox.Headers{"x-auth": f.g.xAuth, "castellan-user": "root"})
	if a.Status != 200 || got["user"] != f.g.owner.ID {
		t.Errorf("a session: %s", a)
	}
	f.refuses(t, 401, "", "GET", "/me", forged)
	for _, uri := range []string{"/orders/7/p%61y", "/orders/7/pay/"} {
		f.refuses(t, 401, "", "POST", uri, nil)
	}
	if a, _ = f.send(t, "POST", "/x/../orders/7/pay", nil); a.Status == 200 {
		t.Errorf("dot segments: %s", a)
	}
	for _, name := range []string{"X-Original-URI", "X-Forwarded-Uri"} {
		if a, _ = f.send(t, "POST", pay, blackbox.Headers{name: "/free"}); a.Status == 200 {
			t.Errorf("a client that names another request by %s: %s", name, a)
		}
	}
	mine := func(grant string) blackbox.Headers {
		return blackbox.Headers{"x-auth": f.g.xAuth, "castellan-grant": grant}
	}
	first, _ := f.send(t, "POST", pay, blackbox.Headers{"x-auth": f.g.xAuth})
	if got := first.Header.Values("WWW-Authenticate"); len(got) != 1 || got[0] != "Castellan" {
		t.Errorf("the refusal has the headers %v", first.Header)
	}
	if first.Status != 401 || first.Code() != "CHALLENGE_REQUIRED" {
		t.Fatalf("a guarded request: %s %v", first, first.Header)
	}
	first.Status = 200
	var said struct{ Rows []challenge.Detail }
	first.Read(t, &said)
	if len(said.Rows) != 1 || said.Rows[0].Label != "Order" || said.Rows[0].Value != "7" {
		t.Errorf("the refusal shows the rows %v", said.Rows)
	}
	flow := blackbox.FlowOf(t, first)
	storetest.Contains(t, fmt.Sprint(f.g.Letters(t, f.g.owner.Number())), "(Order 7)", "messages with codes")
	done := f.g.Complete(t, flow, flow.Method(t, "SMS"), f.g.Code(t, f.g.owner, "SMS")).Is(t, 200, "")
	grant := done.Header.Get("castellan-grant")
	f.refuses(t, 403, "GRANT_MISMATCH", "POST", "/orders/8/pay?amount=12", mine(grant)) // of another request
	f.refuses(t, 403, "GRANT_MISMATCH", "POST", pay, mine(grant+"x"))
	if a, got = f.send(t, "POST", pay, mine(grant)); a.Status != 200 || got["user"] != f.g.owner.ID ||
		strings.Count(got["assertion"], ".") != 2 || got["grant"] != "" || got["method"] != "POST" || got["uri"] != pay {
		t.Errorf("with a grant: %s", a)
	}
	f.refuses(t, 403, "GRANT_USED", "POST", pay, mine(grant))
}
