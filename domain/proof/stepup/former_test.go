package stepup

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/keyring/keyringtest"
)

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
