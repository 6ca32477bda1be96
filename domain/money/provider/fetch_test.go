package provider_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/provider"
)

// source fails a number of times before it returns its accounts.
type source struct {
	accounts []provider.Account
	fails    int
	asked    int
}

func (s *source) Fetch(context.Context) ([]provider.Account, error) {
	if s.asked++; s.asked <= s.fails {
		return nil, errors.New("away")
	}
	return s.accounts, nil
}

func balance(asset, free, locked string) provider.Balance {
	return provider.Balance{Asset: asset, Free: amount.Must(free), Locked: amount.Must(locked)}
}

// A failed source stops no other source, is retried twice, and then left to the next slot.
func TestFetching(t *testing.T) {
	main := &source{accounts: []provider.Account{{Balances: []provider.Balance{balance("ETH", "1", "0"),
		balance("BTC", "9", "9"), balance("XRP", "0", "0"), balance("BTC", "0.1", "0.2")}, LeftOut: 3}}}
	slow := &source{fails: 2, accounts: []provider.Account{{}}}
	dead := &source{fails: 99}
	vault := &source{accounts: []provider.Account{{Name: "cold"}, {Name: "warm"}}}
	log := ""
	kind, schedule := provider.Fetching(provider.Sources{{Provider: "spot", Account: "main"}: main,
		{Provider: "spot", Account: "dead"}: dead, {Provider: "spot", Account: "slow"}: slow, {Provider: "vault"}: vault},
		func(n provider.Name, _ time.Time, leftOut int, err error) {
			log += fmt.Sprint(n, " ", leftOut, " ", err, "; ")
		})
	storetest.Equal(t, schedule.Kind, kind.Name, schedule)
	storetest.Equal(t, schedule.Every, 5*time.Minute, schedule)
	slot := time.Date(2026, 1, 31, 10, 5, 0, 0, time.UTC)
	j := job.Job{Key: schedule.Slots(slot.Add(4 * time.Minute))[0], State: job.Running}
	got, rests := "", ""
	for j.State != job.Done {
		j.Rest = 0
		next, writes, err := kind.Step(t.Context(), j)
		storetest.Must(t, err)
		for _, w := range writes {
			a := w.(provider.Arrived)
			if !a.At.Equal(slot) {
				t.Errorf("a snapshot of %v", a.At)
			}
			got += fmt.Sprint(a.Provider, "/", a.Account, " ", a.Balances, "; ")
		}
		if next.Rest > 0 {
			rests += next.Rest.String() + " "
		}
		j = next
	}
	if want := "spot/main [{BTC 0.1 0.2} {ETH 1 0}]; vault/cold []; vault/warm []; spot/slow []; "; got != want {
		t.Errorf("stored %s\n  want %s", got, want)
	}
	if want := "spot/dead 0 away; spot/main 3 <nil>; spot/slow 0 away; vault 0 <nil>; spot/dead 0 away; " +
		"spot/slow 0 away; spot/dead 0 away; spot/slow 0 <nil>; "; log != want {
		t.Errorf("told %s\nwant %s", log, want)
	}
	if j.Total != 4 || j.Done != 3 || j.Failed != 1 || rests != "10s 1m0s " {
		t.Errorf("%+v, rests %s", j, rests)
	}
}

// A node with other settings skips unknown sources; a cancelled step is discarded.
func TestFetchingWithOtherSettings(t *testing.T) {
	here := &source{accounts: []provider.Account{{}}}
	kind, _ := provider.Fetching(provider.Sources{{Provider: "spot", Account: "main"}: here},
		func(provider.Name, time.Time, int, error) {})
	j := job.Job{Key: "2026-01-31T10:05:00Z", State: job.Running, Cursor: `{"Left":["gone/x","spot/main"]}`}
	next, writes, err := kind.Step(t.Context(), j)
	storetest.Must(t, err)
	if next.Skipped != 1 || len(writes) != 0 || next.State == job.Done {
		t.Errorf("%+v", next)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, writes, err := kind.Step(ctx, next); !errors.Is(err, context.Canceled) || writes != nil {
		t.Errorf("%v %v", writes, err)
	}
	for _, wrong := range []job.Job{{Key: "no slot"}, {Key: j.Key, Cursor: "{"}} {
		if _, _, err := kind.Step(t.Context(), wrong); err == nil {
			t.Errorf("%+v was taken further", wrong)
		}
	}
	none, _ := provider.Fetching(nil, nil)
	if next, _, err := none.Step(t.Context(), job.Job{Key: j.Key}); err != nil || next.State != job.Done {
		t.Errorf("no source: %+v %v", next, err)
	}
}

func TestRead(t *testing.T) {
	for in, want := range map[[3]string]string{
		{"btc", "0.1", "0"}: "{BTC 0.1 0} true", {" ETH ", "1", "000.50"}: "{ETH 1 0.5} true",
		{"BTC", "-1", "0"}: "false", {"BTC", "1", "-0.1"}: "false", {"BTC", "", "0"}: "false", {"B C", "1", "1"}: "false",
		{"BTC", "1e5", "0"}: "false", {"BTC", "0.1234567890123456789", "0"}: "false", {"", "1", "1"}: "false",
	} {
		b, ok := provider.Read(in[0], in[1], in[2])
		if got := fmt.Sprint(ok); ok && fmt.Sprint(b, " ", ok) != want || !ok && got != want {
			t.Errorf("%v: %v %v, want %s", in, b, ok, want)
		}
	}
	for name, want := range map[string]bool{"main": true, "A.b-c_9": true, "": false, "a b": false, "-a": false,
		"a/b": false, provider.AllAccounts: false} {
		storetest.Equal(t, provider.ValidName(name), want, name)
	}
}

// Balances of several accounts are added up exactly, also beyond the largest amount.
func TestSum(t *testing.T) {
	entry := func(b provider.Balance) provider.Entry { return provider.Entry{Balance: b} }
	got := provider.Sum([]provider.Entry{entry(balance("ETH", "1", "0")), entry(balance("BTC", "0.1", "0")),
		entry(balance("BTC", "0.2", "0.000000000000000001"))})
	if want := "[{BTC 0.300000000000000001 0.3 0.000000000000000001} {ETH 1 1 0}]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	large := provider.Sum([]provider.Entry{entry(balance("X", "999999999999999999", "1"))})
	if len(large) != 1 || large[0].Total.String() != "1000000000000000000" {
		t.Errorf("more than an amount holds: %v", large)
	}
}
