package audit_test

import (
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
)

// A row gets the actor, the address and the request of its actor. Its outcome is success unless it names another.
func TestDid(t *testing.T) {
	by := audit.By{UserID: "u1", IP: "192.0.2.1", RequestID: "r1"}
	row := audit.Record{At: time.UnixMilli(1), ActorID: "x", UserID: "u2", Action: "A", Target: "t", IP: "y",
		RequestID: "z", Detail: "d"}
	want := audit.Record{At: time.UnixMilli(1), ActorID: "u1", UserID: "u2", Action: "A", Target: "t",
		Outcome: "success", IP: "192.0.2.1", RequestID: "r1", Detail: "d"}
	storetest.Equal(t, by.Did(row), want)
	row.Outcome, want.Outcome = audit.Refused, "refused"
	storetest.Equal(t, by.Did(row), want)
	storetest.Equal(t, audit.Operator.Did(audit.Record{}), (audit.Record{ActorID: "operator", Outcome: "success"}))
}
