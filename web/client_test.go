package web_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"castellan/web/webtest"
)

// seen contains the events that a listener on a flow has received so far.
type seen struct {
	Method, Done, Closed, Errors, Transport, Messages []string
	Settled                                           string // of flow.done: "", "resolved" or the code of the rejection
	XAuth                                             bool
}

// integrator is a page that uses the client module as an integrator's script would.
type integrator struct {
	*webtest.Tab
	service *service
}

// startFlow logs in and listens. Short waits of the module pass fifty times faster; the ones that guard a connection
// keep their length.
func startFlow(t *testing.T, tab *webtest.Tab, s *service) integrator {
	t.Helper()
	tab.Open(s.URL + "/")
	webtest.Value[bool](tab, fmt.Sprintf(`(async () => {
		const real = window.setTimeout;
		window.setTimeout = (f, ms, ...more) => real(f, ms < 3000 ? ms / 50 : ms, ...more);
		const { CastellanClient } = await import('/static/castellan-client.js');
		window.client = new CastellanClient();
		window.seen = { Method: [], Done: [], Closed: [], Errors: [], Transport: [], Messages: [], Settled: '' };
		window.flow = await client.login({ countryCode: %q, phoneNumber: %q, password: %q });
		const note = (type, list, text) => flow.addEventListener(type, ({ detail }) => seen[list].push(text(detail)));
		note('method', 'Method', (d) => d.methodId);
		note('done', 'Done', (d) => d.via);
		note('closed', 'Closed', (d) => d.code);
		note('error', 'Errors', (d) => d.code);
		note('transport', 'Transport', (d) => d.name + (d.code ?? ''));
		note('message', 'Messages', (d) => d.event);
		flow.done.then((o) => {
			seen.Settled = o.success && o.data.sessionKey && o.headers['x-auth'] ? 'resolved' : 'incomplete'; },
			(e) => { seen.Settled = e.code; });
		return true;
	})()`, demoCountry, demoPhone, demoPassword))
	return integrator{tab, s}
}

// begin sends the right SMS code without waiting for the answer; answered waits for its end.
func (i integrator) begin() {
	i.service.mu.Lock()
	code := i.service.methods[1].code
	i.service.mu.Unlock()
	webtest.Value[bool](i.Tab, fmt.Sprintf(`(() => { window.answered = undefined;
		flow.complete('m-sms', 'SMS', %q).then(() => { answered = 'ok'; }, (e) => { answered = e.code; });
			return true; })()`, code))
}

func (i integrator) complete() string {
	i.begin()
	i.Until("window.answered !== undefined")
	return webtest.Value[string](i.Tab, "answered")
}

func (i integrator) settled() seen {
	i.Until("seen.Settled !== ''")
	text := webtest.Value[string](i.Tab, "JSON.stringify({ ...seen, XAuth: client.xAuth !== '' })")
	var s seen
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	return s
}

func (i integrator) hears(list, what string) {
	i.Until(fmt.Sprintf("seen.%s.includes(%q)", list, what))
}

func (s *service) counts() (connected, results int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected, s.results
}

// The client module, in one browser: starting it costs more than most of these tests.
func TestClient(t *testing.T) {
	tab := webtest.Browser(t)
	t.Run("intents", func(t *testing.T) { intentVectors(t, tab.For(t)) })
	t.Run("every door", func(t *testing.T) { everyDoor(t, tab.For(t)) })
	t.Run("reported once", func(t *testing.T) { reportedOnce(t, tab.For(t)) })
	t.Run("ends without outcome", func(t *testing.T) { endsWithoutOutcome(t, tab.For(t)) })
	t.Run("listens", func(t *testing.T) { listens(t, tab.For(t)) })
	t.Run("requests", func(t *testing.T) { requests(t, tab.For(t)) })
}

// The outcome is reported once and completely, whichever path delivers it and whichever others fail.
func everyDoor(t *testing.T, tab *webtest.Tab) {
	tests := []struct {
		name      string
		prepare   func(*service)
		transport string // waited for before the completion
		via       []string
		answered  string
		connected int
		noPolling bool
	}{
		{name: "every door works",
			transport: "socket", via: []string{"complete", "socket"}, answered: "ok", connected: 1, noPolling: true},
		{name: "the answer comes without the outcome", prepare: func(s *service) { s.holdOutcome = true },
			transport: "socket", via: []string{"socket"}, answered: "ok", connected: 1, noPolling: true},
		{name: "the answer is truncated", prepare: func(s *service) { s.cutAnswer = true },
			transport: "socket", via: []string{"socket"}, answered: "NETWORK", connected: 1, noPolling: true},
		{name: "the socket is refused", prepare: func(s *service) { s.holdOutcome, s.sockets = true, []string{"refuse"} },
			transport: "poll", via: []string{"result"}, answered: "ok", connected: 1},
		{name: "too many sockets", prepare: func(s *service) { s.holdOutcome, s.sockets = true, []string{"4429"} },
			transport: "poll", via: []string{"result"}, answered: "ok", connected: 1},
		{name: "the result endpoint is busy at first",
			prepare:   func(s *service) { s.holdOutcome, s.busyResults, s.sockets = true, 1, []string{"refuse"} },
			transport: "poll", via: []string{"result"}, answered: "ok", connected: 1},
		{name: "a node restarts", prepare: func(s *service) { s.holdOutcome, s.sockets = true, []string{"1012", "serve"} },
			transport: "lost1012", via: []string{"socket"}, answered: "ok", connected: 2, noPolling: true},
		{name: "the socket never stays", prepare: func(s *service) { s.holdOutcome, s.sockets = true, []string{"1011"} },
			transport: "poll", via: []string{"result"}, answered: "ok", connected: 4},
		{name: "the socket is lost with the outcome",
			prepare:   func(s *service) { s.holdOutcome, s.sockets = true, []string{"+1012", "serve"} },
			transport: "socket", via: []string{"socket"}, answered: "ok", connected: 2, noPolling: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newService(t)
			if test.prepare != nil {
				test.prepare(s)
			}
			i := startFlow(t, tab.For(t), s)
			i.hears("Transport", test.transport)
			if got := i.complete(); got != test.answered {
				t.Errorf("complete was answered %s, want %s", got, test.answered)
			}
			got := i.settled()
			if got.Settled != "resolved" || len(got.Done) != 1 || !slices.Contains(test.via, got.Done[0]) ||
				len(got.Closed) != 0 {
				t.Errorf("settled %q, done %v, closed %v; want one outcome by %v", got.Settled, got.Done, got.Closed, test.via)
			}
			if !got.XAuth {
				t.Error("the client does not hold the session's token")
			}
			if test.answered == "ok" && !slices.Equal(got.Method, []string{"m-sms"}) {
				t.Errorf("methods reported %v, want m-sms once", got.Method)
			}
			connected, results := s.counts()
			if connected != test.connected || test.noPolling != (results == 0) {
				t.Errorf("%d sockets and %d result requests", connected, results)
			}
		})
	}
}

// Later copies of an outcome are received as messages and reported by no second event.
func reportedOnce(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	i := startFlow(t, tab, s)
	i.hears("Transport", "socket")
	i.complete()
	i.hears("Messages", "ACTION_COMPLETE")
	got := i.settled()
	if !slices.Equal(got.Messages, []string{"METHOD_COMPLETE", "ACTION_COMPLETE"}) || len(got.Done) != 1 ||
		len(got.Method) != 1 {
		t.Errorf("messages %v, done %v, methods %v", got.Messages, got.Done, got.Method)
	}
}

// An end without an outcome is reported with its reason, and an outcome under way is not given up for it.
func endsWithoutOutcome(t *testing.T, tab *webtest.Tab) {
	for _, test := range []struct {
		code      string
		closeCode int
		want      string
		asks      bool
	}{
		{"CHALLENGE_EXPIRED", 4410, "CHALLENGE_EXPIRED", true},
		{"CHALLENGE_CLOSED", 4410, "CHALLENGE_CLOSED", true},
		{"CHALLENGE_EXPIRED", 4401, "TOKEN_EXPIRED", false},
	} {
		t.Run(fmt.Sprintf("%d %s", test.closeCode, test.code), func(t *testing.T) {
			s := newService(t)
			i := startFlow(t, tab.For(t), s)
			i.hears("Transport", "socket")
			s.end(test.code, test.closeCode)
			got := i.settled()
			if got.Settled != test.want || !slices.Equal(got.Closed, []string{test.want}) || len(got.Done) != 0 {
				t.Errorf("settled %q, closed %v, done %v; want %s", got.Settled, got.Closed, got.Done, test.want)
			}
			if _, results := s.counts(); test.asks != (results > 0) {
				t.Errorf("%d result requests", results)
			}
		})
	}
	t.Run("with a completion under way", func(t *testing.T) {
		s := newService(t)
		s.slowAnswer, s.sockets = make(chan struct{}), []string{"+4401"}
		i := startFlow(t, tab.For(t), s)
		i.hears("Transport", "socket")
		i.begin()
		i.hears("Transport", "lost4401")
		close(s.slowAnswer)
		if got := i.settled(); got.Settled != "resolved" || !slices.Equal(got.Done, []string{"complete"}) ||
			len(got.Closed) != 0 {
			t.Errorf("settled %q, done %v, closed %v", got.Settled, got.Done, got.Closed)
		}
	})
	t.Run("by a refused completion", func(t *testing.T) {
		s := newService(t)
		i := startFlow(t, tab.For(t), s)
		i.hears("Transport", "socket")
		s.mu.Lock()
		s.ended = "CHALLENGE_CLOSED" // the socket is silent
		s.mu.Unlock()
		if got := i.complete(); got != "CHALLENGE_CLOSED" {
			t.Errorf("complete was answered %s", got)
		}
		if got := i.settled(); got.Settled != "CHALLENGE_CLOSED" {
			t.Errorf("settled %q", got.Settled)
		}
	})
	t.Run("by the caller", func(t *testing.T) {
		s := newService(t)
		i := startFlow(t, tab.For(t), s)
		i.hears("Transport", "socket")
		webtest.Value[bool](i.Tab, "(flow.close(), true)")
		if got := i.settled(); got.Settled != "ABANDONED" || !slices.Equal(got.Closed, []string{"ABANDONED"}) {
			t.Errorf("settled %q, closed %v", got.Settled, got.Closed)
		}
	})
}

// A method completed elsewhere and its outcome reach a page that only listens.
func listens(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	i := startFlow(t, tab, s)
	i.hears("Transport", "socket")
	s.finish()
	if got := i.settled(); got.Settled != "resolved" || !slices.Equal(got.Done, []string{"socket"}) ||
		!slices.Equal(got.Method, []string{"m-totp"}) {
		t.Errorf("settled %q, done %v, methods %v", got.Settled, got.Done, got.Method)
	}
}

// Refusals contain what a page needs; requests outside a challenge work through the same client.
func requests(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	i := startFlow(t, tab, s)
	type refusal struct {
		Code, Field, Message     string
		Status, Left, RetryAfter int
	}
	refused := func(call string) refusal {
		text := webtest.Value[string](tab, call+`.then(() => '{}', (e) => JSON.stringify(
			{ Code: e.code, Field: e.field, Message: e.message, Status: e.status,
			Left: e.attemptsLeft, RetryAfter: e.retryAfter }))`)
		var r refusal
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if got := refused("flow.complete('m-sms', 'SMS', '999999')"); got != (refusal{"OTP_INVALID", "value",
		"The code is wrong.", 422, 4, 0}) {
		t.Errorf("wrong code: %+v", got)
	}
	if got := refused("flow.renew('m-sms', 'SMS')"); got.Code != "RENEW_TOO_EARLY" || got.RetryAfter < 50 ||
		got.RetryAfter > 60 {
		t.Errorf("early renewal: %+v", got)
	}
	s.advance(renewGate)
	if got := refused("flow.renew('m-sms', 'SMS')"); got.Code != "" {
		t.Errorf("renewal: %+v", got)
	}
	if left := webtest.Value[float64](tab, "flow.methods.find((m) => m.id === 'm-mail').expiresAt - "+
		"Date.now()"); left < 115_000 ||
		left > 120_000 {
		t.Errorf("the renewal left the other method %.0f ms", left)
	}
	if got := refused("client.login({ email: 'x', password: 'wrong' })"); got.Code != "INVALID_CREDENTIALS" ||
		got.Status != 401 {
		t.Errorf("wrong password: %+v", got)
	}
	i.complete()
	i.settled()
	if got := webtest.Value[string](tab, "client.sessions().then((list) => list.find((s) => "+
		"s.current).sessionId)"); got != "s-7Qm2vXk4Wd9T" {
		t.Errorf("current session: %s", got)
	}
	if got := webtest.Value[string](tab, "client.start('GET', '/auth/sessions').then((f) => f.done).then((o) => "+
		"o.data[1].sessionId)"); got != "s-2" {
		t.Errorf("an operation that is not guarded gave %s", got)
	}
	if got := webtest.Value[int](tab, "client.endSession({ sessionId: 's-2' })"); got != 1 {
		t.Errorf("ended %d sessions", got)
	}
	if got := webtest.Value[string](tab, "client.logout().then(() => client.xAuth)"); got != "" {
		t.Error("the token outlives the logout")
	}
	s.Close()
	if got := refused("client.sessions()"); got.Code != "NETWORK" || got.Status != 0 {
		t.Errorf("no service: %+v", got)
	}
}
