package blackbox

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func PolicyOf(action string) string {
	return `{"actionCode":"` + action + `","name":"p","expireAt":0,"required":1,"methods":[["SMS"]]}`
}

const (
	ActionsPath = "/admin/system/mfa/actions"
	GuardedKey  = "POST " + ActionsPath
	GuardedCode = "ADD_ACTION_GUARDED"
)

func NewAction(code string) string {
	return fmt.Sprintf(`{"actionCode":%q,"title":{"en":"One more"},"infoTableHeaders":{}}`, code)
}

// Admin logs the seeded administrator in and returns the header of its token.
func Admin(t *testing.T, s *Site, n *Node) Headers {
	t.Helper()
	token, _ := n.Session(t, s.Seeded("admin"))
	return Headers{"x-auth": token}
}

// TwoMethods makes LOGIN require both SMS and MAIL. It returns when the other nodes have the policy too, and
// with it all earlier configuration.
func TwoMethods(t *testing.T, n *Node, who Headers, others ...*Node) {
	t.Helper()
	n.Ok(t, "POST", "/admin/system/mfa/policies/common",
		`{"actionCode":"LOGIN","name":"both","expireAt":0,"required":2,"methods":[["SMS"],["MAIL"]]}`, who).Keys(t, "id")
	for _, other := range others {
		Until(t, Within(1), "the policy known everywhere", func() bool {
			a, err := other.Try("POST", "/admin/system/mfa/explain", `{"actionCode":"LOGIN"}`, who)
			var x struct{ Required int }
			return err == nil && a.Status == 200 && json.Unmarshal(a.Body, &x) == nil && x.Required == 2
		})
	}
}

// Tune changes a method's times; later challenges have them.
func Tune(t *testing.T, n *Node, who Headers, code string, expireMs, renewStartMs int) {
	t.Helper()
	n.Ok(t, "PATCH", "/admin/system/mfa/methods",
		map[string]any{"methodCode": code, "expireMs": expireMs, "renewStartMs": renewStartMs}, who)
}

// Keys returns the fields of a JSON object by name.
func Keys(t *testing.T, object []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return m
}

// Within returns how long a test waits for an event that the service promises within so many seconds. Only
// make faults uses the promised time. Elsewhere the machine may be slow, and the test waits Slack times as
// long.
func Within(seconds float64) time.Duration {
	return time.Duration(seconds * Slack * float64(time.Second))
}
