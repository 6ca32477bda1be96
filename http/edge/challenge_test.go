package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// starter keeps the start that was asked of it.
type starter struct {
	action  string
	command []byte
	who     rest.Caller
	err     error
}

func (s *starter) Start(_ context.Context, who rest.Caller, action string, command []byte) (any, []rest.Header, error) {
	s.action, s.command, s.who = action, command, who
	return map[string]any{"challenge": map[string]any{"challengeId": "c1"}}, []rest.Header{{Name: "p-auth",
		Value: "token"}}, s.err
}

func TestStart2FA(t *testing.T) {
	st := &starter{}
	opts := allow()
	opts.Starter = st
	type command struct{ User, Text string }
	s := serve(t, opts, rest.Start2FA("POST", "/start", "", rest.User, "TOTP_SETUP",
		func(_ context.Context, who rest.Caller, in echoRequest) (command, error) {
			if in.Text == "no" {
				return command{}, fault.New(fault.TOTPAlreadyDefined, "no")
			}
			return command{who.UserID, in.Text}, nil
		}, fault.TOTPAlreadyDefined))
	a := do(t, s, "POST", "/start", `{"text":"x"}`, "x-auth: u1")
	if a.status != 200 || a.body != `{"challenge":{"challengeId":"c1"}}` || a.header.Get("P-Auth") != "token" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if st.action != "TOTP_SETUP" || string(st.command) != `{"User":"u1","Text":"x"}` || st.who.UserID != "u1" {
		t.Errorf("started %+v", st)
	}
	do(t, s, "POST", "/start", `{"text":"no"}`, "x-auth: u1").is(t, 409, fault.TOTPAlreadyDefined)
	do(t, s, "POST", "/start", `{}`, "x-auth: u1").is(t, 400, fault.InvalidField)
	if _, err := s.RunCaptured(t.Context(), Captured{Method: "POST", Path: "/start",
		Body: json.RawMessage(`{"text":"x"}`)}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a starter ran as captured: %v", err)
	}
	st.err = fault.New(fault.MFANotAvailable, "none")
	do(t, s, "POST", "/start", `{"text":"x"}`, "x-auth: u1").is(t, 409, fault.MFANotAvailable)
}

// TestGuarded: by configuration alone an endpoint starts a challenge, and the
// same handler runs afterwards with the original identity (D-2FA-28).
func TestGuarded(t *testing.T) {
	type in struct {
		ID   rest.ID `json:"id"`
		Text string  `json:"text"`
		Q    *int    `json:"q"`
	}
	ran := 0
	st := &starter{}
	opts := allow()
	opts.Starter = st
	opts.Guarded = map[string]string{"DELETE /things/{id}": "DELETE_THING", "POST /big": "BIG"}
	allowed := true
	opts.Authorize = func(_ context.Context, who rest.Caller, e *rest.Endpoint) error {
		if !allowed {
			return fault.New(fault.Forbidden, "no more")
		}
		return nil
	}
	s := serve(t, opts,
		rest.Shows(rest.Delete("/things/{id}", "", rest.User,
			func(ctx context.Context, who rest.Caller, in in) (rest.Data[string], error) {
				ran++
				return rest.Data[string]{Data: fmt.Sprint(who.UserID, " ", in.ID, " ", in.Text, " ", *in.Q, " ", who.RequestID,
					" ", who.IP, " ", rest.ShownIn(ctx).Digest)}, nil
			}), func(_ context.Context, in in) (rest.Shown, error) {
			if in.ID == 8 {
				return rest.Shown{}, fault.New(fault.Forbidden, "not shown")
			}
			return rest.Shown{Rows: []rest.ShownRow{{Key: "thing", Value: fmt.Sprint(in.ID)}}, Digest: "d7"}, nil
		}),
		rest.Post("/big", "", rest.User, echo).Body(2<<20),
		rest.Get("/raw", "", rest.User, func(context.Context, rest.Caller, rest.None) (rest.Reply[rest.None], error) {
			return rest.Reply[rest.None]{Raw: []byte("hi"), ContentType: "text/x"}, nil
		}))
	a := do(t, s, "DELETE", "/things/7?q=3&text=ignored", `{ "text" : "x" }`, "x-auth: u1", "otp: 123456")
	if a.status != 200 || !strings.HasPrefix(a.body, `{"challenge"`) || a.header.Get("P-Auth") == "" || ran != 0 {
		t.Fatalf("%d %s, ran %d", a.status, a.body, ran)
	}
	if st.action != "DELETE_THING" || strings.Contains(string(st.command), "123456") {
		t.Errorf("started %s with %s", st.action, st.command)
	}
	do(t, s, "DELETE", "/things/7", `{"text":""}`, "x-auth: u1").is(t, 400, fault.InvalidField, "a faulty request")
	do(t, s, "DELETE", "/things/8?q=3", `{"text":"x"}`, "x-auth: u1").is(t, 403, fault.Forbidden,
		"values that cannot be shown")
	var c Captured
	var kept json.RawMessage
	storetest.Must(t, json.Unmarshal([]byte(a.body), &kept))
	storetest.Must(t, json.Unmarshal(st.command, &c))
	if details, err := c.Details(); err != nil || details[len(details)-1] != (challenge.Detail{Key: "thing", Value: "7"}) {
		t.Errorf("the intent: %+v, %v", details, err)
	}
	out, err := s.RunCaptured(t.Context(), c)
	name := a.header.Get("X-Request-Id")
	if want := `{"data":"u1 7 x 3 ` + name + ` 0.0.0.0 d7"}`; err != nil || string(out) != want || ran != 1 {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
	allowed = false
	if _, err := s.RunCaptured(t.Context(), c); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("a right that was lost: %v", err)
	}
	allowed = true
	c.Path = "/gone"
	if _, err := s.RunCaptured(t.Context(), c); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an endpoint that is gone: %v", err)
	}
	if out, err := s.RunCaptured(t.Context(), Captured{Method: "GET", Path: "/raw"}); err != nil ||
		string(out) != `{"contentType":"text/x","data":"aGk="}` {
		t.Errorf("%s, %v", out, err)
	}
	do(t, s, "POST", "/big", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`, "x-auth: u1").is(t, 413, "PAYLOAD_TOO_LARGE",
		"too large to keep")
}

// store is an Idempotency in memory that obeys the contract.
type store struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	hash    [32]byte
	status  int
	body    []byte
	headers []rest.Header
}

func (s *store) Run(ctx context.Context, who rest.Caller, key, method, template string, hash [32]byte,
	admit func(context.Context) error, fn func(context.Context) (int, []byte, []rest.Header,
		error)) (int, []byte, []rest.Header, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strings.Join([]string{who.UserID, method, template, key}, "|")
	if r, ok := s.rows[id]; ok {
		if r.hash != hash {
			return 0, nil, nil, false, fault.New(fault.IdempotencyMismatch, "another body")
		}
		return r.status, r.body, r.headers, true, nil
	}
	if err := admit(ctx); err != nil {
		return 0, nil, nil, false, err
	}
	status, body, headers, err := fn(ctx)
	if err != nil {
		return status, body, headers, false, err
	}
	s.rows[id] = row{hash, status, body, headers}
	return status, body, headers, false, nil
}

func TestIdempotency(t *testing.T) {
	opts := allow()
	opts.Idempotency = &store{rows: map[string]row{}}
	otp := 0
	opts.Verify = func(_ context.Context, who rest.Caller, _ *rest.Endpoint, _ any) error {
		if otp++; who.OTP == "" {
			return fault.New(fault.OTPInvalid, "wrong")
		}
		return nil
	}
	runs := 0
	run := func(_ context.Context, _ rest.Caller, in echoRequest) (rest.Reply[rest.Data[int]], error) {
		runs++
		switch in.Text {
		case "conflict":
			return rest.Reply[rest.Data[int]]{}, fault.New(fault.RecordAlreadyExist, "taken")
		case "later":
			return rest.Reply[rest.Data[int]]{}, fault.New(fault.RateLimited, "slow")
		case "forbidden":
			return rest.Reply[rest.Data[int]]{}, fault.New(fault.Forbidden, "no")
		case "broken":
			return rest.Reply[rest.Data[int]]{}, fmt.Errorf("db")
		}
		return rest.Reply[rest.Data[int]]{Body: rest.Data[int]{Data: runs},
			Headers: []rest.Header{{Name: "link", Value: "<x>"}}}, nil
	}
	s := serve(t, opts, rest.Post("/pay", "", rest.User, run).Idempotent(), rest.Post("/other", "", rest.User,
		run).Idempotent(),
		rest.Post("/verified", "", rest.User, run).Idempotent().Verified(), rest.Post("/plain", "", rest.User, run))
	post := func(target, text, key string, more ...string) answer {
		t.Helper()
		return do(t, s, "POST", target, `{"text":"`+text+`"}`, append(more, "x-auth: u1", "idempotency-key: "+key)...)
	}
	first := post("/pay", "a", "k1")
	again := post("/pay", "a", "k1")
	if first.status != 200 || again.status != 200 || first.body != again.body || runs != 1 ||
		again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" ||
		again.header.Get("Link") != "<x>" || again.header.Get("Content-Type") != "application/json" {
		t.Errorf("replay: %+v then %+v, runs %d", first, again, runs)
	}
	post("/pay", "b", "k1").is(t, 422, "IDEMPOTENCY_MISMATCH", "another body")
	runs = 0
	post("/pay", "a", "k2")
	post("/other", "a", "k1")
	do(t, s, "POST", "/pay", `{"text":"a"}`, "x-auth: u2", "idempotency-key: k1")
	post("/plain", "a", "k1")
	post("/plain", "a", "k1")
	if do(t, s, "POST", "/pay", `{"text":"a"}`, "x-auth: u1"); runs != 6 {
		t.Errorf("other keys, endpoints, callers and no key: runs %d", runs)
	}

	runs = 0
	one := post("/pay", "conflict", "k3")
	two := post("/pay", "conflict", "k3")
	its, other := one.header.Get("X-Request-Id"), two.header.Get("X-Request-Id")
	if one.status != 409 || two.status != 409 || runs != 1 || two.code() != "RECORD_ALREADY_EXIST" ||
		two.header.Get("Content-Type") != "application/problem+json" || its == other ||
		!strings.HasSuffix(two.body, `"requestId":"`+other+`"}`) ||
		strings.ReplaceAll(two.body, other, "") != strings.ReplaceAll(one.body, its, "") {
		t.Errorf("a kept refusal: %+v then %+v, runs %d", one, two, runs)
	}
	for text, status := range map[string]int{"later": 429, "forbidden": 403, "broken": 500} {
		runs = 0
		a, b := post("/pay", text, "k-"+text), post("/pay", text, "k-"+text)
		if a.status != status || b.status != status || runs != 2 || b.header.Get("Idempotency-Replayed") != "" ||
			strings.Contains(b.body, "db") {
			t.Errorf("%s: %d %d, runs %d", text, a.status, b.status, runs)
		}
	}
	storetest.Equal(t, post("/pay", "later", "k9").header.Get("Retry-After"), "1", "Retry-After")

	runs, otp = 0, 0
	if a := post("/verified", "a", "k5"); a.status != 422 || runs != 0 {
		t.Errorf("a wrong code: %d", a.status)
	}
	if a := post("/verified", "a", "k5", "otp: 1"); a.status != 200 || runs != 1 {
		t.Errorf("the right code under the same key: %d %s", a.status, a.body)
	}
	if a := post("/verified", "a", "k5", "otp: 1"); a.header.Get("Idempotency-Replayed") != "true" || otp != 2 {
		t.Errorf("a replay asked for the code: %d", otp)
	}
	for _, key := range []string{strings.Repeat("k", maxKey+1), "k\xe9y"} {
		post("/pay", "a", key).is(t, 400, fault.InvalidField, "key of bytes:", len(key))
	}
}
