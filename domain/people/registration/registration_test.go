package registration_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/domain/people/registration"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// An imported account has the newcomer's fields in canonical form in addition to its known data, and commits with its
// external id and audit row.
func TestImport(t *testing.T) {
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	by := audit.By{UserID: "service:old-platform"}
	known := user.New("01JD0000000000000000000000", at)
	known.Level, known.KYCConfirm, known.Phone, known.Name = 2, user.ManuelApproved, "+1999", "former"
	n := registration.Newcomer{ExternalID: "old-7", CountryCode: "+90", Phone: "5320000007", Email: " Ayse@Example.com ",
		Name: " Ayşe ", Surname: "Demir", Language: "tr"}
	made, writes, err := n.Import(by, known)
	storetest.Must(t, err)
	want := known
	want.CountryCode, want.Phone, want.Email = "90", "+905320000007", "ayse@example.com"
	want.Name, want.Surname, want.Language, want.Type = "Ayşe", "Demir", "tr", user.Individual
	storetest.Same(t, made, want)
	canonical := storetest.Value(n.Canonical())(t)
	wrote := []commit.Write{
		integration.Add{Claim: integration.Claim{Kind: integration.Users, ExternalID: "old-7", RecordID: known.ID, At: at,
			Digest: integration.Digest(canonical)}},
		user.Add{User: want},
		audit.Record{At: at, ActorID: by.UserID, UserID: known.ID, Action: registration.ActionAdd, Target: known.ID,
			Outcome: audit.Success}}
	storetest.Same(t, writes, wrote)
	for fields, bad := range map[string]registration.Newcomer{
		"externalId":  {CountryCode: "90", Phone: "5320000007", Name: "Ayşe"},
		"name":        {ExternalID: "old-8", CountryCode: "90", Phone: "5320000008"},
		"phoneNumber": {ExternalID: "old-9", CountryCode: "90", Phone: "x", Name: "Ayşe"}} {
		_, writes, err := bad.Import(by, known)
		if storetest.WantsFields(t, err, fields); writes != nil {
			t.Errorf("%s: %v", fields, writes)
		}
	}
}

// The checks of an external id and of names name the first fault of each; names may be blank.
func TestChecks(t *testing.T) {
	for text, want := range map[string]string{"a": "", "": "must not be blank", strings.Repeat("x", 129): "is too long",
		"a\n": "must not contain control characters"} {
		var got fault.Problems
		if valid := registration.CheckExternalID(&got, "f", text); valid != (want == "") || valid != (len(got) == 0) ||
			!valid && got[0] != (fault.Problem{Field: "f", Message: want}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, c := range []struct{ name, surname, want, wantSurname, fields string }{
		{" Ayşe \t Nur ", " Demir", "Ayşe Nur", "Demir", ""}, {"", " ", "", "", ""}, {"a\x00", "", "a\x00", "", "name"},
		{"", "\u200b", "", "\u200b", "surname"}, {"\u202e", "\x01", "\u202e", "\x01", "name surname"}} {
		var fields []string
		name, surname := c.name, c.surname
		for _, p := range user.CheckNames(&name, &surname) {
			if fields = append(fields, p.Field); p.Message != "must not contain control characters" {
				t.Errorf("%+v", p)
			}
		}
		if strings.Join(fields, " ") != c.fields || name != c.want || surname != c.wantSurname {
			t.Errorf("%+v: %q, %q, %v", c, name, surname, fields)
		}
	}
}

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
	cheap := password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}}
	hasher, p := storetest.Value(password.NewHasher(cheap))(t), &platform{}
	p.SignUps = &registration.SignUps{Users: p, Contracts: terms{}, Engine: p, Hasher: hasher,
		Policy: password.DefaultPolicy(), Commit: &storetest.Units{}, Place: func(client.Origin) string { return "" },
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
	return storetest.Err(p.SignUps.Start(t.Context(), signUp(func(*registration.SignUp) {}), from))
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
	storetest.Fails(t, storetest.Err(p.Action().Exec(t.Context(), challenge.Execution{Command: []byte("{")})), "")
	if _, _, err := p.Action().Reach(t.Context(), []byte("{")); err == nil || p.Action().Describe([]byte("{")) != nil {
		t.Error("a damaged command has destinations")
	}
}

// bounded is a platform whose networks may start three sign-ups an hour, and phone numbers and mail addresses two.
func bounded(t *testing.T) (*platform, *persistence.DB) {
	t.Helper()
	p, db := newPlatform(t), persistencetest.SQLite(t)
	guards := func(n int) *password.Guards {
		return password.NewGuards(account.NewPasswordGuards(db), db, password.Limit(n, time.Hour), p.Now)
	}
	p.Starts = &registration.Bounds{Networks: guards(3), Phones: guards(2), Mails: guards(2)}
	return p, db
}

// tries starts a sign-up of a phone number and a mail address from an address.
func tries(t *testing.T, p *platform, phone, mail, ip string) error {
	t.Helper()
	_, err := p.SignUps.Start(t.Context(), signUp(func(r *registration.SignUp) { r.Phone, r.Email = phone, mail }),
		challenge.Starter{IP: ip})
	return err
}

// crowd takes all places in the queue of hashes while a sign-up is read.
type crowd struct {
	*platform
	places []*password.Place
}

func (c *crowd) Subject(ctx context.Context, text string) (string, []string, error) {
	for {
		place, err := c.Hasher.Admit(password.Caller{Site: text})
		if err != nil {
			return c.platform.Subject(ctx, text)
		}
		c.places = append(c.places, place)
	}
}

// A start whose password was not hashed is counted for nothing.
func TestUnhashedStartIsNotCounted(t *testing.T) {
	p, _ := bounded(t)
	c := &crowd{platform: p}
	p.Engine = c
	for range 4 {
		storetest.Wants(t, tries(t, p, "5320000001", "a@example.com", "203.0.113.1"), fault.Overloaded)
		for _, place := range c.places {
			place.Leave()
		}
		c.places = nil
	}
	p.Engine = p
	storetest.Must(t, tries(t, p, "5320000001", "a@example.com", "203.0.113.1"))
	storetest.Equal(t, len(p.started), 1)
}

// The key by which callers share places in the queue is that of their network, or as configured.
func TestPlaceOfSignUps(t *testing.T) {
	p := newPlatform(t)
	var asked []netip.Addr
	p.Place = func(from client.Origin) string { asked = append(asked, from.Addr); return "here" }
	storetest.Must(t, start(t, p))
	storetest.Same(t, asked, []netip.Addr{netip.MustParseAddr(from.IP)})
}

// rotated is an engine whose key was replaced.
type rotated struct{ *platform }

func (rotated) Subject(_ context.Context, text string) (string, []string, error) {
	return "?new/" + text, []string{"?" + text}, nil
}

// The starts under a replaced key still count.
func TestStartsOutliveAReplacedKey(t *testing.T) {
	p, _ := bounded(t)
	storetest.Must(t, tries(t, p, "5320000001", "a@example.com", "203.0.113.1"))
	storetest.Must(t, tries(t, p, "5320000001", "b@example.com", "203.0.113.2"))
	p.Engine = rotated{p}
	storetest.Wants(t, tries(t, p, "5320000001", "c@example.com", "203.0.113.3"), fault.RateLimited)
	storetest.Must(t, tries(t, p, "5320000002", "a@example.com", "203.0.113.3"))
}
