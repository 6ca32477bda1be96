package stepup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/proof/device"
)

// ports is the engine over fakes of all its ports. They record their calls; the one that fail names returns errDown.
type ports struct {
	*Starter
	*Answerer
	t     *testing.T
	m     *Messenger
	now   time.Time
	calls []string
	fail  string
	post  *post

	accounts people
	grant    *Grant // nil: everything is allowed
	reserved Reservation
	send     bool
	// usage, all and unproven are the counts of the outbox; sent are the messages of the past day.
	usage, all, unproven int
	sent                 []outbox.Sending
	open                 []challenge.Ref
	states               map[string]challenge.State
	rows                 map[string]challenge.Challenge
	pending              []challenge.Insert
	sealed               []byte
	wakeable             []device.Wake
	only                 bool
	primed               []challenge.Insert
	commits              [][]commit.Write
	answers              []challenge.Answer
	answered             Answered
	overtaken            int  // how many answers and renewals come too late
	hold                 bool // whether Result waits until its context ends
	renewal              Renewal
	renewed              outbox.Message
	digest               challenge.Digest
	user                 string
	dead                 map[string]bool
	signed               device.Device
	claims               device.Claims
	asserted             device.Asserted
	needs                map[passkey.Need]bool // that an asserted passkey meets
	lacks                passkey.Need          // the lowest need that no passkey meets; 0: they meet all
	client               *remembered.Client
}

var errDown = errors.New("the database is down")

const (
	phoneA = "+905320000001"
	mailA  = "alice@example.com"
)

// newPorts is an engine whose LOGIN requires a number of the listed methods.
func newPorts(t *testing.T, required int, methods ...string) *ports {
	t.Helper()
	policy := mfa.Policy{ID: 7, ActionCode: "LOGIN", Name: "p", EntityType: mfa.General, Type: mfa.Common,
		Required: required}
	for _, m := range methods {
		policy.Methods = append(policy.Methods, mfa.Choice{Code: m})
	}
	return portsOf(t, policy)
}

// templates are parsed once for all tests.
var templates = sync.OnceValues(func() (*message.Book, error) { return message.NewBook("Castellan", nil) })

func portsOf(t *testing.T, policies ...mfa.Policy) *ports {
	t.Helper()
	book, err := templates()
	if err != nil {
		t.Fatal(err)
	}
	p := &ports{t: t, now: time.UnixMilli(1_700_000_000_000), send: true, dead: map[string]bool{},
		post: &post{channels: map[message.Channel]bool{message.SMS: true, message.MAIL: true, message.Push: true}},
		rows: map[string]challenge.Challenge{}, accounts: people{"u1": alice(), "u2": {UserID: "u2", Phone: "+12025550123"}},
		user: "u1"}
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), policies)
	p.m = &Messenger{Catalog: func() *mfa.Catalog { return catalog }, Book: book,
		Ring: keyringtest.Ring(t, time.Now), UserGate: gate{p}, Store: store{ports: p}, Outbox: box{ports: p},
		Dispatch: p.post,
		Now:      func() time.Time { return p.now }, Config: Config{TTL: 10 * time.Minute, Grace: 2 * time.Minute,
			ExecWait: time.Second, MaxOpen: 3, Lease: 30 * time.Second, Language: "en",
			Caps:       Caps{DestinationHour: 10, DestinationDay: 20, UserDay: 40},
			MaxCodeAge: 10 * time.Minute, PrefixHour: 10, DialDay: map[string]int{"90": 100}}}
	actions := challenge.Actions{}
	actions.Register(challenge.Action{Code: "LOGIN", Flow: challenge.FlowLogin, Build: p.build})
	p.Starter = &Starter{Messenger: p.m, Actions: actions, Accounts: p, Tokens: p, Challenges: owners{p},
		Commit: store{ports: p}, Devices: handsets{p}}
	p.Answerer = &Answerer{Messenger: p.m, Actions: actions, Accounts: p, Sessions: p, Challenges: owners{p},
		Judges: map[challenge.Name]Judge{}, Devices: handsets{p}}
	return p
}

func alice() challenge.Account {
	return challenge.Account{UserID: "u1", Phone: phoneA, Dial: "90", Mail: mailA, TOTP: true, Push: true, CV: 3, SV: 4,
		Language: "tr"}
}

// did records a call, and fails the one that was chosen.
func (p *ports) did(name string, of ...string) error {
	p.calls = append(p.calls, strings.TrimSpace(name+" "+strings.Join(of, " ")))
	if p.fail == name {
		return errDown
	}
	return nil
}

func (p *ports) build(context.Context, challenge.Execution) (challenge.Result, []commit.Write, error) {
	return challenge.Result{Success: true, SessionID: "s9", UserID: "u1"}, []commit.Write{commit.Unflushed{}},
		p.did("Build")
}

func (p *ports) Account(ctx context.Context, id string) (challenge.Account, error) {
	if err := p.did("Account"); err != nil {
		return challenge.Account{}, err
	}
	return p.accounts.Account(ctx, id)
}

func (p *ports) PAuth(id string, until time.Time) (string, error) {
	return "token of " + id + " until " + until.UTC().Format(time.TimeOnly), p.did("PAuth")
}

func (p *ports) Live(_, session string, _ int64) bool { return !p.dead[session] }

type gate struct{ *ports }

func (g gate) Reserve(_ context.Context, _ string, r Reservation) (Grant, error) {
	g.reserved = r
	if err := g.did("Reserve"); err != nil {
		return Grant{}, err
	}
	if g.grant != nil {
		return *g.grant, nil
	}
	all := Grant{Send: make([]bool, len(r.Sendings))}
	for i := range all.Send {
		all.Send[i] = true
	}
	return all, nil
}

func (g gate) Send(_ context.Context, _ string, _ Sending, _ Caps) (bool, error) {
	return g.send, g.did("Send")
}

func (g gate) DummyCall(context.Context) error { return g.did("DummyCall") }

type box struct {
	outbox.Store
	*ports
}

func (b box) Usage(context.Context, time.Time, string) (int, error) { return b.usage, b.did("Usage") }

func (b box) Spent(context.Context, time.Time, string) (int, int, error) {
	return b.all, b.unproven, b.did("Spent")
}

func (b box) Sendings(_ context.Context, userID string, since time.Time) ([]outbox.Sending, error) {
	if since != b.now.Add(-24*time.Hour) {
		b.t.Errorf("the sent messages since %s", since)
	}
	return b.sent, b.did("Sendings")
}

type store struct {
	challenge.Store
	commit.Committer
	*ports
}

func (s store) Commit(_ context.Context, writes ...commit.Write) error {
	if err := s.did("Commit"); err != nil {
		return err
	}
	s.commits = append(s.commits, writes)
	return nil
}

func (s store) Load(_ context.Context, id string) (challenge.Challenge, error) {
	c, ok := s.rows[id]
	if err := s.did("Load"); err != nil || ok {
		return c, err
	}
	return c, fault.New(fault.ChallengeNotFound, "none")
}

func (s store) Open(context.Context, string, time.Time) ([]challenge.Ref, error) {
	return slices.Clone(s.open), s.did("Open")
}

func (s store) States(context.Context, []string) (map[string]challenge.State, error) {
	return s.states, s.did("States")
}

func (s store) Pending(context.Context, string, time.Time) ([]challenge.Insert, error) {
	return s.pending, s.did("Pending")
}

func (s store) Sealed(context.Context, string) ([]byte, []byte, error) {
	return s.sealed, nil, s.did("Sealed")
}

type owners struct{ *ports }

func (o owners) Prime(made challenge.Insert) { o.primed = append(o.primed, made) }

func (o owners) Resume(id string) { o.did("Resume", id) }

func (o owners) Refresh(id string) { o.did("Refresh", id) }

func (o owners) Complete(_ context.Context, _ string, a challenge.Answer, _ time.Duration, _ audit.By) (Answered,
	error) {
	o.answers = append(o.answers, a)
	if o.overtaken--; o.overtaken >= 0 {
		return Answered{}, OutdatedInput()
	}
	return o.answered, o.did("Complete")
}

func (o owners) User(context.Context, string) (string, error) { return o.user, o.did("User") }

func (o owners) CheckRenew(context.Context, string, string, challenge.Name) (Renewal, error) {
	return o.renewal, o.did("CheckRenew")
}

func (o owners) Renew(_ context.Context, id, _ string, _ challenge.Name, d challenge.Digest, m outbox.Message,
	_ audit.By) (challenge.Challenge, error) {
	o.renewed, o.digest = m, d
	if o.overtaken--; o.overtaken >= 0 {
		return challenge.Challenge{}, OutdatedInput()
	}
	return challenge.Challenge{ID: id}, o.did("Renew")
}

func (o owners) Result(ctx context.Context, _ string, _ time.Duration) (Answered, error) {
	if err := o.did("Result"); err != nil {
		return Answered{}, err
	}
	if o.hold {
		<-ctx.Done()
	}
	return o.answered, ctx.Err()
}

type handsets struct{ *ports }

func (h handsets) Answered(context.Context, device.Request, device.Answer) (device.Device, device.Claims, error) {
	return h.signed, h.claims, h.did("Answered")
}

func (h handsets) Wakes(context.Context, string) ([]device.Wake, error) {
	return h.wakeable, h.did("Wakes")
}

func (h handsets) Assert(context.Context, []byte) (device.Asserted, error) {
	return h.asserted, h.did("Assert")
}

func (h handsets) Counted(context.Context, device.Asserted, audit.By) error { return h.did("Counted") }

func (h handsets) Allowed(_ context.Context, _ string, need passkey.Need) (device.Allowed, error) {
	a := device.Allowed{Only: h.only, Request: func(digest string) json.RawMessage {
		return json.RawMessage(`"` + digest + `"`)
	}}
	if h.lacks > 0 && need >= h.lacks {
		a.Request, a.From = nil, time.UnixMilli(1_800_000_000_000)
	}
	return a, h.did("Allowed")
}

func (h handsets) Meets(_ context.Context, _ device.Asserted, need passkey.Need) (bool, error) {
	return h.needs[need], h.did("Meets")
}

// clients remember the client of the ports.
type clients struct {
	remembered.Store
	*ports
}

func (c clients) Find(context.Context, string, string, string) (remembered.Client, error) {
	if err := c.did("Find"); err != nil {
		return remembered.Client{}, err
	}
	if c.client == nil {
		return remembered.Client{}, fault.New(fault.RecordNotFound, "none")
	}
	return *c.client, nil
}

// opened returns a sealed message.
func (p *ports) opened(m outbox.Message) (r message.Rendered) {
	p.t.Helper()
	plain, err := p.m.Ring.Open(m.Payload, challenge.PayloadData(m.ChallengeID, m.MethodID, m.Generation))
	if err != nil || r.UnmarshalBinary(plain) != nil {
		p.t.Fatalf("the payload of %s: %v", m.ID, err)
	}
	return r
}

// each returns the writes of one kind.
func each[W commit.Write](writes []commit.Write) (of []W) {
	for _, w := range writes {
		if one, is := w.(W); is {
			of = append(of, one)
		}
	}
	return of
}

var byAlice = audit.By{UserID: "u1", IP: "203.0.113.9"}

var passkeyOfAlice = device.Asserted{Passkey: passkey.Credential{DeviceID: "d5", UserID: "u1"}, Challenge: "digest",
	Kept: "kept", Counts: true, Use: passkey.Use{DeviceID: "d5", Seen: 1, Count: 2, At: time.UnixMilli(77)}}
