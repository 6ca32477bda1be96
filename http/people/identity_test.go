package people_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/people/dropdown"
	"castellan/domain/people/identity"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpidentity "castellan/http/people/identity"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

const (
	inform  = "POST /user/insert-additional-info"
	confirm = "POST /user/confirm-user-identity"
	number  = "10000000146"
	other   = "20000000282"
)

// idSite is the section over a real database, with users u0 to u8, each in a session of the same name.
type idSite struct {
	*apitest.Site
	t       *testing.T
	db      *persistence.DB
	ring    *keyring.Ring
	service *identity.Service
	users   account.Users
	tokens  *token.Issuer
	live    *parameter.Cache
	now     time.Time
	log     bytes.Buffer
}

func identityBoth(t *testing.T, test func(s *idSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(identityServe(t, db)) })
}

func identityServe(t *testing.T, db *persistence.DB) *idSite {
	t.Helper()
	s := &idSite{t: t, db: db, users: account.NewUsers(db), now: time.Now().Truncate(time.Second)}
	now := func() time.Time { return s.now }
	s.ring = keyringtest.Ring(t, now)
	for n := range 9 {
		id := fmt.Sprint("u", n)
		u := user.New(id, s.now)
		u.Email = id + "@example.com"
		began := s.now.Add(-20 * time.Minute)
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
		storetest.Must(t, db.Commit(t.Context(), session.Add{CV: 1, Session: session.Session{ID: id, UserID: id,
			CreatedAt: began, LastSeenAt: began, ExpiresAt: s.now.Add(10 * time.Minute), SV: 1, AMR: []string{"pwd", "otp"}}}))
	}
	dropdowns, parameters := people.NewDropdowns(db), kit.NewParameters(db)
	storetest.Must(t, dropdown.Seed(t.Context(), dropdowns))
	storetest.Must(t, parameter.Seed(t.Context(), parameters))
	s.live = parameter.NewCache(parameters)
	s.tokens = token.NewIssuer(s.ring, "castellan", "t1", now, 0)
	sessions := &session.Service{Users: s.users, Sessions: sessionstore.NewSessions(db), Tokens: s.tokens,
		TokenTTL: 30 * time.Minute, SessionTTL: 12 * time.Hour, Now: now}
	hashes := func(number string) []string { return []string{s.ring.StableHash(identity.HashDomain, number)} }
	s.service = &identity.Service{Store: people.NewIdentities(db), Users: s.users, Options: dropdowns,
		Values: s.live.Set, Changes: admin.Changes{Commit: db, Now: now}, Ring: s.ring, Hashes: hashes, Accounts: 1,
		Tries:   password.NewGuards(account.NewPasswordGuards(db), db, password.Limit(5, 15*time.Minute), now),
		Refresh: sessions.Refresh}
	guards := apitest.Guards()
	guards.Tokens = keyed{s.now.Add(10 * time.Minute)}
	guards.AllowsIP = func(userID string, _ netip.Addr) bool { return userID != "u8" }
	s.Site = apitest.Serve(t, edge.Options{Guards: guards.Table(), Authorize: guards.Authorize,
		ActsAsAdmin: guards.ActsAsAdmin, Logger: slog.New(slog.NewJSONHandler(&s.log, nil))},
		httpidentity.Group{Service: s.service})
	return s
}

// keyed accepts a name as a token with a key and an end.
type keyed struct{ end time.Time }

func (k keyed) Verify(class token.Class, raw string) (token.Claims, error) {
	c, err := apitest.Tokens{}.Verify(class, raw)
	c.ExpiresAt, c.Thumbprint = k.end, "key of "+raw
	return c, err
}

// The first options of each group, and those that require an explanation.
var plain = map[string]any{"purposeOfTransactionId": "1", "sourceOfFundingId": 7, "monthlyIncomeAmountId": "14",
	"estimatedMonthlyDWAmountId": 19, "estimatedMonthlyDWCountId": "23"}

// with is an object of fields, changed as the pairs say; nil takes a field away.
func with(fields map[string]any, changes ...any) map[string]any {
	m := map[string]any{}
	for k, v := range fields {
		m[k] = v
	}
	for i := 0; i < len(changes); i += 2 {
		if m[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(m, changes[i].(string))
		}
	}
	return m
}

func idBody(fields map[string]any, changes ...any) string {
	b, _ := json.Marshal(with(fields, changes...))
	return string(b)
}

var person = map[string]any{"userIdentityNumber": number, "name": "Ayşe", "surname": "Yılmaz",
	"birthDate": "1990-05-01", "additionalInfo": plain}

// is is the answer of a confirmation without its token.
func is(id, name, kyc string) string {
	return fmt.Sprintf(`{"userId":"%s","fullName":"%s","kycConfirm":"%s","levelId":0}`, id, name, kyc)
}

// confirms confirms a user and returns the claims of the new token.
func (s *idSite) confirms(id, request, data string) token.Claims {
	s.t.Helper()
	res, answer := s.As(id).Send(confirm, request)
	var got struct {
		Token *string
		Data  json.RawMessage
	}
	if res.StatusCode != 200 || json.Unmarshal([]byte(answer), &got) != nil || got.Token == nil ||
		string(got.Data) != data || res.Header.Get("x-auth") != *got.Token {
		s.t.Fatalf("%s: %d %s", id, res.StatusCode, answer)
	}
	return storetest.Value(s.tokens.Verify(token.XAuth, *got.Token))(s.t)
}

func (s *idSite) user(id string) user.User {
	s.t.Helper()
	return storetest.Value(s.users.Get(s.t.Context(), id))(s.t)
}

// dump is every row of every table that this section writes.
func (s *idSite) dump() string {
	s.t.Helper()
	var out strings.Builder
	for _, table := range []string{"users", "user_identity", "additional_info", "audit", "session", "password_guard",
		"change"} {
		for _, pool := range s.db.Pools() {
			rows := storetest.Value(pool.QueryContext(s.t.Context(), "SELECT * FROM "+table))(s.t)
			columns := storetest.Value(rows.Columns())(s.t)
			for rows.Next() {
				cells := make([]any, len(columns))
				for i := range cells {
					cells[i] = new(any)
				}
				storetest.Must(s.t, rows.Scan(cells...))
				for i, c := range cells {
					if b, ok := (*c.(*any)).([]byte); ok {
						fmt.Fprintf(&out, "%s=%s ", columns[i], b)
					} else if v := *c.(*any); columns[i] != "updated_at" {
						fmt.Fprintf(&out, "%s=%v ", columns[i], v)
					}
				}
				out.WriteString(table + "\n")
			}
			storetest.Must(s.t, rows.Close())
			break
		}
	}
	return out.String()
}

// D-INF-03 to D-INF-05, REQ-INF-07.
func TestAdditionalInfo(t *testing.T) {
	identityBoth(t, func(s *idSite) {
		const saved = `{"id":"1","purposeOfTransactionId":"1","sourceOfFundingId":"7","monthlyIncomeAmountId":"14"}`
		s.As("u1").Wants(inform, idBody(plain), 200, saved)
		s.As("u1").Wants(inform, idBody(plain), 200, saved)
		s.As("u1").Wants(inform, idBody(plain, "sourceOfFundingId", 13, "explainSourceOfFunding", " 123 "), 200,
			strings.Replace(saved, `"7"`, `"13"`, 1))
		all := idBody(plain, "purposeOfTransactionId", 6, "sourceOfFundingId", 13, "monthlyIncomeAmountId", 18,
			"estimatedMonthlyDWAmountId", 22, "estimatedMonthlyDWCountId", 26)
		const explain = "INVALID_FIELD explainPurposeOfTransaction explainSourceOfFunding explainMonthlyIncomeAmount " +
			"explainEstimatedMonthlyDWAmount explainEstimatedMonthlyDWCount"
		s.As("u1").Wants(inform, all, 400, explain)
		s.As("u1").Wants(inform, strings.Replace(all, "{", `{"explainPurposeOfTransaction":" ab ",`, 1), 400, explain)
		const fields = "INVALID_FIELD purposeOfTransactionId sourceOfFundingId monthlyIncomeAmountId " +
			"estimatedMonthlyDWAmountId estimatedMonthlyDWCountId"
		wrong := map[string]any{}
		for i, field := range strings.Fields(fields)[1:] { // of another group, unknown, no id
			wrong[field] = []any{"7", 1, "999999", 0, 1}[i]
		}
		s.As("u1").Wants(inform, idBody(wrong), 400, fields)
		if status, answer := s.As("u2").Call(inform, idBody(plain)); status != 200 || strings.Contains(answer, `"id":"1"`) {
			t.Errorf("another user: %d %s", status, answer)
		}
		for _, line := range []string{inform, confirm} { // before the fields are looked at
			s.As("u8").Wants(line, `{}`, 403, "IP_NOT_ALLOWED")
		}
	})
}

// D-INF-06, D-AUTH-15: all is saved. The new token has the key and the end of the one that was sent.
func TestConfirm(t *testing.T) {
	identityBoth(t, func(s *idSite) {
		c := s.confirms("u1", idBody(person), is("u1", "Ayşe Yılmaz", "waitingApproval"))
		if c.Subject != "u1" || c.SessionID != "u1" || c.SV != 1 || !c.ExpiresAt.Equal(s.now.Add(10*time.Minute)) ||
			c.Thumbprint != "key of u1" || !c.AuthTime.Equal(s.now.Add(-20*time.Minute)) ||
			strings.Join(c.AMR, " ") != "pwd otp" {
			t.Errorf("%+v", c)
		}
		living, err := sessionstore.NewSessions(s.db).List(t.Context(), "u1", s.now, 9)
		if u := s.user("u1"); err != nil || len(living) != 1 || !living[0].ExpiresAt.Equal(c.ExpiresAt) ||
			u.Name != "Ayşe" || u.Surname != "Yılmaz" || u.CV != 1 ||
			u.BirthDate != "1990-05-01" || u.IdentityHash != s.service.Hashes(number)[0] {
			t.Errorf("%v %v %+v", living, err, u)
		}
		// Again, in other words: nothing is in the way, and the additional info keeps its id. Development mode needs no
		// register.
		s.service.Dev = true
		s.confirms("u1", idBody(person, "userIdentityNumber", 10000000146, "secondName", " Nur ", "birthDate", "01.05.1990",
			"countryCode", "+90", "cityId", 34, "districtId", "x", "address", "Moda", "occupationId", "7",
			"useTCKNService", true), is("u1", "Ayşe Nur Yılmaz", "waitingApproval"))
		s.As("u1").Wants(inform, idBody(plain), 200,
			`{"id":"1","purposeOfTransactionId":"1","sourceOfFundingId":"7","monthlyIncomeAmountId":"14"}`)
		storetest.Equal(t, storetest.Value(s.service.NumberOf(t.Context(), "u1"))(t), number)
		storetest.Equal(t, storetest.Value(s.service.NumberOf(t.Context(), "u2"))(t), "")
		// The number is never shown.
		if all := s.dump() + s.log.String(); strings.Contains(all, number) || !strings.Contains(all, "check digits") ||
			strings.Contains(fmt.Sprintf("%v %+v %#v", identity.Number(number), identity.Person{Number: number},
				identity.Person{Number: number}), number) {
			t.Errorf("the number is shown")
		}
	})
}

// set changes a column of accounts behind the back of the service.
func (s *idSite) set(column, value string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		persistencetest.Exec(s.t, s.db, "UPDATE users SET "+column+" = ? WHERE id = ?", value, id)
	}
}

// ignore has the AML control leave an account alone.
func (s *idSite) ignore(id string) {
	s.t.Helper()
	storetest.Must(s.t, s.db.InTx(s.t.Context(), func(ctx context.Context) error {
		return parameter.AMLControl.Change(ctx, kit.NewParameters(s.db),
			func(i parameter.Ignored) (parameter.Ignored, error) {
				i.IgnoredUsers = append(i.IgnoredUsers, id)
				return i, nil
			})
	}))
	storetest.Must(s.t, s.live.Reload(s.t.Context()))
}

// Refusals change nothing and come in the order of the interface.
func TestIdentityRefusals(t *testing.T) {
	identityBoth(t, func(s *idSite) {
		s.confirms("u1", idBody(person), is("u1", "Ayşe Yılmaz", "waitingApproval"))
		s.ignore("u3")
		s.set("aml_status", "risky", "u2", "u3")
		day := func(n int) string { return s.now.UTC().AddDate(0, 0, n).Format(time.DateOnly) }
		before := s.dump()
		for _, c := range []struct {
			who     string
			changes []any
			status  int
			want    string
		}{
			{"u4", []any{"userIdentityNumber", "1234567890", "name", "a\tb", "secondName", "x\u202e", "birthDate", "1990-02-30"},
				400, "INVALID_FIELD userIdentityNumber secondName birthDate"},
			{"u4", []any{"birthDate", "01/05/1990"}, 400, "INVALID_FIELD birthDate"},
			{"u4", []any{"birthDate", "2990-05-01"}, 400, "INVALID_FIELD birthDate"},
			{"u4", []any{"birthDate", "1890-05-01"}, 400, "INVALID_FIELD birthDate"},
			{"u4", []any{"userIdentityNumber", "01000000146"}, 400, "INVALID_FIELD userIdentityNumber"},
			{"u4", []any{"userIdentityNumber", "10000000147"}, 400, "INVALID_FIELD userIdentityNumber"},
			{"u4", []any{"userIdentityNumber", "10000000156"}, 400, "INVALID_FIELD userIdentityNumber"},
			{"u4", []any{"userIdentityNumber", "12000000146"}, 400, "INVALID_FIELD userIdentityNumber"},
			{"u4", []any{"birthDate", day(1)}, 400, "INVALID_FIELD birthDate"},
			{"u4", []any{"userIdentityNumber", "1000000014a", "name", "a\u202eb", "surname", "a\u202eb"}, 400,
				"INVALID_FIELD userIdentityNumber name surname"},
			{"u4", []any{"userIdentityNumber", "100000001466", "secondName", "\u200b", "birthDate", "1899-12-31"}, 400,
				"INVALID_FIELD userIdentityNumber secondName birthDate"},
			{"u4", []any{"additionalInfo", with(plain, "sourceOfFundingId", 13, "monthlyIncomeAmountId", 1)}, 400,
				"INVALID_FIELD additionalInfo.explainSourceOfFunding additionalInfo.monthlyIncomeAmountId"},
			{"u2", nil, 403, "FORBIDDEN"},                                                  // before the number's accounts
			{"u2", []any{"userIdentityNumber", "10000000147"}, 403, "FORBIDDEN"},           // and before its check digits
			{"u3", nil, 409, "RECORD_LIMIT_REACHED"},                                       // ignored by the AML control
			{"u4", []any{"userIdentityNumber", " " + number}, 409, "RECORD_LIMIT_REACHED"}, // the number of u1
		} {
			s.As(c.who).Wants(confirm, idBody(person, c.changes...), c.status, c.want)
		}
		storetest.Equal(t, s.dump(), before, "a refusal changed something")

		// A user cannot become another person after an administrator confirmed the documents.
		s.set("kyc_confirm", user.ManuelApproved, "u1")
		for _, change := range [][]any{{"userIdentityNumber", other}, {"name", "Fatma"}, {"birthDate", "1991-05-01"}} {
			s.As("u1").Wants(confirm, idBody(person, change...), 409, "INVALID_STATE")
		}
		s.confirms("u1", idBody(person, "name", "AYŞE"), is("u1", "AYŞE Yılmaz", user.ManuelApproved))

		// A session that has ended gets no new token, and nothing is saved.
		storetest.Must(t, s.db.Commit(t.Context(), session.End{SessionID: "u5", UserID: "u5", At: s.now}))
		s.As("u5").Wants(confirm, idBody(person, "userIdentityNumber", other), 401, "TOKEN_REVOKED")
		storetest.Must(t, s.db.Commit(t.Context(), user.EndSessions{UserID: "u6", SV: 1, At: s.now}))
		s.As("u6").Wants(confirm, idBody(person, "userIdentityNumber", other), 401, "TOKEN_REVOKED")
		if s.user("u5").IdentityHash != "" || s.user("u6").Name != "" {
			t.Error("saved without a session")
		}
		// Nor does an account that becomes risky while the register is asked.
		s.service.Registry = meanwhile(func() { s.set("aml_status", "risky", "u7") })
		s.As("u7").Wants(confirm, idBody(person, "userIdentityNumber", other, "useTCKNService", true), 403, "FORBIDDEN")
		for _, born := range []string{"1900-01-01", day(0)} {
			s.confirms("u4", idBody(person, "userIdentityNumber", other, "birthDate", born),
				is("u4", "Ayşe Yılmaz", "waitingApproval"))
		}
	})
}

// meanwhile is a register that runs a function during its call, and confirms every person.
type meanwhile func()

func (m meanwhile) Verify(context.Context, identity.Person) (bool, error) { m(); return true, nil }

// Of accounts that confirm one number at the same time as many get it as may.
func TestRace(t *testing.T) {
	identityBoth(t, func(s *idSite) {
		s.service.Accounts = 2
		won := storetest.Race(t, 8, fault.RecordLimitReached, func(i int) error {
			return s.As(fmt.Sprint("u", i)).Try(confirm, idBody(person))
		})
		n, err := s.service.Store.Others(t.Context(), "", s.service.Hashes(number)[0])
		if won != 2 || n != 2 || err != nil {
			t.Errorf("%d of 8 won, %d have the number, %v", won, n, err)
		}
	})
}
