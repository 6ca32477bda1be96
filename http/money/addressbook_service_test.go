package money_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/currency"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpaddressbook "castellan/http/money/addressbook"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// addressbookService is the section over a real database and a fixed clock.
type addressbookService struct {
	t     *testing.T
	site  *apitest.Site
	db    *persistence.DB
	books *addressbook.Service
	now   time.Time
}

// addressbookBoth runs a test on a fresh installation on each database.
func addressbookBoth(t *testing.T, test func(t *testing.T, s *addressbookService)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, serve(t, db)) })
}

func serve(t *testing.T, db *persistence.DB) *addressbookService {
	t.Helper()
	ctx := t.Context()
	live, store := persistencetest.MoneyIn(t, db, time.Now).Currencies, money.NewCurrencies(db)
	// Beside the seed: pairs that are not usable, and a network without a rule.
	add := func(id int64, err error) int64 { t.Helper(); storetest.Must(t, err); return id }
	off := add(store.AddCurrency(ctx, currency.Currency{Code: "OFF"}))
	doge := add(store.AddCurrency(ctx, currency.Currency{Code: "DOGE", Active: true, Withdraw: true}))
	free := add(store.AddNetwork(ctx, currency.Network{Code: "DOGE", Active: true}))
	shut := add(store.AddNetwork(ctx, currency.Network{Code: "SHUT", Active: true}))
	down := add(store.AddNetwork(ctx, currency.Network{Code: "DOWN"}))
	dead := add(store.AddNetwork(ctx, currency.Network{Code: "DEAD", Active: true}))
	for _, p := range []currency.Pair{
		{CurrencyID: doge, NetworkID: free, Active: true, Withdraw: true},
		{CurrencyID: off, NetworkID: free, Active: true, Withdraw: true},
		{CurrencyID: doge, NetworkID: shut, Active: true},
		{CurrencyID: doge, NetworkID: down, Active: true, Withdraw: true},
		{CurrencyID: doge, NetworkID: dead, Withdraw: true},
	} {
		add(store.AddPair(ctx, p))
	}
	storetest.Must(t, live.Reload(ctx))
	rules := storetest.Value(address.NewRules(nil))(t)
	s := &addressbookService{t: t, db: db, now: time.UnixMilli(1_800_000_000_123)}
	s.books = &addressbook.Service{Store: money.NewAddressBooks(db), Currencies: live, Rules: rules,
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return s.now }}}
	s.site = apitest.Serve(t, edge.Options{}, httpaddressbook.Group{
		Service: s.books}).Below("/asset/withdrawal-addresses")
	return s
}

// as makes a request as a user; the line is a method and what follows the path.
// A refusal is answered by its code and fields.
func (s *addressbookService) as(user, line, body string) (status int, answer string) {
	s.t.Helper()
	if status, answer = s.site.As(user).Call(line, body); status != 200 {
		answer = apitest.Refusal(answer)
	}
	return status, answer
}

// wants makes a request as a user and checks the answer.
func (s *addressbookService) wants(user, line, body string, status int, want string) {
	s.t.Helper()
	s.site.As(user).Wants(line, body, status, want)
}

// post is the body of an addition.
func post(currency, network, address, name string) string {
	b, _ := json.Marshal(map[string]string{"currencyCode": currency, "networkCode": network, "address": address,
		"name": name})
	return string(b)
}

// add adds an address and returns its id.
func (s *addressbookService) add(user, currency, network, address, name string) string {
	s.t.Helper()
	status, answer := s.as(user, "POST", post(currency, network, address, name))
	var got struct{ Data struct{ ID string } }
	if status != 200 || json.Unmarshal([]byte(answer), &got) != nil || got.Data.ID == "" {
		s.t.Fatalf("%s on %s, %s: %d %s", currency, network, address, status, answer)
	}
	return got.Data.ID
}

// book is the list of a user: "name=address" in order.
func (s *addressbookService) book(user string) string {
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
func (s *addressbookService) rows() int64 {
	s.t.Helper()
	return storetest.Value(kit.NewAudit(s.db).Verify(s.t.Context(), []byte(persistencetest.AuditKey)))(s.t)
}

// nth is an address of the network without a rule.
func nth(i int) string { return fmt.Sprintf("Daddress%04d", i) }

// On a network with tags the tag is a part of the destination: it is unique with its address, and another one waits
// again.
func TestAddressTags(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		s.books.Waiting = 24 * time.Hour
		tagged := func(network, address, tag, name string) string {
			return strings.Replace(post(network, network, address, name), "{", `{"addressTag":"`+tag+`",`, 1)
		}
		_, answer := s.as("user1", "POST", tagged("XRP", xrp, "104723", "one"))
		var made struct {
			Data struct{ ID, AddressTag, UsableFrom string }
		}
		storetest.Must(t, json.Unmarshal([]byte(answer), &made))
		storetest.Equal(t, made.Data.AddressTag, "104723", "added", answer)
		s.wants("user1", "POST", tagged("XRP", xrp, "104723", "two"), 409, "RECORD_ALREADY_EXIST address")
		s.add("user1", "XRP", "XRP", xrp, "without a tag")
		for network, tag := range map[string]string{"XRP": "abc", "ETH": "1"} {
			s.wants("user1", "POST", tagged(network, map[string]string{"XRP": xrp, "ETH": eth}[network], tag, "three"), 400,
				"INVALID_FIELD addressTag")
		}
		change := func(tag string, want string) {
			t.Helper()
			first := made.Data.UsableFrom
			_, answer := s.as("user1", "PATCH", `{"id":`+made.Data.ID+`,"addressTag":"`+tag+`"}`)
			if json.Unmarshal([]byte(answer), &made) != nil {
				made.Data.UsableFrom = answer
			}
			if now := made.Data.UsableFrom; now == first && want == "" || now == want {
				return
			}
			t.Errorf("tag %q: %s", tag, answer)
		}
		s.now = s.now.Add(time.Hour)
		change("104723", "")
		change("5", s.now.Add(24*time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
		s.wants("user1", "PATCH", `{"id":`+made.Data.ID+`,"addressTag":"07"}`, 400, "INVALID_FIELD addressTag")
		s.wants("user1", "PATCH", `{"id":`+made.Data.ID+`,"addressTag":""}`, 409, "RECORD_ALREADY_EXIST address")
	})
}
