package httpapi_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/rest"
)

// secretWords are the words of names that a secret can have. Names are split at capitals and underscores.
var secretWords = []string{"base32", "code", "codes", "grant", "key", "keys", "otp", "password", "pin", "recovery",
	"secret", "secrets", "token", "tokens", "totp"}

// openFields are fields with such a name and without a secret: the name of a field, or the schema or operation and the
// field.
var openFields = map[string]string{
	"actionCode": "of an action", "countryCode": "of a country", "currencyCode": "of a currency",
	"dropdownCode": "of a list of choices", "methodCode": "of a method", "networkCode": "of a network",
	"phoneCode": "of a country", "resourceCode": "of an endpoint or a page", "resourceTypeCode": "of a type",
	"roleCode": "of a role", "statusCode": "of a status",
	"publicKey": "the public half", "pubKeyCredParams": "algorithms", "JwkSet.keys": "the public halves",
	"passkeyAlone": "a setting", "totp": "whether there is one", "totpConfirmed": "whether it was confirmed",

	"ExecResult.code": "of an error", "TransactionAdjusted.code": "of an error",
	"CurrencyRecord.code": "of a currency", "ResourceType.code": "of a type", "Role.code": "of a role",
	"Contract.code": "of a contract", "ContractVersion.code": "of a contract",
	"RegistrationContract.code": "of a contract", "ClusterLimits.keys": "a number",
	"DropdownOption.code": "of a choice", "FullDropdownOption.code": "of a choice",
	"Parameter.code":                  "of a parameter",
	"CryptoWithdrawalQueueEntry.code": "of a currency",

	"Intent.key": "of a row", "GuardRow.key": "of a row", "GuardSaid.key": "of a row", "SetupFinding.key": "of a setting",
}

// Every field of an answer whose name is that of a secret is declared in the table, or known to hold none. Every
// declared field exists. So a secret of a new endpoint cannot be part of an approval by oversight (D-EXT-08).
func TestSecretsAreDeclared(t *testing.T) {
	doc := published(t)
	used := map[string]bool{}
	for _, e := range httpapi.Endpoints() {
		found := map[string]bool{} // the declared fields
		var walk func(owner, at string, ref *openapi3.SchemaRef, above []*openapi3.Schema)
		walk = func(owner, at string, ref *openapi3.SchemaRef, above []*openapi3.Schema) {
			if ref == nil || ref.Value == nil || slices.Contains(above, ref.Value) {
				return
			}
			s := ref.Value
			above = append(above[:len(above):len(above)], s)
			if name := ref.Ref[strings.LastIndex(ref.Ref, "/")+1:]; name != "" {
				owner = name
			}
			for name, p := range s.Properties {
				field := strings.TrimPrefix(at+"."+name, ".")
				if slices.Contains(e.Secrets, field) {
					found[field] = true
					continue
				}
				if known := cover(name, owner+"."+name); known != "" {
					used[known] = true
				} else if likeSecret(name) {
					t.Errorf("%s answers with %s (%s.%s): declare it with Secret, or list it in openFields", e.Key(), field,
						owner, name)
				}
				walk(owner, field, p, above)
			}
			for _, more := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
				for _, one := range more {
					walk(owner, at, one, above)
				}
			}
			walk(owner, at, s.Items, above)
			walk(owner, at, s.AdditionalProperties.Schema, above)
		}
		op := doc.Paths.Value(e.Path).GetOperation(e.Method)
		for _, media := range op.Responses.Value("200").Value.Content {
			walk(e.ID, "", media.Schema, nil)
		}
		for _, field := range e.Secrets {
			if !found[field] {
				t.Errorf("%s has no field %s", e.Key(), field)
			}
		}
		// requestWithdrawal starts a challenge only if the call does not wait.
		if len(e.Tokens) > 0 && rest.Solo(e) == "" && e.ID != "requestWithdrawal" {
			t.Errorf("%s can wait for a second person, and its tokens would be lost", e.Key())
		}
	}
	for field := range openFields {
		if !used[field] {
			t.Errorf("no answer has the field %s of openFields", field)
		}
	}
}

func cover(names ...string) string {
	for _, name := range names {
		if openFields[name] != "" {
			return name
		}
	}
	return ""
}

var word = regexp.MustCompile(`[A-Z]+(?:[^a-zA-Z_][^A-Z_]*|$)|[A-Z]?[^A-Z_]+|[A-Z]+`)

// likeSecret reports whether a name contains one of secretWords.
func likeSecret(name string) bool {
	return slices.ContainsFunc(word.FindAllString(name, -1), func(w string) bool {
		return slices.Contains(secretWords, strings.ToLower(w))
	})
}

// The words of a name are found in every spelling.
func TestNamesOfSecrets(t *testing.T) {
	for name, want := range map[string]bool{"key": true, "apiKey": true, "recovery_codes": true, "recoveryCodes": true,
		"otpAuthUrl": true, "newPIN": true, "accessToken": true, "clientSecret": true, "keyboard": false, "isPinned": false,
		"decode": false, "monkey": false} {
		storetest.Equal(t, likeSecret(name), want, name)
	}
}

// Endpoints that change permissions or move money can require a second person (D-EXT-08).
func TestWritesForFourEyes(t *testing.T) {
	money := []string{"POST /admin/transaction/adjust-balance", "POST /admin/update-wallet-withdrawal-crypto-queue",
		"POST /admin/update-status-transaction", "POST /blockage/insert-blockage-history",
		"POST /blockage/update-blockage-history", "POST /blockage/delete-blockage-history"}
	seen := 0
	for _, e := range httpapi.Endpoints() {
		wanted := e.Sensitive && !e.Deciding || slices.Contains(money, e.Key())
		if wanted {
			seen++
		}
		if why := rest.Solo(e); wanted && why != "" {
			t.Errorf("%s cannot wait for a second person: %s", e.Key(), why)
		}
	}
	if seen < len(money)+18 {
		t.Errorf("only %d such writes are there", seen)
	}
}

// The set of mfa.guard_administration is complete. Every write of the sections for permissions
// and for the protection of the service is in the set, or is listed here with the reason.
// Sections without an endpoint of the set are not concerned.
func TestSensitiveWrites(t *testing.T) {
	exceptions := map[string]string{
		"POST /admin/system/mfa/explain":  "tells, and changes nothing",
		"POST /admin/system/waf/explain":  "tells, and changes nothing",
		"POST /admin/guard/explain":       "tells, and changes nothing",
		"POST /admin/money/explain":       "tells, and changes nothing",
		"POST /admin/money/rehearse":      "tells, and changes nothing",
		"POST /admin/system/mfa/rehearse": "tells, and changes nothing",
		"POST /admin/system/waf/rehearse": "tells, and changes nothing",

		"POST /admin/approvals/{id}/approve": "starts a challenge of its own",
		"POST /admin/approvals/{id}/refuse":  "only prevents a change",
	}
	sections := []string{"4.4 MFA administration", "4.5 Firewall rules", "4.6 Resource registry",
		"Extensions: multi-factor administration", "Extensions: firewall", "Extensions: roles and permissions",
		"Extensions: foreign users", "Extensions: gateways", "Extensions: approvals", "Extensions: users",
		"Extensions: money policy"}
	parts := []string{"/admin/system/", "role", "permission", "parameter", "key", "/admin/levels"}
	var set, excepted []string
	for _, e := range httpapi.Endpoints() {
		key := e.Key()
		concerned := e.Method != "GET" && e.Audience == rest.Admin && (slices.Contains(sections, e.Section) ||
			slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(e.Path, part) }))
		switch {
		case e.Sensitive:
			if set = append(set, key); !concerned || rest.Unguardable(e) != "" {
				t.Errorf("%s cannot be in the set: %s", key, rest.Unguardable(e))
			}
		case exceptions[key] != "":
			excepted = append(excepted, key)
		case concerned:
			t.Errorf("%s is neither sensitive nor an exception", key)
		}
	}
	storetest.Equal(t, len(excepted), len(exceptions), "exceptions that are met:", excepted)
	for _, part := range []string{"/mfa/methods", "/mfa/actions", "/mfa/policies", "/waf/rules", "/resource/resource",
		"/resource/resource-type", "/admin/roles", "/admin/user-roles", "/role-resource-permission", "/update-parameters",
		"/admin/levels", "/admin/money/rules"} {
		if !slices.ContainsFunc(set, func(key string) bool { return strings.Contains(key, part) }) {
			t.Errorf("nothing that changes %s is in the set", part)
		}
	}
}
