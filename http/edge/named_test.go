package edge

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

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
	if a := do(t, s, "POST", "/plain", `{"userId":7}`, "x-auth: clerk"); a.status != 400 {
		t.Errorf("a faulty request: %d", a.status)
	}
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
	if ran != 2 {
		t.Errorf("ran %d", ran)
	}
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
	if _, err := New(allow(), []rest.Endpoint{e.Names(rest.General, "userId")}); err == nil {
		t.Error("it starts without MayName")
	}
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
