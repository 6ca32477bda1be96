package edge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// second keeps what was asked of it. A rehearsal undoes what its change did.
type second struct {
	changed    *int
	rehearsals int
	stands     []Captured
	err        error
}

func (p *second) Rehearse(ctx context.Context, c Captured, fn func(context.Context) error) (string, error) {
	before := *p.changed
	p.rehearsals++
	if err := errors.Join(p.err, fn(ctx)); err != nil {
		return "", err
	}
	defer func() { *p.changed = before }()
	if *p.changed == before {
		return "", nil
	}
	return "it changes", nil
}

func (p *second) Stand(_ context.Context, c Captured, command []byte, summary string) (any, error) {
	var kept Captured
	if err := json.Unmarshal(command, &kept); err != nil || kept.Path != c.Path || summary != "it changes" {
		return nil, errors.New("another command than the request")
	}
	p.stands = append(p.stands, kept) // c is the request's, whose memory is used again
	return rest.Data[int]{Data: len(p.stands)}, nil
}

// done is an answer that may say that nothing was done.
type done struct {
	Code int `json:"code"`
}

func (d done) Undone() (string, bool) { return "not possible", d.Code != 0 }

// A call of a named endpoint is tried out and waits; the same key gets the same answer. A call
// that would be refused or would change nothing is answered at once. A stored call is executed
// as its caller.
func TestFourEyes(t *testing.T) {
	changed := 0
	people := &second{changed: &changed}
	opts := allow()
	opts.FourEyes, opts.SecondPerson = map[string]bool{"POST /things": true}, people
	opts.Idempotency = &store{rows: map[string]row{}}
	var may error
	opts.Authorize = func(context.Context, rest.Caller, *rest.Endpoint) error { return may }
	s := serve(t, opts, rest.Post("/things", "", rest.Tenant,
		func(_ context.Context, who rest.Caller, in echoRequest) (done, error) {
			switch in.Text {
			case "no":
				return done{}, fault.New(fault.InvalidState, "no")
			case "undone":
				changed++
				return done{1}, nil
			case "same":
				return done{}, nil
			}
			changed++
			return done{}, nil
		}, fault.InvalidState).Idempotent())
	ask := func(text string, status int, body string, headers ...string) {
		t.Helper()
		a := do(t, s, "POST", "/things", `{"text":"`+text+`"}`, append(headers, "x-auth: u1")...)
		if a.status != status || a.body != body && a.code() != body || changed != 0 {
			t.Errorf("%s: %d %s, changed %d", text, a.status, a.body, changed)
		}
	}
	ask("x", 202, `{"data":1}`)
	ask("x", 202, `{"data":2}`, "idempotency-key: k")
	ask("x", 202, `{"data":2}`, "idempotency-key: k")
	ask("no", 409, "INVALID_STATE")
	ask("no", 409, "INVALID_STATE", "idempotency-key: l")
	ask("undone", 200, `{"code":1}`)
	ask("same", 200, `{"code":0}`)
	if len(people.stands) != 2 || people.rehearsals != 6 || people.stands[0].Caller.UserID != "u1" {
		t.Fatalf("%d rehearsals, %+v", people.rehearsals, people.stands)
	}
	c := people.stands[0]
	if out, err := s.CarryOut(t.Context(), c); err != nil || string(out) != `{"code":0}` || changed != 1 {
		t.Errorf("%s, %v, changed %d", out, err, changed)
	}
	changed = 0
	h, err := s.RehearseCaptured(t.Context(), c) // behind a challenge of its own
	if out, err2 := s.RunRehearsed(t.Context(), c, h); errors.Join(err, err2) != nil || string(out) != `{"data":3}` {
		t.Errorf("%s, %v, %v", out, err, err2)
	}
	undone := c
	undone.Body = json.RawMessage(`{"text":"undone"}`)
	if _, err := s.CarryOut(t.Context(), undone); fault.CodeOf(err) != fault.InvalidState {
		t.Errorf("what was not done: %v", err)
	}
	may = fault.New(fault.Forbidden, "not any more")
	_, err = s.CarryOut(t.Context(), c)
	if err2 := s.Permit(t.Context(), c.Caller, "POST /things"); fault.CodeOf(err) != fault.Forbidden || err != err2 {
		t.Errorf("%v, %v", err, err2)
	}
	if err := s.Permit(t.Context(), c.Caller, "POST /others"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
}

// Of an endpoint that also takes the key of a service, only the calls of accounts start a challenge or wait.
func TestServicesNeedNoSecondPerson(t *testing.T) {
	changed := 0
	handler := func(context.Context, rest.Caller, echoRequest) (rest.None, error) { changed++; return rest.None{}, nil }
	opts, st := allow(), &starter{}
	opts.Starter, opts.Guarded = st, map[string]string{"POST /guarded": "A"}
	opts.SecondPerson = &second{changed: &changed}
	opts.FourEyes = map[string]bool{"POST /guarded": true, "POST /waits": true}
	s := serve(t, opts, rest.Post("/guarded", "", rest.TenantOrService, handler).For(rest.Admin),
		rest.Post("/waits", "", rest.TenantOrService, handler).For(rest.Admin))
	for i, path := range []string{"/guarded", "/waits"} {
		a := do(t, s, "POST", path, `{"text":"x"}`, "service-auth: wallet")
		if a.status != 200 || a.body != "{}" || changed != i+1 || st.action != "" {
			t.Errorf("%s by a service: %d %s, changed %d, started %q", path, a.status, a.body, changed, st.action)
		}
	}
	a := do(t, s, "POST", "/guarded", `{"text":"x"}`, "x-auth: u1")
	b := do(t, s, "POST", "/waits", `{"text":"x"}`, "x-auth: u1")
	if a.status != 200 || st.action != "A" || b.status != 202 || changed != 2 {
		t.Errorf("by an account: %d, started %q, %d, changed %d", a.status, st.action, b.status, changed)
	}
}

// The users that a request names are judged once it is bound, before the one-time code,
// a stored answer, a challenge and a rehearsal; and again wherever a kept request runs.
func TestNamedUsersAreJudged(t *testing.T) {
	type named struct {
		UserID string `json:"userId"`
	}
	ran := 0
	handler := func(context.Context, rest.Caller, named) (rest.None, error) { ran++; return rest.None{}, nil }
	judged, verified := []string{}, 0
	var refused map[string]bool
	opts := allow()
	opts.MayName = func(ctx context.Context, who rest.Caller, e *rest.Endpoint, in any) error {
		n, err := e.Named(ctx, who, in)
		if err != nil {
			return err
		}
		judged = append(judged, who.UserID+" about "+n.Users[0])
		if refused[who.UserID+" about "+n.Users[0]] {
			return fault.New(fault.Forbidden, "refused")
		}
		return nil
	}
	opts.Verify = func(context.Context, rest.Caller, *rest.Endpoint, any) error { verified++; return nil }
	opts.Idempotency = &store{rows: map[string]row{}}
	st, people := &starter{}, &second{changed: &ran}
	opts.Starter, opts.Guarded = st, map[string]string{"POST /guarded": "A"}
	opts.SecondPerson, opts.FourEyes = people, map[string]bool{"POST /waits": true}
	var all []rest.Endpoint
	for _, path := range []string{"/plain", "/guarded", "/waits"} {
		all = append(all, rest.Post(path, "", rest.Tenant, handler).Verified().Idempotent().Names(rest.Contact, "userId"))
	}
	all = append(all, rest.Post("/free", "", rest.Tenant, handler))
	s := serve(t, opts, all...)

	refused = map[string]bool{"clerk about boss": true}
	for _, path := range []string{"/plain", "/guarded", "/waits"} {
		a := do(t, s, "POST", path, `{"userId":"boss"}`, "x-auth: clerk", "idempotency-key: k")
		if a.status != 403 || a.code() != "FORBIDDEN" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if ran != 0 || verified != 0 || st.action != "" || people.rehearsals != 0 {
		t.Errorf("ran %d, verified %d, started %q, rehearsed %d", ran, verified, st.action, people.rehearsals)
	}
	do(t, s, "POST", "/plain", `{"userId":7}`, "x-auth: clerk").is(t, 400, fault.InvalidField, "a faulty request")
	judged = nil
	if a := do(t, s, "POST", "/free", `{"userId":"boss"}`, "x-auth: clerk"); a.status != 200 || len(judged) != 0 {
		t.Errorf("without a declaration: %d, judged %q", a.status, judged)
	}

	// A permitted request is checked again with the permissions at the time it runs.
	refused = nil
	do(t, s, "POST", "/guarded", `{"userId":"boss"}`, "x-auth: clerk")
	do(t, s, "POST", "/waits", `{"userId":"boss"}`, "x-auth: clerk")
	var guarded Captured
	if err := json.Unmarshal(st.command, &guarded); err != nil || len(people.stands) != 1 {
		t.Fatal(err, people.stands)
	}
	ran, judged = 0, nil
	for _, err := range []error{
		errorOf(s.RunCaptured(t.Context(), guarded)), errorOf(s.CarryOut(t.Context(), people.stands[0])),
		s.PermitCaptured(t.Context(), rest.Caller{UserID: "chief"}, people.stands[0]),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if ran != 2 || !slices.Equal(judged, []string{"clerk about boss", "clerk about boss", "chief about boss"}) {
		t.Errorf("ran %d, judged %q", ran, judged)
	}
	refused = map[string]bool{"clerk about boss": true, "chief about boss": true}
	for _, err := range []error{
		errorOf(s.RunCaptured(t.Context(), guarded)), errorOf(s.CarryOut(t.Context(), people.stands[0])),
		errorOf(s.RehearseCaptured(t.Context(), people.stands[0])),
		s.PermitCaptured(t.Context(), rest.Caller{UserID: "chief"}, people.stands[0]),
	} {
		if fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("it runs: %v", err)
		}
	}
	storetest.Equal(t, ran, 2, "runs")
}

// errorOf is the error of two results.
func errorOf[T any](_ T, err error) error { return err }

// A declaration that cannot work stops the start.
func TestNamesStopTheStart(t *testing.T) {
	type named struct {
		UserID string `json:"userId"`
		Amount int64  `json:"amount"`
	}
	e := rest.Post("/x", "", rest.Tenant,
		func(context.Context, rest.Caller, named) (rest.None, error) { return rest.None{}, nil })
	for what, declare := range map[string]func(){
		"a field that is not there": func() { e.Names(rest.General, "memberId") },
		"a field that is no text":   func() { e.Names(rest.General, "amount") },
		"another request": func() {
			rest.NamesBy(e, func(context.Context, rest.Caller, rest.None) (rest.Named, error) { return rest.Named{}, nil })
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", what)
				}
			}()
			declare()
		}()
	}
}

// The displayed fields of a request are those that it binds, with numbers as sent, no secrets and no files.
func TestAsked(t *testing.T) {
	for want, c := range map[string]Captured{
		`{"a":"b c","amount":0.10000000000000000001,"deep":[{"ok":"y"}],"file":"` + strings.Repeat("ü", 100) +
			` … (1001)","id":"7","isPinned":true}`: {Method: "DELETE", Params: map[string]string{"id": "7"},
			Query: "a=b%20c&token=x", Body: json.RawMessage(`{"amount":0.10000000000000000001,"isPinned":true,"pin":1,` +
				`"newPassword":"x","deep":[{"secretKey":1,"ok":"y"}],"file":"` + strings.Repeat("ü", 1001) + `"}`)},
		`{"id":"7"}`: {Method: "POST", Params: map[string]string{"id": "7"}, Query: "id=8&note=x&a;b&%zz",
			Body: json.RawMessage(`{"id":9}`)},
		`{"id":"8","n":1,"to":["a","b","c"]}`: {Method: "GET", Query: "id=8&to=a&to[]=b&to=c&%zz&a=%zz&=;",
			Body: json.RawMessage(`{"id":9,"n":1}`)},
		`{"id":9,"n":"1"}`: {Method: "DELETE", Query: "id=8&n=1", Body: json.RawMessage(`{"id":9,"n":null}`)},
	} {
		storetest.Equal(t, string(storetest.Value(c.Asked())(t)), want)
	}
	if _, err := (Captured{Body: json.RawMessage(`[`)}).Asked(); err == nil {
		t.Error("it reads what is no JSON")
	}
}
