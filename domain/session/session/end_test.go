package session_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/session/session"
)

// complete runs the login action like the engine and returns its outcome.
func (b *bench) complete(started challenge.Started, command []byte, methods ...challenge.Method) challenge.Result {
	b.t.Helper()
	c := started.Challenge
	if methods != nil {
		c.Methods = methods
	}
	action := b.svc.LoginAction()
	if action.Code != "LOGIN" || action.Flow != challenge.FlowLogin || action.Exec != nil {
		b.t.Fatalf("action %+v", action)
	}
	r, ws, err := action.Build(b.t.Context(), challenge.Execution{Challenge: c, Command: command, Now: b.now})
	storetest.Must(b.t, err)
	storetest.Must(b.t, b.db.Commit(b.t.Context(), ws...))
	return r
}

// login logs the n-th account in.
func (b *bench) login(n int) session.Caller {
	b.t.Helper()
	started := storetest.Value(b.svc.Login(b.t.Context(), request(n, secret)))(b.t)
	r := b.complete(started, b.starts[len(b.starts)-1].Command)
	return session.Caller{By: audit.By{UserID: r.UserID, IP: here.String(), RequestID: "r2"}, SessionID: r.SessionID}
}

func TestLoginMakesASession(t *testing.T) {
	b := newBench(t)
	u := b.add(1, func(a *user.Add) { a.Roles = []string{"admin"} })
	req := request(1, secret)
	req.DeviceID = "dev-1"
	req.Starter.Description = strings.Repeat("ş", 500)
	started := storetest.Value(b.svc.Login(t.Context(), req))(t)
	r := b.complete(started, b.starts[0].Command)
	var data map[string]string
	storetest.Must(t, json.Unmarshal(r.Data, &data))
	if !r.Success || r.UserID != u.ID || r.SV != 1 || len(data) != 1 || data["sessionKey"] != r.SessionID ||
		len(r.Headers) != 1 {
		t.Fatalf("outcome %+v", r)
	}
	var c token.Claims
	storetest.Must(t, json.Unmarshal([]byte(r.Headers["x-auth"]), &c))
	if c.Class != token.XAuth || c.Subject != u.ID || c.SessionID != r.SessionID || c.SV != 1 || c.ID == "" ||
		c.ID == c.SessionID ||
		!slices.Equal(c.Roles, []string{"user", "admin"}) || !slices.Equal(c.AMR, []string{"pwd", "sms", "otp", "mfa"}) ||
		!c.AuthTime.Equal(b.now) || !c.IssuedAt.Equal(b.now) || !c.ExpiresAt.Equal(b.now.Add(30*time.Minute)) {
		t.Errorf("claims %+v", c)
	}
	list := storetest.Value(b.svc.List(t.Context(), session.Caller{By: audit.By{UserID: u.ID}}))(t)
	if len(list) != 1 || list[0].ID != r.SessionID || list[0].IP != here.String() || list[0].Country != "TR" ||
		list[0].Brand != "Acme" || list[0].DeviceID != "dev-1" ||
		list[0].Description != strings.Repeat("ş", 100) || list[0].ExpiresAt.UnixMilli() != c.ExpiresAt.UnixMilli() {
		t.Errorf("sessions %+v", list)
	}
	if h := b.history(u); len(h) != 1 || !h[0].Success || h[0].Model != "X" {
		t.Errorf("history %+v", h)
	}
	again := b.complete(started, b.starts[0].Command)
	if again.SessionID == r.SessionID {
		t.Error("two sessions have one id")
	}
	if _, _, err := b.svc.LoginAction().Build(t.Context(), challenge.Execution{Challenge: started.Challenge,
		Command: []byte("x"), Now: b.now}); err == nil {
		t.Error("a command that cannot be read made a session")
	}
}
