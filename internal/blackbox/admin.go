package blackbox

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

const (
	ActionsPath  = "/admin/system/mfa/actions"
	policiesPath = "/admin/system/mfa/policies/common"
	GuardedKey   = "POST " + ActionsPath
	GuardedCode  = "ADD_ACTION_GUARDED"
)

func NewAction(code string) string {
	return fmt.Sprintf(`{"actionCode":%q,"title":{"en":"One more"},"infoTableHeaders":{}}`, code)
}

// Admin logs the seeded administrator in and returns the header of its token.
func Admin(t *testing.T, s *Site, n *Node) Headers {
	t.Helper()
	return n.Auth(t, s.Seeded("admin"))
}

// Policy makes the general policy of an action and returns its id; more are further members, each after a comma.
func Policy(t testing.TB, n *Node, who Headers, action string, required int, methods, more string) int64 {
	t.Helper()
	var made struct{ ID int64 }
	n.Ok(t, "POST", policiesPath, fmt.Sprintf(`{"actionCode":%q,"name":"p","expireAt":0,"required":%d,"methods":%s%s}`,
		action, required, methods, more), who).Keys(t, "id").Read(t, &made)
	return made.ID
}

// ChangePolicy changes members of a policy, each after a comma.
func ChangePolicy(t testing.TB, n *Node, who Headers, id int64, members string) {
	t.Helper()
	n.Ok(t, "PATCH", policiesPath, fmt.Sprintf(`{"id":%d%s}`, id, members), who)
}

// Role makes a role that may call the endpoints, gives it to an account, if there is one, and returns its id.
func Role(t testing.TB, n *Node, boss Headers, to Account, code string, endpoints ...string) int64 {
	t.Helper()
	var role struct{ Data struct{ ID int64 } }
	n.Ok(t, "POST", "/admin/roles", map[string]string{"code": code, "name": code}, boss).Read(t, &role)
	var resources []struct {
		ResourceID   int64
		ResourceCode string
	}
	n.Ok(t, "GET", "/resource/resources?resourceContext=API", nil, boss).Read(t, &resources)
	ids := map[string]int64{}
	for _, r := range resources {
		ids[r.ResourceCode] = r.ResourceID
	}
	for _, endpoint := range endpoints {
		n.Ok(t, "POST", "/admin/role-resource-permission",
			map[string]any{"roleId": role.Data.ID, "resourceId": ids[endpoint], "permission": "ALLOW"}, boss)
	}
	if to.ID != "" {
		n.Ok(t, "POST", "/admin/user-roles", map[string]any{"userId": to.ID, "roleCode": code}, boss)
	}
	return role.Data.ID
}

// TwoMethods makes LOGIN require both SMS and MAIL. It returns when the other nodes have the policy too, and
// with it all earlier configuration.
func TwoMethods(t *testing.T, n *Node, who Headers, others ...*Node) {
	t.Helper()
	Policy(t, n, who, "LOGIN", 2, `[["SMS"],["MAIL"]]`, "")
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
func Keys(t testing.TB, object []byte) map[string]json.RawMessage {
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
