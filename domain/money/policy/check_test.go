package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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

func TestRuleIsReadAndWrittenAsOne(t *testing.T) {
	t.Parallel()
	r := ruleOf(t, large)
	storetest.Must(t, r.Check())
	text, err := json.Marshal(r)
	storetest.Must(t, err)
	if again := ruleOf(t, string(text)); !reflect.DeepEqual(again, r) {
		t.Errorf("%s is read as %+v, want %+v", text, again, r)
	}
}

// One value of a valid rule is replaced; the error names the field.
func TestFaultyRulesAreRefusedByField(t *testing.T) {
	t.Parallel()
	for replaced, with := range map[string]string{
		`"Large withdrawals"`:              `" x"|label`,
		`"status":"ACTIVE"`:                `"status":"active"|status`,
		`["WITHDRAWAL"]`:                   `[]|kinds`,
		`"direction":"OUT"`:                `"direction":"UP"|match.direction`,
		`"2000000"`:                        `"-1"|match.amount.over`,
		`"unit":"TRY"`:                     `"unit":"USD"|match.amount.unit`,
		`"currencyCode":"USDT"`:            `"currencyCode":""|match.assets`,
		`"per":"ACCOUNT"`:                  `"per":"NOBODY"|match.sums[0].per`,
		`"window":"24h"`:                   `"window":"745h"|match.sums[0].window`,
		`"of":"VALUE"`:                     `"of":"ACCOUNTS"|match.sums[0].of`,
		`"VALUE","over":"5000000"`:         `"COUNT","over":"1.5"|match.sums[0].over`,
		`"aml":["risky"]`:                  `"aml":["bad"]|match.account.aml`,
		`"direction":"OUT",`:               `"settings":["FEE"],|match.settings`,
		`"direction":`:                     `"settings":["PRICE"],"direction":|match.settings`,
		`"levels":[1],`:                    `"levels":[1]},"device":["OLD"],"account":{|match.device`,
		`"types":["SERVICE"]`:              `"types":["ROBOT"]|match.initiator.types`,
		`"names":["shop"]`:                 `"names":[""]|match.initiator.names`,
		`"from":"22:00"`:                   `"from":"24:00"|match.hours.from`,
		`"to":"07:00"`:                     `"to":"22:00"|match.hours.to`,
		`"Europe/Istanbul"`:                `"Mars/Olympus"|match.hours.zone`,
		`"accounts":["u1"]`:                `"accounts":[""]|except.accounts`,
		`"type":"APPROVAL"`:                `"type":"ALLOW"|effect.type`,
		`"APPROVAL","group"`:               `"DENY","group"|effect.group`,
		`"required":2`:                     `"required":6|effect.required`,
		`"expires":"72h"`:                  `"expires":"30m"|effect.expires`,
		`"APPROVAL","group":"treasury","r`: `"WAIT","for":"48h","after":"EASTER","r|effect.after`,
		`["WITHDRAWAL"],` + "\n":           `["SETTING"],|match.assets`,
		`"kinds":["WITHDRAWAL"]`:           `"kinds":["DEPOSIT"]|match.destination`,
	} {
		with, field, _ := strings.Cut(with, "|")
		text := strings.Replace(large, replaced, with, 1)
		if text == large {
			t.Errorf("%s is not in the rule", replaced)
		}
		err := ruleOf(t, text).Check()
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.InvalidField || !strings.Contains(fmt.Sprint(f.Fields), field) {
			t.Errorf("%s instead of %s: %v, want field %s", with, replaced, err, field)
		}
	}
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
	if err := policy.Fits(append(all, ruleOf(t, large))); fault.CodeOf(err) != fault.InvalidField {
		t.Errorf("one sum too many is %v", err)
	}
}

// The rules of a new platform and of the templates are valid together. On trial none orders movements by a gate or
// reads a sum; an administrator decides about each of them once.
func TestDefaultRules(t *testing.T) {
	for name, rules := range map[string][]policy.Rule{"active": policy.Defaults(policy.Active),
		"trial": policy.Defaults(policy.Trial), "turkiye": policy.Templates["turkiye"]()} {
		all := append(slices.Clone(rules), policy.Defaults(policy.Trial)...)
		storetest.Must(t, policy.Fits(all))
		for _, r := range rules {
			storetest.Must(t, r.Check())
		}
		set := policy.Compile(rules)
		for _, k := range []policy.Kind{policy.Withdrawal, policy.Deposit, policy.Adjustment} {
			needed := set.Needs(policy.Facts{Kind: k}, false)
			if active := name == "active"; active != (len(set.Counts(k)) > 0) || !active && len(needed) > 0 {
				t.Errorf("%s, %s: counts %v, needs %v", name, k, set.Counts(k), needed)
			}
		}
	}
	rules := policy.Defaults(policy.Trial)
	for i := range rules {
		rules[i].Version = 1
	}
	rules[0].Version, rules[1].Status = 2, policy.Active
	if got, want := len(policy.Undecided(rules[:4])), 2; got != want {
		t.Errorf("%d are undecided, want %d", got, want)
	}
}
