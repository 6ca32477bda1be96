package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/level"
	"castellan/domain/money/limit"
	"castellan/domain/money/rate"
	"castellan/domain/money/transaction"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpintegration "castellan/http/people/integration"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	moneystore "castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

type (
	levels struct {
		level.Store
		all []level.Level
	}
	quotes struct {
		rate.Store
		none *bool // no rate is known
	}
)

func (l levels) List(context.Context, level.Query) ([]level.Level, error) { return l.all, nil }

func (q quotes) Last(context.Context, time.Time, ...rate.Pair) ([]rate.Quote, error) {
	if *q.none {
		return nil, nil
	}
	return []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}, Rate: rate.Must("100")}}, nil
}

const address1 = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"

// integrationSite is the endpoints with jane, who has 2 BTC and may send 100 TRY (1 BTC) a day.
type integrationSite struct {
	*apitest.Site
	t       *testing.T
	db      *persistence.DB
	service *transaction.Withdrawals
	n       int
	unrated bool // there is no rate of BTC
}

func withdrawals(t *testing.T, test func(s *integrationSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		now := func() time.Time { return time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC) }
		house := persistencetest.MoneyIn(t, db, now)
		live := seeded(t, db, func(ctx context.Context, store parameter.Store) error {
			return parameter.Minimum.Change(ctx, store, fees("0.01"))
		}, func(ctx context.Context, store parameter.Store) error {
			return parameter.Fee.Change(ctx, store, fees("0.001"))
		})
		rules := storetest.Value(address.NewRules(nil))(t)
		users := account.NewUsers(db)
		limits := level.Limits{SendCryptoDaily: amount.Must("100"), SendCryptoMonthly: amount.Must("1000")}
		s := &integrationSite{t: t, db: db}
		s.service = &transaction.Withdrawals{Ledger: house.Ledger, Users: users, Currencies: house.Currencies,
			Store: moneystore.NewTransactions(db), Parameters: live, Rules: rules, Now: now,
			Books: moneystore.NewAddressBooks(db), Claims: kit.NewIntegration(db),
			Limits: &limit.Service{Users: users, Levels: levels{all: []level.Level{{Limits: limits}}},
				Store: moneystore.NewLimits(db),
				Rates: quotes{none: &s.unrated}, Catalog: house.Currencies.Catalog, Now: now}}
		s.user("jane", func(*user.User) {})
		repeats := &auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Now: now,
			Ring: keyringtest.Ring(t, now)}
		s.Site = apitest.Serve(t, edge.Options{Idempotency: repeats},
			httpintegration.Withdrawals{Service: s.service, Numbers: numbers},
			httpintegration.Events{Store: kit.NewIntegration(db)})
		test(s)
	})
}

// fees are those of BTC.
func fees(of string) func(parameter.Fees) (parameter.Fees, error) {
	return func(parameter.Fees) (parameter.Fees, error) { return parameter.Fees{"BTC": amount.Must(of)}, nil }
}

// user adds a user with 2 BTC.
func (s *integrationSite) user(name string, edit func(*user.User)) {
	s.t.Helper()
	u := user.New(name, s.service.Now())
	edit(&u)
	storetest.Must(s.t, s.db.Commit(s.t.Context(), user.Add{User: u}))
	at := s.service.Now()
	_, err := s.service.Ledger.Do(s.t.Context(), audit.By{}, transaction.Receive(transaction.Deposit{ID: id.New(at),
		UserID: name, Asset: s.pair().ID, Amount: amount.Must("2"), Status: transaction.Finalized, At: at}))
	storetest.Must(s.t, err)
}

func (s *integrationSite) pair() currency.Listed {
	p, _ := s.service.Currencies.Catalog().Info(new("BTC"), new("BTC"))
	return p
}

// entry adds an address to the book of a user.
func (s *integrationSite) entry(userID, to string) (entry int64) {
	s.t.Helper()
	storetest.Must(s.t, s.db.InTx(s.t.Context(), func(ctx context.Context) (err error) {
		p, now, books := s.pair(), s.service.Now(), moneystore.NewAddressBooks(s.db)
		if _, err = books.Hold(ctx, userID); err == nil {
			entry, err = books.Insert(ctx, userID, addressbook.Entry{Name: "n", Address: to, CurrencyID: p.CurrencyID,
				NetworkID: p.NetworkID, CreatedAt: now, AddressAt: now})
		}
		return err
	}))
	return entry
}

// has checks what a user has.
func (s *integrationSite) has(user, posted, locked string) {
	s.t.Helper()
	b := storetest.Value(s.service.Ledger.Balance(s.t.Context(), user, s.pair().ID))(s.t)
	if b.Posted.String() != posted || b.Locked.String() != locked {
		s.t.Errorf("%s has %s, held %s; want %s, %s", user, b.Posted, b.Locked, posted, locked)
	}
}

const requests = "POST /integration/withdrawals"

// withBody is a request of jane with fields replaced; "" leaves a field out.
func withBody(externalID string, with ...string) string {
	fields := map[string]string{"externalId": `"` + externalID + `"`, "userId": `"jane"`, "currencyCode": `"BTC"`,
		"network": `"BTC"`, "amount": "0.1", "address": `"` + address1 + `"`}
	for i := 0; i < len(with); i += 2 {
		fields[with[i]] = with[i+1]
	}
	var parts []string
	for name, value := range fields {
		if value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// made requests a withdrawal of 0.1 BTC and returns its id.
func (s *integrationSite) made() string {
	s.t.Helper()
	s.n++
	status, answer := s.Call(requests, withBody(fmt.Sprint("made-", s.n)))
	var a struct{ Data struct{ ID string } }
	if err := json.Unmarshal([]byte(answer), &a); err != nil || status != 200 {
		s.t.Fatalf("%d %s", status, answer)
	}
	return a.Data.ID
}

func record(id, externalID, status string, code int, txID, reason string) string {
	return fmt.Sprintf(`{"data":{"id":"%s","externalId":"%s","status":"%s","statusCode":%d,"amount":0.1,"fee":0.001,`+
		`"txId":%s,"reason":%s,"createdAt":"2026-03-10T12:00:00.000Z","hold":null,"order":null}}`, id, externalID, status,
		code, txID, reason)
}

func TestWithdrawalRequest(t *testing.T) {
	withdrawals(t, func(s *integrationSite) {
		id := s.made()
		s.has("jane", "2", "0.101")
		first := record(id, "made-1", "queued", 8, "null", "null")
		s.Wants(requests, withBody("made-1"), 200, first)
		s.Wants("GET /integration/withdrawals/"+id, "", 200, first)
		s.Wants("GET /integration/withdrawals/unknown", "", 404, "RECORD_NOT_FOUND")
		s.Wants(requests, withBody("made-1", "amount", "0.2"), 409, "INVALID_STATE")
		s.has("jane", "2", "0.101")
		settle(t, s.db)
		events, err := s.service.Claims.Events(t.Context(), integration.EventQuery{}, page.Query[integration.Place]{Limit: 9})
		storetest.Must(t, err)
		if len(events.Records) != 1 || events.Records[0].Type != integration.WithdrawalQueued ||
			events.Records[0].Data["address"] != address1 || events.Records[0].Data["fee"] != "0.001" {
			t.Errorf("events %+v", events.Records)
		}
		for _, c := range [][2]string{{withBody("x", "addressTag", `"1\n2"`), "INVALID_FIELD addressTag"},
			{withBody("x", "addressTag", `"1\u202e2"`), "INVALID_FIELD addressTag"},
			{withBody("x", "externalId", `"x\u00ad"`), "INVALID_FIELD externalId"},
			{withBody("x", "externalId", `"`+strings.Repeat("ü", 65)+`"`), "INVALID_FIELD externalId"},
			{withBody("x", "userId", ""), "INVALID_FIELD userId"},
			{withBody("x", "userToken", `"t"`), "INVALID_FIELD userToken"},
			{withBody("x", "amount", "0.1234567891"), "INVALID_FIELD amount"},
			{withBody("x", "amount", "0"), "INVALID_FIELD amount"}, {withBody("x", "address", ""), "INVALID_FIELD address"},
			{withBody("x", "address", `" "`), "INVALID_FIELD address"},
			{withBody("x", "address", `"a\n1"`), "INVALID_FIELD address"},
			{withBody("x", "addressId", "1"), "INVALID_FIELD addressId"},
			{withBody("x", "address", "", "addressId", "0"), "INVALID_FIELD addressId"},
			{withBody("x", "network", `"ETH"`), "INVALID_FIELD currencyCode"}} {
			s.Wants(requests, c[0], 400, c[1])
		}
		s.Wants("GET /integration/events?types=none.such", "", 400, "INVALID_FIELD types")
		if status, got := s.Call("GET /integration/events?types=withdrawal.queued&types=kyc.decided", ""); status != 200 ||
			!strings.Contains(got, `"type":"withdrawal.queued"`) {
			t.Errorf("%d %s", status, got)
		}
		s.Wants(requests, withBody("x", "userId", `"ghost"`), 404, "RECORD_NOT_FOUND")
		s.Wants(requests, withBody(strings.Repeat("ü", 64), "amount", "3"), 422, "LIMIT_EXCEEDED")
	})
}

// Every refusal, and of several causes the first in the order of the codes.
func TestWithdrawalRefusals(t *testing.T) {
	withdrawals(t, func(s *integrationSite) {
		all := []string{"userId", `"all"`, "currencyCode", `"BTC"`, "amount", "0.001", "address", `"nowhere"`}
		s.user("all", func(u *user.User) { u.Status, u.WithdrawProhibited, u.AMLStatus = user.Passive, true, "risky" })
		s.user("two", func(u *user.User) { u.WithdrawProhibited, u.AMLStatus = true, "risky" })
		s.user("three", func(u *user.User) { u.AMLStatus = "risky" })
		refused := func(want string, with ...string) {
			t.Helper()
			s.Wants(requests, withBody("r", with...), 422, want)
		}
		refused("ACCOUNT_NOT_ACTIVE", all...)
		refused("WITHDRAWAL_PROHIBITED", append(all, "userId", `"two"`)...)
		refused("AML_RISKY", append(all, "userId", `"three"`)...)
		refused("BELOW_MINIMUM", "amount", "0.009", "address", `"nowhere"`)
		refused("LIMIT_EXCEEDED", "amount", "3", "address", `"nowhere"`)
		_, answer := s.Call(requests, withBody("r", "amount", "1.01"))
		storetest.Contains(t, answer, `"resetAt":"2026-03-11T00:00:00.000Z"`)
		_, answer = s.Call(requests, withBody("r", "amount", "11"))
		storetest.Contains(t, answer, `"resetAt":"2026-04-01T00:00:00.000Z"`)
		s.unrated = true
		_, answer = s.Call(requests, withBody("r"))
		if apitest.Refusal(answer) != "LIMIT_EXCEEDED" || strings.Contains(answer, "resetAt") ||
			!strings.Contains(answer, `"detail":"the limits are in TRY, and there is no rate for BTC/TRY"`) {
			t.Errorf("without a rate: %s", answer)
		}
		s.unrated = false
		refused("ADDRESS_NOT_ALLOWED", "address", `"nowhere"`)
		refused("ADDRESS_NOT_ALLOWED", "address", `"0x000000000000000000000000000000000000dEaD"`)
		refused("ADDRESS_NOT_ALLOWED", "address", `"0xde0b295669a9fd93d5f28d9ec85e40f4cb697bae"`)
		refused("ADDRESS_NOT_ALLOWED", "address", "", "addressId", "99")
		entry := s.entry("two", address1)
		refused("ADDRESS_NOT_ALLOWED", "address", "", "addressId", fmt.Sprint(entry)) // another user's
		s.has("jane", "2", "0")
		s.user("poor", func(*user.User) {})
		s.service.Waiting = time.Hour
		refused("ADDRESS_NOT_ALLOWED") // not in the book
		s.service.Waiting = 0
		storetest.Must(t, s.db.Commit(t.Context(), user.SetAMLStatus{UserID: "three", Status: user.NotRisky}))
		_, err := s.service.Ledger.Do(t.Context(), audit.By{}, ledger.Movement{Take: []ledger.Hold{ledger.NewHold(
			s.service.Now(), "test", "1", "test", ledger.Account{Kind: ledger.User, Owner: "poor", Asset: s.pair().ID},
			amount.Must("1.9"))}})
		storetest.Must(t, err)
		refused("INSUFFICIENT_BALANCE", "userId", `"poor"`) // the fee is not covered
		persistencetest.Exec(t, s.db, "UPDATE currency_of_network SET withdraw_enable = ? WHERE id = ?", false, s.pair().ID)
		storetest.Must(t, s.service.Currencies.Reload(t.Context()))
		refused("PAIR_DISABLED", "amount", "0.001", "address", `"nowhere"`)
	})
}

// The moves of the wallet, their repetitions, and the ways out.
func TestWithdrawalMoves(t *testing.T) {
	withdrawals(t, func(s *integrationSite) {
		move := func(id, body string, status int, want string) {
			t.Helper()
			s.Wants("PATCH /integration/withdrawals/"+id, body, status, want)
		}
		id := s.made()
		shown := func(status string, code int, txID, reason string) string {
			return record(id, fmt.Sprint("made-", s.n), status, code, txID, reason)
		}
		move(id, `{"status":"sent"}`, 400, "INVALID_FIELD txId")
		move(id, `{"status":"failed"}`, 400, "INVALID_FIELD reason")
		move(id, `{"status":"cancelled"}`, 400, "INVALID_FIELD status")
		move("unknown", `{"status":"processing"}`, 404, "RECORD_NOT_FOUND")
		move(id, `{"status":"sent","txId":"0x1"}`, 409, "INVALID_STATE") // without a claim
		for range 2 {
			move(id, `{"status":"processing"}`, 200, shown("processing", 9, "null", "null"))
		}
		for _, way := range []string{"resume", "cancel"} {
			s.Wants("POST /admin/withdrawals/"+id+"/"+way, `{}`, 409, "INVALID_STATE")
		}
		for range 2 {
			move(id, `{"status":"sent","txId":"0x1"}`, 200, shown("sent", 10, `"0x1"`, "null"))
		}
		move(id, `{"status":"failed","reason":"dropped"}`, 409, "INVALID_STATE")
		move(id, `{"status":"timeOut"}`, 409, "INVALID_STATE")
		s.has("jane", "2", "0.101")
		move(id, `{"status":"sent","txId":"0x2"}`, 200, shown("sent", 10, `"0x2"`, "null"))
		move(id, `{"status":"sent","txId":" 0X2"}`, 200, shown("sent", 10, `"0x2"`, "null")) // another spelling of it
		move(id, `{"status":"sent","txId":"0x\u200b3"}`, 400, "INVALID_FIELD txId")
		for range 2 {
			move(id, `{"status":"finalized"}`, 200, shown("finalized", 4, `"0x2"`, "null"))
			s.has("jane", "1.899", "0")
		}
		move(id, `{"status":"sent","txId":"0x2"}`, 409, "INVALID_STATE")

		id = s.made()
		for range 2 {
			move(id, `{"status":"failed","reason":"no route"}`, 200, shown("failed", 11, "null", `"no route"`))
			s.has("jane", "1.899", "0")
		}
		id = s.made()
		move(id, `{"status":"hotWalletInsufficientBalance"}`, 200, shown("hotWalletInsufficientBalance", 6, "null", "null"))
		s.Wants("POST /admin/withdrawals/"+id+"/resume", `{"reason":"refilled"}`, 200,
			shown("queued", 8, "null", `"refilled"`))
		s.Wants("POST /admin/withdrawals/"+id+"/resume", `{}`, 409, "INVALID_STATE")
		move(id, `{"status":"timeOut"}`, 200, shown("timeOut", 7, "null", "null"))
		s.has("jane", "1.899", "0.101")
		s.Wants("POST /admin/withdrawals/"+id+"/cancel", `{"reason":"asked"}`, 200,
			shown("cancelled", 12, "null", `"asked"`))
		s.has("jane", "1.899", "0")
		s.Wants("POST /admin/withdrawals/"+id+"/cancel", `{}`, 409, "INVALID_STATE")
		move(id, `{"status":"processing"}`, 409, "INVALID_STATE")
		s.Wants("POST /admin/withdrawals/unknown/cancel", `{}`, 404, "RECORD_NOT_FOUND")
		settle(t, s.db)
		events, err := s.service.Claims.Events(t.Context(), integration.EventQuery{Types: []integration.Type{
			integration.WithdrawalResumed, integration.WithdrawalCancelled}}, page.Query[integration.Place]{Limit: 9})
		storetest.Must(t, err)
		if len(events.Records) != 2 || events.Records[1].Data["withdrawalId"] != id {
			t.Errorf("events %+v", events.Records)
		}
	})
}

// A move that names another status than the present one is refused and changes nothing, so a request that arrives late
// does not revert a newer move. A repetition of the last move still gets the record.
func TestWithdrawalMoveFrom(t *testing.T) {
	withdrawals(t, func(s *integrationSite) {
		id := s.made()
		move := func(body string, status int, want string) {
			t.Helper()
			s.Wants("PATCH /integration/withdrawals/"+id, body, status, want)
		}
		const claim = `{"from":"queued","status":"processing"}`
		processing := record(id, "made-1", "processing", 9, "null", "null")
		empty := record(id, "made-1", "hotWalletInsufficientBalance", 6, "null", "null")
		move(`{"from":"timeOut","status":"processing"}`, 409, "INVALID_STATE")
		move(claim, 200, processing)
		move(claim, 200, processing)
		move(`{"from":"processing","status":"hotWalletInsufficientBalance"}`, 200, empty)
		move(claim, 409, "INVALID_STATE") // it arrives late
		s.Wants("GET /integration/withdrawals/"+id, "", 200, empty)
		s.Wants("POST /admin/withdrawals/"+id+"/resume", `{}`, 200, record(id, "made-1", "queued", 8, "null", "null"))
		move(`{"from":"processing","status":"hotWalletInsufficientBalance"}`, 409, "INVALID_STATE")
		move(`{"status":"hotWalletInsufficientBalance"}`, 200, empty) // without from, as before
		move(`{"from":"hotWalletInsufficientBalance","status":"processing"}`, 200, processing)
		move(`{"from":null,"status":"sent","txId":"0x1"}`, 200, record(id, "made-1", "sent", 10, `"0x1"`, "null"))
		move(`{"from":"processing","status":"finalized"}`, 409, "INVALID_STATE")
		s.has("jane", "2", "0.101")
		move(`{"from":"sent","status":"finalized"}`, 200, record(id, "made-1", "finalized", 4, `"0x1"`, "null"))
		s.has("jane", "1.899", "0")
	})
}
