package registration_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
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

func TestSignUp(t *testing.T) {
	p := newPlatform(t)
	storetest.Must(t, start(t, p, func(*registration.SignUp) {}))
	r := p.started[0]
	if r.Action != registration.ActionRegister || r.Applicant != "?register/+905320000007" || r.Withheld != nil ||
		r.Starter.IP != from.IP || r.Proven {
		t.Errorf("%+v", r)
	}
	storetest.Same(t, r.Account, challenge.Account{Phone: "+905320000007", Dial: "90", Mail: "ayse@example.com",
		Language: "tr"})
	storetest.Same(t, r.With, []commit.Write{audit.Record{At: p.Now(), UserID: r.Applicant, Action: r.Action,
		Target: r.Applicant, Outcome: audit.Success, IP: from.IP, RequestID: "q1", Detail: "started"}})
	storetest.Same(t, p.applied, []string{" ?register/+905320000007 203.0.113.9",
		" ?register/ayse@example.com 203.0.113.9"})

	// After the proof the account commits with its contracts and its first session.
	a := p.Action()
	details := a.Describe(r.Command)
	var shown []string
	for _, d := range details {
		shown = append(shown, d.Value)
	}
	storetest.Same(t, shown, []string{"Ayşe Demir", "+905320000007", "ayse@example.com", "1 v1", "3 "})
	result, err := a.Exec(t.Context(), challenge.Execution{Command: r.Command, Now: p.Now(),
		Challenge: challenge.Challenge{Body: challenge.Body{Starter: from}}})
	storetest.Must(t, err)
	u := p.signed
	if u.Phone != "+905320000007" || u.Email != "ayse@example.com" || !u.EmailVerified || u.Language != "tr" ||
		string(result.Data) != `{"userId":"`+u.ID+`","sessionKey":"s1"}` || !result.Success {
		t.Errorf("%+v, %s", u, result.Data)
	}
	added := p.units.Writes[0].(user.Add)
	place, err := p.Hasher.Admit(password.Caller{})
	storetest.Must(t, err)
	defer place.Leave()
	if right, _, err := place.Verify(t.Context(), "a long secret 7", added.PasswordHash); !right || err != nil {
		t.Errorf("%t, %v", right, err)
	}
	storetest.Same(t, p.units.Audit(), []string{u.ID + " USER_ADD " + u.ID + " " + u.ID + " signed up"})
	storetest.Same(t, p.units.Writes[2:], []commit.Write{
		contract.Accept{UserID: u.ID, ContractID: 1, Version: "v1", At: p.Now()},
		contract.Accept{UserID: u.ID, ContractID: 3, At: p.Now()}, commit.Unflushed{}})
}

// A destination with an account gets no code, and its owner is notified once.
func TestSignUpWithKnownDestinations(t *testing.T) {
	active := func(id string) user.User {
		u := user.New(id, time.Now())
		return u
	}
	closed := active("u3")
	closed.Status = "CLOSED"
	for name, c := range map[string]struct {
		phone, mail user.User
		withheld    []challenge.Name
		told        string
	}{
		"neither":        {user.User{}, user.User{}, nil, "|"},
		"the phone":      {active("u1"), user.User{}, []challenge.Name{challenge.SMS}, "u1|"},
		"the mail":       {user.User{}, active("u2"), []challenge.Name{challenge.MAIL}, "|u2"},
		"two accounts":   {active("u1"), active("u2"), []challenge.Name{challenge.SMS, challenge.MAIL}, "u1|u2"},
		"one account":    {active("u1"), active("u1"), []challenge.Name{challenge.SMS, challenge.MAIL}, "u1|"},
		"closed account": {closed, user.User{}, []challenge.Name{challenge.SMS}, "|"},
	} {
		p := newPlatform(t)
		p.phone, p.mail = c.phone, c.mail
		storetest.Must(t, start(t, p, func(*registration.SignUp) {}))
		var told []string
		for _, a := range p.applied {
			told = append(told, strings.Fields(" " + a)[0])
		}
		got := strings.NewReplacer("?register/+905320000007", "", "?register/ayse@example.com", "").Replace(
			strings.Join(told, "|"))
		if !slices.Equal(p.started[0].Withheld, c.withheld) || got != c.told {
			t.Errorf("%s: %v, %q", name, p.started[0].Withheld, got)
		}
		to, names, err := p.Action().Reach(t.Context(), p.started[0].Command)
		if err != nil || to.Phone != "+905320000007" || !slices.Equal(names, c.withheld) {
			t.Errorf("%s: %+v, %v, %v", name, to, names, err)
		}
	}
}

// Every invalid field of a sign-up is named.
func TestRefusedSignUps(t *testing.T) {
	for fields, change := range map[string]func(*registration.SignUp){
		"":                func(*registration.SignUp) {},
		"email":           func(r *registration.SignUp) { r.Email = "" },
		"passwordVerify":  func(r *registration.SignUp) { r.Verify += "x" },
		"password":        func(r *registration.SignUp) { r.Password, r.Verify = "short", "short" },
		"contracts":       func(r *registration.SignUp) { r.Contracts = []int64{1} },
		"contracts ":      func(r *registration.SignUp) { r.Contracts = []int64{1, 2, 3} },
		"phoneNumber":     func(r *registration.SignUp) { r.Phone = "x" },
		"name email":      func(r *registration.SignUp) { r.Name, r.Email = " ", "" },
		"password  ":      func(r *registration.SignUp) { r.Password, r.Verify = "ayse@example.com", "ayse@example.com" },
		"name contracts ": func(r *registration.SignUp) { r.Name, r.Contracts = "", nil },
	} {
		p := newPlatform(t)
		err := start(t, p, change)
		if storetest.WantsFields(t, err, strings.TrimSpace(fields)); (len(p.started) == 1) != (fields == "") {
			t.Errorf("%q: %d started", fields, len(p.started))
		}
	}
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
