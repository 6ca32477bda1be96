package stepup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

// A new decoy takes the place of the oldest open ones of its action, as a user's challenge does.
func TestOpenDecoysAreBounded(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	d := strangersGate{s: p.m}
	ref := func(id string) challenge.Ref { return challenge.Ref{ID: id, Action: "LOGIN"} }
	reserve := func(id string, max int) []string {
		t.Helper()
		g, err := d.Reserve(t.Context(), "?x", Reservation{ChallengeID: id, Action: "LOGIN", MaxOpen: max})
		storetest.Must(t, err)
		return g.Supersede
	}
	p.open = []challenge.Ref{ref("a"), ref("b"), {ID: "other", Action: "RESET_PASSWORD"}}
	if got := reserve("c", 3); got != nil { // two are open
		t.Error(got)
	}
	if got := reserve("d", 3); !slices.Equal(got, []string{"a"}) { // c has no row yet, and counts
		t.Error(got)
	}
	p.open = []challenge.Ref{ref("b"), ref("c"), ref("d")} // c and d count once
	p.states = map[string]challenge.State{"b": challenge.Done, "c": challenge.Pending}
	if got := reserve("e", 3); got != nil { // b has ended
		t.Error(got)
	}
	p.states = nil
	if got := reserve("f", 1); !slices.Equal(got, []string{"b", "c", "d", "e"}) {
		t.Error(got)
	}
	if got := reserve("g", 0); got != nil { // no bound
		t.Error(got)
	}
	p.open = nil
	p.now = p.now.Add(10*time.Second - 1)
	if got := reserve("h", 1); !slices.Equal(got, []string{"f", "g"}) {
		t.Error(got)
	}
	p.now = p.now.Add(10 * time.Second) // h got no row: it was never created
	if got := reserve("i", 1); got != nil {
		t.Error(got)
	}
	if _, err := d.Reserve(t.Context(), "?y", Reservation{ChallengeID: "j", MaxOpen: 1}); err != nil {
		t.Error(err)
	}
	p.now = p.now.Add(10 * time.Second)
	if reserve("k", 1); len(p.m.strangers.recent) != 1 { // that of y is forgotten
		t.Errorf("%v", p.m.strangers.recent)
	}
}

// A decoy whose start fails closes nothing, and those after it close one each, as of a user. It makes room before the
// younger ones that have rows.
func TestFailedDecoysCloseNothing(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	d := strangersGate{s: p.m}
	created := map[string]int64{}
	for _, c := range []struct {
		id, open, want string
		max            int
	}{
		{"d", "abc", "a", 3}, {"e", "abc", "b", 3}, {"f", "ace", "c", 3}, {"g", "aef", "da", 3}, // d fails
		{"h", "efg", "efg", 1}, {"i", "efg", "hefg", 1}, {"j", "i", "i", 1},
		{"k", "", "j", 1}, {"l", "", "", 3}, {"m", "l", "", 3}, {"n", "lm", "k", 3}, // j and k fail
	} {
		p.open, p.now = nil, p.now.Add(time.Millisecond)
		created[c.id] = p.now.UnixMilli()
		for _, id := range c.open {
			p.open = append(p.open, challenge.Ref{ID: string(id), Action: "LOGIN", CreatedAt: created[string(id)]})
		}
		g, err := d.Reserve(t.Context(), "?x", Reservation{ChallengeID: c.id, Action: "LOGIN", MaxOpen: c.max})
		storetest.Must(t, err)
		storetest.Equal(t, strings.Join(g.Supersede, ""), c.want, c.id)
	}
}

// A decoy sends nothing. The messages of an applicant count under half of the caps.
func TestMessagesOfStrangers(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	p.sent = []outbox.Sending{{Destination: p.m.destination(phoneA), At: p.now.Add(-time.Minute).UnixMilli()}}
	sendings := []Sending{{Destination: p.m.destinations(phoneA)}, {Destination: p.m.destinations(mailA)}}
	for _, c := range []struct {
		applicant bool
		caps      Caps
		want      []bool
		reads     bool
	}{
		{false, Caps{}, []bool{false, false}, false}, {false, Caps{UserDay: 4}, []bool{false, false}, true},
		{true, Caps{}, []bool{true, true}, false}, {true, Caps{UserDay: 4}, []bool{true, true}, true},
		{true, Caps{UserDay: 2}, []bool{false, true}, true},
	} {
		d := strangersGate{s: p.m, applicant: c.applicant}
		p.calls = nil
		g, err := d.Reserve(t.Context(), "?x", Reservation{ChallengeID: "a", Caps: c.caps, Sendings: sendings})
		if err != nil || !slices.Equal(g.Send, c.want) || slices.Contains(p.calls, "Sendings") != c.reads ||
			p.calls[0] != "DummyCall" {
			t.Errorf("%+v: %v, %v, %v", c, g, p.calls, err)
		}
		for i, s := range sendings {
			if got, err := d.Send(t.Context(), "?x", s, c.caps); got != c.want[i] || err != nil {
				t.Errorf("%+v: %d %t, %v", c, i, got, err)
			}
		}
	}
	if p.m.userGate(challenge.Real) != p.m.UserGate || p.m.userGate(challenge.Decoy) != (strangersGate{p.m, false}) ||
		p.m.userGate(challenge.Applicant) != (strangersGate{p.m, true}) {
		t.Error("the gates of kinds")
	}
}

// decoys is a store of the decoys of one subject.
type decoys struct {
	challenge.Store
	subject     string
	open        []challenge.Ref
	flow        challenge.Flow // of the wrong values
	wrong       []int64
	failing     challenge.Flow // whose budget cannot be read
	openFailing bool
}

func (d *decoys) Open(_ context.Context, subject string, _ time.Time) ([]challenge.Ref, error) {
	if d.openFailing {
		return nil, errDown
	}
	if subject != d.subject {
		return nil, nil
	}
	return d.open, nil
}

func (d *decoys) Budget(_ context.Context, subject string, flow challenge.Flow) (b challenge.Budget, err error) {
	if flow == d.failing {
		return b, errDown
	}
	if subject == d.subject && flow == d.flow {
		b.OTP = d.wrong
	}
	return b, nil
}

// After a rotation of the key, a phone keeps its former subject while that has open decoys, or wrong values of the last
// day. The subjects that are not used count as former ones.
func TestSubjectOutlivesARotation(t *testing.T) {
	now := time.Now()
	keeper := keyringtest.Keeper(t, func() time.Time { return now })
	store := &decoys{}
	s := &Messenger{Ring: keeper.Ring(), Store: store, Now: func() time.Time { return now }}
	const phone = "+905320000000"
	first, former, err := s.Subject(t.Context(), phone)
	if err != nil || len(former) != 0 || first[:1] != challenge.DecoyMark {
		t.Fatalf("%q, %q, %v", first, former, err)
	}
	keyringtest.Replace(t, keeper)
	now = now.Add(time.Hour)
	s.Ring = keeper.Ring()
	next, former, err := s.Subject(t.Context(), phone)
	if err != nil || next == first || !slices.Equal(former, []string{first}) {
		t.Fatalf("%q after %q, former %q, %v", next, first, former, err)
	}
	ago := func(d time.Duration) []int64 { return []int64{now.Add(-d).UnixMilli()} }
	for _, c := range []struct {
		name  string
		store decoys
		keeps bool
	}{
		{"an open decoy", decoys{open: []challenge.Ref{{ID: "c"}}}, true},
		{"a wrong value of a reset", decoys{flow: challenge.FlowReset, wrong: ago(23 * time.Hour)}, true},
		{"a wrong value of a registration", decoys{flow: challenge.FlowRegister,
			wrong: ago(24*time.Hour - time.Millisecond)}, true},
		{"a wrong value of a day ago", decoys{flow: challenge.FlowReset, wrong: ago(24 * time.Hour)}, false},
		{"a wrong value of another flow", decoys{flow: challenge.FlowSession, wrong: ago(time.Hour)}, false},
	} {
		*store = c.store
		store.subject = first
		want, old := next, first
		if c.keeps {
			want, old = first, next
		}
		if got, former, err := s.Subject(t.Context(), phone); err != nil || got != want ||
			!slices.Equal(former, []string{old}) {
			t.Errorf("%s: %q, former %q, %v", c.name, got, former, err)
		}
	}
	for _, broken := range []decoys{{openFailing: true}, {failing: challenge.FlowReset},
		{failing: challenge.FlowRegister}} {
		*store = broken
		if got, former, err := s.Subject(t.Context(), phone); !errors.Is(err, errDown) || got != "" || former != nil {
			t.Errorf("%+v: %q, %q, %v", broken, got, former, err)
		}
	}
}
