package audit_test

import (
	"testing"
	"time"

	"castellan/domain/kit/audit"
)

// A row gets the actor, the address and the request of its actor. Its outcome is success unless it names another.
func TestDid(t *testing.T) {
	by := audit.By{UserID: "u1", IP: "192.0.2.1", RequestID: "r1"}
	row := audit.Record{At: time.UnixMilli(1), ActorID: "x", UserID: "u2", Action: "A", Target: "t", IP: "y",
		RequestID: "z", Detail: "d"}
	want := audit.Record{At: time.UnixMilli(1), ActorID: "u1", UserID: "u2", Action: "A", Target: "t",
		Outcome: "success", IP: "192.0.2.1", RequestID: "r1", Detail: "d"}
	if got := by.Did(row); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	row.Outcome, want.Outcome = audit.Refused, "refused"
	if got := by.Did(row); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := audit.Operator.Did(audit.Record{}); got != (audit.Record{ActorID: "operator", Outcome: "success"}) {
		t.Errorf("%+v", got)
	}
}
