package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
)

// engine notes what is started. Its first starts answer with refuse, in turn.
type engine struct {
	asked  []challenge.StartRequest
	refuse []error
	gone   error // of the account
}

func (e *engine) Start(_ context.Context, r challenge.StartRequest) (challenge.Started, error) {
	e.asked = append(e.asked, r)
	if len(e.refuse) > 0 {
		err := e.refuse[0]
		e.refuse = e.refuse[1:]
		return challenge.Started{}, err
	}
	return challenge.Started{PAuth: "token", Challenge: challenge.Challenge{ID: "c1"}}, nil
}

func (e *engine) Account(_ context.Context, userID string) (challenge.Account, error) {
	return challenge.Account{UserID: userID, CV: 7}, e.gone
}

var caller = rest.Caller{UserID: "u1", SessionID: "s1", IP: netip.MustParseAddr("192.0.2.7"), Country: "TR",
	Language: "ar", RequestID: "r1", Device: rest.DeviceInfo{Brand: "Acme", Model: "X", UserAgent: "agent"}}

// A challenge stores of its starter the language only if the request sent it, and the user agent only if the
// client described no device.
func TestStarterOfACaller(t *testing.T) {
	want := challenge.Starter{SessionID: "s1", IP: "192.0.2.7", Country: "TR", Brand: "Acme", Model: "X",
		Description: "agent", RequestID: "r1"}
	storetest.Same(t, auth.From(caller), want)
	asked := caller
	asked.LanguageAsked, asked.Device.Description, asked.IP = true, "my phone", netip.Addr{}
	want.Language, want.Description, want.IP = "ar", "my phone", ""
	storetest.Same(t, auth.From(asked), want)
}

// A caller's challenge starts for the account as it is, and again where the account changed meanwhile.
func TestStart(t *testing.T) {
	e := &engine{}
	s := auth.Starter{Starts: e, Accounts: e}
	body, headers, err := s.Start(t.Context(), caller, "PAY", []byte("command"))
	storetest.Must(t, err)
	if len(headers) != 1 || headers[0] != (rest.Header{Name: "p-auth", Value: "token"}) || body == nil {
		t.Errorf("%+v, %v", body, headers)
	}
	storetest.Same(t, e.asked, []challenge.StartRequest{{Action: "PAY", Account: challenge.Account{UserID: "u1", CV: 7},
		Starter: auth.From(caller), Proven: true, Command: []byte("command")}})
	e.refuse = []error{commit.ErrFenced, commit.ErrFenced}
	_, _, err = s.Start(t.Context(), caller, "PAY", nil)
	storetest.Must(t, err)
	e.refuse = []error{commit.ErrFenced, commit.ErrFenced, commit.ErrFenced}
	_, _, err = s.Start(t.Context(), caller, "PAY", nil)
	var f *fault.Error
	if storetest.Wants(t, err, fault.Unavailable); errors.As(err, &f) && f.RetryAfter != time.Second {
		t.Errorf("retry after %v", f.RetryAfter)
	}
	started := len(e.asked)
	e.refuse = []error{fault.New(fault.MFANotAvailable, "no method")}
	body, headers, err = s.Start(t.Context(), caller, "PAY", nil)
	if storetest.Wants(t, err, fault.MFANotAvailable); body != nil || headers != nil || len(e.asked) != started+1 {
		t.Errorf("%v, %v, %d starts", body, headers, len(e.asked)-started)
	}
	e.gone = fault.New(fault.RecordNotFound, "no such account")
	body, headers, err = s.Start(t.Context(), caller, "PAY", nil)
	if storetest.Wants(t, err, fault.RecordNotFound); body != nil || headers != nil || len(e.asked) != started+1 {
		t.Errorf("%v, %v, %d starts", body, headers, len(e.asked)-started)
	}
}

// An action without a session starts in its own way.
func TestPublicStart(t *testing.T) {
	var from challenge.Starter
	var no error
	s := auth.Starter{Public: map[string]func(context.Context, challenge.Starter, []byte) (challenge.Started, error){
		"RESET": func(_ context.Context, f challenge.Starter, command []byte) (challenge.Started, error) {
			from = f
			return challenge.Started{PAuth: "token of " + string(command)}, no
		}}}
	_, headers, err := s.Start(t.Context(), caller, "RESET", []byte("x"))
	if err != nil || len(headers) != 1 || headers[0].Value != "token of x" || from != auth.From(caller) {
		t.Errorf("%v, %v, %+v", headers, err, from)
	}
	no = errors.New("no")
	if body, headers, err := s.Start(t.Context(), caller, "RESET", nil); !errors.Is(err, no) || body != nil ||
		headers != nil {
		t.Errorf("%v, %v, %v", body, headers, err)
	}
}

// runner carries out captured requests.
type runner struct {
	rehearsed, ran []edge.Captured
	with           *edge.Rehearsal
	no             error
}

func (r *runner) RehearseCaptured(_ context.Context, c edge.Captured) (*edge.Rehearsal, error) {
	r.rehearsed = append(r.rehearsed, c)
	return &edge.Rehearsal{}, r.no
}

func (r *runner) RunRehearsed(_ context.Context, c edge.Captured, h *edge.Rehearsal) (json.RawMessage, error) {
	r.ran, r.with = append(r.ran, c), h
	return json.RawMessage(`{"id":7}`), r.no
}

// A captured request is rehearsed before the transaction and carried out in it, with what the rehearsal found.
func TestCaptured(t *testing.T) {
	r := &runner{}
	a := auth.Captured("PAY", r)
	if a.Code != "PAY" || a.Flow != challenge.FlowSession {
		t.Errorf("%+v", a)
	}
	want := edge.Captured{Method: "POST", Path: "/x", Caller: rest.Caller{UserID: "u1"}, Shown: &rest.Shown{Digest: "d"}}
	command, err := json.Marshal(want)
	storetest.Must(t, err)
	x := challenge.Execution{Command: command}
	x.Challenge.ID, x.Challenge.IntentDigest = "c1", "i1"
	x.Prepared, err = a.Prepare(t.Context(), x)
	storetest.Must(t, err)
	got := storetest.Value(a.Exec(t.Context(), x))(t)
	if !got.Success || string(got.Data) != `{"id":7}` || len(r.rehearsed) != 1 || len(r.ran) != 1 ||
		r.ran[0].Path != "/x" || r.rehearsed[0].Caller.UserID != "u1" || r.with == nil || x.Prepared != any(r.with) ||
		!reflect.DeepEqual(*r.ran[0].Shown, rest.Shown{Digest: "d", ChallengeID: "c1", IntentDigest: "i1"}) {
		t.Errorf("%+v, %+v", got, r)
	}
	empty, err := a.Exec(t.Context(), challenge.Execution{Command: []byte("{}")})
	if err != nil || !reflect.DeepEqual(empty, challenge.Result{Success: true}) || len(r.ran) != 1 {
		t.Errorf("no request: %+v, %v, ran %d", empty, err, len(r.ran))
	}
	r.no = errors.New("refused")
	if got, err := a.Exec(t.Context(), x); !errors.Is(err, r.no) || got.Success {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := a.Prepare(t.Context(), x); !errors.Is(err, r.no) {
		t.Error(err)
	}
	for _, text := range []string{"{", "", `{"method":7}`} {
		broken := challenge.Execution{Command: []byte(text)}
		_, err1 := a.Prepare(t.Context(), broken)
		_, err2 := a.Exec(t.Context(), broken)
		if err1 == nil || err2 == nil || errors.Is(err1, r.no) || errors.Is(err2, r.no) {
			t.Errorf("%q was read: %v, %v", text, err1, err2)
		}
	}
}

// The approver of a captured request sees its operation and its fields; a command without a request has neither.
func TestCapturedIsDescribed(t *testing.T) {
	describe := auth.Captured("PAY", &runner{}).Describe
	for command, want := range map[string][]challenge.Detail{
		`{"method":"POST","path":"/x","body":{"n":7,"a":"b"}}`: {{Key: mfa.HeaderOperation, Value: "POST /x"},
			{Key: "a", Value: "b"}, {Key: "n", Value: "7"}},
		`{"path":"/x","body":{"n":7}}`: nil, `{}`: nil, `{`: nil, `{"method":7}`: nil,
		`{"method":"POST","path":"/x","body":[1]}`: nil, // no fields
	} {
		if got := describe([]byte(command)); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", command, got, want)
		}
	}
}

// spender counts the proofs that were used up.
type spender struct {
	commit.Committer
	spent int
	err   error
}

func (s *spender) Commit(_ context.Context, writes ...commit.Write) error {
	if s.err == nil {
		s.spent += len(writes)
	}
	return s.err
}

// The proof of a caller's key is used up at the first question only, and only if it is that of the session's key.
func TestProofOfStarterKey(t *testing.T) {
	k := storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	public, _ := device.PublicKey(k)
	proof := storetest.Value(dpop.Sign(k, dpop.Claims{Method: "POST", Target: "https://api.example.com/v1/pay",
		TokenHash: dpop.TokenHash("token")}))(t)
	e, db := &engine{}, &spender{}
	s := auth.Starter{Starts: e, Accounts: e, Proofs: &dpop.Verifier{Ring: keyringtest.Ring(t, time.Now), Commit: db,
		PublicURL: "https://api.example.com/v1", BasePath: "/v1", Now: time.Now}}
	key := func(change func(*rest.Caller)) challenge.ClientKey {
		t.Helper()
		who := caller
		who.KeyThumbprint, who.KeyProof, who.KeyToken = public.Thumbprint(), proof, "token"
		who.Method, who.Host, who.Path = "POST", "api.example.com", "/v1/pay"
		change(&who)
		_, _, err := s.Start(t.Context(), who, "PAY", nil)
		storetest.Must(t, err)
		return e.asked[len(e.asked)-1].Key
	}
	right := key(func(*rest.Caller) {})
	if right.Thumbprint != public.Thumbprint() || right.Proven || db.spent != 0 {
		t.Errorf("%+v, %d spent", right, db.spent)
	}
	db.err = errors.New("the database is down")
	if err := right.Prove(t.Context()); err == nil {
		t.Error("a proof that was not used up counts")
	}
	db.err = nil
	storetest.Must(t, right.Prove(t.Context()))
	spent := db.spent
	if storetest.Must(t, right.Prove(t.Context())); spent == 0 || db.spent != spent {
		t.Errorf("%d, then %d spent", spent, db.spent)
	}
	for name, change := range map[string]func(*rest.Caller){
		"another key":   func(c *rest.Caller) { c.KeyThumbprint = "another" },
		"another path":  func(c *rest.Caller) { c.Path = "/v1/other" },
		"another token": func(c *rest.Caller) { c.KeyToken = "other" },
	} {
		if err := key(change).Prove(t.Context()); fault.CodeOf(err) != fault.DPoPInvalid || db.spent != spent {
			t.Errorf("%s: %v, %d spent", name, err, db.spent)
		}
	}
	for name, change := range map[string]func(*rest.Caller){
		"no key":         func(c *rest.Caller) { c.KeyThumbprint = "" },
		"no proof":       func(c *rest.Caller) { c.KeyProof = "" },
		"already proven": func(c *rest.Caller) { c.KeyProved = true },
	} {
		if k := key(change); k.Prove != nil || k.Proven != (name == "already proven") {
			t.Errorf("%s: %+v", name, k)
		}
	}
	s.Proofs = nil
	if k := key(func(*rest.Caller) {}); k.Prove != nil {
		t.Errorf("without a verifier: %+v", k)
	}
}

// passkeyed is an account with a passkey.
type passkeyed struct{ passkeys bool }

func (p passkeyed) Account(_ context.Context, userID string) (challenge.Account, error) {
	return challenge.Account{UserID: userID, Passkeys: p.passkeys}, nil
}

// A recovery code is used only where it replaces a passkey: for a change of factors of an account with one.
func TestStartWithRecoveryCode(t *testing.T) {
	used := []commit.Write{commit.Unflushed{}}
	for name, c := range map[string]struct {
		action   string
		passkeys bool
		code     string
		refusal  error
		redeemed bool
		with     int
		want     fault.Code
	}{
		"a change":          {mfa.DeviceAdd, true, "code", nil, true, 1, ""},
		"of another action": {mfa.Withdraw, true, "code", nil, false, 0, ""},
		"without a passkey": {mfa.DeviceAdd, false, "code", nil, false, 0, ""},
		"without a code":    {mfa.DeviceAdd, true, "", nil, false, 0, ""},
		"a wrong code": {mfa.DeviceAdd, true, "x", fault.New(fault.RecoveryCodeInvalid, "no"), true, 0,
			fault.RecoveryCodeInvalid},
	} {
		e, redeemed := &engine{}, false
		s := auth.Starter{Starts: e, Accounts: passkeyed{c.passkeys},
			Recovery: func(_ context.Context, who audit.By, code string) ([]commit.Write, error) {
				redeemed = true
				if who.UserID != "u1" || code != c.code {
					t.Errorf("%s: %+v, %s", name, who, code)
				}
				return used, c.refusal
			}}
		who := caller
		who.RecoveryCode = c.code
		_, _, err := s.Start(t.Context(), who, c.action, nil)
		if fault.CodeOf(err) != c.want || redeemed != c.redeemed {
			t.Errorf("%s: redeemed %t, %v", name, redeemed, err)
		}
		if c.want != "" {
			storetest.Equal(t, len(e.asked), 0, name, "a start was made")
			continue
		}
		if got := e.asked[0]; got.Recovered != (c.with > 0) || len(got.With) != c.with {
			t.Errorf("%s: %+v", name, got)
		}
	}
	e := &engine{refuse: []error{commit.ErrFenced}}
	n := 0
	s := auth.Starter{Starts: e, Accounts: passkeyed{true},
		Recovery: func(context.Context, audit.By, string) ([]commit.Write, error) { n++; return used, nil }}
	who := caller
	who.RecoveryCode = "code"
	_, _, err := s.Start(t.Context(), who, mfa.TOTPDeactivate, nil)
	if storetest.Must(t, err); n != 2 || !e.asked[1].Recovered {
		t.Errorf("%d codes were checked for a repeated start", n)
	}
}
