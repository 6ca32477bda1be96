package push

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

// A push service that learns nothing wakes a device for its challenge. Only the device's key opens the message, and the
// request identifies its sender (RFC 8030, 8291, 8292).
func TestWebPush(t *testing.T) {
	s := newService(t, true)
	var key *ecdsa.PrivateKey
	sender := s.sender(t, func(c *Config) { key = c.VAPID()[0] })
	d := newDevice(t, s.URL+"/send/"+capability)
	for range 2 {
		storetest.Must(t, send(t, sender, to(d.target)))
	}
	calls := s.received()
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	c := calls[0]
	storetest.Equal(t, opened(t, d.private, d.auth, c.body), wakeup, "the device reads")
	if c.method != http.MethodPost || c.path != "/send/"+capability {
		t.Errorf("%s %s", c.method, c.path)
	}
	for name, want := range map[string]string{"TTL": "90", "Urgency": "high", "Content-Encoding": "aes128gcm",
		"Content-Type": "application/octet-stream", "User-Agent": "castellan"} {
		storetest.Equal(t, c.header.Get(name), want, name)
	}
	subject := c.header.Get("Topic")
	if len(subject) > 32 || subject == "" || strings.ContainsAny(subject, "+/=.") ||
		subject != calls[1].header.Get("Topic") {
		t.Errorf("topic %q, and of the repeat %q", subject, calls[1].header.Get("Topic"))
	}
	if topic("another") == subject {
		t.Error("two challenges have one topic")
	}

	token, public, ok := strings.Cut(strings.TrimPrefix(c.header.Get("Authorization"), "vapid t="), ", k=")
	point, err := base64.RawURLEncoding.DecodeString(public)
	if !ok || err != nil {
		t.Fatalf("authorization %q: %v", c.header.Get("Authorization"), err)
	}
	verifier, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil || !key.PublicKey.Equal(verifier) {
		t.Fatalf("the key is not that of the service: %v", err)
	}
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return verifier, nil },
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(s.URL), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(func() time.Time { return clock }))
	storetest.Must(t, err)
	if until, _ := claims.GetExpirationTime(); until.Sub(clock) > 24*time.Hour ||
		claims["sub"] != "mailto:ops@example.com" || len(claims) != 3 {
		t.Errorf("claims %v", claims)
	}
	storetest.Equal(t, storetest.Value(PublicKey(key))(t), public, "clients are shown")
}

func TestWithoutContactThereIsNoSubject(t *testing.T) {
	s := newService(t, true)
	sender := s.sender(t, func(c *Config) { c.Contact = "" })
	storetest.Must(t, send(t, sender, to(newDevice(t, s.URL).target)))
	token := strings.TrimPrefix(s.received()[0].header.Get("Authorization"), "vapid t=")
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || strings.Contains(string(body), "sub") {
		t.Errorf("claims %s, %v", body, err)
	}
}

// Only the fields that a device may receive are sent, whatever a message contains.
func TestOnlyPermittedFieldsAreSent(t *testing.T) {
	s := newService(t, true)
	sender, d := s.sender(t, nil), newDevice(t, s.URL)
	m := to(d.target)
	m.Text = `{"challengeId":"c","action":"a","expire":99999999,"code":"123456"}`
	m.Code, m.Subject, m.HTML = "123456", "123456", "123456"
	storetest.Must(t, send(t, sender, m))
	m.To = hook(s.URL)
	storetest.Must(t, send(t, sender, m))
	const want = `{"challengeId":"c","action":"a","expire":3600}`
	calls := s.received()
	storetest.Equal(t, opened(t, d.private, d.auth, calls[0].body), want, "the device reads")
	if string(calls[1].body) != want || strings.Contains(fmt.Sprint(calls[1].header), "123456") {
		t.Errorf("the webhook got %s", calls[1].body)
	}
	storetest.Equal(t, calls[0].header.Get("TTL"), "3600", "TTL")
}

func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"https://Push.Example:443/x?y": "https://push.example", "https://push.example:8443": "https://push.example:8443",
		"http://127.0.0.1:443/": "http://127.0.0.1:443",
	} {
		storetest.Equal(t, origin(storetest.Value(parseAddress(address))(t)), want, address)
	}
}

func TestAnswers(t *testing.T) {
	s := newService(t, true)
	sender := s.sender(t, nil)
	push, webhook := newDevice(t, s.URL+"/"+capability).target, hook(s.URL+"/"+capability)
	for _, c := range []struct {
		target    string
		status    int
		after     string
		permanent bool
		gone      bool
		wait      time.Duration
	}{
		{push, 404, "", true, true, 0},
		{push, 410, "", true, true, 0},
		{webhook, 404, "", true, false, 0},
		{webhook, 410, "", true, true, 0},
		{push, 400, "", true, false, 0},
		{push, 403, "", true, false, 0},
		{push, 413, "", true, false, 0},
		{push, 429, "30", false, false, 30 * time.Second},
		{push, 429, "", false, false, 0},
		{push, 429, "999999999", false, false, time.Hour},
		{push, 429, "-5", false, false, 0},
		{push, 503, "Sat, 21 Nov 2026 10:31:00 GMT", false, false, time.Minute},
		{push, 503, "Sat, 21 Nov 2026 10:29:00 GMT", false, false, 0},
		{push, 503, "soon", false, false, 0},
		{push, 500, "", false, false, 0},
		{push, 408, "", false, false, 0},
		{webhook, 502, "7", false, false, 7 * time.Second},
		{push, 301, "", true, false, 0},
	} {
		s.answers(func(w http.ResponseWriter, _ *http.Request) {
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, capability)
		})
		d := failure(t, send(t, sender, to(c.target)), c.permanent, fmt.Sprint("answered ", c.status))
		if d.Gone != c.gone || message.IsGone(d) != c.gone || d.RetryAfter != c.wait {
			t.Errorf("%d %q: gone %v, wait %v; want %v, %v", c.status, c.after, d.Gone, d.RetryAfter, c.gone, c.wait)
		}
	}
	for _, status := range []int{200, 201, 202, 204} {
		s.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		storetest.Is(t, send(t, sender, to(push)), nil, status)
	}
}

// A redirect is not followed: it would bypass the list of hosts.
func TestRedirectsAreNotFollowed(t *testing.T) {
	s, other := newService(t, true), newService(t, false)
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	failure(t, send(t, s.sender(t, func(c *Config) { c.AllowPlain = true }), to(hook(s.URL))), true, "answered 307")
	storetest.Equal(t, len(other.received()), 0, "a redirect was followed")
}

// Neither an endless answer nor a missing one blocks a worker.
func TestAnswersAreBounded(t *testing.T) {
	s := newService(t, true)
	ended := make(chan struct{})
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	storetest.Is(t, send(t, s.sender(t, nil), to(hook(s.URL))), nil, "a long answer")
	<-ended // the client closed the connection

	s.answers(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", maxHeaderBytes)) })
	if d := failure(t, send(t, s.sender(t, nil), to(hook(s.URL))), false, "the connection failed"); d.Timeout {
		t.Error("a failure that came at once is a timeout")
	}

	s.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	err := send(t, s.sender(t, func(c *Config) { c.Timeout = 50 * time.Millisecond }), to(hook(s.URL)))
	if failure(t, err, false, "no answer in time"); !message.IsTimeout(err) {
		t.Error("a timeout that is none")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	failure(t, s.sender(t, nil).Send(ctx, messageID, to(hook(s.URL))), false, "no answer in time")
}

func TestUnreachableTargets(t *testing.T) {
	s := newService(t, true)
	failure(t, send(t, s.sender(t, func(c *Config) { c.CAFile = "" }), to(hook(s.URL))), false,
		"certificate is not trusted")
	unknown := fmt.Errorf("call: %w", &net.DNSError{Name: capability, IsNotFound: true})
	storetest.Equal(t, reason(unknown), "its name cannot be resolved")
	s.Server.Close()
	failure(t, send(t, s.sender(t, nil), to(hook(s.URL))), false, "the connection failed")
}

// A user names the target. This machine and its networks cannot be reached, by address or by name, and no connection is
// even opened (SEC-37).
func TestGuardedTargets(t *testing.T) {
	s, plain := newService(t, true), newService(t, false)
	strict := s.sender(t, func(c *Config) { c.AllowPrivate = false })
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		failure(t, send(t, strict, to(hook("https://"+host+port))), true, "must not be called")
		failure(t, send(t, strict, to(newDevice(t, "https://"+host+port).target)), true, "must not be called")
	}
	for _, u := range []string{plain.URL, strings.Replace(plain.URL, "127.0.0.1", "localhost", 1),
		"http://push.example.com/"} {
		failure(t, send(t, strict, to(hook(u))), true, "target is not https")
	}
	developing := s.sender(t, func(c *Config) { c.AllowPlain = true })
	failure(t, send(t, developing, to(hook("http://push.example.com/"))), true, "target is not https")
	if s.connections() != 0 || plain.connections() != 0 {
		t.Fatalf("%d and %d connections to a guarded address", s.connections(), plain.connections())
	}
	storetest.Is(t, send(t, developing, to(hook(plain.URL))), nil, "http to this machine in development")
	listed := s.sender(t, func(c *Config) { c.Hosts = []string{"*.push.example.com"} })
	failure(t, send(t, listed, to(hook(s.URL))), true, "not in the list of hosts")
	storetest.Equal(t, s.connections(), 0, "a host that is not listed was called")
}

func TestMalformedMessages(t *testing.T) {
	s := newService(t, true)
	sender := s.sender(t, nil)
	good := newDevice(t, s.URL).target
	for name, m := range map[string]message.Rendered{
		"another channel": {Channel: message.SMS, To: good, Text: wakeup},
		"no text":         {Channel: message.Push, To: good},
		"no challenge":    {Channel: message.Push, To: good, Text: `{"action":"LOGIN"}`},
		"two texts":       {Channel: message.Push, To: good, Text: wakeup + wakeup},
		"long text":       {Channel: message.Push, To: good, Text: wakeup + strings.Repeat(" ", maxWakeupBytes)},
		"no target":       {Channel: message.Push, Text: wakeup},
		"long target":     {Channel: message.Push, To: good + strings.Repeat(" ", maxTargetBytes), Text: wakeup},
		"no type":         to(`{"url":"` + s.URL + `"}`),
		"another type":    to(`{"type":"apns","url":"` + s.URL + `"}`),
		"no address":      to(hook("")),
		"relative":        to(hook("/" + capability)),
		"no host":         to(hook("https://:443/" + capability)),
		"opaque":          to(hook("https:" + capability)),
		"scheme":          to(hook("ftp://127.0.0.1/" + capability)),
		"file":            to(hook("file:///etc/passwd")),
		"user":            to(hook("https://" + capability + "@127.0.0.1/")),
		"fragment":        to(hook(s.URL + "/#" + capability)),
		"escape":          to(hook("https://127.0.0.1/%zz" + capability)),
		"long address":    to(hook(s.URL + "/" + strings.Repeat("x", maxAddressBytes))),
		"keys": to(
			fmt.Sprintf(`{"type":"webpush","endpoint":%q,"keys":{"p256dh":%q,"auth":""}}`, s.URL, capability)),
		"url of webpush": to(`{"type":"webpush","url":"` + s.URL + `"}`),
	} {
		t.Run(name, func(t *testing.T) { failure(t, send(t, sender, m), true, "push: ") })
	}
	failure(t, sender.Send(context.Background(), "a\nb", to(hook(s.URL))), true, "malformed message key")
	failure(t, sender.Send(context.Background(), "", to(hook(s.URL))), true, "malformed message key")
	storetest.Equal(t, s.connections(), 0, "connections for messages that cannot be sent")
}

func TestNewReportsEveryFault(t *testing.T) {
	other := storetest.Value(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	good := Config{VAPID: keyringtest.Ring(t, nil).VAPIDs}
	for part, change := range map[string]func(*Config){
		"VAPID key is missing": func(c *Config) { c.VAPID = nil },
		"curve P-256": func(c *Config) {
			c.VAPID = func() []*ecdsa.PrivateKey { return []*ecdsa.PrivateKey{other} }
		},
		"contact must":         func(c *Config) { c.Contact = "ops@example.com" },
		"must be whsec_":       func(c *Config) { c.WebhookSecret = "hunter2hunter2hunter2hunter2hunter2" },
		"must be whsec_ and":   func(c *Config) { c.WebhookSecret = "whsec_aHVudGVyMg==" },
		"24 to 64 bytes":       func(c *Config) { c.WebhookSecret = hookSecret + " whsec_!" },
		"ca_file: open":        func(c *Config) { c.CAFile = "no/such/file" },
		"ca_file: the file":    func(c *Config) { c.CAFile = "push_test.go" },
		"contact must be":      func(c *Config) { c.Contact, c.WebhookSecret = "x", "hunter2" },
		"must be whsec_ and b": func(c *Config) { c.Contact, c.WebhookSecret = "x", "hunter2" },
	} {
		cfg := good
		change(&cfg)
		s, err := New(cfg)
		if err == nil || s != nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "hunter2") ||
			strings.Contains(err.Error(), "aHVudGVyMg") {
			t.Errorf("want %q, got %v", part, err)
		}
	}
	storetest.Is(t, storetest.Err(New(good)), nil)
}

// A subscription for a replaced key is served under that key until it expires; one for the new key is not called twice.
func TestWebPushUnderAReplacedKey(t *testing.T) {
	s := newService(t, true)
	fresh, old := keyringtest.Ring(t, nil).VAPIDs()[0], keyringtest.Ring(t, nil).VAPIDs()[0]
	keys := []*ecdsa.PrivateKey{fresh, old}
	sender := s.sender(t, func(c *Config) { c.VAPID = func() []*ecdsa.PrivateKey { return keys } })
	d := newDevice(t, s.URL+"/send/"+capability)
	subscribed := old
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		public, err := PublicKey(subscribed)
		if err != nil || !strings.HasSuffix(r.Header.Get("Authorization"), ", k="+public) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	for i, want := range []int{2, 1} {
		before := len(s.received())
		if err := send(t, sender, to(d.target)); err != nil || len(s.received())-before != want {
			t.Errorf("%d calls, %v; want %d", len(s.received())-before, err, want)
		}
		if i == 0 {
			subscribed = fresh
		}
	}
	keys, subscribed = keys[:1], old
	storetest.Fails(t, send(t, sender, to(d.target)), "", "the old key has ended and is used")
}
