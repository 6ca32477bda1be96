package errand_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/gate/errand"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
	"castellan/persistence/persistencetest"
)

// engine answers as the functions say.
type engine struct {
	start func(n int) error
	again func() error
	*guard
	n int
}

func (e *engine) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	e.n++
	if !r.Proven || r.Service != "shop" || r.Title != "Pay out" || r.Action != "PAYOUT" || r.Account.UserID != "u1" {
		return challenge.Started{}, fmt.Errorf("the engine got %+v", r)
	}
	if err := e.start(e.n); err != nil {
		return challenge.Started{}, err
	}
	return e.guard.Start(ctx, r)
}

func (e *engine) Again(context.Context, string) (challenge.Started, error) {
	return challenge.Started{}, e.again()
}

// The engine gets the request of the service, and the errand is stored with the challenge and its audit row.
func TestStartStoresTheErrand(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	e := storetest.Value(g.Store.Get(t.Context(), c.ID))(t)
	if len(e.Digest) == 0 {
		t.Error("no digest")
	}
	e.Digest = nil
	want := errand.Errand{ID: c.ID, Service: "shop", Reference: "a", Action: "PAYOUT", UserID: "u1",
		Status: errand.Pending, CreatedAt: g.now, ExpiresAt: g.now.Add(3 * time.Minute)}
	for _, at := range []*time.Time{&e.CreatedAt, &e.ExpiresAt} {
		*at = at.UTC()
	}
	if e.Methods = nil; !reflect.DeepEqual(e, want) {
		t.Errorf("\n got %+v\nwant %+v", e, want)
	}
	storetest.Same(t, persistencetest.Acts(t, g.db), []string{"GUARD_START|service:shop|u1|" + c.ID + "|PAYOUT a"})
}

// A start that lost against another one is decided again: at most five times, and then the client is asked to wait.
func TestStartIsDecidedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		fails  int
		starts int
		want   fault.Code
	}{
		"the account changed once":   {commit.ErrFenced, 1, 2, ""},
		"the account changed 4 ×":    {commit.ErrFenced, 4, 5, ""},
		"the account changed 5 ×":    {commit.ErrFenced, 5, 5, fault.Unavailable},
		"the reference was used":     {fault.New(fault.RecordAlreadyExist, "used"), 2, 3, ""},
		"the account has no factors": {fault.New(fault.MFANotAvailable, "none"), 1, 1, fault.MFANotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t)
			e := &engine{guard: g, start: func(n int) error {
				if n <= c.fails {
					return c.err
				}
				return nil
			}}
			g.Engine = e
			_, repeated, err := g.Service.Start(t.Context(), by, request("a"), challenge.Starter{})
			storetest.Wants(t, err, c.want)
			if e.n != c.starts || repeated {
				t.Errorf("%d starts, repeated %v", e.n, repeated)
			}
			if f := (*fault.Error)(nil); c.want == fault.Unavailable && (!errors.As(err, &f) ||
				f.RetryAfter != time.Second) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// Two equal requests at once start one challenge: the loser gets that of the winner.
func TestEqualStartsAtOnce(t *testing.T) {
	g := newGuard(t)
	winner := ""
	account := g.Account
	g.Account = func(ctx context.Context, id string) (challenge.Account, error) {
		if winner == "" {
			winner = "first"
			winner = g.start(t, "a").ID
		}
		return account(ctx, id)
	}
	s, repeated, err := g.Service.Start(t.Context(), by, request("a"), challenge.Starter{})
	if err != nil || !repeated || s.Challenge.ID != winner || s.PAuth != "again" {
		t.Errorf("%+v, %v, %v; want %s", s, repeated, err, winner)
	}
}

// A repetition after the challenge was deleted says so; any other failure is passed on.
func TestRepetitionFails(t *testing.T) {
	g := newGuard(t)
	g.start(t, "a")
	for _, c := range []struct{ err, want error }{
		{fault.New(fault.ChallengeNotFound, "none"), fault.New(fault.InvalidState, "")},
		{fault.New(fault.Overloaded, "busy"), fault.New(fault.Overloaded, "")},
	} {
		g.Engine = &engine{guard: g, again: func() error { return c.err }}
		_, _, err := g.Service.Start(t.Context(), by, request("a"), challenge.Starter{})
		storetest.Wants(t, err, fault.CodeOf(c.want))
	}
}

// loading is a store of challenges whose Load answers as the function says.
type loading struct {
	challenge.Store
	load func() (challenge.Challenge, error)
}

func (l loading) Load(context.Context, string) (challenge.Challenge, error) { return l.load() }

// A pending errand has the status of its challenge.
func TestStatusOfPendingErrand(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	at := func(s challenge.State) (challenge.Challenge, error) {
		next := c
		next.State = s
		return next, nil
	}
	for name, want := range map[string]struct {
		load func() (challenge.Challenge, error)
		want errand.Status
	}{
		"pending":   {func() (challenge.Challenge, error) { return at(challenge.Pending) }, errand.Pending},
		"executing": {func() (challenge.Challenge, error) { return at(challenge.Executing) }, errand.Pending},
		"closed":    {func() (challenge.Challenge, error) { return at(challenge.Closed) }, errand.Failed},
		"deleted": {func() (challenge.Challenge, error) {
			return challenge.Challenge{}, fault.New(fault.ChallengeNotFound, "none")
		}, errand.Expired},
	} {
		g.Challenges = loading{load: want.load}
		if e, err := g.Get(t.Context(), "shop", c.ID, 0); err != nil || e.Status != want.want || e.ID != c.ID {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	g.Challenges = loading{load: func() (challenge.Challenge, error) { return challenge.Challenge{}, errDown }}
	if e, err := g.Get(t.Context(), "shop", c.ID, 0); !errors.Is(err, errDown) || e.ID != "" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, state := range []challenge.State{challenge.Done, challenge.Denied} {
		c := g.start(t, string(rune('b'+state)))
		g.Challenges = loading{load: func() (challenge.Challenge, error) {
			c.State = challenge.Denied
			g.ends(t, c)
			c.State = state
			return c, nil
		}}
		if e, err := g.Get(t.Context(), "shop", c.ID, 0); err != nil || e.Status != errand.Denied {
			t.Errorf("settled meanwhile, state %d: %+v, %v", state, e, err)
		}
	}
}

// A pending errand expires at the end of its challenge, one millisecond before it does not.
func TestErrandExpires(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	g.now = time.UnixMilli(c.ExpiresAt - 1)
	g.wants(t, c.ID, errand.Pending)
	g.now = time.UnixMilli(c.ExpiresAt)
	g.wants(t, c.ID, errand.Expired)
}

// A read waits for the outcome of a pending errand alone, and only if the caller waits. The row is the answer.
func TestGetWaits(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	var waited []time.Duration
	g.Result = func(_ context.Context, id string, wait time.Duration) (stepup.Completion, error) {
		waited = append(waited, wait)
		storetest.Equal(t, id, c.ID, "waits for")
		g.complete(t, c)
		return stepup.Completion{}, errDown
	}
	if e, err := g.Get(t.Context(), "shop", c.ID, 0); err != nil || e.Status != errand.Pending {
		t.Errorf("%+v, %v", e, err)
	}
	for range 2 {
		if e, err := g.Get(t.Context(), "shop", c.ID, 7*time.Second); err != nil || e.Status != errand.Completed {
			t.Errorf("%+v, %v", e, err)
		}
	}
	storetest.Same(t, waited, []time.Duration{7 * time.Second})

	other := g.start(t, "b")
	ctx, cancel := context.WithCancel(t.Context())
	g.Result = func(context.Context, string, time.Duration) (stepup.Completion, error) {
		cancel()
		return stepup.Completion{}, context.Canceled
	}
	if e, err := g.Get(ctx, "shop", other.ID, time.Second); !errors.Is(err, context.Canceled) || e.ID != "" {
		t.Errorf("after the caller left: %+v, %v", e, err)
	}
	persistencetest.Exec(t, g.db, "DELETE FROM challenge WHERE id = ?", c.ID)
	if e, err := g.Get(t.Context(), "shop", c.ID, 0); err != nil || e.Status != errand.Completed {
		t.Errorf("after its challenge was deleted: %+v, %v", e, err)
	}
}
