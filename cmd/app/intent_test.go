package app

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"castellan/cmd/app/doctor"
	"castellan/config"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/domain/people/registration"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
	"castellan/domain/session/geofilter"
	"castellan/domain/session/replace"
	httpapi "castellan/http"
	"castellan/http/office/foureyes"
)

// described is an action with a command: a sample with all its fields, each with a value of its own, and the fields
// that no row shows, with the reason.
type described struct {
	action challenge.Action
	sample string
	exempt map[string]string
}

var describedActions = map[string]described{
	"DEVICE_ADD": {new(device.Service).AddAction(), `{"key":{"kty":"OKP","crv":"Ed25519",
		"x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},"brand":"Acme","model":"One","description":"red phone",
		"platform":"android","target":"{\"type\":\"webhook\"}","passkey":null,"handle":""}`,
		map[string]string{"key.kty": "the thumbprint covers the key", "key.crv": "likewise", "key.x": "likewise",
			"passkey": "the thumbprint covers its key, which replaces the other"}},
	"DEVICE_REMOVE":    {new(device.Service).RemoveAction(), `{"deviceId":"d1","name":"Acme One"}`, nil},
	"GEOFILTER_ADD":    {new(geofilter.Service).AddAction(), `{"c":"TR"}`, nil},
	"GEOFILTER_REMOVE": {new(geofilter.Service).RemoveAction(), `{"c":"TR"}`, nil},
	"UPDATE_PASSWORD": {new(replace.Service).ChangeAction(), `{"h":"hash","s":{"Key":"k","Sum":"AQ=="}}`,
		map[string]string{"h": "a password is never shown", "s.Key": "the state at the start", "s.Sum": "likewise"}},
	"RESET_PASSWORD": {new(replace.Service).ResetAction(), `{"countryCode":"90","phoneNumber":"5321234567"}`,
		map[string]string{"countryCode": "the account's own number", "phoneNumber": "likewise"}},
	"TOTP_SETUP":      {new(totp.Service).SetupAction(), `{}`, nil},
	"TOTP_DEACTIVATE": {new(totp.Service).DeactivateAction(), `{}`, nil},
	"REGISTER": {new(registration.SignUps).Action(), `{"newcomer":{"externalId":"e","countryCode":"+90",
		"phoneNumber":"+905321234567","email":"a@b.example","name":"Ayse","surname":"Demir","language":"ar","type":"p"},
		"hash":"h","contracts":[{"id":71,"version":"3.2"}]}`,
		map[string]string{"newcomer.externalId": "empty for a sign-up", "newcomer.language": "the language of the document",
			"newcomer.type": "a sign-up is of a person", "hash": "a password is never shown"}},
	"APPROVE_REQUEST": {foureyes.Group{}.Action(), `{"id":"r1","summary":"ADJUST_BALANCE","approver":{},
		"details":[{"Key":"amount","Value":"1.5","Label":""}],"digest":"q"}`,
		map[string]string{"details[].Key": "the key of a row", "digest": "it is compared with the sealed request"}},
	"WITHDRAW": {challenge.Action{Describe: new(transaction.Approvals).Describe}, `{"request":{"ExternalID":"w1",
		"UserID":"u1","CurrencyCode":"BTC","NetworkCode":"LN","Amount":"0.1","Address":"a1","AddressTag":"tag7",
		"AddressID":12},"fee":"0.02","to":"bc1q"}`,
		map[string]string{"request.UserID": "the document has the user", "request.AddressID": "its address is in to",
			"request.Address": "to is the address in its canonical form"}},
}

// The intent shows every field of a command, or an exemption names the field and the reason (D-EXT-09). A new action or
// a new field fails until it is described.
func TestIntentsShowWholeCommands(t *testing.T) {
	for _, e := range httpapi.Endpoints() {
		if e.Starts == "" || strings.Contains(e.Starts, " or ") {
			continue // the actions of startChallenge have no command
		}
		d, ok := describedActions[e.Starts]
		if !ok {
			t.Errorf("%s: the command of %s is not described", e.Key(), e.Starts)
			continue
		}
		var sample map[string]json.RawMessage
		if err := json.Unmarshal([]byte(d.sample), &sample); err != nil {
			t.Fatalf("%s: %v", e.Starts, err)
		}
		if e.Command.Kind() != reflect.Struct || e.Starts == registration.ActionRegister {
			continue // a sign-up seals another form of its request
		}
		for i := range e.Command.NumField() {
			f := e.Command.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			if _, has := sample[name]; !has && f.IsExported() {
				t.Errorf("%s: the sample of %s lacks the field %s", e.Key(), e.Starts, name)
			}
		}
	}
	for code, d := range describedActions {
		var values []string
		if d.action.Describe != nil {
			for _, one := range d.action.Describe([]byte(d.sample)) {
				values = append(values, one.Value)
			}
		}
		var tree any
		storetest.Must(t, json.Unmarshal([]byte(d.sample), &tree))
		leaves(tree, "", func(path, value string) {
			shown := slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, value) })
			if _, exempt := d.exempt[path]; !shown && !exempt {
				t.Errorf("%s: no row shows %s, and no exemption names it: %q", code, path, values)
			}
		})
	}
}

// leaves calls each with the path and the text of every value that is not empty.
func leaves(tree any, path string, each func(path, value string)) {
	switch v := tree.(type) {
	case map[string]any:
		for name, one := range v {
			leaves(one, strings.TrimPrefix(path+"."+name, "."), each)
		}
	case []any:
		for _, one := range v {
			leaves(one, path+"[]", each)
		}
	case string:
		if v != "" {
			each(path, v)
		}
	default:
		text, _ := json.Marshal(v)
		each(path, string(text))
	}
}

// The challenge before a call that returns a secret also guards the call that fetches it after an approval, so that a
// copied token is not enough.
func TestFetchIsGuardedLikeItsRequest(t *testing.T) {
	const add, rotate = "POST /admin/service-keys", "POST /admin/service-keys/rotate"
	both := []string{add, rotate}
	keys := map[string]string{add: "KEYS"}
	for name, c := range map[string]struct {
		mfa  config.MFA
		want string
	}{
		"guarded":              {config.MFA{FourEyes: both, Guarded: map[string]string{rotate: "KEYS"}}, "KEYS"},
		"not guarded":          {config.MFA{FourEyes: both}, ""},
		"not for two persons":  {config.MFA{Guarded: keys}, ""},
		"without a secret":     {config.MFA{FourEyes: []string{"POST /admin/roles"}, Guarded: keys}, ""},
		"guard administration": {config.MFA{GuardAdministration: true}, doctor.Administration},
		"a code of its own": {config.MFA{FourEyes: both, Guarded: map[string]string{add: "KEYS",
			foureyes.FetchKey: "F"}}, "F"},
	} {
		given := maps.Clone(c.mfa.Guarded)
		storetest.Equal(t, guardedEndpoints(c.mfa, httpapi.Endpoints())[foureyes.FetchKey], c.want, name)
		if !maps.Equal(given, c.mfa.Guarded) {
			t.Errorf("%s: the configuration was changed", name)
		}
	}
}
