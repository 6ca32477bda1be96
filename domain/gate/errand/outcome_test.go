package errand_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/gate/errand"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/servicekey"
)

var errDown = errors.New("the database is down")

// ends commits what the action writes for a challenge that ended without success.
func (g *guard) ends(t *testing.T, c challenge.Challenge) {
	t.Helper()
	writes := storetest.Value(g.Action().Ended(t.Context(), c, g.now))(t)
	storetest.Must(t, g.db.Commit(t.Context(), writes...))
}

// callback returns the message that the writes of an outcome have, opened.
func (g *guard) callback(t *testing.T, writes []commit.Write) (outbox.Message, message.Rendered) {
	t.Helper()
	i := slices.IndexFunc(writes, func(w commit.Write) bool { _, is := w.(outbox.Add); return is })
	if i < 0 {
		t.Fatalf("no message among %v", writes)
	}
	m := writes[i].(outbox.Add).Message
	plain, err := g.Seals.Open(m.Payload, challenge.PayloadData(m.ChallengeID, m.MethodID, m.Generation))
	storetest.Must(t, err)
	var r message.Rendered
	storetest.Must(t, r.UnmarshalBinary(plain))
	return m, r
}

// The message of an outcome has the format of the documents, and is retried for three days after the first hour.
func TestCallback(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "payout-1")
	c.State = challenge.Denied
	writes := storetest.Value(g.Action().Ended(t.Context(), c, g.now))(t)
	m, r := g.callback(t, writes)
	want := `{"aud":"shop","data":{"id":"` + c.ID + `","reference":"payout-1","status":"DENIED"},` +
		`"timestamp":"2023-11-14T22:13:20.400Z","type":"challenge.denied"}`
	if r.Text != want || r.To != "https://shop.example/in" || r.Channel != message.Callback {
		t.Errorf("%s to %s by %s; want %s", r.Text, r.To, r.Channel, want)
	}
	if m.ChallengeID != c.ID || m.MethodID != "outcome" || m.Channel != message.Callback || m.State != outbox.Queued ||
		!m.Uncounted || len(m.Destination) != 0 || !m.CreatedAt.Equal(g.now) || !m.LeaseUntil.Equal(g.now) {
		t.Errorf("%+v", m)
	}
	storetest.Equal(t, m.ExpiresAt.Sub(g.now), 72*time.Hour+15*time.Minute, "retried for")
}

// A service without a callback gets no message, and its errand is settled all the same.
func TestServiceWithoutCallback(t *testing.T) {
	g := newGuard(t)
	g.Key = func(string) (servicekey.Key, bool) { return servicekey.Key{Actions: []string{"PAYOUT"}}, true }
	c := g.start(t, "a")
	g.complete(t, c)
	g.wants(t, c.ID, errand.Completed)
	storetest.Equal(t, g.callbacks(t), 0, "messages")
}

// A completed challenge stores its methods, its intent and the sealed payload, and answers with the reference.
func TestCompletion(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	c.Methods = []challenge.Method{{ID: "2", Name: challenge.TOTP, Order: 2}, {ID: "3", Name: challenge.MAIL},
		{ID: "1", Name: challenge.PUSH, Order: 1}}
	command, _, err := g.Challenges.Sealed(t.Context(), c.ID)
	storetest.Must(t, err)
	result, writes, err := g.Action().Build(t.Context(), challenge.Execution{Challenge: c, Command: command, Now: g.now})
	if err != nil || !result.Success || string(result.Data) != `{"reference":"a"}` {
		t.Errorf("%+v, %v", result, err)
	}
	e := writes[0].(errand.Settle).Errand
	if e.Status != errand.Completed || !e.SettledAt.Equal(g.now) || e.Intent != "digest" ||
		!slices.Equal(e.Methods, []string{"PUSH", "TOTP"}) || strings.Contains(string(e.Payload), "order") {
		t.Errorf("%+v", e)
	}
	if _, r := g.callback(t, writes); !strings.Contains(r.Text, `"type":"challenge.completed"`) ||
		!strings.Contains(r.Text, `"reference":"a","status":"COMPLETED"`) {
		t.Error(r.Text)
	}
	c.Methods = nil
	_, writes, err = g.Action().Build(t.Context(), challenge.Execution{Challenge: c, Command: []byte(`{}`), Now: g.now})
	storetest.Must(t, err)
	if e := writes[0].(errand.Settle).Errand; e.Payload != nil || e.Methods == nil || len(e.Methods) != 0 {
		t.Errorf("without payload and methods: %+v", e)
	}
	_, writes, err = g.Action().Build(t.Context(), challenge.Execution{Challenge: c, Command: []byte("x"), Now: g.now})
	if err == nil || writes != nil {
		t.Errorf("a damaged command: %v, %v", writes, err)
	}
}

// A challenge that ends without success settles its errand once: as denied if a person denied it, and else as failed.
func TestEndWithoutSuccess(t *testing.T) {
	g := newGuard(t)
	for state, want := range map[challenge.State]errand.Status{challenge.Denied: errand.Denied,
		challenge.Closed: errand.Failed, challenge.Done: errand.Failed} {
		c := g.start(t, string(want)+string(rune('a'+state)))
		c.State = state
		g.ends(t, c)
		e, err := g.Store.Get(t.Context(), c.ID)
		if err != nil || e.Status != want || !e.SettledAt.Equal(g.now) || len(e.Methods) != 0 {
			t.Errorf("state %d: %+v, %v; want %s", state, e, err, want)
		}
		c.State = challenge.Denied
		if writes, err := g.Action().Ended(t.Context(), c, g.now); err != nil || len(writes) != 0 {
			t.Errorf("the second end of state %d: %v, %v", state, writes, err)
		}
	}
	if writes, err := g.Action().Ended(t.Context(), challenge.Challenge{ID: "unknown"}, g.now); err != nil ||
		len(writes) != 0 {
		t.Errorf("a challenge without an errand: %v, %v", writes, err)
	}
}

// The words for an SMS are the title; the messages filter them.
func TestTitleOfMessages(t *testing.T) {
	g := newGuard(t)
	storetest.Equal(t, g.Action().Brief([]byte(`{"title":"Pay 7"}`)), "Pay 7")
	storetest.Equal(t, g.Action().Brief([]byte("x")), "", "no command")
	if a := g.Action(); a.Code != challenge.ServiceAction || a.Flow != challenge.FlowSession {
		t.Errorf("%s of the flow %s", a.Code, a.Flow)
	}
}

// overdue is a store with one errand that is due, and notes what was read.
type overdue struct {
	errand.Store
	due     []errand.Errand
	err     error
	expired time.Time
	most    int
}

func (o *overdue) Overdue(_ context.Context, expired time.Time, most int) ([]errand.Errand, error) {
	o.expired, o.most = expired, most
	return o.due, o.err
}

// states is a store of challenges in given states.
type states struct {
	challenge.Store
	all map[string]challenge.State
	err error
}

func (s states) States(context.Context, []string) (map[string]challenge.State, error) {
	return s.all, s.err
}

// The outcome of an overdue errand follows from the state of its challenge, five seconds after its end.
func TestSweepByState(t *testing.T) {
	for name, c := range map[string]struct {
		states map[string]challenge.State
		want   errand.Status
	}{
		"deleted":    {nil, errand.Expired},
		"pending":    {map[string]challenge.State{"c": challenge.Pending}, errand.Expired},
		"executing":  {map[string]challenge.State{"c": challenge.Executing}, ""},
		"done":       {map[string]challenge.State{"c": challenge.Done}, errand.Failed},
		"denied":     {map[string]challenge.State{"c": challenge.Denied}, errand.Denied},
		"superseded": {map[string]challenge.State{"c": challenge.Closed}, errand.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t)
			due := &overdue{due: []errand.Errand{{ID: "c", Service: "shop", Reference: "r", Status: errand.Pending}}}
			saved := &storetest.Units{}
			g.Store, g.Challenges, g.Service.Commit = due, states{all: c.states}, saved
			storetest.Must(t, g.Sweep(t.Context()))
			if !due.expired.Equal(g.now.Add(-5*time.Second)) || due.most != 100 {
				t.Errorf("reads %d that expired until %v", due.most, due.expired)
			}
			if c.want == "" {
				if saved.Writes != nil {
					t.Errorf("settled: %v", saved.Writes)
				}
				return
			}
			e := saved.Writes[0].(errand.Settle).Errand
			if e.Status != c.want || !e.SettledAt.Equal(g.now) || e.Methods == nil {
				t.Errorf("%+v; want %s", e, c.want)
			}
			if _, r := g.callback(t, saved.Writes); !strings.Contains(r.Text, `"status":"`+string(c.want)+`"`) ||
				!strings.Contains(r.Text, `"type":"challenge.`+strings.ToLower(string(c.want))+`"`) {
				t.Error(r.Text)
			}
		})
	}
}

// A sweep reports a failure of the database and continues after an errand that another node has settled.
func TestSweepFails(t *testing.T) {
	two := []errand.Errand{{ID: "c", Service: "shop"}, {ID: "d", Service: "shop"}}
	for name, c := range map[string]struct {
		read, states, save error
		want               error
		settled            int
	}{
		"read":    {read: errDown, want: errDown},
		"states":  {states: errDown, want: errDown},
		"save":    {save: errDown, want: errDown},
		"settled": {save: commit.ErrFenced, settled: 1},
		"none":    {settled: 2},
	} {
		t.Run(name, func(t *testing.T) {
			g, saved := newGuard(t), &storetest.Units{Fails: []error{c.save}}
			g.Store, g.Service.Commit = &overdue{due: two, err: c.read}, saved
			g.Challenges = states{err: c.states}
			storetest.Is(t, g.Sweep(t.Context()), c.want)
			settled := 0
			for _, w := range saved.Writes {
				if _, is := w.(errand.Settle); is {
					settled++
				}
			}
			storetest.Equal(t, settled, c.settled, "settled")
		})
	}
}
