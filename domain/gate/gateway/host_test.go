package gateway_test

import (
	"testing"

	"castellan/domain/gate/gateway"
)

// Only the hosts that active routes name, or routes on trial, are named.
func TestHostsOfRoutes(t *testing.T) {
	table := gateway.NewTable([]gateway.Route{{Host: "shop.example", Path: "/a", Status: gateway.Active}, {Path: "/b"},
		{Host: "old.example", Path: "/c", Status: gateway.Inactive}})
	for host, want := range map[string]bool{"shop.example": true, "old.example": false, "evil.example": false, "": false} {
		if got := table.Names(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
