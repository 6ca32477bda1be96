package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"castellan/actors"
	"castellan/cluster"
	"castellan/domain/challenge"
	"castellan/domain/challenge/stepup"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/id"
	"castellan/domain/keyring/keyringtest"
	"castellan/domain/message"
	"castellan/domain/mfa"
	"castellan/domain/outbox"
	"castellan/domain/totp"
	"castellan/domain/user"
	"castellan/persistence"
)

// world is one node over a real database: engine, actors, and a mailbox in
// place of the outside.
type world struct {
	t       *testing.T
	db      *persistence.DB
	node    *cluster.Node
	engine  *engine
	client  actors.Client
	user    user.User
	catalog *mfa.Catalog
	actions challenge.Actions
	totps   *totp.Service
	clock   atomic.Int64 // of authenticators, in seconds; it stands still

	mu      sync.Mutex
	codes   map[string]string // method id → last code
	sent    int
	dead    map[string]bool // sessions that have ended
	news    []stepup.News
	effects int
}

// engine is both halves of the challenge engine. They share a Messenger.
type engine struct {
	*stepup.Starter
	*stepup.Answerer
}

type accounts struct{ users user.Store }

func (a accounts) Account(ctx context.Context, id string) (challenge.Account, error) {
	u, err := a.users.Get(ctx, id)
	if err == nil && !u.Active() {
		err = fault.New(fault.RecordNotFound, "not active")
	}
	return u.Account(), err
}

func (w *world) Deliver(m outbox.Message, r message.Rendered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes[m.MethodID] = r.Code
	w.sent++
}

func (w *world) Offers(message.Channel) bool { return true }

func (w *world) Live(_, sessionID string, _ int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.dead[sessionID]
}

func (w *world) PAuth(id string, _ time.Time) (string, error) { return "token-of-" + id, nil }

// counted is an action with an effect that can be counted, in its own
// transaction.
var errTrouble = errors.New("trouble")

func open(t *testing.T) *world {
	t.Helper()
	return openOn(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"))
}

func openOn(t *testing.T, dsn string) *world {
	t.Helper()
	w := &world{t: t, codes: map[string]string{}, dead: map[string]bool{}, actions: challenge.Actions{}}
	db, err := persistence.Open(t.Context(), dsn, persistence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
	if err := db.Exclusive(t.Context(), func(ctx context.Context) error { _, err := db.Migrate(ctx); return err }); err != nil {
		t.Fatal(err)
	}
	db.Start([]byte("audit key"), "test")
	w.user = user.New(id.New(time.Now()), time.Now())
	w.user.CountryCode, w.user.Phone, w.user.Email = "90", "+905320000001", "a@example.com"
	if err := db.Commit(t.Context(), user.Add{User: w.user, PasswordHash: ""}); err != nil {
		t.Fatal(err)
	}
	w.catalog = mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), nil)
	w.actions.Register(challenge.Action{Code: "LOGIN", Flow: challenge.FlowLogin, Build: func(_ context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
		return challenge.Result{Success: true, Data: json.RawMessage(`{"sessionKey":"s1"}`), Headers: map[string]string{"x-auth": "t"}}, nil, nil
	}})
	w.actions.Register(challenge.Action{Code: "VERIFY_EMAIL", Exec: func(ctx context.Context, x challenge.Execution) (challenge.Result, error) {
		switch string(x.Command) {
		case "refuse":
			return challenge.Result{}, fault.New(fault.InvalidState, "not now")
		case "trouble":
			return challenge.Result{}, errTrouble
		case "panic":
			panic("told to")
		}
		w.mu.Lock()
		w.effects++
		w.mu.Unlock()
		return challenge.Result{Success: true, Data: json.RawMessage(`{"n":1}`)}, nil
	}})
	w.clock.Store(time.Now().Unix())
	w.start()
	w.actions.Register(w.totps.SetupAction())
	w.actions.Register(w.totps.DeactivateAction())
	t.Cleanup(func() {
		w.node.Stop(context.Background())
		db.Close()
	})
	return w
}

// start brings up a node; calling it again is a restart of the process.
func (w *world) start() {
	ring := keyringtest.Ring(w.t, time.Now)
	if w.engine != nil {
		ring = w.engine.Starter.Ring
		w.node.Stop(context.Background())
	}
	users := accounts{persistence.NewUsers(w.db)}
	log := slog.New(slog.DiscardHandler)
	w.node = cluster.Solo(log)
	warm := new(actors.WarmCache)
	w.node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: persistence.NewChallenges(w.db), Outbox: persistence.NewOutbox(w.db), Commit: w.db, Actions: w.actions,
		Rules: challenge.DefaultRules(), Accounts: users, Sessions: w, Seal: ring.Seal, Open: ring.Open, Grace: 120 * time.Second, Now: time.Now, Log: log,
		Uses: map[challenge.Name]actors.Uses{challenge.TOTP: totp.Use, challenge.PUSH: stepup.Use}})...)
	w.client = actors.Client{Node: w.node, WarmCache: warm, Now: time.Now}
	w.client.Listen(func(n stepup.News) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.news = append(w.news, n)
	})
	book, err := message.NewBook("Castellan", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	messenger := &stepup.Messenger{
		Config: stepup.Config{TTL: 600 * time.Second, Grace: 120 * time.Second, ExecWait: 10 * time.Second, MaxOpen: 5,
			Lease: 30 * time.Second},
		Catalog: func() *mfa.Catalog { return w.catalog }, Book: book, Ring: ring, UserGate: w.client,
		Store: persistence.NewChallenges(w.db), Outbox: persistence.NewOutbox(w.db), Dispatch: w, Now: time.Now,
	}
	judge := func(ctx context.Context, userID string, a stepup.Answer) (challenge.Verdict, *challenge.Use, error) {
		return w.totps.Judge(ctx, userID, a.Value)
	}
	w.engine = &engine{
		&stepup.Starter{Messenger: messenger, Actions: w.actions, Accounts: users, Tokens: w, Challenges: w.client, Commit: w.db},
		&stepup.Answerer{Messenger: messenger, Actions: w.actions, Accounts: users, Sessions: w, Challenges: w.client,
			Judges: map[challenge.Name]stepup.Judge{challenge.TOTP: judge}},
	}
	if w.totps == nil { // its actions outlive a restart of the node
		w.totps = &totp.Service{Store: persistence.NewTOTP(w.db), Users: persistence.NewUsers(w.db), Budgets: persistence.NewChallenges(w.db), Commit: w.db, Ring: ring,
			Notices: w.engine.Starter, Rules: challenge.DefaultRules(), Recovery: totp.DefaultLimit(), Issuer: "Castellan",
			Now: func() time.Time { return time.Unix(w.clock.Load(), 0) }}
	}
}

func (w *world) begin(action, command string) challenge.Challenge {
	w.t.Helper()
	r := challenge.StartRequest{Action: action, Account: w.user.Account(), Starter: challenge.Starter{IP: "203.0.113.9"}, Proven: true}
	if command != "" {
		r.Command = []byte(command)
	}
	s, err := w.engine.Start(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Challenge
}

func (w *world) method(c challenge.Challenge, n challenge.Name) challenge.Method {
	w.t.Helper()
	for _, m := range c.Methods {
		if m.Name == n {
			return m
		}
	}
	w.t.Fatalf("no %s among %+v", n, c.Methods)
	return challenge.Method{}
}

func (w *world) code(methodID string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[methodID]
}

func (w *world) answer(c challenge.Challenge, n challenge.Name, value string) (stepup.Completion, error) {
	return w.engine.Complete(context.Background(), stepup.Answer{ChallengeID: c.ID, MethodID: w.method(c, n).ID, Method: n, Value: value})
}

func (w *world) right(c challenge.Challenge, n challenge.Name) (stepup.Completion, error) {
	return w.answer(c, n, w.code(w.method(c, n).ID))
}

func wrongOf(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

func expect(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v, want %q", err, code)
	}
}

func TestLoginThroughThreeDoors(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	if len(c.Methods) != 2 || c.Methods[0].Name != challenge.SMS || c.Methods[0].Hint != "+90*******01" && c.Methods[0].Hint == w.user.Phone {
		t.Fatalf("methods %+v", c.Methods)
	}
	if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine.Result(t.Context(), c.ID, 0); fault.CodeOf(err) != fault.ChallengeNotCompleted {
		t.Fatalf("result before the end: %v", err)
	}
	done, err := w.right(c, challenge.SMS)
	if err != nil || !done.Final || done.Result == nil || !done.Result.Success || done.Result.Headers["x-auth"] != "t" {
		t.Fatalf("%+v, %v", done, err)
	}
	again, err := w.right(c, challenge.SMS)
	if err != nil || again.Result == nil || string(again.Result.Data) != string(done.Result.Data) {
		t.Fatalf("an exact repeat: %+v, %v", again, err)
	}
	_, err = w.answer(c, challenge.SMS, wrongOf(w.code(w.method(c, challenge.SMS).ID)))
	expect(t, err, fault.MethodAlreadyCompleted)
	_, err = w.right(c, challenge.MAIL)
	expect(t, err, fault.ChallengeClosed)
	w.start() // the process ends between completion and reading
	late, err := w.engine.Result(t.Context(), c.ID, 0)
	if err != nil || string(late.Result.Data) != string(done.Result.Data) || late.Result.Headers["x-auth"] != "t" {
		t.Fatalf("after a restart: %+v, %v", late, err)
	}
	_, news, err := w.client.Subscribe(t.Context(), c.ID, 1, 0)
	if err != nil || len(news.Events) != 2 || news.Events[0].Method != challenge.SMS || news.Events[1].Outcome == nil {
		t.Fatalf("replay %+v, %v", news, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.news) != 1 || len(w.news[0].Events) != 2 {
		t.Errorf("live news %+v", w.news)
	}
}

// Parallel right answers: one execution, one outcome, told to every copy.
// Whose a new challenge is, is known without waking anybody, and stays known.
func TestHolder(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	awake := w.node.Live()
	tells := func() {
		t.Helper()
		h, err := w.client.Holder(t.Context(), c.ID)
		if err != nil || h != (challenge.Holder{UserID: w.user.ID}) {
			t.Errorf("%+v, %v", h, err)
		}
		user, err := w.client.User(t.Context(), c.ID)
		if err != nil || user != w.user.ID {
			t.Errorf("%s, %v", user, err)
		}
	}
	tells()
	if n := w.node.Live(); n != awake {
		t.Errorf("%d owners woke up to tell", n-awake)
	}
	if _, err := w.right(c, challenge.SMS); err != nil {
		t.Fatal(err)
	}
	tells()
	w.start()
	tells()
	_, err := w.client.Holder(t.Context(), id.New(time.Now()))
	expect(t, err, fault.ChallengeNotFound)
	_, err = w.client.User(t.Context(), id.New(time.Now()))
	expect(t, err, fault.ChallengeNotFound)
}

func TestTwoHundredRightAnswers(t *testing.T) {
	w := open(t)
	c := w.begin("VERIFY_EMAIL", "go")
	var wg sync.WaitGroup
	var mu sync.Mutex
	told := 0
	for range 200 {
		wg.Go(func() {
			done, err := w.right(c, challenge.MAIL)
			if err != nil || done.Result == nil || !done.Result.Success {
				t.Errorf("%+v, %v", done, err)
				return
			}
			mu.Lock()
			told++
			mu.Unlock()
		})
	}
	wg.Wait()
	if told != 200 || w.effects != 1 {
		t.Errorf("%d were told, %d effects", told, w.effects)
	}
}

// Parallel wrong answers: five are evaluated, whatever comes.
func TestTwoHundredWrongAnswers(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	wrong := wrongOf(w.code(w.method(c, challenge.SMS).ID))
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range 200 {
		wg.Go(func() {
			_, err := w.answer(c, challenge.SMS, wrong)
			mu.Lock()
			codes[fault.CodeOf(err)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if codes[fault.OTPInvalid] != 5 || codes[fault.MethodLocked] != 195 {
		t.Fatalf("%v", codes)
	}
	w.start()
	_, err := w.right(c, challenge.SMS)
	expect(t, err, fault.MethodLocked) // a restart resets nothing
	if done, err := w.right(c, challenge.MAIL); err != nil || !done.Final {
		t.Errorf("the other method: %+v, %v", done, err)
	}
}

// The budget of a user holds over all challenges and restarts, in its flow.
func TestBudgetOverChallenges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		evaluated := 0
		for range 6 {
			c := w.begin("LOGIN", "")
			for _, n := range []challenge.Name{challenge.SMS, challenge.MAIL} {
				for range 5 {
					_, err := w.answer(c, n, wrongOf(w.code(w.method(c, n).ID)))
					if fault.CodeOf(err) == fault.OTPInvalid {
						evaluated++
					}
				}
			}
		}
		if evaluated != 20 {
			t.Errorf("%d wrong values were evaluated, want 20", evaluated)
		}
		c := w.begin("LOGIN", "")
		_, err := w.right(c, challenge.SMS)
		expect(t, err, fault.RateLimited)
		other := w.begin("VERIFY_EMAIL", "go")
		if _, err := w.right(other, challenge.MAIL); err != nil {
			t.Errorf("another flow: %v", err)
		}
		time.Sleep(time.Hour)
		c = w.begin("LOGIN", "")
		if _, err := w.right(c, challenge.SMS); err != nil {
			t.Errorf("an hour later: %v", err)
		}
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestRenewalInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		c := w.begin("LOGIN", "")
		sms := w.method(c, challenge.SMS)
		renew := func() error {
			_, err := w.engine.Renew(t.Context(), c.ID, sms.ID, challenge.SMS, stepup.Actor{})
			return err
		}
		old := w.code(sms.ID)
		expect(t, renew(), fault.RenewTooEarly)
		time.Sleep(60*time.Second - time.Millisecond)
		expect(t, renew(), fault.RenewTooEarly)
		time.Sleep(time.Millisecond)
		if err := renew(); err != nil {
			t.Fatal(err)
		}
		if w.code(sms.ID) == old {
			t.Log("the new code happens to be the old one")
		} else {
			_, err := w.answer(c, challenge.SMS, old)
			expect(t, err, fault.OTPInvalid)
		}
		// Up to the cut-off: 120 000 ms left is allowed, 119 999 is not.
		time.Sleep(time.Until(time.UnixMilli(c.ExpiresAt)) - 120*time.Second)
		if err := renew(); err != nil {
			t.Errorf("120 000 ms before the end: %v", err)
		}
		time.Sleep(time.Millisecond)
		expect(t, renew(), fault.RenewClosed)
		time.Sleep(119_998 * time.Millisecond) // 1 ms before the end of challenge and code
		if done, err := w.right(c, challenge.SMS); err != nil || !done.Final {
			t.Errorf("in the last millisecond: %+v, %v", done, err)
		}
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestExpiryTellsWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		c := w.begin("LOGIN", "")
		if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
			t.Fatal(err)
		}
		for range 25 { // hubs ask again, and the lease lives on
			time.Sleep(19 * time.Second)
			if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		_, err := w.engine.Result(t.Context(), c.ID, 30*time.Second)
		expect(t, err, fault.ChallengeNotCompleted)
		if waited := time.Since(start); waited != 30*time.Second && time.Now().Before(time.UnixMilli(c.ExpiresAt)) {
			t.Errorf("waited %v", waited)
		}
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestExpiryPublishesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		c := w.begin("LOGIN", "")
		time.Sleep(580 * time.Second)
		if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := w.engine.Result(t.Context(), c.ID, 30*time.Second)
		expect(t, err, fault.ChallengeExpired)
		if waited := time.Since(start); waited != 20*time.Second {
			t.Errorf("the waiter was told after %v, want 20 s", waited)
		}
		synctest.Wait()
		if len(w.news) != 1 || !w.news[0].Gone {
			t.Errorf("news %+v", w.news)
		}
		_, err = w.right(c, challenge.SMS)
		expect(t, err, fault.ChallengeExpired)
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestFiveOpenPerAction(t *testing.T) {
	w := open(t)
	var cs []challenge.Challenge
	for range 5 {
		cs = append(cs, w.begin("LOGIN", ""))
	}
	if _, err := w.right(cs[1], challenge.SMS); err != nil { // room for one more
		t.Fatal(err)
	}
	cs = append(cs, w.begin("LOGIN", ""))
	if _, err := w.engine.Result(t.Context(), cs[0].ID, 0); fault.CodeOf(err) != fault.ChallengeNotCompleted {
		t.Fatalf("a completed challenge took the room of an open one: %v", err)
	}
	w.begin("LOGIN", "")
	_, err := w.right(cs[0], challenge.SMS)
	expect(t, err, fault.ChallengeClosed)
	w.begin("VERIFY_EMAIL", "go") // another action has room of its own
	if _, err := w.right(cs[2], challenge.SMS); err != nil {
		t.Errorf("a younger one: %v", err)
	}
}

func TestChangedCredentialsCloseOpenChallenges(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	if err := w.db.Commit(t.Context(), user.Touch{UserID: w.user.ID}); err != nil {
		t.Fatal(err)
	}
	_, err := w.right(c, challenge.SMS)
	expect(t, err, fault.ChallengeClosed)
	_, err = w.engine.Start(t.Context(), challenge.StartRequest{Action: "LOGIN", Account: w.user.Account()})
	if !errors.Is(err, commit.ErrFenced) {
		t.Errorf("a start with an old account: %v", err)
	}
}

// beginInSession begins a challenge from a session, and endSession ends that.
func (w *world) beginInSession(command string) challenge.Challenge {
	w.t.Helper()
	r := challenge.StartRequest{Action: "VERIFY_EMAIL", Account: w.user.Account(), Starter: challenge.Starter{SessionID: "sid"}}
	if command != "" {
		r.Command = []byte(command)
	}
	s, err := w.engine.Start(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Challenge
}

func (w *world) endSession() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead["sid"] = true
}

func TestEndedSessionClosesItsChallenges(t *testing.T) {
	w := open(t)
	c := w.beginInSession("")
	w.endSession()
	_, err := w.right(c, challenge.MAIL)
	expect(t, err, fault.ChallengeClosed)
	if w.effects != 0 {
		t.Error("the action ran")
	}
}

// Whoever asks how a challenge stands learns that its session has ended.
func TestEndedSessionShowsAtEveryDoor(t *testing.T) {
	for door, ask := range map[string]func(w *world, c challenge.Challenge) error{
		"result": func(w *world, c challenge.Challenge) error {
			_, err := w.engine.Result(w.t.Context(), c.ID, 0)
			return err
		},
		"renewal": func(w *world, c challenge.Challenge) error {
			_, err := w.engine.Renew(w.t.Context(), c.ID, w.method(c, challenge.MAIL).ID, challenge.MAIL, stepup.Actor{})
			return err
		},
	} {
		t.Run(door, func(t *testing.T) {
			w := open(t)
			begun := w.beginInSession("")
			w.endSession()
			expect(t, ask(w, begun), fault.ChallengeClosed)
			if c, err := w.engine.Starter.Store.Load(t.Context(), begun.ID); err != nil || c.State != challenge.Closed {
				t.Errorf("state %v, %v", c.State, err)
			}
		})
	}
}

// An action that is tried again is not carried out any more when the session
// has ended meanwhile.
func TestEndedSessionStopsItsExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.engine.Starter.Config.ExecWait = time.Millisecond
		begun := w.beginInSession("trouble")
		if done, err := w.right(begun, challenge.MAIL); err != nil || !done.Final || done.Result != nil {
			t.Fatalf("%+v, %v", done, err)
		}
		w.endSession()
		time.Sleep(time.Second)
		c, err := w.engine.Starter.Store.Load(t.Context(), begun.ID)
		if err != nil || c.State != challenge.Closed || c.Failures >= 5 {
			t.Errorf("state %v after %d failures, %v", c.State, c.Failures, err)
		}
		_, err = w.engine.Result(t.Context(), begun.ID, 0)
		expect(t, err, fault.ChallengeClosed)
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestActionsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		for _, c := range []struct {
			command string
			code    fault.Code
		}{{"refuse", fault.InvalidState}, {"trouble", fault.Internal}, {"panic", fault.Internal}} {
			ch := w.begin("VERIFY_EMAIL", c.command)
			done, err := w.right(ch, challenge.MAIL)
			if err != nil || done.Result == nil || done.Result.Success || done.Result.Code != c.code {
				t.Errorf("%s: %+v, %v", c.command, done, err)
			}
		}
		if w.effects != 0 {
			t.Errorf("%d effects", w.effects)
		}
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

// A process that dies between completion and the action's end leaves an
// executing row; the next owner carries it out, once.
func TestResumeAfterDeath(t *testing.T) {
	w := open(t)
	c := w.begin("VERIFY_EMAIL", "go")
	store := persistence.NewChallenges(w.db)
	row, err := store.Load(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	row.State, row.Last, row.Methods[0].Order = challenge.Executing, row.Methods[0].ID, 1
	if err := w.db.Commit(t.Context(), challenge.Update{Challenge: row}); err != nil {
		t.Fatal(err)
	}
	w.start()
	stuck, err := store.Stuck(t.Context(), time.Now().Add(time.Minute), 10)
	if err != nil || len(stuck) != 1 {
		t.Fatalf("stuck %v, %v", stuck, err)
	}
	w.client.Resume(stuck[0])
	done, err := w.engine.Result(t.Context(), c.ID, 5*time.Second)
	if err != nil || !done.Result.Success || w.effects != 1 {
		t.Errorf("%+v, %v, %d effects", done, err, w.effects)
	}
}

func TestCapsHoldMessagesBack(t *testing.T) {
	w := open(t)
	w.engine.Starter.Config.Caps = stepup.Caps{DestinationHour: 3}
	w.engine.Starter.Config.MaxOpen = 0
	var last challenge.Challenge
	for range 5 {
		last = w.begin("LOGIN", "")
	}
	if w.sent != 6 { // three to the phone, three to the address
		t.Errorf("%d messages left", w.sent)
	}
	for i := range 3 {
		_, err := w.answer(last, challenge.SMS, fmt.Sprintf("%06d", i))
		expect(t, err, fault.OTPInvalid)
	}
	w.start()
	w.engine.Starter.Config.Caps = stepup.Caps{DestinationHour: 3}
	w.begin("LOGIN", "")
	if w.sent != 6 {
		t.Error("a restart forgot the caps")
	}
	_, err := w.engine.Start(t.Context(), challenge.StartRequest{Action: "VERIFY_EMAIL", Account: w.user.Account(), Starter: challenge.Starter{SessionID: "sid"}, Proven: true})
	expect(t, err, fault.RateLimited)
}

func TestSixthSocketIsRefused(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	for n := 1; n <= 7; n++ {
		refused, _, err := w.client.Subscribe(t.Context(), c.ID, n, 0)
		if err != nil || refused != max(0, n-5) {
			t.Errorf("%d sockets: %d refused, %v", n, refused, err)
		}
	}
}
