package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
)

// large is the example of the design: a rule with most of its fields.
const large = `{"label":"Large withdrawals","status":"ACTIVE","kinds":["WITHDRAWAL"],
	"match":{"assets":[{"currencyCode":"USDT","network":"TRX"}],"direction":"OUT","amount":{"over":"2000000","unit":"TRY"},
		"sums":[{"per":"ACCOUNT","window":"24h","of":"VALUE","over":"5000000"}],
		"destination":{"inBook":false,"bookAgeBelow":"48h","firstUse":true},
		"account":{"levels":[1],"aml":["risky"],"ageBelow":"168h","credentialAgeBelow":"24h","creditAgeBelow":"48h",
			"firstWithdrawal":true},
		"initiator":{"types":["SERVICE"],"names":["shop"],"roles":["support"]},
		"hours":{"from":"22:00","to":"07:00","zone":"Europe/Istanbul"}},
	"except":{"accounts":["u1"],"destinations":["TRX/T1"],"initiators":["SERVICE:shop"]},
	"effect":{"type":"APPROVAL","group":"treasury","required":2,"expires":"72h"}}`

func ruleOf(t *testing.T, text string) (r policy.Rule) {
	t.Helper()
	storetest.Must(t, json.Unmarshal([]byte(text), &r))
	return r
}

// Values of a valid rule are replaced; the error names the fields.
func TestFaultyRulesAreRefusedByField(t *testing.T) {
	t.Parallel()
	for replaced, with := range map[string]string{
		`"Large withdrawals"`:     `" x"|label`,
		`"status":"ACTIVE"`:       `"status":"active"|status`,
		`["WITHDRAWAL"]`:          `[]|kinds`,
		`"direction":"OUT"`:       `"direction":"UP"|match.direction`,
		`"2000000"`:               `"-1"|match.amount.over`,
		`"unit":"TRY"`:            `"unit":"USD"|match.amount.unit`,
		`{"currencyCode":"USDT",`: `{"currencyCode":""},{|match.assets match.assets`,
		`[{"currencyCode":"USDT","network":"TRX"}],"direction":"OUT","amount":{"over":"2000000","unit":"TRY"}`: `[],` +
			`"amount":{"over":"0","unit":"ASSET"}|match.amount.unit`,
		`"per":"ACCOUNT"`:                 `"per":"NOBODY"|match.sums[0].per`,
		`"window":"24h"`:                  `"window":"745h"|match.sums[0].window`,
		`"of":"VALUE"`:                    `"of":"ACCOUNTS"|match.sums[0].of`,
		`"VALUE","over":"5000000"`:        `"COUNT","over":"1.5"|match.sums[0].over`,
		`"5000000"`:                       `"-1"|match.sums[0].over`,
		`"aml":["risky"]`:                 `"aml":["bad"]|match.account.aml`,
		`"direction":"OUT",`:              `"settings":["FEE"],|match.settings`,
		`"direction":`:                    `"settings":["PRICE"],"direction":|match.settings match.settings`,
		`"levels":[1],`:                   `"levels":[1]},"device":["OLD"],"account":{|match.device`,
		`"types":["SERVICE"]`:             `"types":["ROBOT"]|match.initiator.types`,
		`"names":["shop"]`:                `"names":[""]|match.initiator.names`,
		`"roles":["support"]`:             `"roles":["a\u0000"]|match.initiator.roles`,
		`"from":"22:00"`:                  `"from":"24:00"|match.hours.from`,
		`"22:00","to":"07:00"`:            `"22:00","to":"7:00"|match.hours.to`,
		`"to":"07:00"`:                    `"to":"22:00"|match.hours.to`,
		`"Europe/Istanbul"`:               `"Mars/Olympus"|match.hours.zone`,
		`"zone":"Europe/Istanbul"`:        `"zone":"Local"|match.hours.zone`,
		`,"zone":"Europe/Istanbul"`:       `|match.hours.zone`,
		`"accounts":["u1"]`:               `"accounts":[""]|except.accounts`,
		`["TRX/T1"]`:                      `[""]|except.destinations`,
		`["SERVICE:shop"]`:                `[""]|except.initiators`,
		`"type":"APPROVAL"`:               `"type":"ALLOW"|effect.type effect.group effect.expires effect.required`,
		`"APPROVAL","group"`:              `"DENY","group"|effect.group effect.expires effect.required`,
		`"APPROVAL","group":"treasury","`: `"OWNER","for":"48h","after":"CREDIT","|effect.expires effect.for effect.after`,
		`"treasury","required":2`: `"","phishingResistant":true|effect.phishingResistant effect.group ` +
			`effect.required`,
		`"APPROVAL","group":"treasury","r`: `"WAIT","for":"48h","after":"EASTER","r|effect.expires ` +
			`effect.required effect.after`,
		`["WITHDRAWAL"],` + "\n": `["SETTING"],|match.assets match.direction match.amount match.sums match.account ` +
			`match.destination match.account.firstWithdrawal except.accounts except.destinations effect.required`,
		`"kinds":["WITHDRAWAL"]`: `"kinds":["DEPOSIT"]|match.destination match.account.firstWithdrawal ` +
			`except.destinations effect.required`,
		`["WITHDRAWAL"],` + "\n\t" + `"match":{`: `["DEPOSIT"],"match":{"device":["NEW"],|match.destination ` +
			`match.account.firstWithdrawal match.device except.destinations effect.required`,
		`"per":"ACCOUNT","window":"24h","of":"VALUE"`: `"per":"ACCOUNT","window":"24h","of":"AMOUNT"},` +
			`{"per":"DESTINATION","window":"1m","of":"ACCOUNTS"|`,
	} {
		with, fields, _ := strings.Cut(with, "|")
		text := strings.Replace(large, replaced, with, 1)
		if text == large {
			t.Errorf("%s is not in the rule", replaced)
		}
		err := ruleOf(t, text).Check()
		if storetest.WantsFields(t, err, fields); fields != "" && fault.CodeOf(err) != fault.InvalidField || t.Failed() {
			t.Fatalf("%s instead of %s: %v", with, replaced, err)
		}
	}
}

// A value on its bound is accepted, and the next one is refused.
func TestBoundsOfRules(t *testing.T) {
	t.Parallel()
	check := func(field string, wants bool, edit func(*policy.Rule)) {
		t.Helper()
		r := ruleOf(t, large)
		if edit(&r); wants {
			field = ""
		}
		storetest.WantsFields(t, r.Check(), field)
	}
	const age = 3660 * policy.Day
	for _, c := range []struct {
		field       string
		least, most time.Duration
		of          func(*policy.Rule) *policy.Span
	}{
		{"match.sums[0].window", time.Minute, 31 * policy.Day,
			func(r *policy.Rule) *policy.Span { return &r.Match.Sums[0].Window }},
		{"match.destination.bookAgeBelow", time.Minute, age,
			func(r *policy.Rule) *policy.Span { return &r.Match.Destination.BookAgeBelow }},
		{"match.account.ageBelow", time.Minute, age,
			func(r *policy.Rule) *policy.Span { return &r.Match.Account.AgeBelow }},
		{"match.account.credentialAgeBelow", time.Minute, age,
			func(r *policy.Rule) *policy.Span { return &r.Match.Account.CredentialAgeBelow }},
		{"match.account.creditAgeBelow", time.Minute, age,
			func(r *policy.Rule) *policy.Span { return &r.Match.Account.CreditAgeBelow }},
		{"effect.expires", time.Hour, 30 * policy.Day, func(r *policy.Rule) *policy.Span { return &r.Effect.Expires }},
		{"effect.for", time.Minute, 30 * policy.Day, func(r *policy.Rule) *policy.Span {
			r.Effect = policy.Effect{Type: policy.Wait, After: policy.AfterRequest}
			return &r.Effect.For
		}},
	} {
		for n, valid := range map[time.Duration]bool{c.least: true, c.most: true, c.least - 1: false, c.most + 1: false} {
			check(c.field, valid, func(r *policy.Rule) { *c.of(r) = policy.Span(n) })
		}
	}
	for _, c := range []struct {
		field       string
		least, most int
		set         func(*policy.Rule, int)
	}{
		{"label", 1, 200, func(r *policy.Rule, n int) { r.Label = strings.Repeat("ğ", n) }},
		{"except.accounts", 1, 200, func(r *policy.Rule, n int) { r.Except.Accounts[0] = strings.Repeat("ğ", n) }},
		{"match.initiator.names", 0, 1000,
			func(r *policy.Rule, n int) { r.Match.Initiator.Names = slices.Repeat([]string{"x"}, n) }},
		{"match.initiator.types", 0, 1000,
			func(r *policy.Rule, n int) { r.Match.Initiator.Types = slices.Repeat(r.Match.Initiator.Types, n) }},
		{"match.assets", 0, 1000, func(r *policy.Rule, n int) { r.Match.Assets = slices.Repeat(r.Match.Assets, n) }},
		{"match.account.levels", 0, 1000, func(r *policy.Rule, n int) { r.Match.Account.Levels = make([]int, n) }},
		{"match.sums", 0, policy.MaxSums, func(r *policy.Rule, n int) { r.Match.Sums = slices.Repeat(r.Match.Sums, n) }},
		{"effect.required", 1, 5, func(r *policy.Rule, n int) { r.Effect.Required = n }},
		{"effect.required", 0, 5,
			func(r *policy.Rule, n int) { r.Effect = policy.Effect{Type: policy.Owner, Required: n} }},
	} {
		for n, valid := range map[int]bool{c.least: true, c.most: true, c.least - 1: false, c.most + 1: false} {
			if n >= 0 || c.field == "effect.required" {
				check(c.field, valid, func(r *policy.Rule) { c.set(r, n) })
			}
		}
	}
	storetest.Equal(t, policy.MaxSums, 64)
	storetest.Equal(t, policy.MaxRules, 10_000)
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"90m": "90m", "60m": "1h", "31d": "744h", "0h": "0h", "h": "", "-1h": "",
		"1.5h": "", "1s": "", "1h1m": "", "99999999h": "", "": ""} {
		var s policy.Span
		err := s.UnmarshalText([]byte(text))
		if got, _ := s.MarshalText(); (err == nil) != (want != "") || err == nil && string(got) != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
}

// A set of rules has a limit of different sums; rules that share a sum count once, inactive ones do not.
func TestSumsAreLimited(t *testing.T) {
	t.Parallel()
	var all []policy.Rule
	for i := range policy.MaxSums {
		r := ruleOf(t, large)
		r.Match.Sums[0].Window = policy.Span(time.Duration(i+1) * time.Minute)
		all = append(all, r, r)
	}
	storetest.Must(t, policy.Fits(all))
	all = append(all, ruleOf(t, strings.Replace(large, "ACTIVE", "INACTIVE", 1)))
	storetest.Must(t, policy.Fits(all))
	storetest.WantsFields(t, policy.Fits(append(all, ruleOf(t, large))), "match.sums")
	storetest.Must(t, policy.Fits(make([]policy.Rule, policy.MaxRules)))
	storetest.WantsFields(t, policy.Fits(make([]policy.Rule, policy.MaxRules+1)), "label")
}
