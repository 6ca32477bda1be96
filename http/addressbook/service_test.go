package addressbook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/addressbook"
	"castellan/domain/addressbook/address"
	"castellan/domain/admin"
	"castellan/domain/change/changetest"
	"castellan/domain/currency"
	"castellan/domain/fault"
	"castellan/domain/resource"
	"castellan/domain/token"
	httpaddressbook "castellan/http/addressbook"
	"castellan/http/edge"
	"castellan/http/guard"
	"castellan/internal/apidoc"
	"castellan/internal/pgtest"
	"castellan/persistence"
)

const auditKey = "audit key of the test"

// service is the section over a real database, with the guards of the program,
// tokens that are names of users, and a clock that stands still.
type service struct {
	t     *testing.T
	srv   *edge.Server
	db    *persistence.DB
	books *addressbook.Service
	now   time.Time
}

type tokens struct{}

func (tokens) Verify(class token.Class, raw string) (token.Claims, error) {
	if class != token.XAuth || !strings.HasPrefix(raw, "user") {
		return token.Claims{}, fault.New(fault.Unauthenticated, "not a token")
	}
	return token.Claims{Subject: raw}, nil
}

// both runs a test on a fresh installation on each database.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	for name, dsn := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": func() string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t, dsn())) })
	}
}

func open(t *testing.T, dsn string) *service {
	t.Helper()
	ctx := t.Context()
	db, err := persistence.Open(ctx, dsn, persistence.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, db.Exclusive(ctx, func(ctx context.Context) error { _, err := db.Migrate(ctx); return err }))
	db.Start([]byte(auditKey), "test")
	store := persistence.NewCurrencies(db)
	must(t, db.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, store) }))
	// Beside the seed: what is not usable, and a network without a rule.
	add := func(id int64, err error) int64 { t.Helper(); must(t, err); return id }
	off := add(store.AddCurrency(ctx, currency.Currency{Code: "OFF"}))
	doge := add(store.AddCurrency(ctx, currency.Currency{Code: "DOGE", Active: true}))
	free := add(store.AddNetwork(ctx, currency.Network{Code: "DOGE", Active: true}))
	shut := add(store.AddNetwork(ctx, currency.Network{Code: "SHUT", Active: true}))
	down := add(store.AddNetwork(ctx, currency.Network{Code: "DOWN"}))
	dead := add(store.AddNetwork(ctx, currency.Network{Code: "DEAD", Active: true}))
	for _, p := range []currency.Pair{
		{CurrencyID: doge, NetworkID: free, Active: true, Withdraw: true}, {CurrencyID: off, NetworkID: free, Active: true, Withdraw: true},
		{CurrencyID: doge, NetworkID: shut, Active: true}, {CurrencyID: doge, NetworkID: down, Active: true, Withdraw: true},
		{CurrencyID: doge, NetworkID: dead, Withdraw: true},
	} {
		add(store.AddPair(ctx, p))
	}
	live := currency.NewLive(store)
	must(t, live.Reload(ctx))
	rules, err := address.NewRules(nil)
	must(t, err)
	s := &service{t: t, db: db, now: time.UnixMilli(1_800_000_000_123)}
	s.books = &addressbook.Service{Store: persistence.NewAddressBooks(db), Currencies: live, Rules: rules,
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return s.now }}}
	guards := guard.Guards{Tokens: tokens{}, Tenant: "t1", Feed: &changetest.Feed{}, Live: func(string, string, int64) bool { return true },
		Judge: func(string, string, string) resource.Verdict { return resource.Verdict{} }}
	s.srv, err = edge.New(edge.Options{Guards: guards.Table(), Authorize: guards.Authorize}, httpaddressbook.Group{Service: s.books}.Endpoints())
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const path = "/asset/withdrawal-addresses"

// as makes a request as a user; the line is a method and what follows the path.
func (s *service) as(user, line, body string) (status int, answer string) {
	s.t.Helper()
	method, query, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, path+query, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("x-auth", user)
	res, err := apidoc.Test(s.srv.App, r)
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	answer = string(b)
	if res.StatusCode != 200 {
		var p struct {
			Code   string
			Errors []struct{ Field string }
		}
		if err := json.Unmarshal(b, &p); err != nil {
			s.t.Errorf("%s %s: %v", line, body, err)
		}
		answer = p.Code
		for _, e := range p.Errors {
			answer += " " + e.Field
		}
	}
	return res.StatusCode, answer
}

// wants makes a request and checks the answer: a body for 200, else
// "CODE field field".
func (s *service) wants(user, line, body string, status int, want string) {
	s.t.Helper()
	if got, answer := s.as(user, line, body); got != status || answer != want {
		s.t.Errorf("%s %s:\n got %d %s\nwant %d %s", line, body, got, answer, status, want)
	}
}

// post is the body of an addition.
func post(currency, network, address, name string) string {
	b, _ := json.Marshal(map[string]string{"currencyCode": currency, "networkCode": network, "address": address, "name": name})
	return string(b)
}

// add adds an address and returns its id.
func (s *service) add(user, currency, network, address, name string) string {
	s.t.Helper()
	status, answer := s.as(user, "POST", post(currency, network, address, name))
	var got struct{ Data struct{ ID string } }
	if status != 200 || json.Unmarshal([]byte(answer), &got) != nil || got.Data.ID == "" {
		s.t.Fatalf("%s on %s, %s: %d %s", currency, network, address, status, answer)
	}
	return got.Data.ID
}

// book is what is listed for a user: "name=address" in order.
func (s *service) book(user string) string {
	s.t.Helper()
	status, answer := s.as(user, "GET", "")
	var list []struct{ Name, Address string }
	if status != 200 || json.Unmarshal([]byte(answer), &list) != nil {
		s.t.Fatalf("%d %s", status, answer)
	}
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.Name + "=" + r.Address
	}
	return strings.Join(out, " ")
}

// rows is how many audit rows there are; the chain is sound.
func (s *service) rows() int64 {
	s.t.Helper()
	n, err := s.db.VerifyAudit(s.t.Context(), []byte(auditKey))
	must(s.t, err)
	return n
}

// nth is an address of the network without a rule.
func nth(i int) string { return fmt.Sprintf("Daddress%04d", i) }
