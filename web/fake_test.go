package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"castellan/web"
)

// policy is the strictest policy under which the pages must work.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self' ws://localhost:* ws://127.0.0.1:*; manifest-src 'self'; worker-src 'self'; frame-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

const (
	demoCountry  = "90"
	demoPhone    = "5550001122"
	demoPassword = "correct horse battery staple"
)

// service simulates the real service. It implements enough of the interface to bring the pages and the client into
// every state, including failures that a healthy service never shows. Its clock moves only by hand.
type service struct {
	*httptest.Server

	// Set before the first request.
	required    int           // methods to complete; 0 means one
	holdOutcome bool          // completions answer without execResult: the outcome arrives by another path
	cutAnswer   bool          // the last completion's answer is only its first half
	slowAnswer  chan struct{} // the last completion answers only when this is closed
	busyResults int           // this many result requests are answered with 503 first
	sockets     []string      // the behaviour of each connection in turn: see socket; then the last again; none: "serve"

	mu        sync.Mutex
	offset    time.Duration
	started   time.Time
	methods   []*method
	wrong     int
	ended     string // the code of an end without an outcome
	outcome   map[string]any
	events    []map[string]any
	outbox    []map[string]any
	connected int
	live      []*websocket.Conn
	changed   chan struct{} // closed and replaced at every event and end
	loggedOut bool
	results   int // answered result requests
}

type method struct {
	id, name, hint, code string
	made, expires        time.Time
	wrong                int
	locked, complete     bool
}

const (
	challengeLife = 600 * time.Second
	methodLife    = 120 * time.Second
	renewGate     = 60 * time.Second
	cutOff        = 120 * time.Second
)

// servePage serves a file of the pages under the policy.
func servePage(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, contentType, ok := web.Page(name)
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Service-Worker-Allowed", "/authenticator")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body)
	}
}

func newService(t *testing.T) *service {
	return newServiceWith(t, func(*http.ServeMux) {}, func(next http.Handler) http.Handler { return next })
}

// newServiceWith is newService with more endpoints, and with a handler around all of them.
func newServiceWith(t *testing.T, more func(*http.ServeMux), around func(http.Handler) http.Handler) *service {
	s := &service{changed: make(chan struct{})}
	mux, page := http.NewServeMux(), servePage
	mux.HandleFunc("GET /{$}", page("index.html"))
	mux.HandleFunc("GET /docs", page("docs.html"))
	mux.HandleFunc("GET /authenticator", page("authenticator.html"))
	mux.HandleFunc("GET /dev/outbox/page", page("outbox.html"))
	mux.HandleFunc("GET /static/{name}", func(w http.ResponseWriter, r *http.Request) { page(r.PathValue("name"))(w, r) })
	mux.HandleFunc("GET /dev/outbox", s.listOutbox)
	mux.HandleFunc("POST /auth/login", s.login)
	mux.HandleFunc("POST /auth/logout", s.logout)
	mux.HandleFunc("GET /auth/sessions", s.listSessions)
	mux.HandleFunc("DELETE /auth/sessions", s.endSession)
	mux.HandleFunc("POST /auth/2fa/challenge/complete", s.complete)
	mux.HandleFunc("POST /auth/2fa/challenge/renew", s.renew)
	mux.HandleFunc("GET /auth/2fa/challenge/result", s.result)
	mux.HandleFunc("GET /2fa", s.socket)
	mux.HandleFunc("GET /openapi.json",
		func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, openAPI()) })
	mux.HandleFunc("GET /asyncapi.json",
		func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, document("asyncapi.json")) })
	more(mux)
	s.Server = httptest.NewServer(around(mux))
	t.Cleanup(func() {
		s.mu.Lock()
		for _, conn := range s.live {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *service) now() time.Time { return time.Now().Add(s.offset) }

// advance moves the service's clock; the test moves the page's own.
func (s *service) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// end closes the challenge without an outcome and every socket with it.
func (s *service) end(code string, closeCode int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = code
	for _, conn := range s.live {
		hangUp(conn, closeCode)
	}
	s.wake()
}

// finish delivers the outcome from elsewhere, as a registered device would.
func (s *service) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(s.methods[0])
}

func (s *service) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *service) publish(event string, item map[string]any) {
	s.events = append(s.events,
		map[string]any{"challengeId": "ch-1", "action": "LOGIN", "event": event, "data": []any{item}})
	s.wake()
}

func (s *service) send(m *method) {
	m.code = fmt.Sprintf("%06d", 417000+len(s.outbox)*37)
	to, subject, body := "+"+demoCountry+demoPhone, "", "Castellan: "+m.code+" is your code for Log in. It ends in 120 "+
		"seconds."
	if m.name == "MAIL" {
		to, subject = "demo@castellan.test", "Your code for Log in"
		body = "<!doctype html><html><head><style>p{color:red}</style></head><body style=\"margin:0\"><p>Your code for " +
			"<b>Log in</b> is:</p>\n<p>" + m.code + "</p></body></html>"
	}
	s.outbox = append(
		[]map[string]any{
			{"channel": m.name, "to": to, "subject": subject, "body": body, "code": m.code, "at": s.now().UnixMilli()},
		},
		s.outbox...)
}

func (s *service) login(w http.ResponseWriter, r *http.Request) {
	in := read(r)
	if in["password"] == nil {
		fields := []any{
			map[string]any{"field": "password", "message": "password is required"},
			map[string]any{"field": "phoneNumber", "message": "phoneNumber or email is required"},
		}
		refuse(w, http.StatusBadRequest, "INVALID_FIELD", "password is required",
			map[string]any{"field": "password", "errors": fields})
		return
	}
	if in["password"] == "too often" {
		w.Header().Set("Retry-After", "90")
		refuse(w, http.StatusTooManyRequests, "RATE_LIMITED", "Too many wrong passwords.", nil)
		return
	}
	if in["password"] != demoPassword || in["phoneNumber"] != demoPhone || in["countryCode"] != demoCountry {
		refuse(w, http.StatusUnauthorized, "INVALID_CREDENTIALS", "The password or the account is wrong.", nil)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.started, s.ended, s.outcome, s.events, s.wrong = now, "", nil, nil, 0
	s.methods = []*method{
		{id: "m-totp", name: "TOTP", code: "000000", made: now, expires: now.Add(challengeLife)},
		{id: "m-sms", name: "SMS", hint: "+90********22", made: now, expires: now.Add(methodLife)},
		{id: "m-mail", name: "MAIL", hint: "d***@castellan.test", made: now, expires: now.Add(methodLife)},
	}
	s.send(s.methods[1])
	s.send(s.methods[2])
	w.Header().Set("p-auth", token(map[string]any{"iss": "castellan", "aud": "p-auth", "cid": "ch-1"}))
	answer(w, http.StatusOK, map[string]any{"challenge": s.record(false)})
}

func (s *service) record(incompleteOnly bool) map[string]any {
	list := []any{}
	for _, m := range s.methods {
		if incompleteOnly && m.complete {
			continue
		}
		item := map[string]any{"id": m.id, "name": m.name, "expire": int(m.expires.Sub(s.now()).Seconds()), "renewStart": 0}
		if m.name != "TOTP" {
			item["renewStart"], item["hint"] = int(renewGate.Seconds()), m.hint
		}
		list = append(list, item)
	}
	return map[string]any{
		"challengeId": "ch-1",
		"ts":          s.started.UnixMilli(),
		"status":      "PENDING",
		"expire":      int(challengeLife.Seconds()),
		"methodList":  list,
	}
}

func (s *service) find(id any) *method {
	for _, m := range s.methods {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (s *service) complete(w http.ResponseWriter, r *http.Request) {
	in := read(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(in["methodId"])
	switch {
	case m == nil || r.Header.Get("p-auth") == "":
		refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED", "p-auth is missing", nil)
		return
	case s.ended == "CHALLENGE_EXPIRED":
		refuse(w, http.StatusGone, s.ended, "The challenge has expired.", nil)
		return
	case s.ended != "":
		refuse(w, http.StatusConflict, s.ended, "The challenge is closed.", nil)
		return
	case m.complete:
		refuse(w, http.StatusConflict, "METHOD_ALREADY_COMPLETED", "The method is complete already.", nil)
		return
	case m.locked:
		refuse(w, http.StatusLocked, "METHOD_LOCKED", "Too many wrong codes.", nil)
		return
	case !s.now().Before(m.expires):
		refuse(w, http.StatusGone, "METHOD_EXPIRED", "The code has expired.", nil)
		return
	case in["value"] != m.code:
		m.wrong++
		m.locked = m.wrong == 5
		refuse(w, http.StatusUnprocessableEntity, "OTP_INVALID", "The code is wrong.",
			map[string]any{"field": "value", "attemptsLeft": 5 - m.wrong})
		return
	}
	done := 1
	for _, other := range s.methods {
		if other.complete {
			done++
		}
	}
	if done < max(s.required, 1) {
		m.complete = true
		s.publish("METHOD_COMPLETE", map[string]any{"methodId": m.id, "method": m.name})
		answer(w, http.StatusOK, map[string]any{"action": "LOGIN"})
		return
	}
	s.conclude(m)
	if s.slowAnswer != nil {
		slow := s.slowAnswer
		s.mu.Unlock()
		<-slow
		s.mu.Lock()
	}
	switch {
	case s.cutAnswer:
		_, _ = io.WriteString(w, `{"action":"LOGIN","execRes`)
	case s.holdOutcome:
		answer(w, http.StatusOK, map[string]any{"action": "LOGIN", "challengeId": "ch-1"})
	default:
		s.answerOutcome(w)
	}
}

func (s *service) conclude(m *method) {
	m.complete = true
	s.publish("METHOD_COMPLETE", map[string]any{"methodId": m.id, "method": m.name})
	now := time.Now().Unix()
	s.outcome = map[string]any{
		"success": true,
		"data":    map[string]any{"sessionKey": "s-7Qm2vXk4Wd9T"},
		"headers": map[string]any{"x-auth": token(map[string]any{
			"iss": "castellan", "sub": "u-1", "aud": "x-auth", "iat": now, "exp": now + 1800, "jti": "t-1",
			"sid": "s-7Qm2vXk4Wd9T", "sv": 1, "tid": "default",
			"roles": []string{"user"}, "amr": []string{"pwd", "sms"}, "auth_time": now,
		})},
	}
	s.publish("ACTION_COMPLETE", s.outcome)
}

func (s *service) answerOutcome(w http.ResponseWriter) {
	for name, value := range s.outcome["headers"].(map[string]any) {
		w.Header().Set(name, value.(string))
	}
	answer(w, http.StatusOK, map[string]any{"action": "LOGIN", "challengeId": "ch-1",
		"execResult": map[string]any{"success": true, "data": s.outcome["data"]}})
}

func (s *service) renew(w http.ResponseWriter, r *http.Request) {
	in := read(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(in["methodId"])
	if s.started.Add(challengeLife).Sub(s.now()) < cutOff {
		refuse(w, http.StatusConflict, "RENEW_CLOSED", "No renewal in the last two minutes.", nil)
		return
	}
	if wait := m.made.Add(renewGate).Sub(s.now()); wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())+1))
		refuse(w, http.StatusTooManyRequests, "RENEW_TOO_EARLY", "Too early for a new code.", nil)
		return
	}
	m.expires, m.wrong, m.locked = s.now().Add(methodLife), 0, false
	s.send(m)
	for _, other := range s.methods {
		if !other.complete && other.expires.Before(m.expires) {
			other.expires = m.expires
		}
	}
	answer(w, http.StatusOK, map[string]any{"challenge": s.record(true)})
}

func (s *service) listOutbox(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for _, item := range s.outbox {
		if to := r.URL.Query().Get("to"); to == "" || item["to"] == to {
			list = append(list, item)
		}
	}
	answer(w, http.StatusOK, list)
}
