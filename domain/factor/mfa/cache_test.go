package mfa_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"castellan/domain/factor/mfa"
)

// readings is a read-only store whose content changes with every read: the n-th read finds an SMS lifetime of n.
type readings struct {
	mfa.Store
	n       int64
	reading func(n int64) // called in the middle of a reading
	err     error
}

func (r *readings) Methods(context.Context, ...string) ([]mfa.Method, error) {
	r.n++
	return []mfa.Method{{Code: "SMS", ExpireMs: r.n}}, r.err
}
func (r *readings) Actions(context.Context, ...string) ([]mfa.Action, error) { return nil, nil }
func (r *readings) Policies(context.Context) ([]mfa.Policy, error) {
	r.reading(r.n)
	return nil, nil
}

func sms(l *mfa.Cache) int64 {
	m, _ := l.Catalog().Method("SMS")
	return m.ExpireMs
}

func TestLive(t *testing.T) {
	s := &readings{reading: func(int64) {}}
	live := mfa.NewCache(s)
	if _, ok := live.Catalog().Method("SMS"); ok {
		t.Error("a method before the first reload")
	}
	if err := live.Reload(t.Context()); err != nil || sms(live) != 1 {
		t.Errorf("after a reload: %d, %v", sms(live), err)
	}
	s.err = errors.New("gone")
	if err := live.Reload(t.Context()); !errors.Is(err, s.err) || sms(live) != 1 {
		t.Errorf("after a failed reload: %d, %v", sms(live), err)
	}
}

// A reload after a change contains the change, whatever another reload reads at that moment.
func TestLiveNeverGoesBack(t *testing.T) {
	inFirst, goOn, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := &readings{reading: func(n int64) {
		if n == 1 {
			close(inFirst)
			<-goOn
		} else {
			close(second)
		}
	}}
	live := mfa.NewCache(s)
	errs := make(chan error, 2)
	go func() { errs <- live.Reload(t.Context()) }()
	<-inFirst
	go func() { errs <- live.Reload(t.Context()) }()
	for range 10_000 { // gives an overtaking second read its chance
		runtime.Gosched()
	}
	select {
	case <-second:
		t.Error("two readings at a time")
	default:
	}
	close(goOn)
	if err := errors.Join(<-errs, <-errs); err != nil || sms(live) != 2 {
		t.Errorf("works with %d, %v", sms(live), err)
	}
}
