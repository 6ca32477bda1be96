package registration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/domain/people/registration"
)

// platform is a SignUps over fakes, whose first starts are fenced. No account has the details of a sign-up.
type platform struct {
	*registration.SignUps
	user.Store
	started []challenge.StartRequest
	fenced  int
}

func (p *platform) ByPhone(context.Context, string, string) (user.User, error) {
	return user.User{}, fault.New(fault.RecordNotFound, "none")
}

func (p *platform) ByEmail(context.Context, string) (user.User, error) {
	return user.User{}, fault.New(fault.RecordNotFound, "none")
}

func (p *platform) Subject(_ context.Context, text string) (string, []string, error) {
	return "?" + text, nil, nil
}

func (p *platform) Applied(challenge.Account, string, string) []commit.Write { return nil }

func (p *platform) Start(_ context.Context, r challenge.StartRequest) (challenge.Started, error) {
	p.started = append(p.started, r)
	if p.fenced--; p.fenced >= 0 {
		return challenge.Started{}, commit.ErrFenced
	}
	return challenge.Started{PAuth: "token"}, nil
}

type terms struct{ contract.Store }

func (terms) Contracts(context.Context, contract.Query) ([]contract.Contract, error) {
	return []contract.Contract{{ID: 1, Version: "v1", Active: true}, {ID: 2, Version: "v2"}, {ID: 3, Active: true}}, nil
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	hasher, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	storetest.Must(t, err)
	p := &platform{}
	p.SignUps = &registration.SignUps{Users: p, Contracts: terms{}, Engine: p, Hasher: hasher,
		Policy: password.DefaultPolicy(), Commit: &storetest.Units{},
		Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}
	return p
}

func signUp(change func(*registration.SignUp)) registration.SignUp {
	r := registration.SignUp{Newcomer: registration.Newcomer{CountryCode: "90", Phone: "5320000007",
		Email: "Ayse@Example.com", Name: "Ayşe", Surname: "Demir"}, Password: "a long secret 7", Verify: "a long secret 7",
		Contracts: []int64{3, 1}}
	change(&r)
	return r
}

var from = challenge.Starter{IP: "203.0.113.9", Language: "tr", RequestID: "q1"}

func start(t *testing.T, p *platform) error {
	t.Helper()
	_, err := p.SignUps.Start(t.Context(), signUp(func(*registration.SignUp) {}), from)
	return err
}

// A start is tried five times.
func TestFencedStart(t *testing.T) {
	p := newPlatform(t)
	p.fenced = 4
	storetest.Must(t, start(t, p))
	p.fenced = 5
	var f *fault.Error
	if err := start(t, p); !errors.As(err, &f) || f.Code != fault.Unavailable || f.RetryAfter != time.Second ||
		len(p.started) != 10 {
		t.Error(err)
	}
	if _, err := p.Action().Exec(t.Context(), challenge.Execution{Command: []byte("{")}); err == nil {
		t.Error("a damaged command makes an account")
	}
	if _, _, err := p.Action().Reach(t.Context(), []byte("{")); err == nil || p.Action().Describe([]byte("{")) != nil {
		t.Error("a damaged command has destinations")
	}
}
