package registration_test

import (
	"context"
	"encoding/json"
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

var errDown = errors.New("the database is down")

// platform is a SignUps over fakes; the port that fail names returns errDown.
type platform struct {
	*registration.SignUps
	user.Store
	fail    string
	phone   user.User
	mail    user.User
	started []challenge.StartRequest
	fenced  int
	applied []string
	units   *storetest.Units
	signed  user.User
}

func (p *platform) err(port string) error {
	if p.fail == port {
		return errDown
	}
	return nil
}

func found(u user.User) error {
	if u.ID == "" {
		return fault.New(fault.RecordNotFound, "none")
	}
	return nil
}

func (p *platform) ByPhone(context.Context, string, string) (user.User, error) {
	if err := p.err("ByPhone"); err != nil {
		return user.User{}, err
	}
	return p.phone, found(p.phone)
}

func (p *platform) ByEmail(context.Context, string) (user.User, error) {
	if err := p.err("ByEmail"); err != nil {
		return user.User{}, err
	}
	return p.mail, found(p.mail)
}

func (p *platform) Subject(_ context.Context, text string) (string, []string, error) {
	return "?" + text, nil, p.err("Subject")
}

func (p *platform) Applied(to challenge.Account, subject, ip string) []commit.Write {
	p.applied = append(p.applied, to.UserID+" "+subject+" "+ip)
	return nil
}

func (p *platform) Start(_ context.Context, r challenge.StartRequest) (challenge.Started, error) {
	p.started = append(p.started, r)
	if p.fenced--; p.fenced >= 0 {
		return challenge.Started{}, commit.ErrFenced
	}
	return challenge.Started{PAuth: "token"}, p.err("Start")
}

type terms struct {
	contract.Store
	p *platform
}

func (t terms) Contracts(context.Context, contract.Query) ([]contract.Contract, error) {
	return []contract.Contract{{ID: 1, Version: "v1", Active: true}, {ID: 2, Version: "v2"}, {ID: 3, Active: true}},
		t.p.err("Contracts")
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	hasher, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	storetest.Must(t, err)
	p := &platform{units: &storetest.Units{}}
	p.SignUps = &registration.SignUps{Users: p, Contracts: terms{p: p}, Engine: p, Hasher: hasher,
		Policy: password.DefaultPolicy(), Commit: p.units, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) },
		First: func(_ context.Context, u user.User, _ challenge.Execution) (challenge.Result, []commit.Write, error) {
			p.signed = u
			return challenge.Result{Success: true, SessionID: "s1"}, []commit.Write{commit.Unflushed{}}, p.err("First")
		}}
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

func start(t *testing.T, p *platform, change func(*registration.SignUp)) error {
	t.Helper()
	_, err := p.SignUps.Start(t.Context(), signUp(change), from)
	return err
}

// A failed port ends a sign-up with its error.
func TestSignUpWithoutPorts(t *testing.T) {
	for _, fail := range []string{"Contracts", "Subject", "ByPhone", "ByEmail", "Start"} {
		p := newPlatform(t)
		p.fail = fail
		if err := start(t, p, func(*registration.SignUp) {}); !errors.Is(err, errDown) {
			t.Errorf("%s: %v", fail, err)
		}
	}
	p := newPlatform(t)
	p.fenced = 4
	storetest.Must(t, start(t, p, func(*registration.SignUp) {}))
	p.fenced = 5
	err := start(t, p, func(*registration.SignUp) {})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Unavailable || f.RetryAfter != time.Second || len(p.started) != 10 {
		t.Error(err)
	}
	x := challenge.Execution{Command: p.started[0].Command, Now: p.Now()}
	for _, c := range []struct {
		fails []error
		port  string
		want  fault.Code
	}{{[]error{fault.New(fault.RecordAlreadyExist, "users_phone")}, "", fault.RecordAlreadyExist},
		{[]error{errDown}, "", fault.Internal}, {nil, "First", fault.Internal}, {[]error{nil, errDown}, "", fault.Internal}} {
		p.units.Fails, p.fail = c.fails, c.port
		if _, err := p.Action().Exec(t.Context(), x); fault.CodeOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := p.Action().Exec(t.Context(), challenge.Execution{Command: []byte("{")}); err == nil {
		t.Error("a damaged command makes an account")
	}
	if _, _, err := p.Action().Reach(t.Context(), []byte("{")); err == nil || p.Action().Describe([]byte("{")) != nil {
		t.Error("a damaged command has destinations")
	}
	p.fail = "ByEmail"
	if _, _, err := p.Action().Reach(t.Context(), x.Command); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if !json.Valid(x.Command) {
		t.Errorf("%s", x.Command)
	}
}
