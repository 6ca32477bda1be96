package money_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/domain/office/foureyes"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httppolicy "castellan/http/money/policy"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

// policySite is the section with four eyes. approve carries out a pending call as the other person would.
type policySite struct {
	*apitest.Site
	approve func(answer string) error
	alone   bool              // no other administrator exists
	found   *policy.Rehearsal // of any rule
	cut     bool              // whether it is truncated
	from    time.Time         // of the last rehearsal
	stored  *policy.Facts     // of the movement m1
}

func servePolicy(t *testing.T, db *persistence.DB) *policySite {
	store, ring := money.NewRules(db), keyringtest.Ring(t, time.Now)
	live, s := policy.NewCache(store), &policySite{}
	changes := admin.Changes{Commit: db, Now: time.Now, Topic: change.Policy, Lock: store.Lock, Follow: live.Follow}
	rules := &policy.Admin{Store: store, Changes: changes,
		Members: func(_ context.Context, role string) (int, error) { return map[string]int{"treasury": 2}[role], nil },
		Second: func(context.Context, audit.By) error {
			if s.alone {
				return fault.New(fault.InvalidState, "no other administrator exists")
			}
			return nil
		}}
	judge := &transaction.Judge{Past: money.NewTransactions(db)}
	rules.Rehearse = func(ctx context.Context, from time.Time, all ...policy.Rule) ([]policy.Rehearsal, bool, error) {
		if s.from = from; s.found != nil {
			return []policy.Rehearsal{{}, *s.found}[2-len(all):], s.cut, nil
		}
		return judge.Rehearse(ctx, from, all...)
	}
	people := &foureyes.Service{Store: office.NewFourEyes(db), Changes: admin.Changes{Commit: db, Now: time.Now},
		Seal: ring.Seal, Open: ring.Open, TTL: time.Minute, Secret: func(string) bool { return false },
		Account: func(context.Context, string) (challenge.Account, error) { return challenge.Account{}, nil },
		Live:    func(string, string, int64) bool { return true },
		Shared:  func(context.Context, string, string) (bool, error) { return false, nil },
		Run: func(ctx context.Context, request json.RawMessage) (out json.RawMessage, err error) {
			var c edge.Captured
			if err := json.Unmarshal(request, &c); err != nil {
				return nil, err
			}
			return s.Server.CarryOut(ctx, c)
		}}
	s.Site = apitest.Serve(t, edge.Options{SecondPerson: auth.SecondPerson{Service: people, Commit: db}},
		httppolicy.Group{Admin: rules, Rules: live.Current,
			Stored: func(ctx context.Context, set *policy.Set, id string) (policy.Facts, []policy.Total, error) {
				if id == "m1" {
					return *s.stored, make([]policy.Total, len(set.Sums())), nil
				}
				return judge.Stored(ctx, set, id)
			}, Hits: store, Now: func() time.Time { return time.UnixMilli(1e12) }})
	s.approve = func(answer string) error {
		var pending struct{ Data struct{ ApprovalID string } }
		storetest.Must(t, json.Unmarshal([]byte(answer), &pending))
		err := db.InTx(t.Context(), func(ctx context.Context) error {
			_, err := people.Approve(ctx, audit.By{UserID: "other"}, pending.Data.ApprovalID,
				func(foureyes.Request) error { return nil })
			return err
		})
		storetest.Must(t, live.Reload(t.Context()))
		return err
	}
	return s
}

const (
	rulesLine = "/admin/money/rules"
	largeRule = `{"label":"Large","status":"ACTIVE","kinds":["WITHDRAWAL"],"match":{` +
		`"assets":[{"currencyCode":"USDT","network":"TRX"}],"direction":"OUT","amount":{"over":"2000000","unit":"TRY"},` +
		`"sums":[{"per":"ACCOUNT","window":"24h","of":"VALUE","over":"5000000.000000000000000001"}],` +
		`"destination":{"inBook":false,"bookAgeBelow":"48h"},"account":{"levels":[1],"aml":["risky"],"ageBelow":"90m"},` +
		`"initiator":{"types":["SERVICE"],"names":["shop"]},` +
		`"hours":{"from":"22:00","to":"07:00","zone":"Europe/Istanbul"}},"except":{"initiators":["SERVICE:old"]},` +
		`"effect":{"type":"APPROVAL","group":"treasury","required":2,"expires":"72h"}}`
)

// versioned is a rule as the list shows it.
func versioned(rule, version, expires string) string {
	rule = strings.Replace(rule, `","status"`, `","version":`+version+`,"status"`, 1)
	hits := "0"
	if strings.Contains(rule, `"sums"`) && strings.Contains(rule, `"TRIAL"`) {
		hits = "null"
	}
	return strings.TrimSuffix(rule, "}") + `,"expiresAt":` + expires + `,"hits":` + hits + `}`
}

// D-POL-11: a rule is added by one person, all of a list or none; a change and a deletion wait for another one.
func TestMoneyRules(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := servePolicy(t, db)
		s.Wants("GET "+rulesLine, "", 200, `[]`)
		s.Wants("POST "+rulesLine, largeRule, 200, `{}`)
		s.Wants("POST "+rulesLine, largeRule, 409, "RECORD_ALREADY_EXIST")
		s.Wants("GET "+rulesLine, "", 200, "["+versioned(largeRule, "1", "null")+"]")
		deny := func(label string) string {
			return `{"label":"` + label + `","status":"TRIAL","kinds":["DEPOSIT"],"match":{},"except":{},` +
				`"effect":{"type":"DENY"}}`
		}
		s.Wants("POST "+rulesLine, `{"rules":[`+deny("A")+","+deny("Large")+`]}`, 409, "RECORD_ALREADY_EXIST")
		s.Wants("POST "+rulesLine, `{"rules":[`+deny("A")+","+deny("B")+`]}`, 200, `{}`)
		s.Wants("GET "+rulesLine+"?status=TRIAL", "", 200,
			"["+versioned(deny("A"), "1", "null")+","+versioned(deny("B"), "1", "null")+"]")

		const change = `{"label":"A","version":1,"match":{"amount":{"over":"1.5","unit":"TRY"}},"expiresAt":"2030-01-01"}`
		s.alone = true
		s.Wants("PATCH "+rulesLine, change, 409, "INVALID_STATE")
		s.Wants("DELETE "+rulesLine, `{"label":"A"}`, 409, "INVALID_STATE")
		s.alone = false
		s.Wants("PATCH "+rulesLine, `{"label":"A","status":"TRIAL"}`, 200, `{}`) // nothing to change
		s.Wants("PATCH "+rulesLine, `{"label":"A","version":2}`, 409, "INVALID_STATE")
		s.Wants("PATCH "+rulesLine, `{"label":"C","status":"TRIAL"}`, 404, "RECORD_NOT_FOUND")
		s.Wants("DELETE "+rulesLine, `{"label":"C"}`, 404, "RECORD_NOT_FOUND")
		var waiting []string
		for _, line := range []string{"PATCH " + change, "PATCH " + change, `DELETE {"label":"B"}`} {
			method, body, _ := strings.Cut(line, " ")
			code, answer := s.Call(method+" "+rulesLine, body)
			if waiting = append(waiting, answer); code != 202 {
				t.Errorf("%s: %d %s", line, code, answer)
			}
		}
		s.Wants("GET "+rulesLine+"?status=TRIAL", "", 200,
			"["+versioned(deny("A"), "1", "null")+","+versioned(deny("B"), "1", "null")+"]")
		if err := s.approve(waiting[0]); err != nil {
			t.Error(err)
		}
		if err := s.approve(waiting[1]); fault.CodeOf(err) != fault.InvalidState { // it was decided on version 1
			t.Errorf("the second approval: %v", err)
		}
		if err := s.approve(waiting[2]); err != nil {
			t.Error(err)
		}
		changed := strings.Replace(deny("A"), `"match":{}`, `"match":{"amount":{"over":"1.5","unit":"TRY"}}`, 1)
		s.Wants("GET "+rulesLine+"?status=TRIAL", "", 200, "["+versioned(changed, "2", `"2030-01-01T00:00:00.000Z"`)+"]")
	})
}

// The list shows how often the current version of a rule asked for something in the last hours, by two statements for
// any number of rules and of hits. Of a rule on trial with a sum it is not known.
func TestMoneyRuleHits(t *testing.T) {
	var reads atomic.Int64
	trace := func(_ context.Context, statement string) bool {
		if strings.Contains(statement, "money_") {
			reads.Add(1)
		}
		return false
	}
	persistencetest.BothWith(t, persistence.Options{Trace: trace}, func(t *testing.T, db *persistence.DB) {
		s, store := servePolicy(t, db), money.NewRules(db)
		trial := strings.Replace(strings.Replace(largeRule, "Large", "Trial", 1), "ACTIVE", "TRIAL", 1)
		s.Wants("POST "+rulesLine, `{"rules":[`+largeRule+","+trial+`]}`, 200, `{}`)
		add := func(ago time.Duration, version, n int64) {
			storetest.Must(t, store.AddHits(t.Context(), time.UnixMilli(1e12).Add(-ago), map[policy.Named]int64{
				{Label: "Large", Version: version}: n, {Label: "Trial", Version: 1}: 9}))
		}
		add(0, 1, 1)
		add(0, 1, 10)
		add(23*time.Hour, 1, 100)
		add(24*time.Hour, 1, 1000)
		add(0, 2, 10_000)
		reads.Store(0)
		want := strings.Replace(versioned(largeRule, "1", "null"), `"hits":0`, `"hits":111`, 1)
		s.Wants("GET "+rulesLine, "", 200, "["+want+","+versioned(trial, "1", "null")+"]")
		storetest.Equal(t, reads.Load(), 2, "statements")
		storetest.Must(t, store.PurgeHits(t.Context(), time.UnixMilli(1e12).Add(-time.Hour)))
		left := storetest.Value(store.Hits(t.Context(), time.Time{}))(t)
		storetest.Same(t, left, map[policy.Named]int64{{Label: "Large", Version: 1}: 11, {Label: "Trial", Version: 1}: 27,
			{Label: "Large", Version: 2}: 10_000})
	})
}

// D-POL-20: a rule that would have stopped more than 1 % of the movements of the last day waits for another person.
func TestWideMoneyRuleNeedsSecondPerson(t *testing.T) {
	s := servePolicy(t, persistencetest.SQLite(t))
	n := 0
	add := func(effect string) (int, string) {
		n++
		return s.Call("POST "+rulesLine, fmt.Sprintf(`{"label":"%d","status":"ACTIVE","kinds":["DEPOSIT"],"effect":%s}`, n,
			effect))
	}
	const deny = `{"type":"DENY"}`
	for _, c := range []struct {
		found policy.Rehearsal
		want  int
	}{{policy.Rehearsal{Considered: 99, Denied: 99}, 200}, {policy.Rehearsal{Considered: 100, Denied: 1}, 200},
		{policy.Rehearsal{Considered: 100, Denied: 1, Held: 1}, 202}, {policy.Rehearsal{Considered: 199, Held: 2}, 202},
		{policy.Rehearsal{Considered: 200, Held: 2}, 200}, {policy.Rehearsal{Considered: 100, Unknown: 2}, 202}} {
		s.found = &c.found
		if code, answer := add(deny); code != c.want {
			t.Errorf("%+v: %d %s", c.found, code, answer)
		}
	}
	s.found = &policy.Rehearsal{Considered: 100, Denied: 100}
	trial := `{"label":"t","status":"TRIAL","kinds":["DEPOSIT"],"effect":` + deny + `}`
	s.Wants("POST "+rulesLine, trial, 200, `{}`)
	_, before := s.Call("GET "+rulesLine, "")
	s.alone = true
	if code, answer := add(deny); code != 409 {
		t.Errorf("no other administrator: %d %s", code, answer)
	}
	s.alone = false
	wide := strings.Replace(strings.Replace(trial, "TRIAL", "ACTIVE", 1), `"t"`, `"w"`, 1)
	code, answer := s.Call("POST "+rulesLine, `{"rules":[`+strings.Replace(wide, `"w"`, `"v"`, 1)+","+wide+`]}`)
	if s.Wants("GET "+rulesLine, "", 200, before); code != 202 {
		t.Errorf("a list with a wide rule: %d %s", code, answer)
	}
	storetest.Must(t, s.approve(answer))
	if _, after := s.Call("GET "+rulesLine, ""); len(after) <= len(before) {
		t.Errorf("the rules of an approved request: %s", after)
	}
	s.Wants("POST "+rulesLine, `{"label":"","status":"ACTIVE","kinds":["DEPOSIT"],"effect":`+deny+`}`, 400,
		"INVALID_FIELD label")
}

// Faults name the field; a condition that is not known is not left out. A rule that excepts the caller is refused.
func TestMoneyRuleFaults(t *testing.T) {
	s := servePolicy(t, persistencetest.SQLite(t))
	for change, want := range map[string]string{
		`"over":"2000000"|"over":"2,5"`:                 "match.amount.over",
		`"over":"2000000"|"over":"-1"`:                  "match.amount.over",
		`"unit":"TRY"|"unit":"EUR"`:                     "match.amount.unit",
		`"window":"24h"|"window":"24"`:                  "match.sums[0].window",
		`000001"|x"`:                                    "match.sums[0].over",
		`"bookAgeBelow":"48h"|"bookAgeBelow":"0h"`:      "match.destination.bookAgeBelow",
		`"ageBelow":"90m"|"credentialAgeBelow":"x"`:     "match.account.credentialAgeBelow",
		`"ageBelow":"90m"|"creditAgeBelow":"x"`:         "match.account.creditAgeBelow",
		`"expires":"72h"|"expires":"x"`:                 "effect.expires",
		`"required":2|"for":"x"`:                        "effect.for",
		`"window":"24h"|"window":"32d"`:                 "match.sums[0].window",
		`"ageBelow":"90m"|"ageBelow":"x"`:               "match.account.ageBelow",
		`"levels":[1]|"level":[1]`:                      "match.account.level",
		`"hours":|"proven":true,"hours":`:               "match.proven",
		`"hours":|"device":["OLD"],"hours":`:            "match.device",
		`"per":"ACCOUNT"|"per":"ALL"`:                   "match.sums[0].per",
		`"Europe/Istanbul"|"Istanbul"`:                  "match.hours.zone",
		`"group":"treasury"|"group":"clerks"`:           "effect.group",
		`"required":2|"required":2,"for":"1h"`:          "effect.for",
		`"kinds":["WITHDRAWAL"]|"kinds":["WITHDRAWLS"]`: "kinds",
		`"kinds":["WITHDRAWAL"],|`:                      "kinds",
		`"label":"Large",|`:                             "label",
		`"initiators":["SERVICE:old"]|"users":["a"]`:    "except.users",
	} {
		from, to, _ := strings.Cut(change, "|")
		body := strings.Replace(largeRule, from, to, 1)
		s.Wants("POST "+rulesLine, body, 400, "INVALID_FIELD "+want)
		if want != "effect.group" { // it is judged among all rules
			s.Wants("POST "+rulesLine, `{"rules":[`+largeRule+`,`+body+`]}`, 400, "INVALID_FIELD rules[1]."+want)
		}
	}
	s.Wants("POST "+rulesLine, `{"rules":[]}`, 400, "INVALID_FIELD rules")
	s.Wants("POST "+rulesLine, `{"label":"x","rules":[`+largeRule+`]}`, 400, "INVALID_FIELD rules")
	many := func(n int) string {
		rules := make([]string, n)
		for i := range rules {
			rules[i] = fmt.Sprintf(`{"label":"%d","status":"TRIAL","kinds":["DEPOSIT"],"effect":{"type":"DENY"}}`, i)
		}
		return `{"rules":[` + strings.Join(rules, ",") + `]}`
	}
	s.Wants("POST "+rulesLine, many(501), 400, "INVALID_FIELD rules")
	s.Wants("POST "+rulesLine, many(500), 200, `{}`)

	own := strings.Replace(largeRule, `"initiators":["SERVICE:old"]`, `"accounts":["clerk"]`, 1)
	s.Wants("POST "+rulesLine, own, 200, `{}`)
	clerk := s.As("clerk")
	for _, line := range []string{"POST " + own, `POST {"rules":[` + largeRule + "," + own + `]}`,
		`PATCH {"label":"Large","except":{}}`, `PATCH {"label":"0","except":{"accounts":["clerk"]}}`} {
		method, body, _ := strings.Cut(line, " ")
		clerk.Wants(method+" "+rulesLine, body, 403, "FORBIDDEN")
	}
	if code, answer := clerk.Call("PATCH "+rulesLine, `{"label":"Large","status":"TRIAL"}`); code != 202 {
		t.Errorf("a change of another field: %d %s", code, answer)
	}
}
