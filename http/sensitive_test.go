package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	httpapi "castellan/http"
	"castellan/http/rest"
)

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
	if len(excepted) != len(exceptions) {
		t.Errorf("only %q are exceptions", excepted)
	}
	for _, part := range []string{"/mfa/methods", "/mfa/actions", "/mfa/policies", "/waf/rules", "/resource/resource",
		"/resource/resource-type", "/admin/roles", "/admin/user-roles", "/role-resource-permission", "/update-parameters",
		"/admin/levels", "/admin/money/rules"} {
		if !slices.ContainsFunc(set, func(key string) bool { return strings.Contains(key, part) }) {
			t.Errorf("nothing that changes %s is in the set", part)
		}
	}
}
