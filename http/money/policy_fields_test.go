package money_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
	"castellan/persistence/persistencetest"
)

// Rules that have, with largeRule, each field.
const (
	conditions = `"match":{"assets":[{"currencyCode":"BTC"}],"amount":{"over":"1","unit":"ASSET"},` +
		`"sums":[{"per":"DESTINATION","window":"2h","of":"COUNT","over":"3"}],"destination":{"firstUse":true},` +
		`"account":{"credentialAgeBelow":"24h","creditAgeBelow":"2h","firstWithdrawal":true},"device":["NEW"],` +
		`"initiator":{"roles":["clerk"]}},"except":{"accounts":["u1"],"destinations":["BTC/x"]},` +
		`"effect":{"type":"OWNER","required":2,"phishingResistant":true}`
	ownerRule   = `{"label":"Owner","status":"ACTIVE","kinds":["WITHDRAWAL"],` + conditions + `}`
	settingRule = `{"label":"Setting","status":"ACTIVE","kinds":["SETTING"],"match":{"settings":["FEE"]},"except":{},` +
		`"effect":{"type":"APPROVAL","group":"treasury","required":1}}`
	waitRule = `{"label":"Wait","status":"INACTIVE","kinds":["WITHDRAWAL","DEPOSIT"],"match":{},"except":{},` +
		`"effect":{"type":"WAIT","for":"48h","after":"CREDENTIALS"}}`
)

// Each field of a rule is stored, shown and changed.
func TestMoneyRuleFields(t *testing.T) {
	s := servePolicy(t, persistencetest.SQLite(t))
	s.Wants("POST "+rulesLine, `{"rules":[`+waitRule+","+settingRule+","+strings.TrimSuffix(ownerRule, "}")+
		`,"expiresAt":"2030-01-01"}]}`, 200, `{}`)
	owner := versioned(ownerRule, "1", `"2030-01-01T00:00:00.000Z"`)
	wait := versioned(waitRule, "1", "null")
	s.Wants("GET "+rulesLine, "", 200, "["+owner+","+versioned(settingRule, "1", "null")+","+wait+"]")
	for i, c := range [][2]string{
		{`"status":"INACTIVE","kinds":["WITHDRAWAL"],` + conditions + `,"expiresAt":"2030-01-01"`,
			`"2030-01-01T00:00:00.000Z"`},
		{`"expiresAt":null`, `null`}} {
		code, answer := s.Call("PATCH "+rulesLine, fmt.Sprintf(`{"label":"Setting","version":%d,%s}`, i+1, c[0]))
		if code != 202 {
			t.Fatalf("%d %s", code, answer)
		}
		storetest.Must(t, s.approve(answer))
		changed := `{"label":"Setting","status":"INACTIVE","kinds":["WITHDRAWAL"],` + conditions + `}`
		s.Wants("GET "+rulesLine, "", 200, "["+owner+","+versioned(changed, fmt.Sprint(i+2), c[1])+","+wait+"]")
	}
}

// The verdict and the reason of each rule follow the rules in force; a sum counts the movement alone.
func TestExplainMoneyPolicy(t *testing.T) {
	s := servePolicy(t, persistencetest.SQLite(t))
	s.Wants("POST "+rulesLine, `{"rules":[
		{"label":"a","status":"ACTIVE","kinds":["WITHDRAWAL"],"match":{"amount":{"over":"10","unit":"TRY"}},
			"effect":{"type":"APPROVAL","group":"treasury","required":2}},
		{"label":"b","status":"ACTIVE","kinds":["WITHDRAWAL"],
			"match":{"sums":[{"per":"ACCOUNT","window":"1h","of":"VALUE","over":"20"}]},"effect":{"type":"DENY"}},
		{"label":"c","status":"TRIAL","kinds":["WITHDRAWAL"],"effect":{"type":"WAIT","for":"1h","after":"REQUEST"}}]}`,
		200, `{}`)
	const facts = `{"facts":{"kind":"WITHDRAWAL","asset":{"currencyCode":"BTC"},"amount":"1","value":"11",
		"initiator":{"type":"USER"}}}`
	s.Wants("POST /admin/money/explain", facts, 200, `{"data":{"verdict":{"deny":false,"approvals":[{"group":"treasury",`+
		`"required":2,"expires":"72h"}],"until":null,"owner":null,"rules":[{"label":"a","version":1}],`+
		`"trial":[{"label":"c","version":1}]},"rules":[`+
		`{"label":"a","version":1,"matched":true,"reason":"ADDS","used":null,"limit":null},`+
		`{"label":"b","version":1,"matched":false,"reason":"WITHIN_SUM","used":"11","limit":"20"},`+
		`{"label":"c","version":1,"matched":true,"reason":"TRIAL","used":null,"limit":null}]}}`)
	s.Wants("POST /admin/money/explain", strings.Replace(facts, `"11"`, `"x"`, 1), 400, "INVALID_FIELD facts.value")
	s.Wants("POST /admin/money/explain", strings.Replace(facts, `"amount"`, `"sum"`, 1), 400, "INVALID_FIELD facts.sum")
	s.Wants("POST /admin/money/explain", `{"movementId":"1"}`, 404, "RECORD_NOT_FOUND")
	for _, both := range []string{`{}`, strings.Replace(facts, `{"facts"`, `{"movementId":"m1","facts"`, 1)} {
		s.Wants("POST /admin/money/explain", both, 400, "INVALID_FIELD facts")
	}
}

// explained is what the rules say about a movement: for each its label, its reason and its first sum.
func (s *policySite) explained(t *testing.T, body string) (all []string, verdict string) {
	t.Helper()
	code, answer := s.Call("POST /admin/money/explain", body)
	var out struct {
		Data struct {
			Verdict json.RawMessage
			Rules   []struct {
				Label, Reason string
				Matched       bool
				Used, Limit   *string
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || code != 200 {
		t.Fatalf("%s: %d %s", body, code, answer)
	}
	for _, r := range out.Data.Rules {
		text := fmt.Sprint(r.Label, " ", r.Reason, " ", r.Matched)
		if r.Used != nil {
			text += " " + *r.Used + " of " + *r.Limit
		}
		all = append(all, text)
	}
	return all, string(out.Data.Verdict)
}

// Each fact of a movement is read: another one changes what the rules say.
func TestExplainReadsEachFact(t *testing.T) {
	s := servePolicy(t, persistencetest.SQLite(t))
	s.Wants("POST "+rulesLine, `{"rules":[{"label":"all","status":"ACTIVE","kinds":["WITHDRAWAL"],"match":{
		"assets":[{"currencyCode":"BTC","network":"BTC"}],"direction":"OUT","amount":{"over":"5","unit":"ASSET"},
		"sums":[{"per":"ACCOUNT","window":"1h","of":"AMOUNT","over":"5"},
			{"per":"PLATFORM","window":"1h","of":"VALUE","over":"10"},
			{"per":"PLATFORM","window":"1h","of":"COUNT","over":"0"}],
		"destination":{"inBook":true,"bookAgeBelow":"48h","firstUse":true},
		"account":{"levels":[2],"aml":["risky"],"ageBelow":"48h","credentialAgeBelow":"48h","creditAgeBelow":"48h",
			"firstWithdrawal":true},
		"device":["NEW"],"initiator":{"types":["SERVICE"],"names":["shop"],"roles":["clerk"]},
		"hours":{"from":"10:00","to":"11:00","zone":"UTC"}},"except":{"accounts":["u9"],"destinations":["BTC/x9"]},
		"effect":{"type":"DENY"}},
		{"label":"in","status":"ACTIVE","kinds":["DEPOSIT"],"match":{"direction":"IN"},"effect":{"type":"DENY"}},
		{"label":"many","status":"ACTIVE","kinds":["WITHDRAWAL"],"match":{"sums":[{"per":"PLATFORM","window":"1h",
			"of":"COUNT","over":"1"}]},"effect":{"type":"DENY"}},
		{"label":"owner","status":"ACTIVE","kinds":["WITHDRAWAL"],
			"effect":{"type":"OWNER","required":2,"phishingResistant":true}},
		{"label":"set","status":"ACTIVE","kinds":["SETTING"],"match":{"settings":["FEE"]},
			"effect":{"type":"APPROVAL","group":"treasury","required":1,"expires":"5h"}},
		{"label":"wait","status":"ACTIVE","kinds":["WITHDRAWAL"],
			"effect":{"type":"WAIT","for":"1h","after":"REQUEST"}}]}`, 200, `{}`)
	const facts = `{"facts":{"kind":"WITHDRAWAL","at":"2026-01-31T10:30:00Z","asset":{"currencyCode":"BTC",` +
		`"network":"BTC"},"amount":"6","value":"11","destination":{"key":"BTC/x","bookedAt":"2026-01-31T09:00:00Z"},` +
		`"account":{"id":"u1","level":2,"aml":"risky","createdAt":"2026-01-31T09:00:00Z",` +
		`"credentialsAt":"2026-01-31T09:00:00Z","creditedAt":"2026-01-31T09:00:00Z"},"device":"NEW",` +
		`"initiator":{"type":"SERVICE","name":"shop","roles":["clerk"]}}}`
	verdict := func(deny bool, until string) string {
		return fmt.Sprintf(`{"deny":%t,"approvals":[],"until":"%s:00.000Z","owner":{"asked":true,"required":2,`+
			`"phishingResistant":true},"rules":[%s{"label":"owner","version":1},{"label":"wait","version":1}],"trial":[]}`,
			deny, until, map[bool]string{true: `{"label":"all","version":1},`}[deny])
	}
	rest := []string{"in OTHER_KIND false", "many WITHIN_SUM false 1 of 1", "owner ADDS true", "set OTHER_KIND false",
		"wait ADDS true"}
	for change, want := range map[string]string{
		"|": "DECIDES true 6 of 5", `"value":"11",|`: "NO_RATE true 6 of 5",
		`"value":"11"|"value":"10"`:                 "WITHIN_SUM false 10 of 10",
		`"currencyCode":"BTC"|"currencyCode":"ETH"`: "OTHER_ASSET", `"network":"BTC"|"network":"TRX"`: "OTHER_ASSET",
		`"amount"|"direction":"IN","amount"`: "OTHER_DIRECTION", `"amount":"6"|"amount":"5"`: "BELOW_AMOUNT",
		`"amount":"6",|`: "BELOW_AMOUNT", `,"bookedAt":"2026-01-31T09:00:00Z"|`: "OTHER_DESTINATION",
		`"bookedAt":"2026-01-31|"bookedAt":"2026-01-20`: "OTHER_DESTINATION", `"key"|"used":true,"key"`: "OTHER_DESTINATION",
		`"BTC/x"|"BTC/x9"`: "EXCEPTED", `"u1"|"u9"`: "EXCEPTED", `"level":2|"level":1`: "OTHER_ACCOUNT",
		`"aml":"risky",|`: "OTHER_ACCOUNT", `"createdAt":"2026-01-31|"createdAt":"2026-01-20`: "OTHER_ACCOUNT",
		`"credentialsAt":"2026-01-31|"credentialsAt":"2026-01-20`: "OTHER_ACCOUNT", `"device":"NEW",|`: "OTHER_DEVICE",
		`"creditedAt":"2026-01-31|"creditedAt":"2026-01-20`: "OTHER_ACCOUNT", `"shop"|"other"`: "OTHER_INITIATOR",
		`"id"|"withdrew":true,"id"`: "OTHER_ACCOUNT", `"SERVICE"|"OPERATOR"`: "OTHER_INITIATOR",
		`["clerk"]|["other"]`: "OTHER_INITIATOR",
	} {
		from, to, _ := strings.Cut(change, "|")
		if !strings.Contains(want, " ") {
			want += " false"
		}
		got, says := s.explained(t, strings.Replace(facts, from, to, 1))
		if !slices.Equal(got, append([]string{"all " + want}, rest...)) ||
			says != verdict(strings.Contains(want, "true"), "2026-01-31T11:30") {
			t.Errorf("%s: %v %s", change, got, says)
		}
	}
	for change, until := range map[string]string{`"at":"2026-01-31T10:30:00Z",|`: "2001-09-09T02:46",
		`"at"|"requestedAt":"2026-01-31T10:00:00Z","at"`: "2026-01-31T11:00"} {
		from, to, _ := strings.Cut(change, "|")
		_, says := s.explained(t, strings.Replace(facts, from, to, 1))
		if want := verdict(strings.Contains(change, "requestedAt"), until); strings.Replace(says, ":40.000Z", ":00.000Z",
			1) != want {
			t.Errorf("%s: %s, want %s", change, says, want)
		}
	}
	movement := func(kind, more string) string {
		return `{"facts":{"kind":"` + kind + `",` + more + `"initiator":{"type":"USER"}}}`
	}
	s.stored = &policy.Facts{Kind: policy.Setting, Setting: "FEE"}
	for body, want := range map[string]string{movement("DEPOSIT", ""): "in DECIDES true",
		movement("DEPOSIT", `"direction":"OUT",`):   "in OTHER_DIRECTION false",
		movement("SETTING", `"setting":"FEE",`):     "set ADDS true",
		movement("SETTING", `"setting":"RATE",`):    "set OTHER_SETTING false",
		`{"movementId":"m1"}`:                       "set ADDS true",
		movement("ADJUSTMENT", `"direction":"IN",`): "in OTHER_KIND false"} {
		if got, says := s.explained(t, body); !slices.Contains(got, want) {
			t.Errorf("%s: %v, want %s; %s", body, got, want, says)
		}
	}
}

// The answer has all that was found. The movements are those of the days.
func TestRehearseMoneyRule(t *testing.T) {
	s := servePolicy(t, persistencetest.SQLite(t))
	const rehearse = "POST /admin/money/rehearse"
	s.Wants(rehearse, `{"rule":`+largeRule+`,"days":31}`, 200, `{"data":{"considered":0,"denied":0,"held":0,`+
		`"ownerAsked":0,"unknown":0,"value":"0","accounts":0,"medianWait":null,"longestWait":null,"examples":[],`+
		`"truncated":false}}`)
	s.Wants(rehearse, strings.Replace(`{"rule":`+largeRule+`}`, `"24h"`, `"32d"`, 1), 400,
		"INVALID_FIELD rule.match.sums[0].window")
	s.found, s.cut = &policy.Rehearsal{Considered: 1, Denied: 2, Held: 3, Owner: 4, Unknown: 5,
		Value: policy.Number(6).Sum(), Accounts: 7, Examples: []string{"m1", "m2"},
		Waits: []time.Duration{time.Minute, 61 * time.Second, 36 * time.Hour}}, true
	for body, days := range map[string]time.Duration{`{"rule":` + largeRule + `,"days":31}`: 31,
		`{"rule":` + largeRule + `}`: 30} {
		s.Wants(rehearse, body, 200, `{"data":{"considered":1,"denied":2,"held":3,"ownerAsked":4,"unknown":5,"value":"6",`+
			`"accounts":7,"medianWait":"2m","longestWait":"36h","examples":["m1","m2"],"truncated":true}}`)
		if want := time.UnixMilli(1e12).Add(-days * policy.Day); !s.from.Equal(want) {
			t.Errorf("from %v, want %v", s.from, want)
		}
	}
	s.found.Waits = s.found.Waits[:1]
	_, answer := s.Call(rehearse, `{"rule":`+largeRule+`}`)
	if !strings.Contains(answer, `"medianWait":"1m","longestWait":"1m"`) {
		t.Errorf("one wait: %s", answer)
	}
}
