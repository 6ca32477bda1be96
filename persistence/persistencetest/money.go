package persistencetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
)

// Money is a ledger over the currencies of a new installation. Pairs are written as "BTC/BTC": currency and network.
type Money struct {
	*ledger.Ledger
	Currencies *currency.Cache
	DB         *persistence.DB
	t          *testing.T
}

// MoneyIn returns a ledger without movements, in a database without currencies of its own. At the end of the test it
// must verify.
func MoneyIn(t *testing.T, db *persistence.DB, now func() time.Time) *Money {
	t.Helper()
	store := money.NewCurrencies(db)
	for _, table := range []string{"currency_of_network", "currency_network", "currency"} {
		Exec(t, db, "DELETE FROM "+table)
	}
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error { return currency.Seed(ctx, store) }))
	m := &Money{Currencies: currency.NewCache(store), DB: db, t: t}
	storetest.Must(t, m.Currencies.Reload(t.Context()))
	m.Ledger = &ledger.Ledger{Store: money.NewLedger(db), Commit: db, Now: now,
		Decimals: func(_ context.Context, asset int64) (int, error) { return m.Currencies.Catalog().Decimals(asset) }}
	t.Cleanup(func() {
		storetest.Must(t, storetest.Err(ledger.Verify(context.Background(), money.NewLedger(db))))
	})
	return m
}

// HoldQueued returns transaction.HoldQueued with a clock, whose jobs have plain parameters.
func HoldQueued(now func() time.Time) func(audit.By, string) (commit.Write, error) {
	return transaction.HoldQueued(&job.Service{Changes: admin.Changes{Now: now},
		Seal: func(plain, _ []byte) []byte { return plain }})
}

// User adds an account.
func (m *Money) User(id string, edit func(*user.User)) {
	m.t.Helper()
	u := user.New(id, m.Now())
	edit(&u)
	storetest.Must(m.t, m.DB.Commit(m.t.Context(), user.Add{User: u}))
}

// Pair is a currency on a network.
func (m *Money) Pair(pair string) currency.Listed {
	m.t.Helper()
	code, network, _ := strings.Cut(pair, "/")
	p, known := m.Currencies.Catalog().Info(&code, &network)
	if !known {
		m.t.Fatalf("no pair %s", pair)
	}
	return p
}

func (m *Money) Account(userID, pair string) ledger.Account {
	m.t.Helper()
	return ledger.Account{Kind: ledger.User, Owner: userID, Asset: m.Pair(pair).ID}
}

// Pay credits a user from the treasury, or debits the user where the amount is negative.
func (m *Money) Pay(userID, pair, sum string) error {
	m.t.Helper()
	to := m.Account(userID, pair)
	from := ledger.Account{Kind: ledger.Treasury, Asset: to.Asset}
	if strings.HasPrefix(sum, "-") {
		from, to = to, from
	}
	t := ledger.New(m.Now(), "test", id.New(m.Now()), from, to, amount.Must(strings.TrimPrefix(sum, "-")))
	_, err := m.Do(m.t.Context(), audit.By{UserID: "op"}, ledger.Movement{Transfers: []ledger.Transfer{t}})
	return err
}

// Has returns what a user has as "posted locked available".
func (m *Money) Has(userID, pair string) string {
	m.t.Helper()
	b := storetest.Value(m.Balance(m.t.Context(), userID, m.Pair(pair).ID))(m.t)
	return fmt.Sprint(b.Posted, b.Locked, b.Available())
}
