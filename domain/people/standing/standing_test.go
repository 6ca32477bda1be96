package standing_test

import (
	"testing"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/people/standing"
	"castellan/persistence/access"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// A status is stored with its remarks and its actor, whatever the caller set.
func TestSetKeepsTheActor(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000).UTC()
	clock := func() time.Time { return now }
	m := persistencetest.NewMoney(t, clock)
	m.User("ayse", func(*user.User) {})
	store, users := people.NewStandings(m.DB), access.NewUsers(m.DB)
	parameters := kit.NewParameters(m.DB)
	live := parameter.NewCache(parameters)
	storetest.Must(t, live.Reload(t.Context()))
	s := &standing.Service{Store: store, Users: users, Parameters: live, Ignored: parameters, ClosureType: 1,
		Blockages: &blockage.Service{Store: money.NewBlockages(m.DB), Ledger: m.Ledger, Users: users,
			Currencies: m.Currencies, Now: clock},
		Changes: admin.Changes{Commit: m.DB, Now: clock, Lock: store.Lock}}
	for _, who := range []string{"boss", "clerk"} {
		now = now.Add(time.Second)
		status := map[string]user.Status{"boss": user.Blocked, "clerk": user.Active}[who]
		u, err := s.Set(t.Context(), audit.By{UserID: who}, standing.Standing{UserID: "ayse", Status: status,
			Description: "a letter", Reason: "REASON", By: "another"})
		storetest.Must(t, err)
		got, err := store.Get(t.Context(), "ayse")
		storetest.Must(t, err)
		want := standing.Standing{UserID: "ayse", Status: status, Description: "a letter", Reason: "REASON", By: who, At: now}
		if got.At = got.At.UTC(); got != want || u.Status != status {
			t.Errorf("%+v, want %+v; %s", got, want, u.Status)
		}
	}
}
