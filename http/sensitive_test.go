package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	httpapi "castellan/http"
	"castellan/http/rest"
)

// What mfa.guard_administration puts behind a challenge is complete: whatever changes
// something in the sections that decide who may do what, and how the service is
// protected, is in the set, or stands here with the reason why not. Sections without
// an endpoint of the set are not concerned.
func TestSensitiveWrites(t *testing.T) {
	exceptions := map[string]string{
		"POST /admin/system/mfa/explain": "tells, and changes nothing",
		"POST /admin/system/waf/explain": "tells, and changes nothing",
	}
	sections := []string{"4.4 MFA administration", "4.5 Firewall rules", "4.6 Resource registry",
		"Extensions: multi-factor administration", "Extensions: firewall", "Extensions: roles and permissions"}
	parts := []string{"/admin/system/", "role", "permission", "parameter", "key"}
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
		"/resource/resource-type", "/admin/roles", "/admin/user-roles", "/role-resource-permission", "/update-parameters"} {
		if !slices.ContainsFunc(set, func(key string) bool { return strings.Contains(key, part) }) {
			t.Errorf("nothing that changes %s is in the set", part)
		}
	}
}
