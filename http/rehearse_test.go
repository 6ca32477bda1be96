package httpapi_test

import (
	"testing"

	"castellan/domain/guard/firewall"
	httpapi "castellan/http"
)

// The endpoints by which a rehearsal says that acts of the audit come are served.
func TestPlacedActs(t *testing.T) {
	served := map[string]bool{}
	for _, e := range httpapi.Endpoints() {
		served[e.Key()] = true
	}
	for action, resource := range firewall.Placed() {
		if !served[resource] {
			t.Errorf("%s comes by %q, which nobody serves", action, resource)
		}
	}
}
