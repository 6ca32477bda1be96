package blackbox

import (
	"testing"
)

const (
	RulesPath = "/admin/system/waf/rules"
	KeysPath  = "/.well-known/jwks.json" // public, and cheap
)

// Rule adds an active rule that never expires.
func Rule(t *testing.T, n *Node, boss Headers, label, kind string, more map[string]any) {
	t.Helper()
	body := map[string]any{"label": label, "type": kind, "expireAt": 0, "status": "ACTIVE", "targetEntityType": "IP"}
	for k, v := range more {
		body[k] = v
	}
	if a := n.Do(t, "POST", RulesPath, body, boss).Is(t, 200, ""); string(a.Body) != "{}" {
		t.Errorf("rule %s: %s", label, a)
	}
}

func Status(t *testing.T, n *Node, label, to string, boss Headers) {
	t.Helper()
	n.Do(t, "PATCH", RulesPath, map[string]any{"label": label, "status": to}, boss).Is(t, 200, "")
}
